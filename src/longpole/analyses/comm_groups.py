"""Process groups as a rank's record names them, and the sizes of what they move (formats.md C.4, C.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from longpole.records.instances import Group

if TYPE_CHECKING:
    from longpole.timeline.tables import CollectiveArgs
    from longpole.timeline.timeline import Timeline

_MEMBERS_MAX: Final = 1 << 16  # a member list longer than any job is damage
_ELEMENT_BYTES: Final = {
    "float": 4,
    "float32": 4,
    "double": 8,
    "float64": 8,
    "half": 2,
    "float16": 2,
    "bfloat16": 2,
    "int": 4,
    "int32": 4,
    "long": 8,
    "long int": 8,
    "int64": 8,
    "short": 2,
    "short int": 2,
    "char": 1,
    "signed char": 1,
    "byte": 1,
    "unsigned char": 1,
    "uint8": 1,
    "int8": 1,
    "bool": 1,
    "complexfloat": 8,
    "complexdouble": 16,
    "complex<float>": 8,
    "complex<double>": 16,
}


def element_bytes(dtype: str) -> int:
    """Return the size of an element in bytes, -1 where the type is not known.

    >>> element_bytes("BFloat16"), element_bytes("c10::Half"), element_bytes("Float8_e4m3fn"), element_bytes("?")
    (2, 2, 1, -1)
    """
    name = dtype.lower().removeprefix("c10::").removeprefix("torch.")
    return 1 if name.startswith("float8") else _ELEMENT_BYTES.get(name, -1)


def full_bytes(kind: str, args: CollectiveArgs, group_size: int | None) -> int:
    """Return the size of the full buffer as nccl-tests counts it, -1 where not known.

    All-gather counts what arrives, reduce-scatter what is put in, all-to-all the larger side (they differ where the
    splits are uneven), everything else what is put in (formats.md C.2; Kineto's counts are per rank and in elements).
    A backend's own span tells the input only; an all-gather's output is that times the group.
    """
    if args.in_bytes is not None:
        if kind == "all_gather":
            return args.in_bytes * group_size if group_size else -1
        return args.in_bytes
    given, taken = args.in_elements, args.out_elements
    if kind == "all_gather":
        elements = taken if taken is not None else (given * group_size if given and group_size else None)
    elif kind in ("all_to_all", "gather", "scatter", "dispatch", "combine"):
        known = [count for count in (given, taken) if count is not None]
        elements = max(known) if known else None
    else:
        elements = given or taken
        elements = given if elements is None else elements
    size = element_bytes(args.dtype)
    if elements is None or size < 0 or elements * size >= 1 << 62:
        return -1
    return elements * size


class Groups:
    """The groups that a rank knows of, numbered; those of the header first."""

    def __init__(self, timeline: Timeline) -> None:
        self._groups: list[Group] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._of_args: dict[tuple[Any, ...], int] = {}
        for entry in timeline.identity.groups:
            self._add_configured(entry)

    def listed(self) -> list[Group]:
        """Return all groups by number."""
        return self._groups

    def size_of(self, group: int) -> int | None:
        """Return the number of members, None where not known."""
        return self._groups[group].size if group >= 0 else None

    def global_rank(self, group: int, local: int) -> int:
        """Return the global rank of a member, -1 where not known."""
        members = self._groups[group].members if group >= 0 else []
        return members[local] if 0 <= local < len(members) else -1

    def number_of(self, args: CollectiveArgs) -> int:
        """Return the group that an operation names, -1 where it names none."""
        if not args.group_name and not args.group_ranks:
            return -1
        key = (args.group_name, args.group_ranks, args.group_size, args.rank_start, args.rank_stride)
        if key not in self._of_args:
            self._of_args[key] = self._find(args)
        return self._of_args[key]

    def _find(self, args: CollectiveArgs) -> int:
        members, is_cut = parse_members(args.group_ranks)
        size = args.group_size
        if size is not None and len(members) != size:
            is_cut = True
        if is_cut:
            members = self._completed(args, members)
        if not members and size is None:
            named = [n for n, group in enumerate(self._groups) if group.name == args.group_name]
            if len(named) == 1:
                return named[0]
        return self._number(args.group_name, args.group_description, members, size or len(members) or None)

    def _completed(self, args: CollectiveArgs, beginning: list[int]) -> list[int]:
        """Complete a member list that was cut: by start, stride and size, else by the header's list of that name."""
        size, start, stride = args.group_size, args.rank_start, args.rank_stride
        if size is None or size > _MEMBERS_MAX:
            return []
        if start is not None and stride is not None and stride > 0:
            regular = [start + stride * place for place in range(size)]
            if regular[: len(beginning)] == beginning:
                return regular
        for group in self._groups:
            if group.name == args.group_name and group.size == size and group.members[: len(beginning)] == beginning:
                return list(group.members)
        return []

    def _add_configured(self, entry: dict[str, Any]) -> None:
        name, ranks = entry.get("pg_name"), entry.get("ranks")
        members = parse_members(ranks)[0] if isinstance(ranks, str) else ranks
        if not isinstance(name, str | int) or not isinstance(members, list) or len(members) > _MEMBERS_MAX:
            return
        if not all(isinstance(rank, int) and 0 <= rank < 1 << 31 for rank in members):
            return
        size = entry.get("pg_size")
        is_whole = isinstance(size, int) and size == len(members)
        description = entry.get("pg_desc")
        said = _plain(description) if isinstance(description, str) else ""
        self._number(_plain(str(name)), said, members if is_whole or size is None else [], len(members) or None)

    def _number(self, name: str, description: str, members: list[int], size: int | None) -> int:
        key = (name, tuple(members), size)
        if key not in self._numbers:
            self._numbers[key] = len(self._groups)
            self._groups.append(Group(name, description, members, size))
        group = self._numbers[key]
        if description and not self._groups[group].description:
            self._groups[group].description = description
        return group


def _plain(text: str) -> str:
    """Return a header's text without control characters, of bounded length."""
    return "".join(c if c.isprintable() else "?" for c in text)[:64]


def parse_members(text: str) -> tuple[list[int], bool]:
    """Read a member list as Kineto writes it, `[0, 1, 2]`, cut after 30 members with dots.

    Returns:
        The members read, and whether the list goes on.

    >>> parse_members("[0, 1]"), parse_members("[0, 8, ...]"), parse_members("")
    (([0, 1], False), ([0, 8], True), ([], False))
    """
    members: list[int] = []
    for part in text.strip().strip("[]").split(","):
        word = part.strip().strip("\"'")
        if not word:
            continue
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            return members, True
        members.append(int(word))
    return members, "..." in text
