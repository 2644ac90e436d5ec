"""Claims as people write them: names, units and forms of one and the same figure."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

import pytest

from longpole.claims import read_claims
from longpole.claims.fields import FIELDS, WORDS, find_field
from longpole.errors import UsageError


def value_of(text: str, field: str) -> float:
    return read_claims(tomllib.loads(text, parse_float=Decimal)).statements[0].figures[field].value


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ('tok_s = "2.2k tok/s"', "tok_s", 2200),
        ('tok_s = "1,200 tokens per second"', "tok_s", 1200),
        ('throughput = "2600 tokens/sec/GPU"', "tok_s_gpu", 2600),
        ('throughput = "31 samples/s"', "seq_s", 31),
        ("tokens_per_day = 272.80e9", "tok_s", 272.80e9 / 86400),
        ('step = "512 ms"', "step_s", 0.512),
        ("step_time_ms = 512", "step_s", 0.512),
        ("step_s = 0.512", "step_s", 0.512),
        ("days = 3.7", "time_s", 3.7 * 86400),
        ('time = "13.5 h"', "time_s", 48600),
        ('gpu_hours = "2.664M H800 hours"', "gpu_s", 2.664e6 * 3600),
        ("peak = 312", "peak", 312e12),
        ("peak = 312e12", "peak", 312e12),
        ('peak = "312 TFLOPS"', "peak", 312e12),
        ('peak = "0.312 PFLOP/s"', "peak", 312e12),
        ("peak_tflops = 989.4", "peak", 989.4e12),
        ('tflops = "408 TFLOP/s/GPU"', "flops_gpu", 408e12),
        ("aggregate_pflops = 4.4", "flops_total", 4.4e15),
        ('flops_step = "1.28 PFLOP"', "flops_step", 1.28e15),
        ("gflops_per_token = 250", "flops_token", 250e9),
        ("mfu = 35", "mfu", 0.35),
        ("mfu = 0.35", "mfu", 0.35),
        ('mfu = "35 % MFU"', "mfu", 0.35),
        ("mfu_pct = 41.25", "mfu", 0.4125),
        ("mfu = 1.5618", "mfu", 1.5618),
        ('params = "13B"', "params", 13e9),
        ("params = 13e9", "params", 13e9),
        ("params_b = 1.7", "params", 1.7e9),
        ("N = 7e9", "params", 7e9),
        ('params = "405 billion"', "params", 405e9),
        ('message = "168 MB"', "message", 168e6),
        ('message = "160 MiB"', "message", 167772160),
        ("S = 167772160", "message", 167772160),
        ('link = "400 GB/s"', "link", 400e9),
        ("link = 400", "link", 400e9),
        ('link = "3200 Gbps"', "link", 400e9),
        ('link = "400 Gb/s"', "link", 50e9),
        ('link = "1.8 TB/s"', "link", 1.8e12),
        ('memory = "80 GiB"', "memory", 80 * 2**30),
        ('seq = "8k"', "seq", 8192),
        ("seq_len = 4096", "seq", 4096),
        ("b = 8", "mbs", 8),
        ("B = 512", "gbs", 512),
        ('batch_size = "4M tokens"', "tokens_step", 4e6),
        ('tokens = "1.4T"', "tokens", 1.4e12),
        ('speedup = "29 %"', "speedup", 1.29),
        ('speedup = "1.57x"', "speedup", 1.57),
        ("chips = 6144", "gpus", 6144),
        ('device = "8x A100"', "gpus", 8),
        ('cost = "$5.576M"', "cost", 5.576e6),
        ('bubble = "10.3%"', "bubble", 0.103),
    ],
)
def test_a_figure_is_read_in_the_ways_it_is_written(text: str, field: str, value: float) -> None:
    assert value_of(text, field) == pytest.approx(value)


def test_a_figure_that_is_a_text_of_a_number_alone_has_the_keys_unit() -> None:
    assert value_of('step_ms = "512"', "step_s") == pytest.approx(0.512)


def test_rows_share_the_head_and_go_before_it() -> None:
    claims = read_claims({"gpus": 8, "claim": [{"tok_s": 1200}, {"tok_s": 2200, "gpus": 16}]})

    assert [one.count("gpus") for one in claims.statements] == [8, 16]
    assert ["gpus" in one.shared for one in claims.statements] == [True, False]


def test_tables_of_one_name_each_and_groups_of_keys_are_read_alike() -> None:
    named = read_claims({"claim": {"first": {"tok_s": 5}, "second": {"tok_s": 6}}})
    grouped = read_claims({"model": {"params": "7B"}, "layout": {"tp": 2, "dp": 4}, "hardware": {"name": "A100"}})

    assert [one.name for one in named.statements] == ["first", "second"]
    assert sorted(grouped.statements[0].figures) == ["dp", "params", "tp"]
    assert grouped.statements[0].device is not None


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"mfu": Decimal("-0.3")}, r"mfu: expected a number above 0; found '-0.3'"),
        ({"gpus": 0}, "gpus: expected a number above 0"),
        ({"gpus": Decimal("8.5")}, "gpus: expected a whole number"),
        ({"gpus": 10**15}, "gpus: expected a count of at most"),
        ({"step_s": "512 parsecs"}, "step_s: unit 'parsecs' is none here; expected a time such as"),
        ({"link": "400 apples"}, "link: unit 'apples' is none here; expected a rate such as '400 GB/s'"),
        ({"cost": "35 %"}, "cost: unit '%' is none here; expected an amount"),
        ({"mfu": True}, "mfu: expected a number"),
        ({"mfu": [1, 2]}, "mfu: expected a number"),
        ({"params": Decimal("1e30")}, "params: expected at most 1e.16 parameters"),
        ({"params": "1" * 5000}, "params: expected a number with its unit"),
        ({"params": 13}, "params: expected a number of parameters such as 13e9"),
        ({"device": "H1000", "mfu": "40 %"}, "device: 'H1000' is not in the device table, and no peak is guessed"),
        ({"convention": "mine", "mfu": "40 %"}, "convention: .*Accepted: 6n"),
        ({"recompute": "some", "mfu": "40 %"}, "recompute: expected none, selective or full"),
        ({"zero": 5, "mfu": "40 %"}, "zero: expected a stage of ZeRO"),
        ({"device": "8x H200", "gpus": 16}, "gpus and device are one figure"),
        ({"tok_s": 5, "throughput": 9}, "throughput and tok_s are one figure"),
        ({}, "no figure is stated; expected keys such as"),
        ({"claim": 3, "mfu": "4 %"}, "claim: expected tables"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_accepted(claim: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read_claims(claim)


def test_an_unknown_key_costs_only_itself() -> None:
    (statement,) = read_claims({"thruput": 3, "tok_s": 5}).statements

    assert list(statement.figures) == ["tok_s"]
    assert statement.unread[0].startswith("thruput: no such figure; close to it: throughput")


def test_a_device_that_is_not_known_is_taken_with_a_stated_peak() -> None:
    (statement,) = read_claims({"device": "H1000", "peak": "3 PFLOP/s", "mfu": "40 %"}).statements

    assert statement.device is None
    assert "H1000 is not in the table" in statement.assumed[0]


def test_the_reference_page_has_every_key(root: Any) -> None:
    page = (root / "docs" / "reference" / "claims.md").read_text(encoding="utf-8")
    keys = [key for field in FIELDS.values() for key in (field.name, *field.aliases)] + list(WORDS)

    assert not [key for key in keys if f"`{key}`" not in page]


def test_every_key_means_its_figure() -> None:
    for field in FIELDS.values():
        for key in (field.name, *field.aliases):
            found = find_field(key)
            assert found is not None
            assert found[0] is field
