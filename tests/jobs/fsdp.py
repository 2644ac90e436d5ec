"""Written later."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.jobs.program import Host
    from tests.jobs.writer import Writer


def write_fsdp(writer: Writer) -> list[Host]:
    raise NotImplementedError
