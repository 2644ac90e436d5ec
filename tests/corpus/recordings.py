"""Reports on the files of the corpus, each made once a session, and the list of what must come out."""

from __future__ import annotations

import fnmatch
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import LongpoleError
from tests.laws import report_on

if TYPE_CHECKING:
    from longpole.report.document import Report

OUTCOMES: Final[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "expected_outcomes.toml").read_text(encoding="utf-8")
)
FAST_MAX_MB: Final = 4.0
"""Files with more text than this are left to the slow tests."""


@dataclass(frozen=True)
class Refused:
    """A group of files that are no traces."""

    files: tuple[str, ...]
    count: int
    error: str
    says: str

    def holds(self, path: str) -> bool:
        """Tell whether a path of the corpus belongs to the group."""
        return any(fnmatch.fnmatchcase(path, pattern) for pattern in self.files)


def is_slow(path: str) -> bool:
    """Tell whether a file is left to the slow tests: a large one, or one more rank of a job that is read as a whole."""
    reported = OUTCOMES["reported"]
    job = path.rpartition("/")[0]
    first = next(other for other in reported if other.rpartition("/")[0] == job)
    return reported[path]["decoded_mb"] > FAST_MAX_MB or (job in OUTCOMES["run"] and path != first)


REFUSED: Final = [Refused(tuple(row["files"]), row["count"], row["error"], row["says"]) for row in OUTCOMES["refused"]]


@functools.cache
def outcome_of(path: Path) -> Report | LongpoleError:
    """Return the report on a file or folder, or the error with which it is refused."""
    try:
        return report_on(path)
    except LongpoleError as error:
        return error
