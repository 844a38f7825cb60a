"""The stewards of a studio: each has a folder, a ledger, and tables to look at.

Every path that a browser names is inside the steward's folder, or is refused. Rows of a preview are read to be looked
at on this machine; they are stored nowhere, and no release depends on them.
"""

import os
import re
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from hazemap.engines.duckdb_connection import DuckDBConnection, TableQuery, quoted
from hazemap.engines.table_source import SourcePart, TableSource
from hazemap.errors import FileError, InputError, TableError
from hazemap.federated.service.access_tokens import kept, known_token, named, token_file
from hazemap.files.text_files import MOST, read_text, toml_table
from hazemap.gdal.own_files import open_tiff
from hazemap.privacy.ledger import Ledger
from hazemap.readers.column_roles import LAT, LON, PERSON, TIME, ColumnRole, are_degrees
from hazemap.readers.csv_files import CsvDialect
from hazemap.readers.file_formats import ENDINGS, files_of
from hazemap.readers.open_table import LEAST_FOR_DUCKDB, PLAIN, source_of
from hazemap.sources.postgresql import is_postgresql_url
from hazemap.sources.source import LocalFiles
from hazemap.studio.coordinator_access import CoordinatorAccess
from hazemap.studio.refusals import refused

LONGEST = 1_000
"""Characters of a name."""
MOST_ENTRIES = 2_000
"""Of a folder so many names are shown."""

JOURNALS = ".sqlite.runs"
"""How the folder of a ledger's journals ends: nobody looks for a table there."""

READABLE = tuple(ending for endings in ENDINGS.values() for ending in endings)


@dataclass(frozen=True)
class FolderEntry:
    """A name in a folder: a `folder`, a `table` that can be read, a `release`, or another `picture` or page."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True)
class RootFolder:
    """A folder out of which no name leads, neither by `..` nor by a link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     root = RootFolder.at(Path(folder))
    ...     root.inside("a/../../etc/passwd")
    Traceback (most recent call last):
    hazemap.errors.FileError: 'a/../../etc/passwd' leads out of the studio's folder
    """

    path: Path

    @classmethod
    def at(cls, path: Path) -> "RootFolder":
        """A folder that is there, by its real path."""
        real = Path(os.path.realpath(path.expanduser()))
        if not real.is_dir():
            raise InputError(f"there is no folder {path} for the studio to work in: make it, or name another")
        return cls(real)

    def inside(self, name: str) -> Path:
        """The path of a name, whether it is there or not; `FileError` where it leads out of the folder."""
        _refuse_odd(name)
        asked = Path(name)
        if asked.is_absolute() or ".." in asked.parts or not self.holds(self.path / asked):
            raise refused(FileError, "leadsOut", name=name)
        return self.path / asked

    def holds(self, path: Path | str) -> bool:
        """Whether a path, with all links followed, is in the folder."""
        real = Path(os.path.realpath(path))
        return real == self.path or self.path in real.parents

    def name_of(self, path: Path | str) -> str | None:
        """How a path is called here; None for one that lies elsewhere."""
        real = Path(os.path.realpath(path))
        return str(real.relative_to(self.path)) if self.holds(real) else None

    def table(self, name: str) -> Path:
        """A file or a folder of files that is there, none of which lies elsewhere; `FileError` for any other."""
        path = self.inside(name)
        if not (path.is_file() or path.is_dir()):
            raise refused(FileError, "noSuchTable", name=name)
        if path.is_dir() and not all(self.holds(each) for each in path.rglob("*") if each.is_symlink()):
            raise refused(FileError, "linkOutside", name=name)
        files_of(LocalFiles(str(path)))  # there are some
        return path

    def file(self, name: str) -> Path:
        """A file that is there."""
        path = self.inside(name)
        if not path.is_file():
            raise refused(FileError, "noSuchFile", name=name)
        return path

    def entries(self, name: str) -> list[FolderEntry]:
        """What a folder holds that a steward may want, folders first; hidden names and links that lead out are not."""
        folder = self.inside(name)
        if not folder.is_dir():
            raise refused(FileError, "noSuchFolder", name=name)
        found = []
        try:
            names = sorted(each.name for each in os.scandir(folder) if not each.name.startswith("."))
        except OSError as error:
            raise FileError(f"the folder {name!r} cannot be read ({error.strerror})") from error
        for each in names[:MOST_ENTRIES]:
            path = folder / each
            kind = self._kind(path) if each.isprintable() and self.holds(path) else None
            if kind is not None:
                found.append(FolderEntry(each, kind, path.stat().st_size if path.is_file() else 0))
        return sorted(found, key=lambda entry: (entry.kind != "folder", entry.name.casefold()))

    def _kind(self, path: Path) -> str | None:
        if path.is_dir():
            return None if path.name.endswith(JOURNALS) else "folder"
        if not path.is_file():
            return None
        if is_release(path):
            return "release"
        return "table" if path.name.lower().endswith(READABLE) else None


def free(goal: Path) -> None:
    """`FileError` where a file is there: none is replaced."""
    if goal.exists() or goal.is_symlink():
        raise refused(FileError, "fileIsThere", name=goal.name)


def is_release(path: Path) -> bool:
    """Whether a file says that hazemap published it; what is in it is read when it is opened."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            from pyarrow import parquet

            return b"hazemap" in (parquet.read_metadata(path).metadata or {})
        if suffix == ".tif":
            with open_tiff(path) as opened:
                return "HAZEMAP" in {name.upper() for name in opened.tags()}
    except Exception:
        return False
    return False


