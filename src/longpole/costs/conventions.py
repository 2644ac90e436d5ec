"""Ways of counting the FLOPs of a token, by name.

Formulas are over the counts that `longpole.costs.flops` makes, of one token each: N parameters that it visits, and of
these the embedding; FLOPs forward of the layers' matrices (linear), of attention's core (core, core_window,
core_causal), of routers and of the head (logits).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from longpole.costs.formula import Formula
from longpole.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """A way to count the FLOPs of a token.

    Attributes:
        name: What users write.
        title: What it counts, in one line.
        formula: FLOPs per token, forward and backward.
        hardware: Whether what is computed again is counted (HFU); else it is model FLOPs (MFU).
        used_by: Who counts so.
    """

    name: str
    title: str
    formula: Formula
    hardware: bool
    used_by: str


_ALL: Final = (
    Convention(
        name="6n",
        title="6 FLOPs for each parameter; attention is not counted",
        formula=Formula(
            "6*N", "FLOP/token", "Kaplan et al., arXiv:2001.08361, section 2.1 (who leave the embedding out of N)"
        ),
        hardware=False,
        used_by="estimates by hand, the ZeRO papers",
    ),
    Convention(
        name="palm",
        title="all parameters, and attention as a full square",
        formula=Formula(
            "6*N + 3*core", "FLOP/token", "Chowdhery et al., arXiv:2204.02311, appendix B: 6N + 12 L H Q T"
        ),
        hardware=False,
        used_by="PaLM, nanoGPT, llm-foundry",
    ),
    Convention(
        name="palm_hw",
        title="`palm` with everything computed forward twice (full recomputation)",
        formula=Formula(
            "8*N + 4*core", "FLOP/token", "llm-foundry, scripts/train/benchmarking/README.md: 4 instead of 3"
        ),
        hardware=True,
        used_by="HFU of llm-foundry",
    ),
    Convention(
        name="korthikanti",
        title="matrices and logits, and attention as a full square",
        formula=Formula(
            "3*(linear + core + logits)", "FLOP/token", "Korthikanti et al., arXiv:2205.05198, appendix A, model FLOPs"
        ),
        hardware=False,
        used_by="MFU of Korthikanti et al.",
    ),
    Convention(
        name="selective_hw",
        title="`korthikanti` with attention's core counted twice",
        formula=Formula(
            "3*(linear + logits) + 6*core",
            "FLOP/token",
            "Korthikanti et al., arXiv:2205.05198, appendix A, hardware FLOPs",
        ),
        hardware=True,
        used_by="HFU of Korthikanti et al.",
    ),
    Convention(
        name="sc21_hw",
        title="`korthikanti` with all layers computed twice",
        formula=Formula(
            "4*(linear + core) + 3*logits", "FLOP/token", "Narayanan et al., SC21, arXiv:2104.04473, equation 3"
        ),
        hardware=True,
        used_by='"achieved teraFLOP/s" of the Megatron-LM paper',
    ),
    Convention(
        name="mcore",
        title="matrices and logits, and the causal half of attention",
        formula=Formula(
            "3*(linear + core/2 + logits)",
            "FLOP/token",
            "Megatron-LM, megatron/training/training.py, num_floating_point_operations: no router, no windows",
        ),
        hardware=False,
        used_by="Megatron-Core since 2024, Megatron-Bridge before 26.06, DeepSeek (causal)",
    ),
    Convention(
        name="bridge",
        title="`mcore` with attention within its window",
        formula=Formula(
            "3*(linear + core_causal + logits)",
            "FLOP/token",
            "Megatron-Bridge, flop_utils.py, num_floating_point_operations",
        ),
        hardware=False,
        used_by="Megatron-Bridge since 26.06",
    ),
    Convention(
        name="titan",
        title="parameters without the embedding, and attention as a full square",
        formula=Formula(
            "6*(N - embedding) + 3*core", "FLOP/token", "torchtitan, models/utils.py, get_dense_model_nparams_and_flops"
        ),
        hardware=False,
        used_by="torchtitan",
    ),
    Convention(
        name="maxtext",
        title="matrices, router and logits, and half of attention within its window",
        formula=Formula(
            "3*(linear + router + core_window/2 + logits)",
            "FLOP/token",
            "MaxText, maxtext_utils.py, calculate_tflops_training_per_device",
        ),
        hardware=False,
        used_by="MaxText since 2025-07",
    ),
    Convention(
        name="maxtext_2024",
        title="`maxtext` with attention as a full square",
        formula=Formula("3*(linear + router + core_window + logits)", "FLOP/token", "MaxText before pull request 1988"),
        hardware=False,
        used_by="MaxText before 2025-07",
    ),
)
CONVENTIONS: Final[Mapping[str, Convention]] = {one.name: one for one in _ALL}
"""Name -> convention, in the order that reports list them."""

_ALIASES: Final = {
    "6nd": "6n",
    "kaplan": "6n",
    "nanogpt": "palm",
    "llm_foundry": "palm",
    "llmfoundry": "palm",
    "megatron_core": "mcore",
    "megatron": "mcore",
    "megatron_bridge": "bridge",
    "torchtitan": "titan",
    "sc21": "sc21_hw",
}

GPT_MODEL_FLOPS: Final = Formula(
    "72*B*L*s*h**2*(1 + s/(6*h) + V/(12*h*L))",
    "FLOP/step",
    "Korthikanti et al., arXiv:2205.05198, appendix A, model FLOPs: GPT with f = 4h",
)
GPT_SELECTIVE_FLOPS: Final = Formula(
    "72*B*L*s*h**2*(1 + s/(3*h) + V/(12*h*L))",
    "FLOP/step",
    "Korthikanti et al., arXiv:2205.05198, appendix A, hardware FLOPs: GPT with f = 4h",
)
GPT_RECOMPUTED_FLOPS: Final = Formula(
    "96*B*s*L*h**2*(1 + s/(6*h) + V/(16*L*h))",
    "FLOP/step",
    "Narayanan et al., SC21, arXiv:2104.04473, equation 3: GPT with f = 4h, all layers computed twice",
)
PALM_FLOPS: Final = Formula(
    "6*N + 12*L*a*d*s", "FLOP/token", "Chowdhery et al., PaLM, arXiv:2204.02311, appendix B: MFU"
)


def convention_of(text: str) -> Convention:
    """Return a convention by its name, or by the name of the program that counts so.

    >>> convention_of("Megatron-Core").name
    'mcore'

    Raises:
        UsageError: There is none of that name, or nothing is named: a figure without a convention has no meaning.
    """
    name = str(text).strip().casefold().replace("-", "_").replace(" ", "_")
    found = CONVENTIONS.get(_ALIASES.get(name, name))
    if found is not None:
        return found
    accepted = "; ".join(f"{one.name} ({one.used_by})" for one in CONVENTIONS.values())
    what = f"convention {text!r} is not known" if name else "no convention is named, and MFU has none by itself"
    msg = f"{what}. Accepted: {accepted}"
    raise UsageError(msg)
