"""Samples as figures: medians and 95th percentiles, evidence, and the law of each path."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any, Final

from longpole.bench.io.rounds import KEPT_CONDITIONS
from longpole.errors import InvariantError
from longpole.records.bench_io import IoCase, IoCheck, IoFigure, IoModel, IoPath, IoPiece
from longpole.records.ledger import Unknown
from longpole.stats import median_ns, percentile_ns
from longpole.stats.service_fit import DRAWS, SEED, decades_left_out, fit_service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longpole.bench.io.catalogue import PathRow
    from longpole.bench.io.rounds import CaseSamples, Sample
    from longpole.records.bench_io import Checked, Evidence
    from longpole.stats.service_fit import Piece, ServiceFit

ERROR_MAX: Final = 0.25
"""Above this error at any size a law is no law, and only the table holds (bench-io B6)."""

LAZY_FACTOR: Final = 2.0
"""A load above twice the rate of a memory copy has not read its bytes (bench-io E)."""

_P95_FROM: Final = 20  # DESIGN 3.12
_UPPER_FROM: Final = 59  # 0.95**59 < 5 %: below, no sample bounds the percentile from above (bench-io A10)
_WORST: Final[tuple[Evidence, ...]] = ("failed", "invalid", "simulated", "measured")
_WORST_CHECK: Final[tuple[Checked, ...]] = ("failed", "differs", "passed", "not_run")


def make_path(row: PathRow, cases: Sequence[CaseSamples], memory_gb_per_s: float, *, cold_method: str) -> IoPath:
    """Put a path's samples into the record.

    Args:
        row: The path.
        cases: Its cases, by size.
        memory_gb_per_s: What a memory copy reaches.
        cold_method: How files were taken out of the page cache.
    """
    made = [_make_case(one, memory_gb_per_s) for one in cases]
    worst: Evidence = min((case.evidence for case in made), key=_WORST.index, default="invalid")
    path = IoPath(
        name=row.name,
        says=row.says,
        object=row.object,
        operation=_operation(row),
        format="files" if row.many else row.format,
        cache=row.cache,
        cold_method=cold_method if row.cache == "guest-cold" else "",
        durability=row.durability,
        target=row.target,
        evidence=worst,
        reason=next((case.reason for case in made if case.evidence == worst and case.reason), ""),
        correctness=_together(case.correctness for case in made),
        side_effects=next((dict(one.case.side_effects) for one in reversed(cases) if one.case.side_effects), {}),
        cases=made,
    )
    path.model = make_model(path)
    return path


def make_figure(samples_ns: Sequence[int]) -> IoFigure:
    """Return the figures of samples.

    Args:
        samples_ns: At least one.
    """
    n = len(samples_ns)
    p95: int | Unknown = Unknown(f"a 95th percentile needs {_P95_FROM} samples, there are {n}")
    upper: int | Unknown = Unknown(f"an upper bound needs {_UPPER_FROM} samples, there are {n}")
    if n >= _P95_FROM:
        p95 = percentile_ns(samples_ns, 0.95)
    if n >= _UPPER_FROM:
        upper = sorted(samples_ns)[_upper_rank(n) - 1]
    return IoFigure(n=n, median_ns=median_ns(samples_ns), p95_ns=p95, p95_upper_ns=upper)


def _upper_rank(n: int) -> int:
    """Return the smallest rank whose sample is at least the true 95th percentile in 95 of 100 cases.

    P(at most r - 1 of n samples lie below it) = sum of the binomial up to r - 1.
    """
    total = 0.0
    for below in range(n):
        total += comb(n, below) * 0.95**below * 0.05 ** (n - below)
        if total >= 0.95:
            return below + 1
    return n


def make_model(path: IoPath) -> IoModel:
    """Fit a law to a path's cases that count, and say how far it is off; or why there is none."""
    samples = {
        case.size_bytes: [time / case.objects for time in case.service_ns[case.warmups :] if time > 0]
        for case in path.cases
        if case.evidence == "measured"
    }
    samples = {size: times for size, times in samples.items() if times}
    if not samples:
        return IoModel("not_fitted", path.reason or "there are no valid samples")
    law = fit_service(samples)
    if isinstance(law, str):
        return IoModel("not_fitted", law)
    model = _written(law)
    model.decades_out_errors = {str(size): round(error, 4) for size, error in decades_left_out(samples).items()}
    if law.worst_error > ERROR_MAX:
        model.status = "invalid"
        model.says = (
            f"one size is off by {law.worst_error:.0%}, more than {ERROR_MAX:.0%}: "
            "use the table, and extrapolate nothing"
        )
        model.crossover_bytes = model.half_performance_bytes = Unknown("the model is invalid")
    return model


def _written(law: ServiceFit) -> IoModel:
    crossover, half = law.crossover_bytes(), law.half_performance_bytes()
    return IoModel(
        status="fitted",
        pieces=[_piece(piece) for piece in law.pieces],
        break_bytes=law.break_bytes,
        worst_error=round(law.worst_error, 4),
        errors={str(size): round(error, 4) for size, error in law.errors.items()},
        left_out_errors={str(size): round(error, 4) for size, error in law.left_out_errors.items()},
        crossover_bytes=Unknown("bytes take no time in the fit") if crossover is None else round(crossover),
        half_performance_bytes=Unknown("no size reaches half of it") if half is None else round(half),
        draws=DRAWS,
        seed=SEED,
    )


