"""What a plan describes: defaults that are told, slips that are noticed, and what is refused with what would do."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from longpole.costs.architecture import Architecture, Experts, Latent
from longpole.costs.layout import Layout
from longpole.errors import InputError, UsageError
from longpole.pipeline.plan_config import read_planned
from longpole.readers.plan_file.keys import SECTIONS
from longpole.readers.plan_file.read import check_plan, read_plan_file
from tests.plans import PLAN, planned, tables, write_plan

if TYPE_CHECKING:
    from pathlib import Path

OWN = {"name": "own", "peak_tflops": 100, "memory_gb": 64, "memory_gb_per_s": 1000, "device": None}


def told(**changes: Any) -> dict[str, str]:
    return {default.key: default.value for default in planned(**changes).told.defaults}


def test_data_parallelism_follows_from_the_devices() -> None:
    assert planned().layout.dp == 2
    assert told()["[layout] dp"] == "2"
    assert "[layout] dp" not in told(layout={"dp": 2})


def test_devices_follow_from_the_layout() -> None:
    plan = planned(hardware={"devices": None}, layout={"dp": 4})

    assert plan.devices == plan.layout.world == 32


def test_everything_that_is_left_out_is_told() -> None:
    assert {
        "[training] recompute",
        "[training] dtype",
        "[training] gradient_bytes",
        "[training] optimizer",
        "[layout] sp",
        "[layout] schedule",
        "[hardware] devices_per_node",
        "[hardware] scaleup_gb_per_s",
        "[calibration]",
    } <= told().keys()


def test_what_is_stated_is_not_told() -> None:
    stated = told(
        training={"recompute": "full", "dtype": "bf16", "gradient_bytes": 2, "optimizer": "adam", "flash": True},
        layout={"sp": False, "schedule": "1f1b"},
        hardware={
            "devices_per_node": 8,
            "scaleup_gb_per_s": 450,
            "memory_gb": 80,
            "memory_gb_per_s": 3350,
            "peak_tflops": 989.4,
        },
        software={"hides_tp": False, "hides_pp": True, "hides_dp": True, "bucket_mib": 25},
        calibration={"launch_us": 2},
    )

    assert {key for key in stated if key not in ("[training] fused_loss", "[layout] dp")} == set()


def test_what_software_hides_is_told_where_there_is_something_to_hide() -> None:
    one_device: dict[str, Any] = {"layout": {"tp": 1, "pp": 1}, "hardware": {"devices": 1}}

    assert not [key for key in told(**one_device) if key.startswith("[software]")]
    assert {key: value for key, value in told().items() if key.startswith("[software]")} == {
        "[software] hides_tp": "false",
        "[software] hides_pp": "true",
        "[software] hides_dp": "true",
        "[software] bucket_mib": "25",
    }


def test_a_convention_left_out_is_refused_with_what_is_accepted() -> None:
    with pytest.raises(UsageError) as error:
        planned(convention=None)

    for accepted in ("6n", "palm", "korthikanti", "mcore", "titan", "maxtext"):
        assert accepted in str(error.value)
    assert 'convention = "mcore"' in str(error.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"layout": {"tp": 3, "dp": 1}, "hardware": {"devices": 6}}, "tp=3 does not divide 32 heads"),
        ({"layout": {"dp": 2}, "hardware": {"devices": 8}}, "TP4 · PP2 · CP1 · DP2 needs 16 devices, not 8"),
        ({"layout": {"dp": 4}}, "TP4 · PP2 · CP1 · DP4 needs 32 devices, not 16"),
        ({"layout": {"tp": 8, "pp": 4}}, "tp · pp · cp = 32 does not divide 16 devices"),
        ({"batch": {"global_batch": 33}}, "global batch 33 is no multiple of dp · micro-batch = 2"),
        ({"layout": {"pp": 2, "schedule": "gipe"}}, "schedule: expected one of gpipe, 1f1b"),
        ({"layout": {"ep": 2}}, "ep=2: the model has no experts"),
        ({"hardware": {"device": "H1000"}}, "'H1000' is not in the device table, and no peak is guessed"),
        ({"hardware": {"device": "V100"}}, "V100-SXM2-32GB has no bf16 peak in the table: it has fp16"),
        ({"hardware": {"network_gb_per_s": None}}, "missing: 16 devices are more than one node of 8"),
        ({"model": {"preset": "llama9-8b"}}, "model 'llama9-8b' is not in the table"),
        ({"model": {"config": "x.json"}}, "[model] preset: expected this or config, not both"),
        ({"model": {"preset": None, "layers": 2}}, "hidden, heads, vocabulary missing"),
        ({"training": {"optimizer": "adamm"}}, "optimizer: expected one of adam"),
        ({"training": {"recompute": {"full": "30-32"}}}, "full = '30-32': there are layers 0 to 31"),
        ({"training": {"recompute": {"full": "0-3", "none": "3"}}}, "layer 3 is named twice"),
        ({"hardware": {"device": None}}, "missing; name a device of the table, or state name, peak_tflops, memory_gb"),
        ({"hardware": {**OWN, "name": "A100"}}, "'A100' is in the table"),
        ({"hardware": {**OWN, "devices_per_node": 4}}, "[hardware] scaleup_gb_per_s: missing, and 4 devices"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_accepted(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        planned(**changes)

    assert says in str(error.value)
    assert str(error.value).startswith("plan.toml: ")


def test_a_device_of_ones_own_has_exactly_what_is_stated() -> None:
    own = {**OWN, "devices_per_node": 4, "scaleup_gb_per_s": 100}

    plan = planned(hardware=own)

    device = plan.cluster.device
    assert (device.peak("bf16"), device.memory_bytes, plan.limit_bytes) == (100e12, 64e9, 64e9)
    assert [(level.size, level.bytes_per_s_one_way) for level in plan.cluster.levels] == [(4, 100e9), (None, 50e9)]


def test_the_plans_own_figures_stand_in_place_of_the_tables() -> None:
    plan = planned(hardware={"memory_gb": 94, "memory_limit_gb": 90, "peak_tflops": {"bf16": 800}})

    assert plan.cluster.device.memory_bytes == 94e9
    assert plan.limit_bytes == 90e9
    assert plan.cluster.device.peak("bf16") == 800e12
    assert plan.cluster.device.peak("fp8") == 1978.9e12


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hardware": {"peak_tflops": 1979}}, "the sparse figure"),
        ({"hardware": {"scaleup_gb_per_s": 900}}, "both directions"),
        ({"hardware": {"network_gb_per_s": 400}}, "an adapter of 400 Gb/s carries 50 GB/s"),
        ({"batch": {"global_batch": 2}}, "1 micro-batches for 2 pipeline stages"),
        ({"layout": {"zero": 3}}, "ZeRO-3 beside a pipeline"),
        ({"layout": {"zero": 3}}, "PyTorch's FSDP keeps weights and gradients whole"),
        ({"model": {"vocabulary": 129000}}, "the plan's own vocabulary stand"),
    ],
)
def test_what_looks_like_a_slip_is_noticed(changes: dict[str, Any], says: str) -> None:
    assert any(says in note for note in planned(**changes).told.notes)


def test_a_plan_without_slips_has_no_notes() -> None:
    assert planned().told.notes == []


def test_a_model_by_its_configuration_beside_the_plan(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
        "num_hidden_layers": 32, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    text = PLAN.replace('preset = "llama3-8b"', 'config = "config.json"')

    plan = read_planned(read_plan_file(write_plan(tmp_path, text)))

    assert plan.model.layers == 32
    assert plan.model_source == "config.json"


def test_a_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = PLAN.replace('preset = "llama3-8b"', 'config = "config.json"')

    with pytest.raises(InputError, match=r"config\.json: cannot be read"):
        read_planned(read_plan_file(write_plan(tmp_path, text)))


def test_a_model_by_dimensions_with_experts() -> None:
    model = {
        "preset": None, "layers": 4, "hidden": 512, "heads": 8, "vocabulary": 32000,
        "experts": {"count": 8, "per_token": 2, "width": 1024},
    }  # fmt: skip

    plan = planned(model=model)

    assert plan.model.feed_forward == 2048
    assert plan.model.experts is not None
    assert plan.model.experts.per_token == 2


def test_policies_by_layer_leave_the_others_alone() -> None:
    work = planned(training={"recompute": {"full": "0-3, 9", "selective": "4"}}).work

    assert [work.policy(layer) for layer in (0, 3, 4, 5, 9)] == ["full", "full", "selective", "none", "full"]


def test_the_least_recomputation_that_fits_fits() -> None:
    changes: dict[str, Any] = {"hardware": {"memory_limit_gb": 20}, "training": {"recompute": "fit"}}

    policies = planned(**changes).work.recompute_layers

    assert 0 < sum(policy != "none" for policy in policies) < 32


def test_the_check_of_keys_and_what_is_planned_know_the_same_keys() -> None:
    """Every key of every section can be stated at once, but for those that exclude each other."""
    everything = tables(
        layout={"dp": 2, "cp": 1, "ep": 1, "etp": 1, "vp": 2, "sp": True, "schedule": "interleaved", "cp_kind": "ring",
                "chunk_layers": [8, 8, 8, 8]},
        training={"dtype": "bf16", "optimizer": "adam", "gradient_bytes": 4, "recompute": "none", "flash": True,
                  "dropout": False, "fused_loss": True},
        calibration={"matmul_of_ceiling": 0.9, "attention_of_matmul": 0.6, "memory_share": 0.8, "launch_us": 4,
                     "scale_up": 1, "network": 1, "scale_up_contention": 0.1, "network_contention": 0.02},
        software={"hides_tp": False, "hides_cp": True, "hides_ep": False, "hides_pp": True, "hides_dp": True,
                  "bucket_mib": 25, "dispatch_bytes": 1, "combine_bytes": 2, "routed_nodes": 4,
                  "scatter_gather": False, "reshard": True},
    )  # fmt: skip

    plan = read_planned(check_plan(everything, "plan.toml"))

    assert plan.layout.vp == 2
    assert plan.calibration.launch_s == pytest.approx(4e-6)
    assert plan.software.wiring.routed_nodes == 4


@pytest.mark.parametrize(
    ("section", "described", "elsewhere"),
    [
        ("model", Architecture, {"experts", "latent", "note"}),
        ("model.experts", Experts, {"dense_layers"}),
        ("model.latent", Latent, set()),
        ("layout", Layout, set()),
    ],
)
def test_everything_that_is_modelled_can_be_stated(section: str, described: type[Any], elsewhere: set[str]) -> None:
    stated = {key.name for key in SECTIONS[section]}

    assert {field.name for field in fields(described)} - elsewhere <= stated
