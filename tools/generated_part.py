"""Replace the part of a page that is made from the code: what lies between two marks, which are HTML comments."""

from __future__ import annotations


def replace_part(page: str, what: str, content: str) -> str:
    """Return a page with new content between `<!-- WHAT: written by … -->` and `<!-- end of WHAT -->`.

    Args:
        page: Markdown.
        what: Which part.
        content: Markdown without blank lines around it.

    Raises:
        ValueError: The page lacks a mark.
    """
    before, begin, rest = page.partition(f"<!-- {what}: ")
    note, close, inside = rest.partition(" -->\n")
    _, end, after = inside.partition(f"<!-- end of {what} -->")
    if not (begin and close and end):
        msg = f"expected the marks <!-- {what}: … --> and <!-- end of {what} -->, found not both; put them back"
        raise ValueError(msg)
    return f"{before}{begin}{note}{close}\n{content}\n\n{end}{after}"
