"""Write the table of `docs/reference/settings.md` from the class `Settings`: its fields and its docstring.

`python -m tools.render_settings` rewrites what lies between the two marks on the page; a test checks that the page is
current.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Final

from longpole.settings import Settings
from longpole.units import format_bytes, format_ns
from tools.generated_part import replace_part

PAGE: Final = Path("docs/reference/settings.md")
_ENTRY: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {8,}.*)*)", re.MULTILINE)


def read_meanings(docstring: str) -> dict[str, str]:
    r"""Return what the section `Attributes` of a docstring says of each attribute, on one line.

    >>> read_meanings("Ends.\n\nAttributes:\n    low, high: Two\n        ends.\n    step: One.")
    {'low': 'Two ends.', 'high': 'Two ends.', 'step': 'One.'}
    """
    _, _, attributes = inspect.cleandoc(docstring).partition("Attributes:\n")
    return {
        name: re.sub(r"\s+", " ", text).replace("DESIGN", "definition")
        for names, text in _ENTRY.findall(attributes)
        for name in names.split(", ")
    }


def render_table() -> str:
    """Return a row for each setting, in the order of the class.

    Raises:
        ValueError: The docstring does not describe just the fields.
    """
    meanings = read_meanings(Settings.__doc__ or "")
    names = [field.name for field in fields(Settings)]
    if sorted(names) != sorted(meanings):
        msg = f"settings.py: fields and docstring differ in {sorted(set(names) ^ set(meanings))}; describe each field"
        raise ValueError(msg)
    defaults = Settings()
    head = "| setting | default | what it decides, and where it comes from |\n| --- | --- | --- |"
    rows = [f"| `{name}` | {_render_value(name, getattr(defaults, name))} | {meanings[name]} |" for name in names]
    return "\n".join([head, *rows])


def render_page(page: str) -> str:
    """Return the page with the current table."""
    return replace_part(page, "settings", render_table())


def _render_value(name: str, value: float) -> str:
    """Write a default as a file would have it, and where its unit makes it hard to read, as a person would say it."""
    if name.endswith("_ns") and value:
        return f"`{value}` ({_in_words(int(value))})"
    if name.endswith("_bytes"):
        return f"`{value}` ({format_bytes(value)})"
    return f"`{value}`"


def _in_words(dur_ns: int) -> str:
    hours, rest_ns = divmod(dur_ns, 3600 * 10**9)
    return f"{hours} h" if hours and not rest_ns else re.sub(r"\.0+(?= )", "", format_ns(dur_ns))


def main() -> None:
    """Rewrite the page in place."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
