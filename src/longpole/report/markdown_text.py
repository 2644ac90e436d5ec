"""Texts from traces, records and journals inside Markdown: shown as they are, without effect on what is around them."""

from __future__ import annotations

import re
from typing import Final

from longpole.report.escape import escape

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~$@&])")
_AT_START: Final = re.compile(r"^(\d*)([-.])(?=[\s-]|$)")  # a list, or the line below a heading


def plain(text: str) -> str:
    r"""Return a text that Markdown shows as it is, on one line: no markup, no link, nobody called.

    A zero-width space behind `@` and `#` keeps hosts from looking for people and issues, which they do after Markdown.

    >>> print(plain("a|b <script>"), plain("- see https://x.org @me"), plain("7. a step of -0.2 ms"))
    a\|b \<script\> \- see https\://x.org \@&#8203;me 7\. a step of -0.2 ms
    """
    shown = _SPECIAL.sub(r"\\\1", escape(" ".join(text.split())))
    shown = _AT_START.sub(r"\1\\\2", shown)
    shown = shown.replace("://", r"\://").replace("www.", r"www\.")
    return shown.replace("@", "@&#8203;").replace(r"\#", r"\#&#8203;")


def code(text: str) -> str:
    """Return a text as code, in as many backticks as it needs."""
    shown = escape(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"
