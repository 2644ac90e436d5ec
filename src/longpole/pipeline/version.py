"""Which version of the package wrote a document."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from typing import Final

_INSTALLED: Final = re.compile(r"longpole-(?P<version>[^-]+)\.dist-info")


@cache
def package_version() -> str:
    """Return the version of the installed package.

    The folder of its metadata has it in its name (PEP 427); only where there is none, or more than one, is
    `importlib.metadata` asked, whose import takes longer than a plan.
    """
    found = {match["version"] for folder in sys.path for match in map(_INSTALLED.fullmatch, _names(folder)) if match}
    if len(found) == 1:
        return found.pop()
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("longpole")
    except PackageNotFoundError:
        return "0+unknown"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")  # noqa: PTH208 - a list of names, of some hundred thousand a second
    except OSError:
        return []
