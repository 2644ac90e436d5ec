"""What the documentation shows below a command is what the command prints."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools.render_sessions import find_pages, has_corpus_blocks, parse_entries, render_page

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("README.md", "docs/reference/cli.md")
PAGES = [page.relative_to(ROOT).as_posix() for page in find_pages(ROOT)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A root with one folder that holds a file in a folder."""
    (tmp_path / "data" / "inner").mkdir(parents=True)
    (tmp_path / "data" / "inner" / "words.txt").write_text("alpha\nbeta\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def render(folder: Path) -> Callable[[str], str]:
    return lambda page: render_page(page, folder, None)


@pytest.mark.parametrize(
    "name", [pytest.param(page, marks=() if page in QUICK else pytest.mark.slow) for page in PAGES]
)
def test_a_page_shows_what_its_commands_print(name: str, request: pytest.FixtureRequest) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    if "| jq" in page and shutil.which("jq") is None:
        pytest.skip("needs jq")
    shared = request.getfixturevalue("shared") if has_corpus_blocks(page) else None

    assert render_page(page, ROOT, shared) == page, f"run python -m tools.render_sessions {name}"


def test_the_output_below_a_command_is_renewed(render: Callable[[str], str]) -> None:
    page = "<!-- run in data -->\n```console\n$ cat inner/words.txt\nold\n```\nrest\n"

    assert render(page) == "<!-- run in data -->\n```console\n$ cat inner/words.txt\nalpha\nbeta\n```\nrest\n"


def test_what_a_command_leaves_behind_is_there_for_the_next_block_and_nowhere_else(
    render: Callable[[str], str], folder: Path
) -> None:
    block = "<!-- run in data -->\n```console\n{}\n```\n"

    page = render(block.format("$ echo made > new.txt") + block.format("$ cat new.txt"))

    assert "$ cat new.txt\nmade\n" in page
    assert not (folder / "data" / "new.txt").exists()


def test_a_message_on_standard_error_and_a_failure_are_part_of_a_session(render: Callable[[str], str]) -> None:
    page = render("<!-- run in data -->\n```console\n$ echo wrong >&2; exit 3\n```\n")

    assert "$ echo wrong >&2; exit 3\nwrong\n```" in page


def test_statements_of_python_share_their_names_over_blocks(render: Callable[[str], str]) -> None:
    block = "<!-- run in data -->\n```pycon\n{}\n```\n"
    loop = ">>> for n in range(2):\n...     print(n * k)\n..."

    page = render(block.format(">>> k = 3\n>>> k + 1\nold") + block.format(loop))

    assert ">>> k = 3\n>>> k + 1\n4\n```" in page
    assert page.endswith(f"{loop}\n0\n3\n```\n")


def test_a_statement_that_fails_is_an_error(render: Callable[[str], str]) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        render("<!-- run in data -->\n```pycon\n>>> 1 / 0\n```\n")


def test_blocks_of_the_corpus_stay_as_they_are_where_it_is_missing(render: Callable[[str], str]) -> None:
    page = "<!-- run in corpus/set -->\n```console\n$ ls\nold\n```\n"

    assert render(page) == page


def test_a_block_without_a_mark_is_left_alone(render: Callable[[str], str]) -> None:
    page = "```console\n$ rm -r traces\n```\n"

    assert render(page) == page


def test_a_missing_folder_is_an_error(render: Callable[[str], str]) -> None:
    with pytest.raises(ValueError, match="expected the folder"):
        render("<!-- run in nowhere -->\n```console\n$ ls\n```\n")


def test_output_before_the_first_prompt_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a block to begin with"):
        parse_entries("output\n$ ls\n", "$ ", "> ")
