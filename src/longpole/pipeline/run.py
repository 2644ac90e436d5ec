"""The library's door: `longpole.open(path)` returns a Run, whose tables are Polars frames.

>>> run = longpole.open("traces/")            # doctest: +SKIP
>>> run.ledger().frame.filter(pl.col("object") == "input")   # doctest: +SKIP
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from longpole.errors import Unanswered, UsageError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.report import build_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from os import PathLike

    import polars as pl
    from matplotlib.figure import Figure

    from longpole.report.document import RankEntry, Report
    from longpole.report.whatif import WhatIf
    from longpole.timeline.timeline import Timeline
    from longpole.whatif.change import Change
    from longpole.whatif.draft import Draft

_ROWS_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its title; `frame` is a Polars frame.

    Attributes:
        title: What it shows, in a few words.
        frame: The rows; times are integer nanoseconds and end in `_ns`; null stands for what is not known.
        draw: Draws its figure, where it has one.
    """

    title: str
    frame: pl.DataFrame
    draw: Callable[[], Figure | Unanswered] | None = field(default=None, repr=False, compare=False)

    def plot(self) -> Figure | Unanswered:
        """Return the figure of this table, a Matplotlib figure that a notebook shows, or why there is none.

        Raises:
            UsageError: This table has no figure.
            MissingExtraError: Matplotlib is not installed.
        """
        if self.draw is None:
            msg = f"{self.title}: no figure shows this table; those of ledger(), units() and critical_path() have one"
            raise UsageError(msg)
        return self.draw()

    def __repr__(self) -> str:
        """Show the title and the frame."""
        return f"{self.title}\n{self.frame}"

    def _repr_html_(self) -> str:
        """Show the table in a notebook; all text from traces is escaped."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.frame.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
            for row in self.frame.head(_ROWS_SHOWN).iter_rows()
        )
        more = len(self.frame) - _ROWS_SHOWN
        foot = f"<p>… and {more:,} more rows</p>" if more > 0 else ""
        return (
            f"<p><b>{html.escape(self.title)}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{foot}"
        )


def _cell(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return html.escape("–" if value is None else str(value))


@dataclass(slots=True)
class Run:
    """One run: the traces of all its ranks, and what they say.

    Attributes:
        paths: The files and folders that it was opened from.
        options: How they are read.
    """

    paths: tuple[str, ...]
    options: ReportOptions
    _report: Report | None = field(default=None, repr=False)
    _timelines: list[Timeline] | None = field(default=None, repr=False)

    def report(self) -> Report:
        """Return the whole report as one value (the document of `longpole report --json`).

        Raises:
            UsageError: A path or an option is wrong, or the paths hold several runs.
            InputError: No file could be used.
        """
        if self._report is None:
            self._report = build_report(self.paths, self.options)
        return self._report

    def ledger(self) -> Table:
        """Return where the time of the units went: a row for each rank, device and object."""
        rows = [
            {
                "rank": entry.rank,
                "device": entry.device,
                "object": name,
                "exposed_ns": time.exposed_ns,
                "service_ns": _known(time.service_ns),
                "hidden_ns": _known(time.hidden_ns),
                "exposed_share": time.exposed_ns / entry.ledger.wall_ns if entry.ledger.wall_ns else None,
            }
            for entry in self.report().ranks
            for name, time in entry.ledger.objects.items()
        ]
        return _table("Ledger: time by object, summed over units", rows, lambda: self.plot("ledger"))

    def idle(self) -> Table:
        """Return why the devices ran nothing: a row for each rank, device and reason."""
        return self._by_rank(
            "Idle time by reason, summed over units",
            lambda e: ({"reason": reason, "idle_ns": time_ns} for reason, time_ns in e.ledger.idle_ns.items()),
        )

    def units(self) -> Table:
        """Return the units of work: a row for each rank, device and unit, head and tail included."""
        found = self._by_rank(
            "Units of work",
            lambda e: (
                {
                    "unit": unit.name,
                    "kind": unit.kind,
                    "steady": unit.steady,
                    "start_ns": unit.start_ns,
                    "wall_ns": unit.wall_ns,
                    "period_ns": _known(unit.period_ns),
                    "lag_ns": unit.lag_ns,
                    **{f"{name}_ns": time_ns for name, time_ns in unit.exposed_ns.items()},
                }
                for unit in e.units
            ),
        )
        return replace(found, draw=lambda: self.plot("ledger", by="unit"))

    def stages(self) -> Table:
        """Return the time by stage, and how much of it a device was busy."""
        return self._by_rank(
            "Time by stage, summed over units",
            lambda e: (
                {"stage": name, "wall_ns": time.wall_ns, "busy_ns": time.busy_ns} for name, time in e.stages.items()
            ),
        )

    def kernels(self) -> Table:
        """Return device spans by name, the longest first."""
        return self._by_rank("Kernels", lambda e: (_flat(row) for row in e.top.kernels))

    def operators(self) -> Table:
        """Return operators by name with call counts, host and device time and their main input shapes."""
        return self._by_rank("Operators", lambda e: (_flat(row) for row in e.top.operators))

    def copies(self) -> Table:
        """Return copies by name with bytes and effective bandwidth."""
        return self._by_rank("Copies", lambda e: (_flat(row) for row in e.top.copies))

    def gaps(self) -> Table:
        """Return the longest idle gaps with what the host did under them."""
        return self._by_rank("Longest idle gaps", lambda e: (_flat(row) for row in e.top.gaps))

    def collectives(self) -> Table:
        """Return the collectives of the steady units: a row for each kind, group and element type.

        Where the members were not split into waiting and moving, those columns are null, and `why_unknown` says why.
        """
        from longpole.report.csv_collectives import collective_row

        return _table("Collectives of the steady units", [collective_row(e) for e in self.report().collectives])

    def waits(self) -> Table:
        """Return who waited how long for whom in which kind of collectives."""
        from longpole.report.csv_collectives import wait_rows

        return _table("Who waited for whom", [row for e in self.report().collectives for row in wait_rows(e)])

    def clocks(self) -> Table:
        """Return how each rank's clock was brought to the run's, and how far off it may be."""
        from longpole.report.csv_collectives import clock_row

        return _table("Clocks", [clock_row(entry) for entry in self.report().clock])

    def stragglers(self) -> Table:
        """Return the ranks that others waited for, and why they were late."""
        from longpole.report.csv_collectives import straggler_row

        return _table("Ranks that others waited for", [straggler_row(e) for e in self.report().stragglers])

    def findings(self) -> Table:
        """Return what holds the run up: a row for each cause that was found, the most costly first.

        Where no long pole can be named, no row has `long_pole`, and `report().unknown` says why at `/long_pole`.
        """
        from longpole.pipeline.diagnosis_frames import findings_frame

        return Table("What holds the run up", findings_frame(self.report()))

    def candidates(self) -> Table:
        """Return the changes worth trying, with what each is predicted to gain alone.

        Null stands for what is not known; `report().unknown` says why, and `refused` why there is no prediction.
        """
        from longpole.pipeline.diagnosis_frames import candidates_frame

        return Table("Changes worth trying", candidates_frame(self.report()))

    def critical_path(self, unit: str | None = None) -> Table | Unanswered:
        """Return the critical path of one unit, piece by piece, or why it is not known.

        Args:
            unit: Name of the unit; the steady one with the longest period where None.

        Returns:
            The pieces, ascending in time; their lengths add up to the unit's period.
        """
        from longpole.records.ledger import Unknown

        report = self.report() if unit is None else build_report(self.paths, replace(self.options, unit=unit))
        path = report.critical_path
        if isinstance(path, Unknown):
            return Unanswered(path.unknown, path.missing)
        rows = [_flat(piece) for piece in path.pieces]
        return _table(f"Critical path of {path.unit}", rows, lambda: self.plot("path", unit=unit))

    def plot(
        self, figure: str, *, unit: str | None = None, by: str = "rank", width_in: float | None = None
    ) -> Figure | Unanswered:
        """Draw a figure of the run: what `longpole figure` draws.

        >>> run.plot("gantt", unit="ProfilerStep#7").savefig("step7.pdf")   # doctest: +SKIP

        Args:
            figure: `gantt`, `ledger`, `path` or `matrix`.
            unit: Name of the unit; else the one that the critical path is shown for, in a ledger the mean.
            by: Bars of a ledger: `rank`, or `unit` for those of the rank that the verdict names.
            width_in: Width in inches, 7.2 unless given.

        Returns:
            A Matplotlib figure of its own, known to no pyplot; or why what it would show is not known.

        Raises:
            UsageError: There is no such figure or unit, or a path or an option is wrong.
            MissingExtraError: Matplotlib is not installed.
            InputError: No file could be used.
        """
        from longpole.pipeline.figure import FigureOptions, make_figure

        asked = FigureOptions(unit=unit, by=by, **({} if width_in is None else {"width_in": width_in}))
        options = self.options if unit is None or figure == "ledger" else replace(self.options, unit=unit)
        drawn, _ = make_figure(figure, self.paths, options, asked)
        return drawn if isinstance(drawn, Unanswered) else drawn.figure

    def whatif(self, *changes: str | Change | Callable[[Draft], None]) -> WhatIf:
        """Predict the period with changes: the document of `longpole whatif --json`.

        >>> run.whatif("--set input=0").predicted_period_ns   # doctest: +SKIP

        Args:
            changes: As on the command line (`--set compute=0.5x`), as values of `longpole.whatif.change`, or functions
                that alter a `longpole.whatif.draft.Draft`; made in order and replayed together.

        Raises:
            UsageError: A change is none, or a path or an option is wrong.
            InputError: No file could be used.
        """
        from longpole.pipeline.whatif import what_if
        from longpole.whatif.change import parse_change

        made = [parse_change(change) if isinstance(change, str) else change for change in changes]
        return what_if(self.paths, made, self.options)

    def integrity(self) -> Table:
        """Return what is wrong with the evidence."""
        rows = [
            {
                "code": finding.code,
                "severity": finding.severity,
                "rank": finding.rank,
                "count": finding.count,
                "message": finding.message,
                "file": finding.example.file,
                "event": finding.example.event,
            }
            for finding in self.report().integrity
        ]
        return _table("Findings about the evidence", rows)

    def host_spans(self, rank: int) -> Table:
        """Return all placed spans of a rank's CPU threads; the trace is read again for them.

        Raises:
            UsageError: The run has no such rank.
        """
        timeline = self._timeline(rank)
        threads = [track.name or str(track.tid) for track in timeline.tracks]
        return Table(f"Host spans of rank {rank}", _named(timeline.host.frame(), timeline.names, threads))

    def device_spans(self, rank: int) -> Table:
        """Return all placed spans of a rank's devices; the trace is read again for them.

        Raises:
            UsageError: The run has no such rank.
        """
        timeline = self._timeline(rank)
        return Table(f"Device spans of rank {rank}", _named(timeline.device.frame(), timeline.names, None))

    def _timeline(self, rank: int) -> Timeline:
        from longpole.pipeline.timelines import timelines_of

        if self._timelines is None:
            self._timelines = timelines_of(self.paths, self.options)
        chosen = [timeline for timeline in self._timelines if timeline.identity.rank == rank]
        if not chosen:
            have = ", ".join(str(timeline.identity.rank) for timeline in self._timelines)
            msg = f"no rank {rank} in this run; there are {have}"
            raise UsageError(msg)
        return chosen[0]

    def _by_rank(self, title: str, rows_of: Callable[[RankEntry], Iterable[dict[str, Any]]]) -> Table:
        rows = [
            {"rank": entry.rank, "device": entry.device, **row}
            for entry in self.report().ranks
            for row in rows_of(entry)
        ]
        return _table(title, rows)

    def _repr_html_(self) -> str:
        """Show the headline and the ledger in a notebook."""
        headline = self.report().headline
        says = getattr(headline, "says", None) or f"No verdict: {getattr(headline, 'unknown', '')}"
        return f"<p><b>{html.escape(says)}</b></p>{self.ledger()._repr_html_()}"


def open_run(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    step: str | None = None,
    units: tuple[int | None, int | None] | None = None,
    ranks: Iterable[int] | None = None,
    use_cache: bool = True,
) -> Run:
    """Open the traces of one run.

    Args:
        path: A file, a folder, a pattern, or several of them.
        step: Regular expression for the names of events that mark units of work.
        units: First and last unit number, both included.
        ranks: Only these ranks.
        use_cache: Use what an earlier look at the same files found out.

    Returns:
        The run; files are read when its tables are first asked for.
    """
    paths = (path,) if isinstance(path, str) or hasattr(path, "__fspath__") else tuple(path)
    options = ReportOptions(
        step=step, units=units, ranks=frozenset(ranks) if ranks is not None else None, use_cache=use_cache
    )
    return Run(tuple(str(one) for one in paths), options)


def _known(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _flat(row: Any) -> dict[str, Any]:
    """Turn a table row of the report into plain columns; places become `start_ns` and `event`."""
    import msgspec

    flat = msgspec.structs.asdict(row)
    where = flat.pop("where", None)
    if where is not None:
        flat["start_ns"], flat["event"] = where.start_ns, where.event
    shapes = flat.pop("shapes", None)
    if shapes is not None:
        flat["input_dims"] = [shape.input_dims for shape in shapes]
    idle_ns = flat.pop("idle_ns", None)
    if idle_ns is not None:
        flat["reasons"] = [f"{reason}: {time_ns} ns" for reason, time_ns in idle_ns.items()]
    return flat


def _table(title: str, rows: list[dict[str, Any]], draw: Callable[[], Figure | Unanswered] | None = None) -> Table:
    import polars as pl

    return Table(title, pl.DataFrame(rows, infer_schema_length=None), draw)


def _named(frame: pl.DataFrame, names: Sequence[str], threads: Sequence[str] | None) -> pl.DataFrame:
    """Put names in place of their codes, and null in place of what stands for "none"."""
    import polars as pl

    from longpole.timeline.columns import DEVICE_COLUMNS, HOST_COLUMNS, Kind

    absent = {c.name: int(c.none) for c in (*HOST_COLUMNS, *DEVICE_COLUMNS) if c.none and c.name in frame.columns}
    named = frame.with_columns(pl.when(pl.col(c) != none).then(pl.col(c)).alias(c) for c, none in absent.items())
    named = named.with_columns(
        pl.Series("name", names, dtype=pl.String).gather(frame["name"]).alias("name"),
        pl.Series("kind", [kind.name.lower() for kind in Kind]).gather(frame["kind"]).alias("kind"),
    )
    if threads is not None:
        named = named.with_columns(pl.Series("track", threads, dtype=pl.String).gather(frame["track"]).alias("thread"))
        named = named.drop("track")
    return named
