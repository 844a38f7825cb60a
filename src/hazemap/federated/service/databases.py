"""SQLite and PostgreSQL behind one interface: the store's SQL is the same for both.

Our SQL is what both understand, with `?` for a value and BLOB for bytes; PostgreSQL gets `%s` and BYTEA. A database
belongs to one server at a time: a second one is refused, and a server that was killed holds nothing.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, ClassVar, Protocol, TypeVar

from hazemap.errors import InputError, StoreError
from hazemap.sources import postgresql
from hazemap.sources.postgresql import checked_url, is_postgresql_url

_APPLICATION = 0x48415A53  # "HAZS", in SQLite's header
_JOURNAL = 4_096
"""Pages, 16 MB, of SQLite's write-ahead log, with which it goes back to the tables: what changes twice goes once."""
_OWNER = 0x48415A45  # the key of PostgreSQL's advisory lock
LOOK = 0.05
"""Seconds between two attempts to own a database that another server owns."""
BUSY = 10.0
"""Seconds that a statement waits for another program that has locked an SQLite file."""
_PASSES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)
"""SQLite's errors that leave nothing of a transaction: it did not get as far as the frame that ends it."""
SILENCE = 10
"""Seconds after which a connection to PostgreSQL ends, on both sides, if the other side acknowledges nothing."""

_LOCK = "SELECT pg_try_advisory_lock(%s)"
_SET = "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s"
_VANISHED = {
    "keepalives_idle": "tcp_keepalives_idle",
    "keepalives_interval": "tcp_keepalives_interval",
    "keepalives_count": "tcp_keepalives_count",
    "tcp_user_timeout": "tcp_user_timeout",
}
"""What libpq calls the limits of a silent connection, and PostgreSQL."""

T = TypeVar("T")


class DatabaseInUse(StoreError):
    """A database that belongs to another server: each belongs to one at a time."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is in use by another server: a database belongs to one server at a time")


class Unusable(StoreError):
    """A database that no wait makes usable: it is another program's or another version's, is damaged, or refuses."""


class Connection(Protocol):
    """The part of DB-API that SQLite and psycopg share. Transactions are begun and ended by SQL."""

    def execute(self, sql: Any, values: Any = ..., /) -> Any:
        """One statement."""
        ...

    def cursor(self) -> Any:
        """For many rows at once."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


@dataclass(frozen=True)
class Sqlite:
    """A file beside the server: write-ahead log, and every commit is on the disk before it counts. `patience` is in s.

    What is deleted is overwritten (`secure_delete`, whatever SQLite was built with).

    >>> Sqlite(Path("server.sqlite")).spelled("SELECT ?")
    'SELECT ?'
    """

    path: Path
    patience: float = 0
    failures: ClassVar[tuple[type[Exception], ...]] = (sqlite3.Error, OSError)
    """what its driver raises"""
    contradictions: ClassVar[tuple[type[Exception], ...]] = (sqlite3.IntegrityError,)
    """those of the failures that say that a row contradicts others"""

    def connect(self) -> Connection:
        """A connection for one thread at a time; readers see the last commit and wait for nobody."""
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=BUSY)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA secure_delete = ON")
        db.execute(f"PRAGMA wal_autocheckpoint = {_JOURNAL}")
        return db

    def own(self) -> Connection:
        """The connection that writes, with a lock on a file beside it, which ends with the process; `DatabaseInUse`."""
        handle = _patient(self._lock, self.patience)
        if handle is None:
            raise DatabaseInUse(str(self.path))
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(self.path)) as looked_at:
                [(application,)] = looked_at.execute("PRAGMA application_id").fetchall()
                [(tables,)] = looked_at.execute("SELECT count(*) FROM sqlite_master").fetchall()
                if application != _APPLICATION and (application or tables):
                    raise Unusable(f"{self.path} is a database, but no hazemap server's: choose another folder")
                if application != _APPLICATION:  # nothing is written where the disk may be full
                    looked_at.execute(f"PRAGMA application_id = {_APPLICATION}")
            return _Locked(self.connect(), handle)
        except BaseException:
            os.close(handle)
            raise

    def _lock(self) -> int | None:
        """The file, locked; none if another process holds the lock."""
        handle = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def spelled(self, sql: str) -> str:
        """SQL in this database's dialect: as it is."""
        return sql

    def emptied(self, writer: Connection) -> None:
        """Empty the write-ahead log of what was deleted: into the tables, and it has no bytes left."""
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def undone(self, error: Exception, writer: Connection) -> bool:  # noqa: ARG002 - the error says it all
        """Whether nothing of a transaction that failed so is there for sure, and the connection good for another.

        That is where it was locked or is full. After an error of the disk a commit may be there, or not.
        """
        return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSES


