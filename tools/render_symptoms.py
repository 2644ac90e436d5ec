"""Write the part of `docs/guides/symptoms.md` that lists the symptoms, from `advice/symptoms.toml`.

`python -m tools.render_symptoms` rewrites what lies between the two marks on the page; a test checks that it is
current.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.advice.symptoms import load_symptoms
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from longpole.advice.symptoms import Figure, Symptom

PAGE: Final = Path("docs/guides/symptoms.md")


def render_page(page: str) -> str:
    """Return the page with the current symptoms."""
    return replace_part(page, "symptoms", "\n\n\n".join(_render(row) for row in load_symptoms().rows))


def _render(symptom: Symptom) -> str:
    causes = " · ".join(f"[{cause}](../reference/causes/{cause}.md)" for cause in symptom.causes)
    lines = [f"### {symptom.says}", "", f"`longpole explain {symptom.id} traces/`", "", symptom.means, ""]
    lines += ["| what decides | where it is | how to read it |", "| --- | --- | --- |"]
    lines += [f"| {figure.what} | {_where(figure)} | {figure.reads} |" for figure in symptom.figures]
    lines += ["", f"**It may be** {causes}.", "", f"**To decide it, record** {'; '.join(symptom.record)}."]
    return "\n".join(lines)


def _where(figure: Figure) -> str:
    take = "" if figure.take == "value" else f"{figure.take} of "
    of = f", share of `{figure.of}`" if figure.of else ""
    return f"{take}`{figure.at}`{of}"


def main() -> None:
    """Rewrite the page in place."""
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
