"""The rules, one a file; each suspects one family of causes, and says what it saw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from longpole.advice.findings import (
    beside,
    checkpoints,
    collective_order,
    data_loader,
    garbage,
    host_syncs,
    launch_bound,
    links,
    memory,
    one_offs,
    pageable_copy,
    pauses,
    ranks_apart,
    small_collectives,
    writing,
)

if TYPE_CHECKING:
    from longpole.advice.suspect import Rule

RULES: Final[tuple[Rule, ...]] = (
    data_loader,
    pageable_copy,
    host_syncs,
    launch_bound,
    pauses,
    garbage,
    one_offs,
    small_collectives,
    collective_order,
    links,
    beside,
    ranks_apart,
    checkpoints,
    writing,
    memory,
)
"""Every rule, in the order of the vocabulary."""
