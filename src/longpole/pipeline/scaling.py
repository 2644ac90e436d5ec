"""`longpole scaling`: report on each run of a job, then bring the runs together."""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.digest.jobs import choose_run
from longpole.errors import InputError, UsageError
from longpole.pipeline.reading import ReportOptions, read_digests, selection_of
from longpole.pipeline.version import package_version
from longpole.records.critical_path import PathAnswer
from longpole.report.build import build_report
from longpole.report.compare_runs import MODES, ItemsGiven, compare_runs
from longpole.report.scaling import Difference
from longpole.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from longpole.report.document import Report
    from longpole.report.scaling import Scaling
    from longpole.settings import Settings

_ONE_ARGUMENT: Final = "\nHere a run is one argument: name its files with a pattern, such as 'runs/n8/rank*.json'"
_LISTED: Final = 8
_NO_GRAPH: Final = 0  # the version of an answer that is none


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingOptions:
    """How runs are read and compared.

    Attributes:
        report: How each run is read.
        items: Items that a rank processes in a unit, in every run that `items_of` does not name.
        items_of: Run, as it was given or labelled -> items that a rank processes in a unit.
        mode: What to assume where nothing is known: `weak` (the same items per rank in every run) or `strong` (the
            same items in every run, spread over its ranks).
    """

    report: ReportOptions = field(default_factory=ReportOptions)
    items: int | None = None
    items_of: Mapping[str, int] = field(default_factory=dict)
    mode: str = "weak"


def measure_scaling(
    paths: Sequence[str], options: ScalingOptions, progress: Callable[[str, int, int], None] | None = None
) -> Scaling:
    """Say how a job scales over its runs.

    Args:
        paths: Each is one run: a folder, a file or a pattern. A single folder holds a sub-folder for each run.
        options: How runs are read and compared.
        progress: Hears (what is being read, bytes done, bytes in all) of each run in turn.

    Raises:
        UsageError: There are fewer than two runs, an option is wrong, or items are given of some runs only.
        InputError: Fewer than two runs could be read.
    """
    if options.mode not in MODES:
        msg = f"scaling: expected {' or '.join(MODES)}; found {options.mode!r}"
        raise UsageError(msg)
    if options.mode == "strong" and (options.items is not None or options.items_of):
        msg = (
            "--strong is an assumption about items that are not known; found --items or --items-of beside it."
            " Give --items-of for each run, or --strong alone"
        )
        raise UsageError(msg)
    runs = find_runs(paths)
    labels = _labels(runs)
    settings = read_settings(options.report.settings)
    items_of = _items_of(options, runs, labels)
    reports: list[tuple[str, Report]] = []
    refused: list[Difference] = []
    errors: list[InputError] = []
    for label, path in zip(labels, runs, strict=True):
        try:
            reports.append((label, _report(path, options.report, settings, progress)))
        except UsageError as error:
            msg = f"{label}: {error}{_ONE_ARGUMENT if '--job' in str(error) else ''}"
            raise UsageError(msg) from None
        except InputError as error:
            errors.append(error)
            refused.append(Difference("refused", "warn", [label], f"{label} is left out: {_first_line(error)}"))
    if len(reports) < 2:
        raise _too_few(reports, errors)
    items = _items(options, items_of, [label for label, _ in reports])
    return compare_runs(reports, items, settings, version=package_version(), refused=refused)


def _report(
    path: str, options: ReportOptions, settings: Settings, progress: Callable[[str, int, int], None] | None
) -> Report:
    """Report on one run, without its graph: a comparison needs ledgers, periods and collectives."""
    digests, refused = read_digests([path], options, settings, progress)
    run = choose_run(digests, options.job, settings)
    return build_report(run, refused, selection_of(options), package_version(), settings, PathAnswer(_NO_GRAPH))


def find_runs(paths: Sequence[str]) -> list[str]:
    """Return the paths of the runs: those given, or the sub-folders of a single folder.

    Raises:
        UsageError: There are fewer than two, or one is named twice.
    """
    if not paths:
        msg = "expected at least two runs of a job, or a folder with a sub-folder for each; found none"
        raise UsageError(msg)
    if len(paths) == 1:
        return _sub_folders(Path(paths[0]))
    seen: dict[Path, str] = {}
    for path in paths:
        real = Path(path).resolve()
        if real in seen:
            msg = f"{path}: named twice; each argument is a run of its own"
            raise UsageError(msg)
        seen[real] = path
    return list(paths)