def _refuse_odd(name: str) -> None:
    """Raise `FileError` for what no file is called."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise refused(FileError, "oddName", most=LONGEST) from None
    if not 0 <= len(name) <= LONGEST or not name.isprintable():
        raise refused(FileError, "oddName", most=LONGEST)
    if set(name) & set("*?[]"):
        raise refused(FileError, "patternName")


ALONE = "steward"
"""The one who is let in by a link."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_FIELDS = {"folder", "ledger", "token", "server", "server_token", "server_certificate"}
_OF_SERVER = {"server", "server_token"}


@dataclass(frozen=True)
class Steward:
    """Somebody who releases maps. `token` is the file of their secret; without one they come by a link alone.

    `server` is the coordinator on which they run campaigns and studies, if any.
    """

    name: str
    root: RootFolder
    ledger: Ledger
    token: Path | None = None
    server: CoordinatorAccess | None = None


@dataclass(frozen=True)
class Stewards:
    """Everybody who may sign in, by name. Their folders and ledgers have nothing in common."""

    by_name: Mapping[str, Steward]
    named_ledger: bool = field(default=True)
    """Whether commands have to name the ledger: it is not the default one."""

    @classmethod
    def alone(cls, folder: Path, ledger: Path | str | None, server: CoordinatorAccess | None = None) -> "Stewards":
        """One steward, whom the studio's link lets in."""
        book = Ledger(ledger) if ledger else Ledger.default()
        only = Steward(ALONE, RootFolder.at(folder), book, server=server)
        return cls({ALONE: only}, named_ledger=ledger is not None)

    @classmethod
    def of_file(cls, path: Path) -> "Stewards":
        """Those of a TOML file; relative paths in it begin at its folder, and tokens that are missing are made.

        `InputError` where two share a folder or a ledger: each sees their own data sets only.
        """
        found = {name: _steward(name, table, path.parent) for name, table in _tables(path).items()}
        for name, one in found.items():
            for other in found.values():
                if other.name <= name:
                    continue
                if one.root.holds(other.root.path) or other.root.holds(one.root.path):
                    raise InputError(f"{one.name} and {other.name} would see each other's files: give each a folder")
                if _same_ledger(one.ledger, other.ledger):
                    raise InputError(f"{one.name} and {other.name} would share a ledger: give each one of their own")
                if one.token and other.token and _same_file(one.token, other.token):
                    raise InputError(f"{one.name} and {other.name} would share a token: give each one of their own")
                if one.server and other.server and _same_file(one.server.token, other.server.token):
                    raise InputError(f"{one.name} and {other.name} would share a server's token: each has their own")
        return cls(found)

    def holder(self, token: str) -> Steward | None:
        """Whose token this is. A token ends with its file; every one is compared, whichever fits."""
        files = {name: one.token for name, one in self.by_name.items() if one.token is not None}
        name = named({name: secret for name, file in files.items() if (secret := known_token(file))}, token)
        return None if name is None else self.by_name[name]

    def fingerprint(self, name: str) -> bytes:
        """Changes with a steward's token: a session ends when the token does."""
        steward = self.by_name.get(name)
        if steward is None or steward.token is None:
            return b""
        return kept(known_token(steward.token) or "")


