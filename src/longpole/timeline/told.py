"""What the recorded program itself said, so that nothing of it needs to be inferred from names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longpole.records.program import ProgramRecord
    from longpole.vocabulary.declared import Declared


@dataclass(frozen=True, slots=True)
class Told:
    """What a program says of its own record.

    Attributes:
        names: Name code -> what the program says of the spans that bear it. A name of which it said two things has two
            codes.
        units: `[U]` int64: host rows that are units of work, ascending.
        items: `[U]` int64: what each processed, -1 where not said.
        main_track: The thread that carries the units, or would, -1 for none.
        program: The rest.
    """

    names: dict[int, Declared]
    units: NDArray[np.int64]
    items: NDArray[np.int64]
    main_track: int
    program: ProgramRecord
