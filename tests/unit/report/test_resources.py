"""The resource-time matrix and the indicators, against values worked out by hand."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import UNSET

from longpole.records.ledger import Unknown
from longpole.records.operator_work import OperatorWork
from longpole.records.resources import COLUMNS, MatrixRow, Resources
from longpole.report.resource_peaks import Peaks
from longpole.report.resource_rows import operator_row
from longpole.report.resources import resources_of
from tests.build import Script, measure

H100 = "NVIDIA H100 80GB HBM3"
BF16 = '["c10::BFloat16", "c10::BFloat16"]'
# 2 · 4096³ FLOPs, 3 · 4096² · 2 bytes
BIG = "[[4096, 4096], [4096, 4096]]"
BIG_FLOPS, BIG_BYTES = 2 * 4096**3, 6 * 4096**2


def resources(script: Script, device: str = H100) -> Resources:
    found = of(script, device)
    assert isinstance(found, Resources)
    return found


def of(script: Script, device: str = H100) -> Resources | Unknown:
    digest = measure(script)
    for row in digest.rows:
        row.device_name = device
    return resources_of([digest], [])


def one_product(*, took_us: float = 200, host_us: float = 20, shapes: str = BIG, unit_us: float = 400) -> Script:
    script = Script()
    script.step(0, 0, unit_us)
    script.op("aten::mm", 0, host_us, shapes=shapes, types=BF16)
    script.kernel(host_us, host_us + took_us, script.launch(1, 5))
    return script


def row_of(found: Resources, name: str = "aten::mm") -> MatrixRow:
    return next(row for row in found.rows if row.name == name)


class TestCells:
    def test_a_share_is_the_time_needed_at_the_peak_over_the_time_taken(self) -> None:
        found = resources(one_product())

        cells = row_of(found).cells

        assert cells["tensor"].demand == BIG_FLOPS
        assert cells["tensor"].share == pytest.approx(BIG_FLOPS / 989.4e12 / 200e-6)
        assert cells["tensor"].achievable_share == pytest.approx(BIG_FLOPS / (989.4e12 * 794.5 / 989) / 200e-6)
        assert cells["hbm"].share == pytest.approx(BIG_BYTES / 3.35e12 / 200e-6)
        assert cells["hbm"].achievable_share is UNSET
        assert cells["host"].share == pytest.approx(0.1)

    def test_a_large_product_is_bound_by_tensor_units_then_by_memory(self) -> None:
        row = row_of(resources(one_product()))

        assert (row.bound_by, row.next_bound) == ("tensor", "hbm")
        assert row.headroom == pytest.approx(200e-6 / (BIG_FLOPS / 989.4e12))

    def test_a_thin_product_is_bound_by_memory(self) -> None:
        row = row_of(resources(one_product(shapes="[[1, 4096], [4096, 4096]]", took_us=20)))

        assert row.bound_by == "hbm"

    def test_more_than_the_peak_names_nothing(self) -> None:
        row = row_of(resources(one_product(took_us=50)))

        assert isinstance(row.bound_by, Unknown)
        assert "more than the peak" in row.bound_by.unknown
        assert row.headroom is UNSET

    def test_too_little_of_all_columns_names_nothing(self) -> None:
        row = row_of(resources(one_product(shapes="[[8, 8], [8, 8]]")))

        assert isinstance(row.bound_by, Unknown)
        assert "no column" in row.bound_by.unknown

    def test_issuing_bounds_only_where_the_device_waits(self) -> None:
        waits = row_of(resources(one_product(host_us=300, unit_us=2000)))
        ahead = Script()
        ahead.step(0, 0, 620)
        ahead.op("aten::mm", 0, 300, shapes=BIG, types=BF16)
        ahead.kernel(10, 210, ahead.launch(1, 5))
        ahead.op("aten::mm", 300, 600, shapes=BIG, types=BF16)
        ahead.kernel(310, 610, ahead.launch(301, 305))

        assert waits.bound_by == "host"
        assert row_of(resources(ahead)).bound_by == "tensor"

    def test_an_unknown_device_has_demands_and_no_shares(self) -> None:
        found = resources(one_product(), device="Imaginary 9000")

        row = row_of(found)

        assert isinstance(found.device, Unknown)
        assert row.cells["tensor"].demand == BIG_FLOPS
        assert row.cells["tensor"].share is UNSET
        assert row.bound_by is UNSET
        assert found.indicators[0].compute.share is UNSET
        assert found.indicators[0].bound_class is UNSET
        assert found.peaks == []
        assert "no peak is guessed" in found.device.unknown

    def test_copies_ask_for_pcie(self) -> None:
        script = one_product()
        script.copy("htod", 230, 330, size_bytes=63 * 10**5)

        cell = row_of(resources(script), "copy htod").cells["pcie"]

        assert cell.share == pytest.approx(1.0)

    def test_columns_without_figures_say_why(self) -> None:
        columns = {column.name: column.empty_because for column in resources(one_product()).columns}

        assert tuple(columns) == COLUMNS
        assert "counters" in columns["l2"]
        assert columns["tensor"] == ""


class TestBounds:
    """Three tables of unknown widths: 4 elements of 2 bytes a row of 10⁷ indices, indices, offsets."""

    LOOK_UP = "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function"
    SHAPES = "[[0], [9600], [0], [0, 0], [3], [3], [4], [], [], [4], [], [10000000], [25]]"
    TYPES = (*["c10::Half"] * 4, "int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long")
    LEAST_BYTES = 10**7 * (4 * 2 + 8) + 25 * 8

    def script(self, *, look_up_us: float = 200) -> Script:
        script = one_product(unit_us=250 + look_up_us)
        types = "[" + ", ".join(f'"{one}"' for one in self.TYPES) + "]"
        script.op(self.LOOK_UP, 20, 40, shapes=self.SHAPES, types=types)
        script.kernel(230, 230 + look_up_us, script.launch(25, 28))
        return script

    def test_a_lower_bound_says_so_and_names_nothing(self) -> None:
        row = row_of(resources(self.script()), self.LOOK_UP)

        assert row.cells["hbm"].demand == self.LEAST_BYTES
        assert row.cells["hbm"].at_least is True
        assert row.cells["hbm"].share == pytest.approx(self.LEAST_BYTES / 3.35e12 / 200e-6)
        assert isinstance(row.bound_by, Unknown)
        assert row_of(resources(self.script())).cells["hbm"].at_least is UNSET

    def test_what_is_covered_by_a_bound_names_no_class(self) -> None:
        """The product needs 173 µs of tensor units, 30 of memory; the look-up 48 at least, and at most its time."""
        little, half, most = (resources(self.script(look_up_us=one)) for one in (100, 200, 202))

        assert (half.covered_share, half.at_least_share) == (1.0, 0.5)
        assert little.indicators[0].bound_class == "compute"
        assert [one.indicators[0].covered_share for one in (half, most)] == [1.0, 1.0]
        assert isinstance(half.indicators[0].bound_class, Unknown)
        assert "may be memory: not all bytes are known, of up to 34%" in half.indicators[0].bound_class.unknown
        assert isinstance(most.indicators[0].bound_class, Unknown)
        assert "less than half" in most.indicators[0].bound_class.unknown

    def test_a_bound_can_be_named_and_cannot_lose(self) -> None:
        """A row of given bytes, of FLOPs that need more of its time than the bytes do, and less."""
        peaks = Peaks.of(H100)
        row = OperatorWork("x", "embedding", "forward", "vector", "fp32", device_ns=1_000_000, at_least=True)
        loses = msgspec.structs.replace(row, flops=50 * 10**9, moved_bytes=10**9)
        wins = msgspec.structs.replace(row, flops=5 * 10**9, moved_bytes=2 * 10**9)

        lost, won = (operator_row(one, peaks, 1_000_000, set()) for one in (loses, wins))

        assert isinstance(lost.bound_by, Unknown)
        assert "lower bound" in lost.bound_by.unknown
        assert (won.bound_by, won.headroom) == ("hbm", UNSET)


class TestIndicators:
    def test_compute_and_memory_are_shares_of_the_unit(self) -> None:
        found = resources(one_product())

        whole = found.indicators[0]

        assert (whole.stage, whole.wall_ns, whole.busy_share) == ("all", 400_000, 0.5)
        assert whole.compute.share == pytest.approx(BIG_FLOPS / 989.4e12 / 400e-6)
        assert whole.memory.share == pytest.approx(BIG_BYTES / 3.35e12 / 400e-6)
        assert whole.link.share == 0.0
        assert whole.bound_class == "compute"

    def test_half_covered_names_a_class_and_less_does_not(self) -> None:
        half, less = one_product(unit_us=420), one_product(unit_us=420)
        half.kernel(220, 420, half.launch(30, 32), name="unknown")
        less.kernel(220, 421, less.launch(30, 32), name="unknown")

        assert resources(half).indicators[0].bound_class == "compute"
        unnamed = resources(less).indicators[0]
        assert isinstance(unnamed.bound_class, Unknown)
        assert "less than half" in unnamed.bound_class.unknown
        assert unnamed.covered_share == pytest.approx(200 / 401)

    def test_a_device_that_mostly_waits_is_waiting_whatever_it_does(self) -> None:
        assert resources(one_product(unit_us=1000)).indicators[0].bound_class == "waiting"

    def test_of_a_collective_of_unknown_size_the_link_is_not_known(self) -> None:
        script = one_product()
        script.collective(230, 330)

        link = resources(script).indicators[0].link

        assert isinstance(link.share, Unknown)


def test_uncounted_time_and_coverage_add_up() -> None:
    script = one_product(unit_us=500)
    script.kernel(220, 320, script.launch(30, 32), name="unknown")

    found = resources(script)

    assert found.covered_share == pytest.approx(2 / 3)
    assert sum(one.time_share for one in found.uncounted) == pytest.approx(1 / 3)


def test_without_shapes_there_is_no_matrix() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.kernel(10, 50)

    found = of(script)

    assert isinstance(found, Unknown)
    assert found.missing == ["record_shapes=True"]


def test_without_a_device_there_is_no_matrix() -> None:
    script = Script()
    script.step(0, 0, 100)
    script.op("aten::mm", 0, 50, shapes=BIG, types=BF16)

    assert isinstance(of(script), Unknown)


@pytest.mark.parametrize(
    ("column", "dtype", "tera_per_s"),
    [("tensor", "bf16", 989.4), ("tensor", "tf32", 494.7), ("vector", "bf16", 66.9), ("hbm", "", 3.35)],
)
def test_peaks_are_those_of_the_tables(column: str, dtype: str, tera_per_s: float) -> None:
    assert Peaks.of(H100).of_column(column, dtype).per_s == pytest.approx(tera_per_s * 1e12)


@pytest.mark.parametrize(("column", "dtype"), [("tensor", "fp32"), ("vector", "fp64"), ("tensor", ""), ("l2", "")])
def test_what_no_table_states_is_not_known(column: str, dtype: str) -> None:
    assert isinstance(Peaks.of(H100).of_column(column, dtype).per_s, Unknown)