def _same_file(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _same_ledger(one: Ledger, other: Ledger) -> bool:
    """Whether two are one file, or one database as one login: in that others have ledgers of their own rights."""
    if isinstance(one.place, Path) and isinstance(other.place, Path):
        return _same_file(one.place, other.place)
    return one.place == other.place


def _tables(path: Path) -> dict[str, Any]:
    tables = toml_table(read_text(path, "the users in"), "the list of users", MOST)
    if not tables:
        raise InputError(f"{path} names nobody: write a table for each user, such as [ann] with folder and ledger")
    return tables


def _steward(name: str, table: Any, folder: Path) -> Steward:
    if not _NAME.fullmatch(name):
        raise InputError(f"a user's name has up to 40 letters, digits, '.', '_' and '-'; found {name!r:.60}")
    if not isinstance(table, dict) or not {"folder", "ledger"} <= table.keys() <= _FIELDS:
        raise InputError(
            f"say of the user {name} a folder and a ledger, perhaps the file of a token and a server, and nothing else"
        )
    if not all(isinstance(value, str) and value for value in table.values()):
        raise InputError(f"what is said of the user {name} are texts")
    named = table["ledger"]
    root, book = RootFolder.at(folder / table["folder"]), Ledger(named if is_postgresql_url(named) else folder / named)
    if isinstance(book.place, Path) and root.holds(book.place):
        raise InputError(f"the ledger of {name} would be among their files: put it elsewhere")
    token = folder / table.get("token", f"{name}.token")
    if root.holds(token):
        raise InputError(f"the token of {name} would be among their files: put it elsewhere")
    token_file(token)
    return Steward(name, root, book, token, _server(name, table, folder, root))


def _server(name: str, table: dict[str, str], folder: Path, root: RootFolder) -> CoordinatorAccess | None:
    """The coordinator of a user, with the file of their token for it."""
    given = {field for field in table if field.startswith("server")}
    if not given:
        return None
    if not given >= _OF_SERVER:
        raise InputError(f"say of the user {name} both a server and, as server_token, the file of their token for it")
    token = folder / table["server_token"]
    if root.holds(token):
        raise InputError(f"the server's token of {name} would be among their files: put it elsewhere")
    certificate = folder / table["server_certificate"] if "server_certificate" in table else None
    return CoordinatorAccess.at(table["server"], token, certificate)


ROWS, COLUMNS, LETTERS = 8, 100, 60
"""So many rows, columns, and letters of a value are shown."""

ROLES = {"person": PERSON, "lon": LON, "lat": LAT, "time": TIME}


@dataclass(frozen=True)
class TablePreview:
    """What files declare, which columns would be taken for what, and the first rows as texts.

    `guessed` names a column for each role that can be guessed, but never x and y, which may be no degrees; `rows` is
    empty where they are not to be seen.
    """

    columns: tuple[tuple[str, str], ...]
    more: int
    rows_in_all: int | None
    geometry: str | None
    guessed: dict[str, str]
    rows: tuple[tuple[str, ...], ...]


def previewed(path: Path, dialect: CsvDialect = PLAIN, rows: bool = True) -> TablePreview:
    """A table as it would be opened. `FileError` and `TableError` are those of opening it."""
    connection = DuckDBConnection(LEAST_FOR_DUCKDB, 1)
    source = source_of(connection, str(path), dialect)
    first = source.parts[0]
    shown = source.columns[:COLUMNS]
    kinds = tuple((name, "text" if name in first.written else first.kinds[name].lower()) for name in shown)
    return TablePreview(
        columns=kinds,
        more=len(source.columns) - len(shown),
        rows_in_all=source.rows,
        geometry=None if source.geometry is None else source.geometry.column,
        guessed=_guessed(source),
        rows=_first_rows(connection, source, first, shown) if rows and shown else (),
    )


def _guessed(source: TableSource) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, role in ROLES.items():
        if name in ("lon", "lat") and (source.geometry is not None or not are_degrees(source.columns)):
            continue
        found |= _column(source, name, role)
    return found


def _column(source: TableSource, name: str, role: ColumnRole) -> dict[str, str]:
    with suppress(TableError):
        return {name: role.column(source.columns, None)}
    return {}


def _first_rows(
    connection: DuckDBConnection, source: TableSource, part: SourcePart, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    feed = part.feed or part.checking
    if feed is None:
        names = ", ".join(quoted(name) for name in columns)
        query = TableQuery(f"SELECT {names} FROM {part.relation} LIMIT {ROWS}")  # noqa: S608 - quoted names
        batches = connection.stream(query, source.name)
    else:
        batches = feed.batches(columns)
    found: list[tuple[str, ...]] = []
    with closing(batches):
        for batch in batches:
            head = batch.slice(0, ROWS - len(found))
            found += zip(*(map(_text, column.to_pylist()) for column in head.columns), strict=True)
            if len(found) >= ROWS:
                break
    return tuple(islice(found, ROWS))


def _text(value: Any) -> str:
    """A value in a few letters."""
    if value is None:
        return ""
    if isinstance(value, bytes | dict | list):
        return f"({type(value).__name__})"
    text = str(value)
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
