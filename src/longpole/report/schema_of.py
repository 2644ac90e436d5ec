"""JSON Schemas made from the types of our documents.

msgspec tells apart two structs in one place by a tag only, and our documents have none: a figure or `Unknown` is told
by its keys. So such a field is an object to msgspec, and its two forms are put into the schema beside it.
"""

from __future__ import annotations

import types
import typing
from typing import Any, Final

import msgspec

from longpole.records.ledger import Unknown

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def document_schema(document: type[msgspec.Struct], title: str) -> bytes:
    """Return the JSON Schema of documents of one type, indented by one space, with a line end.

    Args:
        document: Its field `schema` holds `title` in every document.
        title: Name and version, such as `longpole.whatif/1`.
    """
    written = _Written()
    root = written.of(document)
    forms = list(dict.fromkeys(form for _, _, found in written.ambiguous for form in found))
    references, parts = msgspec.json.schema_components([root, *forms])
    of_form = dict(zip(forms, references[1:], strict=True))
    for struct, field, found in written.ambiguous:
        parts[struct]["properties"][field] = {"anyOf": [of_form[form] for form in found]}
    parts[document.__name__]["properties"]["schema"] = {"const": title}
    schema = {"$schema": _DIALECT, "title": title, **references[0], "$defs": parts}
    return msgspec.json.format(msgspec.json.encode(schema), indent=1) + b"\n"


def written_type(document: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return the type that a written document decodes into: fields of two forms are plain objects in it."""
    return _Written().of(document)


class _Written:
    """Types as they are written: where a field may hold one of two structs, a plain object takes their place.

    Attributes:
        ambiguous: (struct, field, the structs that it may hold, `Unknown` last) of every such field met.
    """

    def __init__(self) -> None:
        self.ambiguous: list[tuple[str, str, list[Any]]] = []
        self._known: dict[Any, Any] = {}

    def of(self, struct: type[msgspec.Struct]) -> Any:
        """Return the written type of a struct: the struct itself where nothing in it is ambiguous."""
        if struct not in self._known:
            self._known[struct] = self._built(struct)
        return self._known[struct]

    def _built(self, struct: type[msgspec.Struct]) -> Any:
        fields: list[Any] = []
        changed = False
        for field in msgspec.structs.fields(struct):
            found = _structs_of(field.type)
            kind = dict[str, Any] if len(found) > 1 else self._inside(field.type)
            if len(found) > 1:
                self.ambiguous.append((struct.__name__, field.name, [self.of(form) for form in found]))
            changed = changed or kind is not field.type
            default = [field.default] if field.default is not msgspec.NODEFAULT else []
            if field.default_factory is not msgspec.NODEFAULT:
                default = [msgspec.field(default_factory=field.default_factory)]
            fields.append((field.name, kind, *default))
        if not changed:
            return struct
        omits = struct.__struct_config__.omit_defaults
        return msgspec.defstruct(struct.__name__, fields, namespace={"__doc__": struct.__doc__}, omit_defaults=omits)

    def _inside(self, kind: Any) -> Any:
        """Return a type with the structs inside it replaced; the same object where none is."""
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.of(kind)
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin is None or not inner:
            return kind
        replaced = tuple(self._inside(one) for one in inner)
        if all(new is old for new, old in zip(replaced, inner, strict=True)):
            return kind
        return typing.Union[replaced] if _is_union(origin) else origin[replaced]  # noqa: UP007 - made at run time


def _structs_of(kind: Any) -> list[type[msgspec.Struct]]:
    """Return the structs that a field may hold, `Unknown` last; a field of one or none needs no help."""
    if not _is_union(typing.get_origin(kind)):
        return []
    found = [form for form in typing.get_args(kind) if isinstance(form, type) and issubclass(form, msgspec.Struct)]
    return sorted(found, key=lambda form: form is Unknown)


def _is_union(origin: Any) -> bool:
    return origin in (types.UnionType, typing.Union)
