"""Samples become figures by stated definitions, paths become laws or say why not."""

from __future__ import annotations

import pytest

from longpole.bench.io.figures import make_figure, make_path
from longpole.records.bench_io import IoPath
from longpole.records.ledger import Unknown
from tests.io_benches import ROWS, sampled

SIZES = [4096 * 4**power for power in range(8)]


def path_of(name: str, times: dict[int, list[int]]) -> IoPath:
    cases = [sampled(name, size, values) for size, values in times.items()]
    return make_path(ROWS[name], cases, 1e9, cold_method="verified")


def test_a_95th_percentile_needs_twenty_samples_and_its_upper_end_59() -> None:
    few, some, many = make_figure(range(1, 20)), make_figure(range(1, 21)), make_figure(range(1, 60))

    assert few.p95_ns == Unknown("a 95th percentile needs 20 samples, there are 19")
    assert (some.p95_ns, some.n, some.p95_definition) == (19, 20, "nearest_rank")
    assert isinstance(some.p95_upper_ns, Unknown)
    assert (many.p95_ns, many.p95_upper_ns) == (57, 59)


def test_the_upper_end_is_the_order_statistic_that_covers_the_percentile_in_95_of_100() -> None:
    """Of 200 the 196th: a binomial(200, 0.95) is at most 195 with probability 0.96, at most 194 with 0.92."""
    assert make_figure(range(1, 201)).p95_upper_ns == 196


def test_warm_ups_are_kept_and_not_counted() -> None:
    path = make_path(
        ROWS["raw.read.warm"], [sampled("raw.read.warm", 4096, [9000, 10, 20, 30], warmups=1)], 1e9, cold_method=""
    )

    case = path.cases[0]
    assert case.service_ns == [9000, 10, 20, 30]
    assert case.warmups == 1
    assert case.service is not None
    assert (case.service.n, case.service.median_ns) == (3, 20)


def test_a_law_is_fitted_and_says_where_latency_rules() -> None:
    model = path_of("raw.read.warm", {size: [10_000 + size // 2] * 5 for size in SIZES}).model

    assert model.status == "fitted"
    assert model.pieces[0].latency_ns == pytest.approx(10_000, rel=1e-3)
    assert model.pieces[0].gb_per_s == pytest.approx(2.0, rel=1e-3)
    assert model.crossover_bytes == pytest.approx(20_000, rel=1e-2)
    assert set(model.errors) == {str(size) for size in SIZES}


def test_above_a_quarter_of_error_there_is_no_law_and_no_crossover() -> None:
    times = {size: [10_000 + size // 2] * 5 for size in SIZES}
    times[1 << 18] = [3 * times[1 << 18][0]] * 5

    model = path_of("raw.read.warm", times).model

    assert model.status == "invalid"
    assert "use the table, and extrapolate nothing" in model.says
    assert isinstance(model.crossover_bytes, Unknown)
    assert isinstance(model.worst_error, float)
    assert model.worst_error > 0.25


def test_too_few_sizes_are_not_fitted_and_say_so() -> None:
    model = path_of("raw.read.warm", {4096: [10] * 5}).model

    assert (model.status, model.says) == ("not_fitted", "a model needs 6 sizes, there are 1")


def test_samples_of_many_files_are_divided_among_them() -> None:
    one = sampled("files.read.warm", 4096, [6400] * 20)
    object.__setattr__(one.plan, "objects", 64)

    case = make_path(ROWS["files.read.warm"], [one], 1e9, cold_method="").cases[0]

    assert case.service is not None
    assert case.service.median_ns == 100
    assert case.service_ns[0] == 6400


def test_a_path_with_its_law_can_be_written() -> None:
    """Figures of NumPy's own types cannot; every number of a record is a plain one."""
    import msgspec

    path = path_of("raw.read.warm", {size: [10_000 + size // 2 + place for place in range(5)] for size in SIZES})

    assert msgspec.json.decode(msgspec.json.encode(path), type=IoPath) == path
