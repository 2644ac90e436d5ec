"""Read a pickle that holds plain data only: dicts, lists, tuples, text and numbers.

An unpickler that admits no class runs no code: every way to call something begins by looking a name up.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any, NoReturn

from longpole.errors import InputError

if TYPE_CHECKING:
    from os import PathLike


def looks_like_pickle(head: bytes) -> bool:
    """Tell by a file's first bytes whether it is a pickle of protocol 2 to 5."""
    return len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= pickle.HIGHEST_PROTOCOL


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse every class and function."""
        msg = f"it asks for {module[:80]}.{name[:80]}, and plain data needs no class"
        raise pickle.UnpicklingError(msg)

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuse objects that live elsewhere."""
        del pid
        msg = "it refers to objects outside of it"
        raise pickle.UnpicklingError(msg)


def read_plain_pickle(content: bytes, path: str | PathLike[str]) -> object:
    """Return what a pickle holds.

    Args:
        content: The whole file, decompressed.
        path: For messages.

    Raises:
        InputError: It is cut or damaged, or holds more than plain data.
    """
    stream = io.BytesIO(content)
    try:
        return _PlainUnpickler(stream).load()
    except pickle.UnpicklingError as error:
        raise InputError.at(path, stream.tell(), f"this pickle cannot be read: {error}", _HINT) from None
    except _DAMAGED as error:
        found = f"this pickle is cut or damaged ({type(error).__name__})"
        raise InputError.at(path, stream.tell(), found, _HINT) from None


_HINT = "Give the file as PyTorch wrote it"
# What the C unpickler raises on bytes that make no sense.
_DAMAGED = (
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    ImportError,
)
