"""Write the tables of name rules into `docs/reference/vocabulary.md`, from the rules themselves.

`python -m tools.render_vocabulary` rewrites what lies between the two marks on the page; a test checks that the page
is current.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.vocabulary.matcher import Vocabulary
from longpole.vocabulary.rules import THEMES, VALUE_KEYS

if TYPE_CHECKING:
    from longpole.vocabulary.rules import Rule

PAGE: Final = Path("docs/reference/vocabulary.md")
BEGIN: Final = "<!-- rules: written by python -m tools.render_vocabulary -->"
END: Final = "<!-- end of rules -->"
TITLES: Final = {
    "kernel": "Device spans that communicate",
    "copy": "Copies",
    "call": "Calls of the host",
    "activity": "Activities of the host",
    "operator": "Host events that issue or await a collective",
    "stage": "Stages",
    "carrier": "Host events whose copies carry something",
    "step": "Markers of the unit of work",
}
_EXAMPLES: Final = 3
_EXAMPLE_CHARS: Final = 60


def render_tables(vocabulary: Vocabulary) -> str:
    """Return one table per theme, in the order in which rules are tried."""
    parts = []
    for theme in THEMES:
        rows = [_render_row(rule) for rule in vocabulary.rules(theme)]
        head = "| rule | means | says | for example | from |\n| --- | --- | --- | --- | --- |"
        parts.append("\n".join([f"### {TITLES[theme]}: `[[{theme}]]`\n", head, *rows]))
    return "\n\n\n".join(parts)


def render_page(page: str, tables: str) -> str:
    """Return the page with the tables between its two marks.

    Raises:
        ValueError: The page lacks a mark.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        msg = f"expected the marks {BEGIN!r} and {END!r} in {PAGE}, found not both; put them back"
        raise ValueError(msg)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def _render_row(rule: Rule) -> str:
    says = ", ".join(f"{key} {_render_value(rule.values[key])}" for key in VALUE_KEYS[rule.theme] if key in rule.values)
    examples = ", ".join(_render_name(name) for name in rule.examples[:_EXAMPLES])
    return f"| `{rule.name}` | {_escape(rule.means)} | {says} | {examples} | {_escape(rule.source)} |"


def _render_value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value != "" else "none"


def _render_name(name: str) -> str:
    shown = name if len(name) <= _EXAMPLE_CHARS else f"{name[:_EXAMPLE_CHARS]}…"
    return f"`{_escape(shown)}`"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Rewrite the page in place."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(render_page(page, render_tables(Vocabulary.load())), encoding="utf-8")


if __name__ == "__main__":
    main()
