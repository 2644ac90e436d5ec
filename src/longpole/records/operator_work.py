"""What the operators of one device row had to do, as it is stored: work by operator and stage, and what ran at once."""

from __future__ import annotations

import msgspec


class OperatorWork(msgspec.Struct, omit_defaults=True):
    """All calls of one operator in one stage whose work is known in the same respects.

    Sums over the row's units. A call counts where it launched a compute kernel.

    Attributes:
        name: The operator.
        family: What sort of operator it is.
        stage: Of the unit, by its launching call.
        processor: `tensor` or `vector`: which units its arithmetic is meant for.
        dtype: Element type of its operands, empty where not recorded. `tf32`: 32-bit numbers of which products take 19.
        calls, kernels: How many, and the compute kernels that they launched.
        device_ns: Durations of those kernels.
        host_ns: Durations of the calls on the host, operators inside them included.
        flops, moved_bytes: What the calls have to do at least; None where it is not known.
        occupancy_ns: Durations of kernels of a known occupancy, each times it (0 to 1).
        occupied_ns: Durations of the kernels of a known occupancy.
        at_least: Whether more bytes are moved than these, and nothing tells how many.
        start_ns, event: One of the calls: its start since the file's base, and its number in the file.
    """

    name: str
    family: str
    stage: str
    processor: str
    dtype: str
    calls: int = 0
    kernels: int = 0
    device_ns: int = 0
    host_ns: int = 0
    flops: int | None = None
    moved_bytes: int | None = None
    occupancy_ns: int = 0
    occupied_ns: int = 0
    at_least: bool = False
    start_ns: int = 0
    event: int = 0


class UncountedWork(msgspec.Struct):
    """Compute kernels whose work is not known: of which operator, or of what name where none launched them, and why."""

    name: str
    why: str
    kernels: int
    device_ns: int


class Together(msgspec.Struct, omit_defaults=True):
    """Two kinds of work that ran at the same time on one device.

    Attributes:
        first, second: Operator, collective or copy; `first` sorts first.
        together_ns: How long both ran.
        first_ns, second_ns: How long each ran in all.
        first_compared_ns, first_alone_ns: Time of the first's spans that the second covered, and what the same spans
            take alone, over those for which enough ran undisturbed; 0 where none could be compared.
        second_compared_ns, second_alone_ns: The same of the second.
    """

    first: str
    second: str
    together_ns: int
    first_ns: int
    second_ns: int
    first_compared_ns: int = 0
    first_alone_ns: int = 0
    second_compared_ns: int = 0
    second_alone_ns: int = 0


class RowWork(msgspec.Struct, omit_defaults=True):
    """The work of one device row within its units.

    Attributes:
        compute_ns: Durations of all compute kernels; those of `operators` and `uncounted` add up to it.
        operators: Work that is known, the longest first.
        uncounted: Work that is not, the longest first.
        together: Pairs that ran at once, the longest first.
        shapes: Whether the record holds shapes of operators.
        stage_ns: Stage -> durations of the compute kernels that it launched; they add up to `compute_ns`.
    """

    compute_ns: int = 0
    operators: list[OperatorWork] = []
    uncounted: list[UncountedWork] = []
    together: list[Together] = []
    shapes: bool = False
    stage_ns: dict[str, int] = {}
