"""`longpole bench collectives`: what collectives take here, by kind, size and setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.bench import collectives_options as asked
from longpole.cli.documents import DocumentOutput
from longpole.cli.terminal import COLORS, tell, write_text
from longpole.cli.values import parse_choice, parse_count, parse_if_given
from longpole.errors import UsageError
from longpole.units import parse_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longpole.bench.collectives.plan import Plan
    from longpole.records.bench_collectives import CollectivesRecord

EXAMPLES: Final = """\b
Examples:
  longpole bench collectives --sizes 4KiB..16MiBx4 --kinds all_reduce
  longpole bench collectives --set NCCL_ALGO=Ring,Tree --set NCCL_PROTO=LL
  longpole bench collectives --bucket 1MiB,25MiB --label ddp
  longpole bench collectives --read all_reduce_perf.log --json record.json
  longpole whatif traces/ --fuse all_reduce=25MB --collective-record rec.json

\b
Exit codes: 0 measured, 1 a setting failed, 6 a result was wrong."""
EXIT_CODES: Final = {"passed": 0, "failed": 1, "invalid": 6}
_MOST_RANKS: Final = 64
_NS_PER_S: Final = 1e9


def collectives(
    *,
    read: asked.Read = None,
    backend: asked.Backend = "auto",
    world: asked.World = "2",
    kinds: asked.Kinds = None,
    sizes: asked.Sizes = asked.SIZES,
    sets: asked.Set = None,
    bucket: asked.Bucket = None,
    dtype: asked.Dtype = "float32",
    repeats: asked.Repeats = "20",
    warmup: asked.Warmup = "5",
    rounds: asked.Rounds = "5",
    seed: asked.Seed = "42",
    timeout: asked.Timeout = "120s",
    label: asked.Label = None,
    out: asked.Out = "benchmarks/results",
    dry_run: asked.DryRun = False,
    json: asked.JsonFile = None,
    settings: asked.SettingsFile = None,
    quiet: option.Quiet = False,
    color: option.Color = "auto",
) -> None:
    """Measure what collectives take here, or read it from nccl-tests: a table, a fit, the best setting."""
    output = DocumentOutput(json_file=json, quiet=quiet, color=parse_choice("--color", color, COLORS))
    output.check()
    thresholds = parse_if_given(Path, settings)
    if read:
        from longpole.pipeline.bench_collectives import read_collectives

        _write(read_collectives(read, kind=_one_kind(kinds), label=label, settings=thresholds), output, read)
        return
    plan = _plan(
        {"--world": world, "--repeats": repeats, "--rounds": rounds},
        {"--warmup": warmup, "--seed": seed},
        backend=backend,
        kinds=kinds,
        sizes=sizes,
        sets=sets or [],
        bucket=bucket,
        dtype=dtype,
        timeout=timeout,
    )
    if dry_run:
        write_text(_describe(plan, out))
        return
    from longpole.pipeline.bench_collectives import measure_collectives

    def progress(what: str, done: int, total: int) -> None:
        tell(f"{done + 1} of {total}: {what}")

    record, path = measure_collectives(
        plan, label=label, results=Path(out), settings=thresholds, progress=None if quiet else progress
    )
    _write(record, output, [str(path)], str(path))


def _write(record: CollectivesRecord, output: DocumentOutput, sources: Sequence[str], written: str = "") -> None:
    """Write the record and its page.

    Raises:
        typer.Exit: A setting failed (1), or a result was wrong (6).
    """
    from longpole.records.bench_collectives_file import encode_collectives
    from longpole.report.text.bench_collectives import render_collectives

    output.write(
        lambda: encode_collectives(record),
        lambda width, color: render_collectives(record, width=width, color=color, written=written),
        sources=sources,
    )
    code = EXIT_CODES[record.status]
    if code:
        raise typer.Exit(code)


def _one_kind(kinds: str | None) -> str | None:
    """Return the kind of logs that do not say theirs.

    Raises:
        UsageError: It is no kind, or several are given.
    """
    from longpole.pipeline.collective_logs import KIND_OF_PROGRAM

    return None if kinds is None else parse_choice("--kinds", kinds, sorted(KIND_OF_PROGRAM.values()))


def _plan(
    counts: dict[str, str],
    naturals: dict[str, str],
    *,
    backend: str,
    kinds: str | None,
    sizes: str,
    sets: Sequence[str],
    bucket: str | None,
    dtype: str,
    timeout: str,
) -> Plan:
    """Make the plan of what was typed.

    Raises:
        UsageError: A word is none of those that an option takes.
    """
    from longpole.bench.collectives import plan as of

    whole = {name: parse_count(name, text) or 1 for name, text in counts.items()}
    whole |= {name: 0 if text.strip() == "0" else parse_count(name, text) or 0 for name, text in naturals.items()}
    if not 2 <= whole["--world"] <= _MOST_RANKS:
        msg = f"--world: expected from 2 to {_MOST_RANKS} ranks; found {whole['--world']}"
        raise UsageError(msg)
    timeout_ns = parse_ns(timeout)
    if not timeout_ns:
        msg = f"--timeout: expected a time such as 120s; found {timeout!r}"
        raise UsageError(msg)
    chosen = [name.strip() for name in kinds.split(",")] if kinds is not None else list(of.KINDS)
    return of.Plan(
        backend=parse_choice("--backend", backend, of.BACKENDS),
        world=whole["--world"],
        kinds=tuple(dict.fromkeys(parse_choice("--kinds", name, of.KINDS) for name in chosen)),
        sizes=of.parse_sizes(sizes),
        variables=of.parse_settings(sets),
        buckets=of.parse_buckets(bucket),
        dtype=parse_choice("--dtype", dtype, of.DTYPES),
        repeats=whole["--repeats"],
        warmup=whole["--warmup"],
        rounds=whole["--rounds"],
        seed=whole["--seed"],
        timeout_s=timeout_ns / _NS_PER_S,
    )


def _describe(plan: Plan, out: str) -> str:
    """Say what would be measured."""
    from longpole.bench.collectives.plan import setting_name, write_size

    cells, schedule = plan.cells(), plan.schedule()
    once = sum(cell.size_bytes for cell in cells) * (1 + plan.warmup + plan.repeats)
    lines = [
        f"would measure {len(cells)} points under each of {len(plan.variables)} settings, {plan.rounds} rounds:"
        f" {len(schedule)} sets of {plan.world} processes",
        f"backend   {plan.backend}, {plan.dtype}",
        f"kinds     {', '.join(plan.kinds)}",
        f"sizes     {', '.join(write_size(size) for size in plan.sizes)}",
        f"buckets   {', '.join('whole' if size is None else write_size(size) for size in plan.buckets)}",
        f"each      {plan.warmup} warm-ups and {plan.repeats} repeats, results checked before and after",
        f"moves     {once * len(schedule) / 1e9:,.3g} GB of buffers in all",
        f"record    {out}/<semantic id>/<label>.json",
        "order     "
        + " | ".join(setting_name(plan.variables[place], None) for _, place in schedule[:8])
        + (" | …" if len(schedule) > 8 else ""),
    ]
    return "\n".join(lines) + "\n"
