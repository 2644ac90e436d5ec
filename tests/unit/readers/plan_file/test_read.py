"""A plan's file: what is read, and what every mistake says."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from longpole.errors import InputError, UsageError
from longpole.readers.plan_file.keys import SECTIONS
from longpole.readers.plan_file.read import check_plan, read_plan_file
from tests.plans import PLAN, TABLES, tables, write_plan

if TYPE_CHECKING:
    from pathlib import Path


def test_keys_are_kept_by_section(tmp_path: Path) -> None:
    file = read_plan_file(write_plan(tmp_path))

    assert file.section("")["convention"] == "mcore"
    assert file.section("layout") == {"tp": 4, "pp": 2, "zero": 1}
    assert file.section("search") == {}
    assert file.folder == tmp_path


def test_the_tables_of_tests_are_the_text_of_tests(tmp_path: Path) -> None:
    assert dict(read_plan_file(write_plan(tmp_path, PLAN)).sections) == dict(check_plan(TABLES, "plan.toml").sections)


def test_a_plan_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PLAN.encode())))

    assert read_plan_file("-").section("layout")["tp"] == 4


def test_changes_stand_in_place_of_the_files_keys(tmp_path: Path) -> None:
    changes = [("layout.tp", 8), ("convention", "6n"), ("model.experts.count", 8), ("serving.tp", 2)]
    path = write_plan(tmp_path)

    with pytest.raises(UsageError, match=r"\[model.experts\] per_token: missing"):
        read_plan_file(path, changes)
    file = read_plan_file(path, changes[:2])

    assert file.section("layout") == {"tp": 8, "pp": 2, "zero": 1}
    assert file.section("")["convention"] == "6n"


@pytest.mark.parametrize(
    ("section", "key", "value", "says"),
    [
        ("layout", "tp", 0, "[layout] tp: expected a whole number of at least 1; found 0"),
        ("layout", "tp", -4, "found -4"),
        ("layout", "tp", True, "found True"),
        ("layout", "tp", 2.0, "found 2.0"),
        ("layout", "tp", "4", "found '4'"),
        ("layout", "zero", 4, "expected at most 3; found 4"),
        ("layout", "sp", 1, "expected true or false; found 1"),
        ("batch", "global_batch", 10**12, "expected at most 1,000,000,000; found 1000000000000"),
        ("hardware", "network_gb_per_s", -50, "expected a finite number above 0; found -50"),
        ("hardware", "network_gb_per_s", float("inf"), "found inf"),
        ("hardware", "network_gb_per_s", float("nan"), "found nan"),
        ("hardware", "network_gb_per_s", 50e9, "expected at most 5,000; found 50000000000.0"),
        ("hardware", "peak_tflops", {"bf16": 312, "tf32": 156}, "a table of them by bf16, fp16, fp8, fp32"),
        ("hardware", "peak_tflops", {"bf16": 0}, "bf16: expected a finite number above 0; found 0"),
        ("hardware", "device", "", "expected a text; found ''"),
        ("training", "recompute", "half", "expected one of none, selective, full, fit"),
        ("training", "recompute", {"full": "0-"}, "by policy the layers that have it"),
        ("training", "recompute", {"fit": "0-3"}, "by policy the layers that have it"),
        ("calibration", "memory_share", 1.2, "expected a share above 0 and at most 1; found 1.2"),
        ("search", "tp", [1, 2, 0], "expected a list of whole numbers of at least 1; found [1, 2, 0]"),
        ("search", "tp", [], "found []"),
    ],
)
def test_a_value_that_a_key_cannot_hold_is_named(section: str, key: str, value: Any, says: str) -> None:
    with pytest.raises(UsageError) as error:
        check_plan(tables(**{section: {key: value}}), "plan.toml")

    assert says in str(error.value)
    assert str(error.value).startswith(f"plan.toml: [{section}] {key}: ")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"layout": {"tensor": 4}}, "[layout] tensor: no key of [layout]; there are tp, pp, dp"),
        ({"layout": {"scheduel": 4}}, "[layout] scheduel: no key of [layout]; did you mean schedule? docs/reference"),
        ({"layout": {"network_gb_per_s": 4}}, "no key of [layout]; it belongs into [hardware]"),
        ({"tp": 4}, "tp: no key of a plan; it belongs into [layout] or [serving] or [search]"),
        ({"layuot": {"tp": 4}}, "[layuot]: no section of a plan; did you mean layout?"),
        ({"layout": None, "batch": None}, "[batch]: missing; expected sequence, micro_batch, global_batch"),
        ({"hardware": None}, '[hardware]: missing; expected device = "H100-SXM5-80GB"'),
        ({"model": None}, "[model]: missing; expected preset, config, or layers, hidden, heads and vocabulary"),
        ({"batch": {"sequence": None}}, "[batch] sequence: missing: tokens of a sequence"),
        ({"layout": 3}, "layout: expected a section [layout]; found 3"),
    ],
)
def test_a_key_that_is_none_or_missing_is_named_with_what_is_meant(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        check_plan(tables(**changes), "plan.toml")

    assert says in str(error.value)


def test_mistakes_are_told_together_up_to_eight() -> None:
    wrong = {f"key{number}": number for number in range(12)}

    with pytest.raises(UsageError) as error:
        check_plan(tables(layout=wrong), "plan.toml")

    assert "plan.toml: 12 mistakes:" in str(error.value)
    assert "and 4 more" in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "found an empty file"),
        ("{}", "found JSON"),
        ("[layout\ntp = 1", "line 1: no TOML"),
        ("a = 1\nb = = 2", "line 2: no TOML"),
        ("x = [" * 5000, "no TOML"),
    ],
)
def test_a_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_plan_file(write_plan(tmp_path, text))


@pytest.mark.parametrize(("name", "says"), [("absent.toml", "found nothing"), (".", "found a folder")])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_plan_file(str(tmp_path / name))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_bytes(b"name = '\xff'")

    with pytest.raises(InputError, match="byte 8: no text in UTF-8"):
        read_plan_file(str(file))


def test_every_key_has_a_meaning_that_is_a_sentence() -> None:
    for keys in SECTIONS.values():
        for key in keys:
            assert key.meaning.endswith("."), key
            assert key.meaning[0].isupper() or key.meaning.startswith("FSDP"), key
