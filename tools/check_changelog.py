"""A change that users notice comes with a fragment in `changelog.d/`, from which the next release's section is made."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

from tools.violation import Violation

FOLDER = Path("changelog.d")
CHANGELOG = Path("CHANGELOG.md")
_FRAGMENT_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\.(feature|fix)\.md")


def find_violations(root: Path) -> list[Violation]:
    """Return the fragments that are badly named or empty, and the change or version that lacks one.

    With the environment variable CHANGELOG_BASE, a git revision, a difference under `src/` from there asks for a
    difference in the changelog too.
    """
    fragments = sorted(path for path in (root / FOLDER).glob("*") if path.name != "README.md")
    found = [
        Violation(path.relative_to(root), 1, "expected a name like loader-gaps.feature.md or cut-file.fix.md")
        for path in fragments
        if not _FRAGMENT_NAME.fullmatch(path.name)
    ]
    found += [
        Violation(path.relative_to(root), 1, "the fragment is empty; say in a sentence what a user will notice")
        for path in fragments
        if not path.read_text(encoding="utf-8").strip()
    ]
    version = str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    if not fragments and f"\n## {version}" not in (root / CHANGELOG).read_text(encoding="utf-8"):
        found.append(Violation(FOLDER, 1, f"{version} is not in {CHANGELOG}, and no fragment says what it brings"))
    base = os.environ.get("CHANGELOG_BASE")
    if base:
        changed = _find_changed(root, base)
        if any(name.startswith("src/") for name in changed) and not _mentions_changelog(changed):
            found.append(Violation(FOLDER, 1, f"src/ differs from {base}, but {FOLDER} does not; add a fragment"))
    return found


def _find_changed(root: Path, base: str) -> list[str]:
    command = ["git", "diff", "--name-only", "--end-of-options", base, "--"]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()


def _mentions_changelog(changed: list[str]) -> bool:
    return any(name == CHANGELOG.as_posix() or name.startswith(f"{FOLDER}/") for name in changed)