def _piece(piece: Piece) -> IoPiece:
    low, high = piece.ns_per_byte_interval
    flows = piece.ns_per_byte > 0
    return IoPiece(
        from_bytes=piece.from_bytes,
        to_bytes=piece.to_bytes,
        latency_ns=round(piece.latency_ns, 1),
        latency_interval_ns=(round(piece.latency_interval_ns[0], 1), round(piece.latency_interval_ns[1], 1)),
        gb_per_s=round(1 / piece.ns_per_byte, 4) if flows else Unknown("bytes take no time in the fit"),
        gb_per_s_interval=(round(1 / high, 4), round(1 / low, 4)) if low > 0 else Unknown("no upper end"),
    )


def _make_case(one: CaseSamples, memory_gb_per_s: float) -> IoCase:
    taken = [sample for sample in one.samples if sample.timing is not None]
    counted = taken[one.plan.warmups :]
    case = IoCase(
        size_bytes=one.plan.size_bytes,
        objects=one.plan.objects,
        warmups=min(one.plan.warmups, len(taken)),
        planned=one.plan.samples,
        rounds=[sample.round_number for sample in taken],
        correctness=_correctness(one.samples),
    )
    _write_columns(case, taken)
    case.evidence, case.reason = _evidence(one, counted, memory_gb_per_s)
    if counted and case.evidence != "failed":
        case.service = make_figure(_each([_time(sample) for sample in counted], one.plan.objects))
        case.gb_per_s = round(case.size_bytes / max(case.service.median_ns, 1), 4)
        returned = [sample.timing.returned_ns for sample in counted if sample.timing and sample.timing.returned_ns]
        if returned:
            case.returned = make_figure(_each(returned, one.plan.objects))
        case.stages = {
            name: make_figure(_each(times[case.warmups :], one.plan.objects)) for name, times in case.stages_ns.items()
        }
    if case.evidence == "invalid":
        case.gb_per_s = Unknown(case.reason)
    return case


def _write_columns(case: IoCase, taken: Sequence[Sample]) -> None:
    timings = [sample.timing for sample in taken if sample.timing is not None]
    case.service_ns = [timing.service_ns for timing in timings]
    case.returned_ns = [timing.returned_ns for timing in timings if timing.returned_ns is not None]
    names = list(dict.fromkeys(name for timing in timings for name in timing.stages_ns))
    case.stages_ns = {name: [timing.stages_ns.get(name, 0) for timing in timings] for name in names}
    resident = [sample.prepared.resident_before for sample in taken]
    case.resident_before = [size for size in resident if size is not None]
    for name in KEPT_CONDITIONS:
        values = [sample.conditions.get(name) for sample in taken]
        if any(value is not None for value in values):
            case.conditions[name] = [None if value is None else round(value, 4) for value in values]
    for place, sample in enumerate(taken):
        for flag in sample.flags:
            case.flags.setdefault(flag, []).append(place)


def _evidence(one: CaseSamples, counted: Sequence[Sample], memory_gb_per_s: float) -> tuple[Evidence, str]:
    """Say what a case's samples are; one that is not what its path says makes them all so."""
    for sample in one.samples:
        if sample.checked is not None and sample.checked.failed:
            return "failed", sample.checked.failed
    for sample in one.samples:
        if sample.wrong():
            return "invalid", sample.wrong()
    if not counted:
        return "invalid", "the run ended before a sample that counts was taken"
    moved = one.plan.size_bytes * one.plan.objects
    if one.plan.row.operation == "load":
        fastest = moved / max(min(_time(sample) for sample in counted), 1)
        if fastest > LAZY_FACTOR * memory_gb_per_s:
            return "invalid", (
                f"lazy: {fastest:,.0f} GB/s is more than {LAZY_FACTOR:g} times what a memory copy reaches "
                f"({memory_gb_per_s:.1f} GB/s), so not every byte was read"
            )
    return "measured", ""


def _correctness(samples: Sequence[Sample]) -> IoCheck:
    checked = [sample.checked for sample in samples if sample.checked is not None]
    if not checked:
        return IoCheck("not_run")
    for look in checked:
        if look.failed:
            return IoCheck("failed", look.failed, len(checked))
    differs = next((look.differs for look in checked if look.differs), "")
    return IoCheck("differs" if differs else "passed", differs, len(checked))


def _together(checks: Iterable[IoCheck]) -> IoCheck:
    all_checks = list(checks)
    worst: Checked = min((check.status for check in all_checks), key=_WORST_CHECK.index, default="not_run")
    says = next((check.says for check in all_checks if check.status == worst and check.says), "")
    return IoCheck(worst, says, sum(check.samples for check in all_checks))


def check_all(paths: Sequence[IoPath], failures: Sequence[str]) -> IoCheck:
    """Return the correctness of a whole run.

    Args:
        paths: Its paths.
        failures: What else was found to be wrong, a sentence each.
    """
    found = _together(path.correctness for path in paths)
    if failures:
        return IoCheck("failed", "; ".join(failures), found.samples)
    if found.status in ("failed", "differs"):
        names = [path.name for path in paths if path.correctness.status == found.status]
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        return IoCheck(found.status, f"{names[0]}{more}: {found.says}", found.samples)
    return found


def _time(sample: Sample) -> int:
    if sample.timing is None:
        msg = "a sample without a time is none that counts"
        raise InvariantError(msg)
    return sample.timing.service_ns


def _each(times_ns: Sequence[int], objects: int) -> list[int]:
    """Return the time of one object of each sample."""
    return [round(time / objects) for time in times_ns]


def _operation(row: PathRow) -> Any:
    return row.operation
