"""Write `docs/reference/causes`: a copy of the page of every cause that the package ships, and the table of all.

`python -m tools.render_causes` rewrites the folder; a test checks that it is current. The text is written once, in
`src/longpole/advice/pages`, because `longpole explain` prints it where no documentation is at hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from longpole.advice.cause_pages import FOLDER as SOURCES
from longpole.advice.cause_pages import read_pages
from longpole.vocabulary.causes import CAUSES
from tools.generated_part import replace_part

FOLDER: Final = Path("docs/reference/causes")
INDEX: Final = FOLDER / "README.md"
_NOTE: Final = "<!-- a copy of src/longpole/advice/pages, made by tools/render_causes.py: change it there -->"


def render_files(root: Path) -> dict[Path, str]:
    """Return path from the repository's root -> what belongs there."""
    files = {FOLDER / f"{cause}.md": render_page(cause) for cause in CAUSES}
    index = (root / INDEX).read_text(encoding="utf-8")
    return files | {INDEX: replace_part(index, "causes", render_table())}


def render_page(cause: str) -> str:
    """Return a page as the documentation has it: with what it is charged to below the title."""
    title, _, rest = (SOURCES / f"{cause}.md").read_text(encoding="utf-8").partition("\n")
    charged = f"Charged to `{CAUSES[cause]}`. [All causes](README.md)."
    return f"{title}\n\n{_NOTE}\n\n{charged}\n{rest}"


def render_table() -> str:
    """Return a table for each object, in the order of the vocabulary."""
    pages = read_pages()
    lines: list[str] = []
    for charged_to in dict.fromkeys(CAUSES.values()):
        lines += ["", f"## Charged to {charged_to}", "", "| cause | in half a sentence |", "| --- | --- |"]
        lines += [
            f"| [`{page.cause}`]({page.cause}.md) | {page.says} |"
            for page in pages.values()
            if page.object == charged_to
        ]
    return "\n".join(lines).strip("\n")


def main() -> None:
    """Rewrite the folder in place, and delete pages of causes that are gone."""
    files = render_files(Path())
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    for path in FOLDER.glob("*.md"):
        if path not in files:
            path.unlink()


if __name__ == "__main__":
    main()
