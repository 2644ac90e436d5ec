"""Run the repository checks: all of them, or those named on the command line. Exit code 1 where a rule is broken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools import (
    check_cause_pages,
    check_changelog,
    check_docs_links,
    check_docs_lists,
    check_file_names,
    check_file_sizes,
    check_imports,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.violation import Violation

ROOT = Path(__file__).resolve().parents[1]

CHECKS: dict[str, Callable[[Path], list[Violation]]] = {
    "cause-pages": check_cause_pages.find_violations,
    "changelog": check_changelog.find_violations,
    "docs-links": check_docs_links.find_violations,
    "docs-lists": check_docs_lists.find_violations,
    "file-names": check_file_names.find_violations,
    "file-sizes": check_file_sizes.find_violations,
    "imports": check_imports.find_violations,
}


def main(names: Sequence[str]) -> int:
    """Run the named checks, all of them where none is named, and return the exit code."""
    unknown = sorted(set(names) - set(CHECKS))
    if unknown:
        print(f"no check is called {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    violations = [violation for name in names or CHECKS for violation in CHECKS[name](ROOT)]
    for violation in violations:
        print(violation)
    print(f"repository checks: {len(names or CHECKS)} run, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
