"""`longpole serve`: the page of a run, with questions."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from longpole.cli import report_options as option
from longpole.cli.progress import Progress
from longpole.cli.reading_options import reading_options
from longpole.cli.terminal import tell, write_text
from longpole.errors import UsageError

EXAMPLES: Final = """\b
Examples:
  longpole serve traces/
  longpole serve traces/ --port 8080
  ssh -t -L 8080:127.0.0.1:8080 host longpole serve traces/ --port 8080

\b
The address holds a token: whoever has it can see the page while this runs.
Ctrl-C ends it. Nothing is written but the cache."""
PORT_MAX: Final = 65_535
_Port = Annotated[str | None, typer.Option("--port", metavar="N", help="Listen on this port; any free one by default.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the address, and nothing else.")]


def serve(
    paths: option.Paths,
    *,
    port: _Port = None,
    step: option.Step = None,
    units: option.Units = None,
    unit: option.Unit = None,
    rank: option.Ranks = None,
    rules: option.Rules = None,
    settings: option.SettingsFile = None,
    collective_record: option.CollectiveRecord = None,
    no_cache: option.NoCache = False,
    verify_cache: option.VerifyCache = False,
    job: option.Job = None,
    jobs: option.Jobs = None,
    quiet: _Quiet = False,
) -> None:
    """Show the page of a run on this machine, and answer its what-ifs."""
    number = _port(port)
    options = reading_options(
        step=step,
        units=units,
        rank=rank,
        rules=rules,
        settings=settings,
        no_cache=no_cache,
        verify_cache=verify_cache,
        job=job,
        jobs=jobs,
        unit=unit,
        collective_record=collective_record,
    )
    from longpole.web.site import Site, check_port

    check_port(number)
    from longpole.pipeline.serve import prepare

    with Progress(wanted=not quiet) as progress:
        served = prepare(paths, options, progress.update)
    site = Site(served.page, served.answer, number)
    write_text(f"{site.url}\n")
    if not quiet:
        tell("Open this address in a browser on this machine; Ctrl-C ends it.")
    site.serve()
    if not quiet:
        tell("Ended.")


def _port(text: str | None) -> int:
    """Read a port; 0 for any where none is given.

    Raises:
        UsageError: It is none.
    """
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= PORT_MAX):
        msg = f"--port: expected a number from 1 to {PORT_MAX}; found {text!r}"
        raise UsageError(msg)
    return int(text)
