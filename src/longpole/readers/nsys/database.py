"""Read columns of an SQLite database that a stranger wrote.

Nothing in a database is trusted. It is opened for reading alone; statements may do no more than read columns of plain
tables (no views, no virtual tables, no function that a schema calls); a column may be missing, and a cell may hold
another type than its column says. A damaged file gives the rows in front of the damage.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from longpole.errors import InputError, NotATraceError
from longpole.readers.container import open_stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from longpole.settings import Settings

    Ints: TypeAlias = NDArray[np.int64]

MISSING: Final = -(1 << 62)  # a cell without a whole number, or a column that is not there
_ROWS_AT_ONCE: Final = 1 << 16
_COPIED_BLOCK_BYTES: Final = 1 << 20
_TEXT_MAX: Final = 1 << 16  # characters of one cell; a longer name says nothing more

_READS: Final = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_FUNCTIONS: Final = frozenset({"typeof", "coalesce", "substr", "length"})


class Database:
    """Columns of the plain tables of a database."""

    def __init__(self, connection: sqlite3.Connection, shown: str) -> None:
        self._connection = connection
        self.shown = shown
        self.damaged: dict[str, str] = {}
        self._columns = self._schema()

    def __contains__(self, table: str) -> bool:
        return table in self._columns

    def tables(self) -> list[str]:
        """Return the names of all plain tables."""
        return sorted(self._columns)

    def has(self, table: str, column: str) -> bool:
        """Tell whether a table has a column."""
        return column in self._columns.get(table, ())

    def numbers(self, table: str, columns: Sequence[str]) -> dict[str, Ints]:
        """Return columns of whole numbers, `[N]` int64 each, MISSING where a cell holds none; in the table's order."""
        found = [column for column in columns if self.has(table, column)]
        parts: list[Ints] = [np.empty((0, len(found)), np.int64)]
        if found:
            cells = ", ".join(f"coalesce({_whole(column)}, {MISSING})" for column in found)
            cursor = self._rows(table, cells)
            parts += [np.array(rows, np.int64).reshape(-1, len(found)) for rows in cursor]
        values = np.concatenate(parts)
        read = {column: np.ascontiguousarray(values[:, place]) for place, column in enumerate(found)}
        return {column: read.get(column, np.full(len(values), MISSING, np.int64)) for column in columns}

    def cells(self, table: str, columns: Sequence[str]) -> list[tuple[object, ...]]:
        """Return rows of cells as they are stored, None for a column that is not there; texts of bounded length."""
        chosen = [_bounded(column) if self.has(table, column) else "NULL" for column in columns]
        if not any(self.has(table, column) for column in columns):
            return []
        return [row for rows in self._rows(table, ", ".join(chosen)) for row in rows]

    def _rows(self, table: str, cells: str) -> Iterator[list[tuple[object, ...]]]:
        """Yield rows by blocks, in the table's order; damage ends them, and is noted."""
        statement = f"SELECT {cells} FROM {_quoted(table)}"
        n_read = 0
        try:
            cursor = self._connection.execute(statement)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                n_read += len(rows)
                yield rows
        except (sqlite3.DatabaseError, OverflowError) as error:
            self.damaged[table] = str(error)
            yield self._up_to_damage(statement, n_read)

    def _up_to_damage(self, statement: str, n_read: int) -> list[tuple[object, ...]]:
        """Return the rows behind the first ones, one at a time: the block that damage lies in is lost as a whole."""
        rows: list[tuple[object, ...]] = []
        with suppress(sqlite3.DatabaseError, OverflowError):
            for number, row in enumerate(self._connection.execute(statement)):
                if number >= n_read:
                    rows.append(row)
        return rows

    def _schema(self) -> dict[str, frozenset[str]]:
        try:
            tables = self._connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND typeof(name) = 'text'"
            ).fetchall()
            return {
                name: frozenset(str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({_quoted(name)})"))
                for name, sql in tables
                if isinstance(sql, str) and not sql.lstrip().upper().startswith("CREATE VIRTUAL")
            }
        except sqlite3.DatabaseError as error:
            hint = "Export the report again: nsys export --type sqlite REPORT"
            raise InputError.at(self.shown, None, f"a damaged SQLite database: {error}", hint) from None


def _whole(column: str) -> str:
    name = _quoted(column)
    return f"CASE WHEN typeof({name}) = 'integer' THEN {name} END"


def _bounded(column: str) -> str:
    name = _quoted(column)
    return f"CASE WHEN typeof({name}) IN ('text', 'blob') THEN substr({name}, 1, {_TEXT_MAX}) ELSE {name} END"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _allow(action: int, first: str | None, second: str | None, database: str | None, caller: str | None) -> int:
    """Let statements read columns, and nothing else; `caller` is the view or trigger that a statement sits in."""
    del database
    if caller is not None:
        return sqlite3.SQLITE_DENY
    if action in _READS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first == "table_info":
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


@contextmanager
def open_database(path: Path, shown: str, settings: Settings, member: str | None = None) -> Iterator[Database]:
    """Open a database, unpacked into a temporary file first where it is packed.

    Args:
        path: The file.
        shown: How it is called in messages.
        settings: The bound on expansion.
        member: Which member of an archive.

    Raises:
        InputError: It cannot be read.
        NotATraceError: It is no database.
    """
    with tempfile.TemporaryDirectory(prefix="longpole-") as folder:
        plain = path if member is None and _is_plain(path) else _unpack(path, Path(folder) / "db", settings, member)
        uri = f"{plain.resolve().as_uri()}?mode=ro&immutable=1"
        try:
            connection = sqlite3.connect(uri, uri=True)
        except sqlite3.Error as error:
            raise InputError.at(shown, None, f"cannot be opened: {error}", "Check the file") from None
        try:
            connection.text_factory = lambda cell: cell.decode("utf-8", "replace")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.set_authorizer(_allow)
            yield Database(connection, shown)
        except sqlite3.DatabaseError as error:
            raise NotATraceError.at(shown, None, f"no readable SQLite database: {error}", "Export it again") from None
        finally:
            connection.close()


def _is_plain(path: Path) -> bool:
    from longpole.readers.nsys.sniff import looks_like_sqlite

    try:
        with path.open("rb") as file:
            return looks_like_sqlite(file.read(16))
    except OSError:
        return False


def _unpack(path: Path, target: Path, settings: Settings, member: str | None) -> Path:
    with open_stream(path, settings, member=member) as stream, target.open("wb") as file:
        for block in stream.blocks(_COPIED_BLOCK_BYTES):
            file.write(block)
    return target
