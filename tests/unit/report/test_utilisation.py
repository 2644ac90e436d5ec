"""How much of what bounds it a span used: by hand, from shapes, sizes and the peaks of the device table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest

from longpole.digest.digest import Selection, digest, lay_out
from longpole.records.instances import COLUMNS, Group, Instances
from longpole.report.resource_peaks import Peaks
from longpole.report.utilisation import ESTIMATED, gauge_of
from longpole.settings import Settings
from longpole.timeline.tables import Sparse
from longpole.vocabulary.objects import COLLECTIVE_KINDS
from tests.build import VOCABULARY, Script

if TYPE_CHECKING:
    from longpole.timeline.timeline import Timeline

H100 = "NVIDIA H100 80GB HBM3"
BF16 = '["c10::BFloat16", "c10::BFloat16"]'
PRODUCT = "[[4096, 4096], [4096, 4096]]"
FLOPS = 2 * 4096**3


def used(
    script: Script, device: str = H100, instances: Instances | None = None, occupancy: str = ""
) -> dict[str, tuple[float, str]]:
    """Return the share of each device span by its name, and what it is a share of, or why it is not known."""
    timeline = replace(script.timeline(), device_names={0: device})
    if occupancy:
        timeline = replace(timeline, occupancy=_occupancy(timeline, occupancy))
    laid, (row,) = lay_out(timeline, VOCABULARY, Settings(), Selection())
    rank = digest(timeline, VOCABULARY, Settings(), Selection())
    if instances is not None:
        rank = msgspec.structs.replace(rank, instances=instances)
    found = gauge_of(rank, {0: "one", 1: "one", 2: "other"})(laid, row)
    return {
        timeline.names[name]: (share, found.texts[says])
        for name, share, says in zip(row.spans.name.tolist(), found.share.tolist(), found.says.tolist(), strict=True)
    }


def _occupancy(timeline: Timeline, percent: str) -> Sparse:
    n = len(timeline.device)
    return Sparse(np.arange(n, dtype=np.int64), np.zeros(n, np.int32), (percent,))


def product(*kernels: tuple[float, float, str], shapes: str = PRODUCT) -> Script:
    script = Script()
    script.step(0, 0, 1000)
    script.op("aten::mm", 0, 40, shapes=shapes, types=BF16)
    for place, (start, end, name) in enumerate(kernels):
        script.kernel(start, end, script.launch(5 + 5 * place, 8 + 5 * place), name=name)
    return script


def tensor_peak() -> float:
    peak = Peaks.of(H100).of_column("tensor", "bf16").per_s
    assert isinstance(peak, float | int)
    return peak


def test_a_product_uses_its_flops_in_its_time_of_the_tensor_peak() -> None:
    share, of = used(product((100, 400, "gemm")))["gemm"]

    assert share == pytest.approx(FLOPS / (300e-6 * tensor_peak()))
    assert of == "the tensor units' bf16 peak by aten::mm"


def test_kernels_of_one_call_share_its_work_over_the_time_of_all() -> None:
    found = used(product((100, 300, "gemm"), (300, 400, "reduce")))

    assert found["gemm"] == found["reduce"]
    assert found["gemm"][0] == pytest.approx(FLOPS / (300e-6 * tensor_peak()))


def test_a_share_that_cannot_be_is_not_known() -> None:
    share, why = used(product((100, 101, "gemm")))["gemm"]

    assert np.isnan(share)
    assert "more than the peak" in why


def test_a_device_without_peaks_and_an_operator_without_shapes_say_so() -> None:
    share, why = used(product((100, 400, "gemm")), device="NVIDIA Unheard 9000")["gemm"]
    assert np.isnan(share)
    assert "not in the device table" in why

    share, why = used(product((100, 400, "gemm"), shapes=""))["gemm"]
    assert np.isnan(share)
    assert why == "its shapes were not recorded"


def test_the_profilers_estimate_stands_in_and_is_called_one() -> None:
    share, of = used(product((100, 400, "gemm"), shapes=""), occupancy="37")["gemm"]
    assert share == pytest.approx(0.37)
    assert of == f"{ESTIMATED} (work: its shapes were not recorded)"

    better, of = used(product((100, 400, "gemm")), occupancy="37")["gemm"]
    assert better == pytest.approx(FLOPS / (300e-6 * tensor_peak()))
    assert ESTIMATED not in of


def test_a_copy_uses_its_bytes_of_the_bus_to_the_host() -> None:
    script = product((500, 600, "gemm"))
    script.copy("htod", 100, 400, script.launch(50, 55, name="cudaMemcpyAsync"), size_bytes=6_000_000)
    name = next(name for name in used(script) if "HtoD" in name)
    peak = Peaks.of(H100).of_column("pcie").per_s

    assert isinstance(peak, float | int)
    share, of = used(script)[name]
    assert share == pytest.approx(6_000_000 / (300e-6 * peak))
    assert of == "the host bus's rate"


def all_reduce(members: list[int], size_bytes: int) -> Instances:
    """Return one all-reduce, the second device span of `reduced`."""
    facts = {"row": 1, "on_device": 1, "kind": COLLECTIVE_KINDS.index("all_reduce"), "bytes": size_bytes}
    arrays = {name: np.array([facts.get(name, 0)]) for name in COLUMNS}
    return Instances.from_columns(groups=[Group("0", members=members, size=len(members))], dtypes=["bf16"], **arrays)


def reduced(members: list[int], size_bytes: int = 90_000_000) -> tuple[float, str]:
    script = product((100, 200, "gemm"))
    script.collective(300, 800, script.launch(60, 65))
    return next(
        one for name, one in used(script, instances=all_reduce(members, size_bytes)).items() if "nccl" in name.lower()
    )


def test_a_collective_uses_its_bus_bytes_of_the_link_of_its_host() -> None:
    peak = Peaks.of(H100).of_column("scale_up").per_s
    share, of = reduced([0, 1])

    assert isinstance(peak, float | int)
    assert share == pytest.approx(90_000_000 / (500e-6 * peak))  # two ranks: bus bytes are the buffer's
    assert of == "the links' rate, waiting for peers included"


@pytest.mark.parametrize(
    ("members", "size_bytes", "why"),
    [
        pytest.param([0, 2], 1, "no table holds the rate of network adapters", id="two hosts"),
        pytest.param([0, 7], 1, "whether its members share a host is not recorded", id="a rank that nobody knows"),
        pytest.param([0, 1], -1, "its bytes were not recorded", id="no bytes"),
    ],
)
def test_a_collective_whose_link_or_size_is_not_known_says_so(members: list[int], size_bytes: int, why: str) -> None:
    share, of = reduced(members, size_bytes)

    assert np.isnan(share)
    assert of == why
