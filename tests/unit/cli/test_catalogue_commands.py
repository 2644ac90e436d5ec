"""Commands that candidates name are commands that exist, with options that they take."""

from __future__ import annotations

import shlex

import pytest
import typer

from longpole.advice.catalogue import load_catalogue
from longpole.bench.io.catalogue import choose_paths
from longpole.cli.app import app

NAMED = {(row.id, command) for row in load_catalogue() for command in row.check_with}


@pytest.mark.parametrize(("row", "command"), sorted(NAMED))
def test_what_a_candidate_is_checked_with_exists(row: str, command: str) -> None:
    program, *words = shlex.split(command)
    here = typer.main.get_command(app)
    context = here.make_context(program, [], resilient_parsing=True)
    while hasattr(here, "commands"):
        here = here.commands[words.pop(0)]

    parsed = here.make_context(row, words, parent=context, resilient_parsing=True)

    if (paths := parsed.params.get("paths")) and here.name == "io":
        assert choose_paths(paths)


def test_the_size_of_buckets_is_checked_by_the_command_for_it() -> None:
    assert ("collective.set_bucket_size", "longpole buckets TRACES") in NAMED
