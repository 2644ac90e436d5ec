"""Our own documents as files: written so that they can be read back, and read strictly, with file and field named."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

import msgspec

from longpole.errors import InputError

_FIELD: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<field>[^`]*)`)?$", re.DOTALL)
_MARK_OF_BYTES: Final = b"\xef\xbb\xbf"  # of UTF-8, which some editors write
_Document = TypeVar("_Document", bound=msgspec.Struct)


def encode_document(document: msgspec.Struct) -> bytes:
    """Write a document as UTF-8 JSON, indented by one space, with a line end."""
    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:
        data = msgspec.json.encode(encodable(msgspec.to_builtins(document)))
    return msgspec.json.format(data, indent=1) + b"\n"


def decode_document(data: bytes, path: str, document: type[_Document], schema: str, hint: str) -> _Document:
    """Read a document.

    Args:
        data: The bytes of the file.
        path: The file, for messages.
        document: What it must be.
        schema: The value of its `schema`; a document without one is read as if it had it.
        hint: What to do about one that is refused.

    Raises:
        InputError: It is no JSON, of another version, or a field is wrong: file and field are named.
    """
    try:
        data = data.removeprefix(_MARK_OF_BYTES)
        version = msgspec.json.decode(data, type=_Version).schema
        if version not in (None, schema):
            raise refusal(path, "$.schema", f"expected {schema!r}, found {version!r}", hint)
        return msgspec.json.decode(data, type=document)
    except msgspec.ValidationError as error:
        match = _FIELD.match(str(error))
        what, field = (match["what"], match["field"]) if match else (str(error), None)
        raise refusal(path, field or "$", what[:1].lower() + what[1:], hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(path, "$", f"not JSON: {error}", hint) from None


def refusal(path: str, field: str, found: str, hint: str) -> InputError:
    """Return the error that names a file, a field, what is wrong, and what to do."""
    return InputError(f"{path}: {field}: {found}. {hint}")


def encodable(value: Any) -> Any:
    """Return plain data whose text UTF-8 can carry: a lone surrogate, as of a path in another encoding, is escaped."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [encodable(item) for item in value]
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    return value


class _Version(msgspec.Struct):
    schema: str | None = None