@dataclass(frozen=True)
class _Locked:
    """A connection that holds the lock of its file."""

    db: Connection
    handle: int

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
        return self.db.execute(sql, values)

    def cursor(self) -> Any:
        return self.db.cursor()

    def close(self) -> None:
        self.db.close()
        with suppress(OSError):
            os.close(self.handle)


@dataclass(frozen=True)
class Postgres:
    """A database of a PostgreSQL server, by URL; psycopg 3 speaks to it. `patience` is in seconds.

    A connection whose other side has vanished ends within 12 s on this side (`SILENCE`), unless the URL says otherwise,
    and so does the session that owns the database on PostgreSQL's: its lock is free then.

    >>> Postgres("postgresql:///hazemap").spelled("CREATE TABLE t (b BLOB)")
    'CREATE TABLE t (b BYTEA)'
    """

    url: str
    patience: float = 15

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """What its driver raises."""
        import psycopg

        return (psycopg.Error, OSError)

    @property
    def contradictions(self) -> tuple[type[Exception], ...]:
        """A key that is there already."""
        import psycopg

        return (psycopg.IntegrityError,)

    def connect(self) -> Connection:
        """Each statement on its own until a transaction is begun."""
        import psycopg

        try:
            connection: Connection = postgresql.connect(self.url, **_within_silence())
            return connection
        except psycopg.OperationalError as error:
            raise StoreError(
                "the PostgreSQL database cannot be reached: see that its server runs, and that --database names a "
                f"host, a database and a user that may use it ({type(error).__name__})"
            ) from error

    def own(self) -> Connection:
        """An advisory lock: it lasts as long as the connection, and a moment longer: that is waited for.

        It is asked for again and again. A statement that waited for it would hold a snapshot as long, which keeps
        PostgreSQL from cleaning up, and would stand in line, and be given the lock, after its server had vanished.
        """
        db = self.connect()
        try:
            self._limit_silence(db)
            if _patient(lambda: db.execute(_LOCK, (_OWNER,)).fetchone() == (True,) or None, self.patience) is None:
                raise DatabaseInUse("the PostgreSQL database")
            db.execute("SET synchronous_commit = on")
        except BaseException:
            db.close()
            raise
        return db

    def _limit_silence(self, db: Any) -> None:
        """Have PostgreSQL end this session when its client is silent for as long as the client allows PostgreSQL."""
        known = db.info.get_parameters()
        for ours, theirs in _VANISHED.items():
            with suppress(*self.failures):  # a system that does not have this setting
                db.execute(_SET, (known.get(ours, "0"), theirs))

    def spelled(self, sql: str) -> str:
        """Its placeholders, and its name for bytes."""
        return postgresql.to_postgresql_sql(sql)

    def emptied(self, writer: Connection) -> None:
        """Nothing: vacuuming and archives are the operator's."""

    def undone(self, error: Exception, writer: Connection) -> bool:
        """Where PostgreSQL itself refuses, and goes on. Of a connection that broke nobody knows what is committed."""
        try:
            writer.execute("SELECT 1")
        except self.failures:
            return False
        return getattr(error, "sqlstate", None) not in (None, "40003")  # 40003: completion unknown


Database = Sqlite | Postgres
"""Where a store lives."""


def database(place: str | Path, patience: float | None = None) -> Database:
    """The database of a URL (`postgresql://…`) or of a path; `patience` is in seconds, by default that of its kind.

    >>> database("postgresql://localhost/maps")
    Postgres(url='postgresql://localhost/maps', patience=15)
    """
    text, waits = str(place), {} if patience is None else {"patience": patience}
    if is_postgresql_url(text):
        return Postgres(checked_url(text), **waits)
    if "://" in text:
        raise InputError("a database is a file (SQLite) or a URL that begins with postgresql://")
    return Sqlite(Path(text), **waits)


def _patient(attempt: Callable[[], T | None], patience: float) -> T | None:
    """What the first attempt that succeeds gives; none after so many seconds of attempts."""
    until = monotonic() + patience
    while (found := attempt()) is None and monotonic() < until:
        sleep(LOOK)
    return found


def _within_silence() -> dict[str, int]:
    """What libpq calls it when a connection is to end after some seconds of silence, whether something was sent or not.

    >>> _within_silence()["tcp_user_timeout"]
    10000
    """
    return {
        "connect_timeout": SILENCE,
        "keepalives": 1,
        "keepalives_idle": max(1, SILENCE // 2),
        "keepalives_interval": max(1, SILENCE // 5),
        "keepalives_count": 3,
        "tcp_user_timeout": 1_000 * SILENCE,
    }
