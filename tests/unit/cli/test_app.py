"""The command line as a whole: what it offers, what it says of itself, what it costs to start."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import typer
from typer.main import get_command

from longpole.cli.app import app
from longpole.cli.main import main
from longpole.cli.plain_values import AsTyped, hand_over_plainly
from longpole.whatif.change import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _commands(group: typer.core.TyperGroup, above: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Return every command and group of commands, each as its words."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        yield [*above, name]
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command, (*above, name))


COMMANDS = list(_commands(get_command(app)))  # type: ignore[arg-type]
REPORT_OPTIONS = (
    "--collective-record",
    "--color",
    "--csv",
    "--detail",
    "--help",
    "--html",
    "--items",
    "--job",
    "--jobs",
    "--json",
    "--label",
    "--markdown",
    "--no-cache",
    "--parquet",
    "--perfetto",
    "--quiet",
    "--rank",
    "--record",
    "--rules",
    "--settings",
    "--step",
    "--unit",
    "--units",
    "--verify-cache",
)

OF_RECORDS = ("--items", "--label", "--record")
OUTPUTS = ("--csv", "--detail", "--html", "--markdown", "--parquet", "--perfetto", "--unit")
OF_REPORT_TOO = tuple(o for o in REPORT_OPTIONS if o not in (*OUTPUTS, *OF_RECORDS))
VERIFY_OPTIONS = (
    "--after",
    "--allow",
    "--before",
    "--candidate",
    "--catalogue",
    "--change",
    "--items",
    "--limit",
    "--metric",
    "--paired",
    "--part",
    "--statistic",
    "--threshold",
    *(o for o in OF_REPORT_TOO if o != "--job"),
)
WHATIF_OPTIONS = (*OPTIONS, *OF_REPORT_TOO)
SCALING_OPTIONS = (
    "--items",
    "--items-of",
    "--strong",
    *(option for option in OF_REPORT_TOO if option not in ("--collective-record", "--job", "--rank")),
)
LEDGER_OPTIONS = (
    "--color",
    "--help",
    "--json",
    "--paths",
    "--quiet",
    "--requests-per-unit",
    "--tokens-per-unit",
    "--units-per-run",
)
BALANCE_OPTIONS = (
    "--batch",
    "--before",
    "--color",
    "--convention",
    "--cost",
    "--crossover",
    "--equal-counts",
    "--from",
    "--help",
    "--json",
    "--key",
    "--model",
    "--quiet",
    "--ranks",
    "--speed",
)
EXPLAIN_OPTIONS = OF_REPORT_TOO
PLAN_OPTIONS = (
    "--against",
    "--color",
    "--convention",
    "--explain",
    "--free-memory",
    "--help",
    "--job",
    "--json",
    "--quiet",
    "--rank",
    "--search",
    "--set",
    "--step",
    "--units",
)
BUCKETS_OPTIONS = (
    "--collective-record",
    "--color",
    "--cost",
    "--gradient-type",
    "--help",
    "--job",
    "--jobs",
    "--json",
    "--no-cache",
    "--of",
    "--quiet",
    "--rank",
    "--rules",
    "--settings",
    "--step",
    "--units",
    "--verify-cache",
)
SERVE_OPTIONS = ("--port", "--unit", *(o for o in OF_REPORT_TOO if o not in ("--color", "--json")))
AUDIT_OPTIONS = ("--all", "--color", "--help", "--json", "--quiet")
HANG_OPTIONS = ("--color", "--help", "--json", "--quiet", "--settings")
AGREED = {
    "hang": HANG_OPTIONS,
    "plan": PLAN_OPTIONS,
    "report": REPORT_OPTIONS,
    "explain": EXPLAIN_OPTIONS,
    "whatif": WHATIF_OPTIONS,
    "serve": SERVE_OPTIONS,
    "scaling": SCALING_OPTIONS,
    "ledger": LEDGER_OPTIONS,
    "audit": AUDIT_OPTIONS,
    "balance": BALANCE_OPTIONS,
    "buckets": BUCKETS_OPTIONS,
    "verify": VERIFY_OPTIONS,
}


def help_of(command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*command, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_every_help_text_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(command, capsys)

    assert "Example" in text
    assert f"longpole {' '.join(command)}".strip() in text.split("Example")[1]


@pytest.mark.parametrize("command", [[], *COMMANDS], ids=" ".join)
def test_help_fits_80_columns(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in help_of(command, capsys).splitlines()) <= 80


@pytest.mark.parametrize("name", AGREED)
def test_a_command_has_the_agreed_options(name: str) -> None:
    """An option is a promise: this list changes only on purpose, together with docs/reference/cli.md."""
    command = get_command(app).commands[name]  # type: ignore[attr-defined]
    options = {option for parameter in command.get_params(typer.Context(command)) for option in parameter.opts}

    assert {option for option in options if option.startswith("--")} == set(AGREED[name])


def test_the_reference_page_has_every_option_and_command(root: Path) -> None:
    page = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")

    assert not [option for option in REPORT_OPTIONS if f"`{option}" not in page]
    assert not [option for option in {*WHATIF_OPTIONS, *SCALING_OPTIONS, *VERIFY_OPTIONS} if option not in page]
    assert not [command for command in COMMANDS if f"longpole {' '.join(command)}" not in page]


@pytest.mark.parametrize(
    ("arguments", "light"),
    [
        (["--help"], True),
        (["report", "--help"], True),
        (["schema", "report"], True),
        (["explain", "--help"], True),
        (["version"], False),
    ],
)
def test_what_needs_no_trace_loads_no_heavy_library(arguments: list[str], light: bool) -> None:
    loaded = modules_after(arguments)

    assert "typer" in loaded
    assert not loaded & {"numpy", "polars", "rich", "scipy", "pydantic"}
    assert not light or "msgspec" not in loaded


def test_values_are_handed_over_without_typers_own_reader() -> None:
    """Its import would cost more than a cached report."""
    assert "pydantic" not in modules_after(["report", "no/such/path"])


def test_every_text_of_every_command_is_handed_over_as_typed() -> None:
    command = get_command(app)

    hand_over_plainly(command)

    for name in AGREED:
        params = command.commands[name].params  # type: ignore[attr-defined]
        readers = {parameter.name: vars(parameter)["_runtime_param"] for parameter in params}
        assert all(isinstance(reader, AsTyped) for reader in readers.values()), readers


@pytest.mark.parametrize(
    ("words", "position", "offered"),
    [
        ("longpole re", 1, {"record", "report"}),
        ("longpole report --de", 2, {"--detail"}),
        ("longpole report --detail ", 3, {"run", "rank", "unit"}),
        ("longpole cache ", 2, {"size", "clear"}),
    ],
)
def test_the_shell_completes(
    words: str, position: int, offered: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_LONGPOLE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(position))

    main([])

    assert set(capsys.readouterr().out.split()) == offered


def modules_after(arguments: list[str]) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after a command."""
    program = (
        "import contextlib, io, json, sys\n"
        "from longpole.cli.main import main\n"
        "out = io.TextIOWrapper(io.BytesIO())\n"
        f"with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):\n    main({arguments!r})\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(json.loads(run.stdout))
