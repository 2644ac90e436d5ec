"""What all figures share: a sheet of paper, its look, names made fit for it, and the bytes it is written as.

Nothing here touches pyplot or a backend of the user's: a figure is a value, and the look holds while it is made.
"""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from longpole.errors import MissingExtraError
from longpole.report.escape import escape
from longpole.report.palette import OBJECT_COLORS
from longpole.units import NS_PER_MS, NS_PER_S, NS_PER_US

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = ("svg", "png", "pdf")
WIDTH_IN: Final = 7.2
"""Inches: two columns of a paper, or a page's text."""
DOTS_PER_INCH: Final = 200
SMALL: Final = 6.0  # points
_CHARACTERS_PER_IN: Final = 19  # of small text, about
_TITLE_CHARACTERS_PER_IN: Final = 12
_SALT: Final = "longpole"
_LOOK: Final[dict[str, Any]] = {
    "font.family": "DejaVu Sans",  # comes with Matplotlib: a figure looks the same everywhere
    "font.size": 7.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.size": 0.0,
    "legend.frameon": False,
    "legend.handlelength": 1.0,
    "legend.handleheight": 1.0,
    "figure.facecolor": "white",
    "hatch.linewidth": 0.4,
    "text.parse_math": False,  # a kernel's name may hold two dollars
    "path.simplify": False,
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": _SALT,
}
_NO_DATES: Final[dict[str, dict[str, Any]]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure, and what is to be said of it.

    Attributes:
        figure: A Matplotlib figure of its own, known to no pyplot.
        says: What it shows, in a few words.
        notes: What it does not show, in sentences; they stand below it too.
    """

    figure: Figure
    says: str
    notes: list[str] = field(default_factory=list)


def require_matplotlib() -> None:
    """Look whether figures can be drawn.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        msg = "figures: Matplotlib is not installed. Install it with: pip install 'longpole[figures]'"
        raise MissingExtraError(msg) from None


@contextmanager
def own_look() -> Iterator[None]:
    """Let a figure look as ours do, whatever the user's own style is; that is as before afterwards."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        params: Any = mpl.rcParams
        params.update(_LOOK)
        yield


def new_figure(width_in: float, height_in: float) -> Figure:
    """Return an empty sheet."""
    return _figure_class()(figsize=(width_in, height_in), layout="constrained")


@cache
def _figure_class() -> type[Figure]:
    from matplotlib.figure import Figure

    class Sheet(Figure):
        """A figure that looks like ours whoever draws it, and that a notebook shows without having been told how."""

        def draw(self, renderer: Any) -> None:
            with own_look():  # ticks are made only now
                super().draw(renderer)

        def _repr_png_(self) -> bytes:
            return encode_figure(self, "png")

    return Sheet


def encode_figure(figure: Figure, kind: str, dots_per_inch: int = DOTS_PER_INCH) -> bytes:
    """Return a figure as a file; the same figure gives the same bytes.

    Args:
        figure: The figure.
        kind: One of `FORMATS`.
        dots_per_inch: Of PNG, and of what lies as dots in the others.
    """
    buffer = BytesIO()
    with own_look():
        figure.savefig(buffer, format=kind, dpi=dots_per_inch, metadata=_NO_DATES[kind])
    return buffer.getvalue()


def write_notes(figure: Figure, notes: Sequence[str]) -> None:
    """Write the notes below."""
    if notes:
        width = round(figure.get_figwidth() * _CHARACTERS_PER_IN)
        lines = [line for note in notes for line in textwrap.wrap(shown(note, 400), width)]
        figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=SMALL, color="#555555")


def shown(name: str, most: int = 60) -> str:
    r"""Return a name as a figure may show it: no control characters, nothing that its font lacks, not too long.

    >>> shown("gemm"), shown("a" * 30, 9)
    ('gemm', 'aaaaaa…aa')
    """
    plain = escape(name[: 8 * most])
    known = _characters()
    plain = "".join(char if ord(char) in known else f"\\u{ord(char):04x}" for char in plain)
    if len(plain) <= most:
        return plain
    end = max((most - 1) // 4, 0)
    return f"{plain[: most - 1 - end]}…{plain[len(plain) - end :]}"


@cache
def _characters() -> frozenset[int]:
    """Return the characters that the figures' font has."""
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(findfont("DejaVu Sans")).get_charmap())


def time_scale(longest_ns: float) -> tuple[int, str]:
    """Return how many ns the unit of a time axis has, and its name.

    >>> time_scale(30_000_000), time_scale(500)
    ((1000000, 'ms'), (1, 'ns'))
    """
    steps = ((2 * NS_PER_S, NS_PER_S, "s"), (2 * NS_PER_MS, NS_PER_MS, "ms"), (2 * NS_PER_US, NS_PER_US, "µs"))
    return next(((step, name) for least, step, name in steps if longest_ns >= least), (1, "ns"))


def color_of(charged: str) -> str:
    """Return the colour of an object."""
    return OBJECT_COLORS.get(charged, OBJECT_COLORS["unknown"])


def text_color_on(color: str) -> str:
    """Return black or white, whichever is read more easily on a colour.

    The relative luminance of WCAG 2 tells: white has the higher contrast below 0.179.
    """
    from matplotlib.colors import to_rgb

    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.179 else "black"


def fitting(name: str, wide_in: float) -> str:
    """Return as much of a name as fits into a width in small text, nothing where that says too little.

    >>> fitting("all_reduce", 1.0), fitting("all_reduce", 0.1)
    ('all_reduce', '')
    """
    room = int(wide_in * _CHARACTERS_PER_IN) - 1
    return shown(name, room) if room >= min(len(name), 6) and room > 0 else ""


def label_room(width_in: float) -> int:
    """Return how many characters the names of rows may have: a quarter of the width, about.

    >>> label_room(7.2), label_room(3.4)
    (40, 19)
    """
    return max(min(int(width_in * 5.6), 48), 12)


def add_legend(figure: Figure, title: str, labels: Iterable[tuple[str, str]], extra: Sequence[Any] = ()) -> None:
    """Write a title and what colours mean, above the picture.

    Args:
        figure: The figure.
        title: What it shows.
        labels: (object, what stands beside its colour).
        extra: More handles with labels of their own.
    """
    from matplotlib.patches import Patch

    handles = [*(Patch(facecolor=color_of(name), label=says) for name, says in labels), *extra]
    columns = max(min(len(handles), round(figure.get_figwidth() / 1.15)), 1)
    legend = figure.legend(
        handles=handles,
        title="\n".join(textwrap.wrap(shown(title, 120), round(figure.get_figwidth() * _TITLE_CHARACTERS_PER_IN))),
        loc="outside upper left",
        ncols=columns,
        fontsize=SMALL + 0.5,
        title_fontproperties={"weight": "bold", "size": 8.5},
        borderaxespad=0.0,
    )
    legend.set_alignment("left")


def add_boxes(axes: Axes, boxes: Sequence[tuple[float, float, float, float]], color: str, **look: Any) -> None:
    """Draw boxes of one colour as one path: a tenth of the file that a mark for each would make.

    Args:
        axes: Where.
        boxes: (left, bottom, right, top).
        color: Their colour.
        look: Further properties of the path.
    """
    import numpy as np
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    if not len(boxes):
        return
    left, bottom, right, top = np.asarray(boxes, np.float64).T
    corners = np.stack([left, bottom, right, bottom, right, top, left, top, left, bottom], axis=1).reshape(-1, 2)
    codes = np.tile(np.array([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], Path.code_type), len(left))
    axes.add_patch(PathPatch(Path(corners, codes), facecolor=color, linewidth=0, **look))
