"""Pages of causes and of symptoms: none is missing or left over, and what is made from data is current."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools import check_cause_pages, render_causes, render_symptoms
from tools.check_cause_pages import HEADINGS

if TYPE_CHECKING:
    from pathlib import Path

CODE = 'CAUSES: Final[dict[str, str]] = {\n    "gc": "host",\n    "leak": "host",\n}\n'
PLACES = (check_cause_pages.PAGES, check_cause_pages.COPIES)


def page_of(cause: str, headings: tuple[str, ...] = HEADINGS) -> str:
    return f"# {cause}: it waits\n" + "".join(f"\n## {heading}\n\ntext\n" for heading in headings)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with two causes and their pages."""
    module = tmp_path / check_cause_pages.CAUSES_MODULE
    module.parent.mkdir(parents=True)
    module.write_text(CODE, encoding="utf-8")
    for folder in PLACES:
        (tmp_path / folder).mkdir(parents=True)
        for cause in ("gc", "leak"):
            (tmp_path / folder / f"{cause}.md").write_text(page_of(cause), encoding="utf-8")
    (tmp_path / check_cause_pages.COPIES / "README.md").write_text("# Causes\n", encoding="utf-8")
    return tmp_path


def found(root: Path) -> list[tuple[str, int]]:
    return [(violation.path.as_posix(), violation.line) for violation in check_cause_pages.find_violations(root)]


def test_whole_pages_pass(tree: Path) -> None:
    assert found(tree) == []


@pytest.mark.parametrize("folder", PLACES)
def test_a_missing_page_is_found_at_its_cause(tree: Path, folder: Path) -> None:
    (tree / folder / "leak.md").unlink()

    assert found(tree) == [("src/longpole/vocabulary/causes.py", 3)]


@pytest.mark.parametrize("folder", PLACES)
def test_a_page_that_is_left_over_is_found(tree: Path, folder: Path) -> None:
    (tree / folder / "gone.md").write_text(page_of("gone"), encoding="utf-8")

    assert found(tree) == [((folder / "gone.md").as_posix(), 1)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (page_of("gc", HEADINGS[:3]), 11),
        (page_of("gc", (HEADINGS[1], HEADINGS[0], *HEADINGS[2:])), 3),
        (page_of("gc") + "\n## More\n", 27),
        (page_of("other"), 1),
        ("text\n", 1),
    ],
)
def test_a_page_with_other_sections_is_found(tree: Path, text: str, line: int) -> None:
    (tree / check_cause_pages.PAGES / "gc.md").write_text(text, encoding="utf-8")

    assert (f"{check_cause_pages.PAGES.as_posix()}/gc.md", line) in found(tree)


@pytest.mark.parametrize("code", ["CAUSES = {}\n", "CAUSES: dict[str, str] = dict(a=1)\n", "OTHER = 1\n"])
def test_an_empty_vocabulary_is_no_agreement(tree: Path, code: str) -> None:
    (tree / check_cause_pages.CAUSES_MODULE).write_text(code, encoding="utf-8")

    assert found(tree) == [("src/longpole/vocabulary/causes.py", 1)]


def test_a_missing_vocabulary_is_found(tmp_path: Path) -> None:
    assert found(tmp_path) == [("src/longpole/vocabulary/causes.py", 1)]


def test_the_check_and_the_package_want_the_same_sections() -> None:
    from longpole.advice.cause_pages import HEADINGS as OF_PACKAGE

    assert HEADINGS == OF_PACKAGE


def test_the_copies_are_current(root: Path) -> None:
    stale = [path for path, text in render_causes.render_files(root).items() if (root / path).read_text() != text]

    assert not stale, "run python -m tools.render_causes"


def test_the_page_of_symptoms_is_current(root: Path) -> None:
    page = (root / render_symptoms.PAGE).read_text(encoding="utf-8")

    assert render_symptoms.render_page(page) == page, "run python -m tools.render_symptoms"