def _sub_folders(folder: Path) -> list[str]:
    if not folder.exists() and not glob.glob(str(folder), recursive=True):  # noqa: PTH207 - the pattern may be absolute
        msg = f"{folder}: there is no such file or folder. Name the runs, or a folder with a sub-folder for each"
        raise UsageError(msg)
    if not folder.is_dir():
        what = "one file" if folder.is_file() else "one run"
        msg = f"{folder}: expected at least two runs, or a folder with a sub-folder for each; found {what}"
        raise UsageError(msg)
    try:
        inner = sorted(str(entry) for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise InputError.at(folder, None, f"cannot be read: {error.strerror}", "Ask for read permission") from None
    if len(inner) < 2:
        msg = (
            f"{folder}: expected a sub-folder for each of at least two runs; found {len(inner)}."
            " Name the runs one by one"
        )
        raise UsageError(msg)
    return inner


def _labels(runs: Sequence[str]) -> list[str]:
    """Return the shortest endings of the paths that tell them apart."""
    parts = [Path(run).parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        labels = [str(Path(*part[-length:])) for part in parts]
        if len(set(labels)) == len(labels):
            return labels
    return list(runs)


def _items_of(options: ScalingOptions, runs: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    """Return label -> items, of the runs that are named one by one.

    Raises:
        UsageError: No run is called so, or it is given twice.
    """
    known = {**dict(zip(labels, labels, strict=True)), **{str(Path(r)): n for r, n in zip(runs, labels, strict=True)}}
    found: dict[str, int] = {}
    for name, items in options.items_of.items():
        label = known.get(name) or known.get(str(Path(name)))
        if label is None:
            some = ", ".join(labels[:_LISTED]) + (", …" if len(labels) > _LISTED else "")
            msg = f"--items-of {name}={items}: no run is called {name!r}; there are {some}"
            raise UsageError(msg)
        if label in found:
            msg = f"--items-of {name}={items}: the items of {label} are given twice"
            raise UsageError(msg)
        found[label] = items
    return found


def _items(options: ScalingOptions, items_of: Mapping[str, int], labels: Sequence[str]) -> ItemsGiven:
    """Return what is known of the items of the runs that could be read.

    Raises:
        UsageError: They are given of some runs only.
    """
    if options.items is not None:
        return ItemsGiven(per_rank={label: items_of.get(label, options.items) for label in labels})
    lacking = [label for label in labels if label not in items_of]
    if lacking and items_of:
        msg = f"--items-of: expected the items of every run, or --items for the others; lacking {', '.join(lacking)}"
        raise UsageError(msg)
    return ItemsGiven(per_rank=dict(items_of), mode=options.mode)


def _too_few(reports: Sequence[tuple[str, Report]], errors: Sequence[InputError]) -> InputError:
    lines = [f"expected at least two runs that can be read; found {len(reports)}:"]
    lines += [f"  {_first_line(error)}" for error in errors[:_LISTED]]
    return InputError("\n".join(lines))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def scaling(
    runs: Sequence[str | PathLike[str]] | str | PathLike[str],
    *,
    items: int | None = None,
    items_of: Mapping[str, int] | None = None,
    mode: str = "weak",
    options: ReportOptions | None = None,
) -> Scaling:
    """Say how a job scales: efficiency per item, and what the loss against the smallest run is made of.

    Args:
        runs: Each is one run: a folder, a file or a pattern; or one folder with a sub-folder for each.
        items: Items that a rank processes in a unit, in every run.
        items_of: Run, as it is given here -> items that a rank processes in a unit, where they differ.
        mode: What to assume where items are not given: `weak` or `strong` scaling.
        options: How each run is read.

    Raises:
        UsageError: There are fewer than two runs, or an argument is wrong.
        InputError: Fewer than two runs could be read.
    """
    paths = [runs] if isinstance(runs, str) or hasattr(runs, "__fspath__") else list(runs)
    chosen = ScalingOptions(report=options or ReportOptions(), items=items, items_of=dict(items_of or {}), mode=mode)
    return measure_scaling([str(path) for path in paths], chosen)
