"""What a plan's page says beside its figures: what was taken for granted, and what looks like a slip."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Default:
    """What a plan does not state.

    Attributes:
        key: That would state it.
        value: What was taken.
        source: Why, or from where.
    """

    key: str
    value: str
    source: str


@dataclass(slots=True)
class Told:
    """What is said beside the figures, as it turns up: what was taken for granted, and what looks like a slip."""

    defaults: list[Default] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def default(self, key: str, value: str, source: str) -> None:
        """Tell of something that the plan does not state."""
        self.defaults.append(Default(key, value, source))
