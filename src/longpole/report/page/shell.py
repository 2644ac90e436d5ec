"""The file around a page: its head, its policy and its foot; the only scripts that run are those it is given."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from longpole.report.page.markup import text

if TYPE_CHECKING:
    from collections.abc import Sequence


def write_page(title: str, parts: Sequence[str], foot: str, scripts: Sequence[str] = (), data: str = "") -> bytes:
    """Write a page.

    Args:
        title: Its title, as text.
        parts: Its parts, as markup.
        foot: What stands at its end, as markup.
        scripts: The scripts that may run, and do, in their order.
        data: Elements that the scripts read.

    Returns:
        UTF-8 HTML with a line end.
    """
    style = asset("style.css")
    may_run = " ".join(f"'{_hash(script)}'" for script in scripts) or "'none'"
    # `connect-src` is for `longpole serve`, which hands out this very file; opened as a file it connects to nothing.
    policy = (
        f"default-src 'none'; script-src {may_run}; style-src '{_hash(style)}';"
        " img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    run = "".join(f"<script>{script}</script>" for script in scripts)
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{text(title, 120)}</title><style>{style}</style></head><body>{''.join(parts)}"
        f"<footer>{foot}</footer>{data}{run}</body></html>\n"
    )
    return page.encode()


@lru_cache(maxsize=4)
def asset(name: str) -> str:
    """Return a style or a script of the page."""
    return resources.files("longpole.report.page").joinpath("assets", name).read_text(encoding="utf-8")


def made_from(version: str, paths: Sequence[str]) -> str:
    """Return who made a page, and from which files."""
    named = ", ".join(text(path, 80) for path in paths[:3])
    more = f" and {len(paths) - 3} more files" if len(paths) > 3 else ""
    return f"Made by Longpole {text(version)} from {named}{more}."


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
