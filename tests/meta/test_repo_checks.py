"""The repository keeps its own rules, and each check finds what it is there to find."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tools import (
    check_changelog,
    check_docs_links,
    check_docs_lists,
    check_file_names,
    check_file_sizes,
    check_imports,
)
from tools.run_checks import CHECKS, main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], None]:
    """Write a file of a small repository under `tmp_path`."""

    def write_file(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return write_file


LONG = ("file-sizes", "imports")  # `make check`, which every `make test` begins with, runs them too


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in CHECKS])
def test_the_repository_passes(name: str, root: Path) -> None:
    assert [str(violation) for violation in CHECKS[name](root)] == []


def test_an_unknown_check_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spelling"]) == 2

    assert "no check is called spelling" in capsys.readouterr().err


class TestFileSizes:
    @pytest.fixture(autouse=True)
    def _no_allowances(self, write: Callable[[str, str], None]) -> None:
        write("tools/size_allowances.toml", "")

    def test_a_file_and_a_function_at_the_limit_pass(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("src/longpole/a.py", _function_of(70) + "x = 1\n" * 530)

        assert check_file_sizes.find_violations(tmp_path) == []

    def test_a_file_over_the_limit_is_found(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("tests/a.py", "x = 1\n" * 601)

        assert [violation.line for violation in check_file_sizes.find_violations(tmp_path)] == [1]

    def test_a_long_function_is_found_where_it_starts(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("src/longpole/a.py", "x = 1\n" + _function_of(71))

        (violation,) = check_file_sizes.find_violations(tmp_path)

        assert violation.line == 2
        assert "71 lines" in violation.message

    @pytest.mark.parametrize(
        ("n_lines", "says"),
        [(650, None), (651, "do not grow"), (649, "lower its allowance"), (600, "take it off the list")],
    )
    def test_an_allowance_may_only_shrink(
        self, n_lines: int, says: str | None, tmp_path: Path, write: Callable[[str, str], None]
    ) -> None:
        write("src/longpole/a.py", "x = 1\n" * n_lines)
        write("tools/size_allowances.toml", '"src/longpole/a.py" = 650\n')

        messages = [violation.message for violation in check_file_sizes.find_violations(tmp_path)]

        assert len(messages) == (0 if says is None else 1)
        assert says is None or says in messages[0]

    def test_an_allowance_for_a_file_that_is_gone_is_found(
        self, tmp_path: Path, write: Callable[[str, str], None]
    ) -> None:
        write("tools/size_allowances.toml", '"src/longpole/gone.py" = 650\n')

        assert len(check_file_sizes.find_violations(tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "is_refused"),
    [
        ("src/longpole/utils.py", True),
        ("src/longpole/_helper.py", True),
        ("src/longpole/common/rows.py", True),
        ("tests/unit/test_types.py", True),
        ("src/longpole/database.py", False),
        ("src/longpole/timeline/intervals.py", False),
    ],
)
def test_vague_file_names_are_found(
    name: str, is_refused: bool, tmp_path: Path, write: Callable[[str, str], None]
) -> None:
    write(name, "")

    assert bool(check_file_names.find_violations(tmp_path)) is is_refused


@pytest.mark.parametrize(
    ("module", "text", "is_refused"),
    [
        ("analyses/ledger", "import polars as pl\n", True),
        ("analyses/ledger", "from scipy import stats\n", True),
        ("analyses/ledger", "class A:\n    import rich.table\n", True),
        ("analyses/ledger", "try:\n    import torch\nexcept ImportError:\n    pass\n", True),
        ("analyses/ledger", "if TYPE_CHECKING:\n    import os\nelse:\n    import polars\n", True),
        ("analyses/ledger", "if TYPE_CHECKING:\n    import polars as pl\n", False),
        ("analyses/ledger", "if typing.TYPE_CHECKING:\n    import polars as pl\n", False),
        ("analyses/ledger", "def f():\n    import polars\n", False),
        ("analyses/ledger", "import numpy as np\n", False),
        ("units", "import numpy as np\n", True),
        ("vocabulary/names", "import numpy.typing\n", True),
        ("analyses/ledger", "import typer\n", True),
        ("cli/main", "import typer\n", False),
        ("cli/main", "import rich\n", True),
        ("analyses/ledger", "from longpole import units\n", True),
        ("analyses/ledger", "def f():\n    import longpole\n", True),
        ("analyses/ledger", "from longpole.units import to_ms\n", False),
    ],
)
def test_imports_that_load_too_much_are_found(
    module: str, text: str, is_refused: bool, tmp_path: Path, write: Callable[[str, str], None]
) -> None:
    write(f"src/longpole/{module}.py", text)

    assert len(check_imports.find_violations(tmp_path)) == int(is_refused)


class TestDocsLists:
    CODE = 'CODES: Final[dict[str, str]] = {"file.cut": "ends early", "rank.missing": "no file"}\n'

    def test_equal_lists_pass(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("src/longpole/timeline/integrity.py", self.CODE)
        write("docs/reference/integrity.md", "# Integrity\n\n## About files\n\n### `file.cut`\n\n### rank.missing\n")

        assert check_docs_lists.find_violations(tmp_path) == []

    def test_a_difference_is_found_on_either_side(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("src/longpole/timeline/integrity.py", self.CODE)
        write("docs/reference/integrity.md", "# Integrity\n\n### `file.cut`\n\n### `file.gone`\n")

        found = {(violation.path.name, violation.line) for violation in check_docs_lists.find_violations(tmp_path)}

        assert found == {("integrity.py", 1), ("integrity.md", 5)}

    def test_a_module_without_codes_is_found(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        """An empty list on both sides is no agreement."""
        write("src/longpole/timeline/integrity.py", "OTHER = {}\n")
        write("docs/reference/integrity.md", "# Integrity\n")

        assert len(check_docs_lists.find_violations(tmp_path)) == 1

    def test_missing_files_are_found(self, tmp_path: Path) -> None:
        assert len(check_docs_lists.find_violations(tmp_path)) == 2


@pytest.mark.parametrize(
    ("link", "is_refused"),
    [
        ("[a](guide.md)", False),
        ("[a](guide.md#the-ledger-and-its-laws)", False),
        ("[a](#here)", False),
        ("[a](https://example.org/gone)", False),
        ("`[a](gone.md)`", False),
        ("```\n[a](gone.md)\n```", False),
        ("[a](gone.md)", True),
        ("[a](guide.md#gone)", True),
        ("[a](#gone)", True),
    ],
)
def test_links_that_lead_nowhere_are_found(
    link: str, is_refused: bool, tmp_path: Path, write: Callable[[str, str], None]
) -> None:
    write("docs/guide.md", "# Guide\n\n## The ledger, and its laws\n")
    write("docs/index.md", f"# Here\n\n{link}\n")

    found = check_docs_links.find_violations(tmp_path)

    assert [violation.line for violation in found] == ([3] if is_refused else [])


class TestChangelog:
    @pytest.fixture(autouse=True)
    def _unreleased(self, write: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CHANGELOG_BASE", raising=False)
        write("pyproject.toml", '[project]\nversion = "0.1.0"\n')
        write("CHANGELOG.md", "# Changelog\n")
        write("changelog.d/README.md", "how\n")

    def test_a_version_that_nothing_describes_is_found(self, tmp_path: Path) -> None:
        assert len(check_changelog.find_violations(tmp_path)) == 1

    def test_a_fragment_describes_it(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("changelog.d/report.feature.md", "`longpole report` reads traces.\n")

        assert check_changelog.find_violations(tmp_path) == []

    def test_a_released_section_describes_it(self, tmp_path: Path, write: Callable[[str, str], None]) -> None:
        write("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n")

        assert check_changelog.find_violations(tmp_path) == []

    @pytest.mark.parametrize(("name", "text"), [("report.md", "text"), ("a.chore.md", "text"), ("a.fix.md", " \n")])
    def test_a_bad_fragment_is_found(
        self, name: str, text: str, tmp_path: Path, write: Callable[[str, str], None]
    ) -> None:
        write(f"changelog.d/{name}", text)

        assert len(check_changelog.find_violations(tmp_path)) == 1

    @pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
    def test_a_change_since_the_base_asks_for_a_fragment(
        self, tmp_path: Path, write: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("changelog.d/old.fix.md", "text\n")
        write("src/longpole/a.py", "x = 1\n")
        _commit_all(tmp_path)
        monkeypatch.setenv("CHANGELOG_BASE", "HEAD")
        assert check_changelog.find_violations(tmp_path) == []

        write("src/longpole/a.py", "x = 2\n")
        n_before = len(check_changelog.find_violations(tmp_path))
        write("changelog.d/old.fix.md", "more text\n")
        n_after = len(check_changelog.find_violations(tmp_path))

        assert (n_before, n_after) == (1, 0)


def _function_of(n_lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (n_lines - 1)


def _commit_all(folder: Path) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
