"""Write the tables of `docs/reference/models.md` from the conventions, the known model types and the models by name.

`python -m tools.render_models` rewrites what lies between the marks on the page; a test checks that the page is
current.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from longpole.costs.flops import CONVENTIONS, flops_per_token
from longpole.costs.model_types import MODEL_TYPES
from longpole.costs.parameters import parameters
from longpole.costs.presets import all_presets, preset
from tools.generated_part import replace_part

if TYPE_CHECKING:
    from longpole.costs.presets import Preset

PAGE: Final = Path("docs/reference/models.md")
EXAMPLE: Final = ("llama-3-8b", 8192)


def render_conventions() -> str:
    """Return a row for each convention, with what it gives for one model."""
    name, sequence = EXAMPLE
    head = (
        f"| name | FLOPs of a token, forward and backward | counts | used by | {name}, {sequence:,} tokens |\n"
        "| --- | --- | --- | --- | --: |"
    )
    rows = [
        f"| `{one.name}` | `{one.formula.text}` | {one.title} | {one.used_by} |"
        f" {flops_per_token(preset(name), sequence, one) / 1e9:.2f} GFLOP |"
        for one in CONVENTIONS.values()
    ]
    return "\n".join([head, *rows])


def render_sources() -> str:
    """Return where each convention is taken from."""
    return "\n".join(f"- `{one.name}`: {one.formula.source}." for one in CONVENTIONS.values())


def render_types() -> str:
    """Return the values of `model_type` that are known, on one line."""
    return ", ".join(f"`{name}`" for name in sorted(MODEL_TYPES)) + "."


def render_presets() -> str:
    """Return a row for each model by name."""
    head = (
        "| name | also | parameters | active | layers | hidden | source |\n| --- | --- | --: | --: | --: | --: | --- |"
    )
    return "\n".join([head, *(_render_preset(one) for one in all_presets())])


def render_page(page: str) -> str:
    """Return the page with the current tables."""
    page = replace_part(page, "conventions", render_conventions())
    page = replace_part(page, "sources", render_sources())
    page = replace_part(page, "types", render_types())
    return replace_part(page, "presets", render_presets())


def _render_preset(one: Preset) -> str:
    held, model = parameters(one.model), one.model
    active = _render_count(held.active) if held.active < held.total else ""
    also = ", ".join(f"`{name}`" for name in one.aliases)
    return (
        f"| `{one.name}` | {also} | {_render_count(held.total)} | {active} | {model.layers} | {model.hidden:,}"
        f" | {one.source} |"
    )


def _render_count(parameters_count: int) -> str:
    if parameters_count < 10**9:
        return f"{parameters_count / 1e6:.0f} M"
    return f"{parameters_count / 1e9:,.2f} B"


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
