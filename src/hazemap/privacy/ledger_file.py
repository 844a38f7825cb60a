"""The ledger's file: one SQLite database, opened for one transaction at a time.

What SQLite or the system has against it becomes a `LedgerError` that says what to do. A transaction is on the
disk when it ends, or was never there: `kill -9` and power cuts included.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hazemap.errors import LedgerError
from hazemap.privacy.ledger_schema import APPLICATION, SCHEMA, TABLES, migrate

_ELSEWHERE = "make its folder writable for you, or let HAZEMAP_HOME name the folder of your ledger"
RESTORE = (
    "bring it back from a backup and charge again what was released since; "
    "a new ledger would forget what its people have paid"
)
"""What to do about a ledger that cannot be believed."""


@dataclass(frozen=True)
class LedgerFile:
    """The database at `path`; a transaction waits up to `patience` seconds for those of others.

    >>> with LedgerFile(Path("/nowhere/ledger.sqlite"), 60).reading() as db:
    ...     db.execute("SELECT count(*) FROM charges").fetchone()
    (0,)
    """

    path: Path
    patience: float

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See the ledger at one instant; one that is not there yet is empty, and stays not there."""
        with self._translated():
            source = f"{self.path.as_uri()}?mode=rw" if self.path.exists() else "file::memory:"
            with closing(self._connection(source)) as db:
                db.execute("BEGIN")
                if self._recognise(db) == SCHEMA:
                    yield db
                    return
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                    db.backup(copy)  # who looks at an older ledger may not be allowed to write it
                    copy.execute("BEGIN")
                    migrate(copy)
                    yield copy

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Have the ledger alone, made if need be; what the block wrote is on the disk when it ends."""
        with self._translated():
            _make(self.path.parent)
            with closing(self._connection(f"{self.path.as_uri()}?mode=rwc")) as db:
                db.execute("BEGIN IMMEDIATE")
                if self._recognise(db) < SCHEMA:
                    migrate(db)
                yield db
                db.execute("COMMIT")

    def _connection(self, source: str) -> sqlite3.Connection:
        db = sqlite3.connect(source, uri=True, timeout=self.patience, isolation_level=None)
        db.execute("PRAGMA foreign_keys = ON")
        # FULL leaves the removal of the journal to the system: after a power cut it would undo the charge
        db.execute("PRAGMA synchronous = EXTRA")
        return db

    def _recognise(self, db: sqlite3.Connection) -> int:
        """The schema of the ledger, made if it is empty; `LedgerError` for any other database, and a damaged one."""
        [application], [version], [tables] = (
            db.execute(question).fetchone()
            for question in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if (application, version, tables) == (0, 0, 0):
            for statement in TABLES:
                db.execute(statement)
            return SCHEMA
        if application != APPLICATION:
            raise LedgerError(f"{self.path} is a database, but no ledger of hazemap's: {_ELSEWHERE}")
        if version > SCHEMA:
            raise LedgerError(f"the ledger {self.path} was written by a newer hazemap: upgrade hazemap to use it")
        if version < 1 or db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise LedgerError(f"the ledger {self.path} is damaged: {RESTORE}")
        return int(version)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(f"the ledger {self.path} cannot be reached ({error.strerror}): {_ELSEWHERE}") from error
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} {self._advice(error)}") from error

    def _advice(self, error: sqlite3.Error) -> str:
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return (
                    f"has been in use by another process for {self.patience:g} s: nothing was written; "
                    "try again when that process is done"
                )
            case sqlite3.SQLITE_FULL:
                return "cannot grow, the disk is full: nothing was written; make room and try again"
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                return f"cannot be opened or written ({error}): nothing was written; {_ELSEWHERE}"
            case sqlite3.SQLITE_IOERR:
                return (
                    f"cannot be read or written ({error}): see that its disk works and has room, "
                    "then see with `hazemap ledger history` whether the charge was written"
                )
            case sqlite3.SQLITE_NOTADB:
                return f"is not a ledger, or is damaged: {RESTORE}"
            case _:
                return f"is damaged or was changed by hand ({error}): {RESTORE}"


def _make(folder: Path) -> None:
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:  # SQLite syncs the ledger's own folder, nobody those above it
        handle = os.open(each.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
