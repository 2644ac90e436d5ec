"""Pieces of HTML. Whatever comes from a trace passes `text`: it is made visible, escaped, and never more than text."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.records.ledger import Unknown
from longpole.report.escape import escape
from longpole.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_TAG: Final = re.compile("<[^>]*>")
_PLACE: Final = re.compile(
    r"^(?:/|[A-Za-z]:)[^\s():]*?(?:lib/python3\.\d+/(?:site|dist)-packages|(?:site|dist)-packages|lib/python3\.\d+)/"
    r"(?=[^\s]*\.py\()"
)
_FIGURE_MAX: Final = 14  # characters of a figure with its unit; more is a text
_SHOWN: Final = 400  # characters of one text; a name of 4 kB is told by its beginning and its end


@dataclass(frozen=True, slots=True)
class Figure:
    """A part of the page with its title, and what its figures mean.

    Attributes:
        ident: Its anchor.
        title: What stands above it.
        means: What its figures mean, in one or two sentences.
        page: The page of the documentation that says more.
    """

    ident: str
    title: str
    means: str
    page: str = ""


def text(value: object, most: int = _SHOWN) -> str:
    """Return a text as harmless markup; a long one keeps its beginning and its end.

    >>> text("<img src=x onerror=alert(1)>")
    '&lt;img src=x onerror=alert(1)&gt;'
    """
    plain = escape(str(value))
    if len(plain) > most:
        end = most // 3
        plain = f"{plain[: most - end - 3]} … {plain[-end:]}"
    return html.escape(plain)


def without_place(frame: str) -> str:
    """Return a frame of Python without where its library is installed: that tells nothing of the program.

    >>> without_place("/home/me/env/lib/python3.11/site-packages/torch/nn/modules/linear.py(114): forward")
    'torch/nn/modules/linear.py(114): forward'
    """
    return _PLACE.sub("", frame)


def section(figure: Figure, *body: str, open_text: str = "") -> str:
    """Return a part of the page; empty where it has no body."""
    inner = "".join(body)
    if not inner:
        return ""
    more = f" <span class=doc>More: {text(figure.page)}</span>" if figure.page else ""
    return (
        f'<section id="{figure.ident}"><h2>{text(figure.title)}</h2>'
        f"<details class=means><summary>What is this?</summary><p>{text(figure.means, 1200)}{more}</p></details>"
        f"{open_text}{inner}</section>"
    )


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numbers_from: int = 1,
    caption: str = "",
    shape: str = "cards",
) -> str:
    """Return a table; cells are markup already.

    Args:
        head: Titles of the columns.
        rows: Cells.
        numbers_from: The first column that holds numbers.
        caption: What stands above it for those who cannot see it.
        shape: What becomes of it on a narrow screen: `cards` (each row a block), `wide` (it scrolls), or `narrow` (it
            fits, and is no wider than it must be elsewhere).
    """
    cells = "".join(
        f"<th scope=col{_number(place, numbers_from)}>{text(title)}</th>" for place, title in enumerate(head)
    )
    # On a narrow screen the title of its column stands beside each cell.
    named = [f' data-of="{text(title)}"' if shape == "cards" else "" for title in head]
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_number(place, numbers_from, cell)}{of}>{cell}</td>"
            for place, (cell, of) in enumerate(zip(row, named, strict=True))
        )
        + "</tr>"
        for row in rows
    )
    above = f"<caption>{text(caption)}</caption>" if caption else ""
    head_row = f"<thead><tr>{cells}</tr></thead>"
    return f"<div class=scroll><table class={shape}>{above}{head_row}<tbody>{body}</tbody></table></div>"


def _number(place: int, numbers_from: int, cell: str = "") -> str:
    """Return the class of a cell; a figure stays on one line with its unit."""
    if place < numbers_from:
        return ""
    return ' class="num one"' if cell and len(_TAG.sub("", cell)) <= _FIGURE_MAX else " class=num"


def time(value: object) -> str:
    """Return a time with its unit; what is not known says why when it is pointed at.

    >>> time(1_500_000)
    '1.50 ms'
    """
    if isinstance(value, Unknown):
        return f'<span class=unknown title="{text(value.unknown)}">not known</span>'
    return text(format_ns(value)) if isinstance(value, int | float) else "–"


def share(value: object) -> str:
    """Return a share as a percentage.

    >>> share(0.345)
    '34.5 %'
    """
    if isinstance(value, Unknown):
        return f'<span class=unknown title="{text(value.unknown)}">not known</span>'
    return f"{100 * value:.1f} %".replace("-", "−") if isinstance(value, int | float) else "–"
