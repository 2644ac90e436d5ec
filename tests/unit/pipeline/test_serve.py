"""What `longpole serve` answers is what `longpole whatif` writes, question after question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from longpole.cli.main import main
from longpole.errors import UsageError
from longpole.pipeline.reading import ReportOptions
from longpole.pipeline.serve import Served, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RUN = str(EXAMPLES / "ddp-gloo-2ranks")
QUESTIONS = (
    ["--set", "collective=0.5x", "--remove", "host"],
    ["--equalise", "work", "--set", "compute&rank:1=2x"],
    ["--set", "collective=0.5x", "--remove", "host"],
)


@pytest.fixture(scope="module")
def served() -> Served:
    return prepare([RUN], ReportOptions(use_cache=False, processes=1))


def paired(words: Sequence[str]) -> list[str]:
    return [" ".join(words[at : at + 2]) for at in range(0, len(words), 2)]


def test_answers_are_those_of_the_command_byte_for_byte_whatever_was_asked_before(
    served: Served, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for words in QUESTIONS:
        answer = served.answer(paired(words))
        main(["whatif", RUN, *words, "--json", "-", "--no-cache", "--jobs", "1"])
        assert answer == capfdbinary.readouterr().out, words


def test_the_page_is_the_file_that_html_writes(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "page.html"

    assert main(["report", RUN, "--html", str(file), "-q", "--no-cache", "--jobs", "1"]) == 0
    assert file.read_bytes() == served.page


def test_a_change_that_is_none_is_refused(served: Served) -> None:
    with pytest.raises(UsageError, match="--set input=fast"):
        served.answer(["--set input=fast"])


def test_operation_tables_have_no_page() -> None:
    with pytest.raises(UsageError, match=r"operations.csv: expected traces, found an operation table"):
        prepare([str(EXAMPLES / "pipeline-timers" / "operations.csv")], ReportOptions())
