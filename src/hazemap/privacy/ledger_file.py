"""The ledger's file: one SQLite database, opened for one transaction at a time, its tables, and what is written there.

What SQLite or the system has against it becomes a `LedgerError` that says what to do. A transaction is on the
disk when it ends, or was never there: `kill -9` and power cuts included.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hazemap.errors import InputError, LedgerError
from hazemap.files.atomic_write import make_folder
from hazemap.privacy.ledger_store import RESTORE, Forgotten, NewCharge, Noted
from hazemap.privacy.privacy_unit import Model

_CHANGE = "INSERT INTO changes (dataset, model, old, new, time, who, why) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True)
class FileTransaction:
    """A transaction of the file, to read and to write: whoever may write the file may do all of it."""

    db: sqlite3.Connection
    payer: ClassVar[str] = "NULL"

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> sqlite3.Cursor:
        """A question."""
        return self.db.execute(sql, values)

    def check_page(self, dataset: str, model: Model) -> None:
        """A file takes charges of data sets without a cap, and of new ones."""

    def open_page(self, dataset: str, model: Model | None, time: str) -> None:
        """Have a data set, and its page for a model."""
        self.execute("INSERT INTO datasets (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING", (dataset, time))
        if model is not None:
            page = (dataset, model, time)
            self.execute("INSERT INTO pages (dataset, model, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", page)

    def admit(self, dataset: str, model: Model, time: str) -> None:
        """The page is made by its first charge."""
        self.open_page(dataset, model, time)

    def charge(self, new: NewCharge) -> tuple[int, str]:
        """Write a charge."""
        if new.protects is not None:
            self.execute("UPDATE datasets SET protects = ? WHERE name = ?", (new.protects, new.dataset))
        self.execute(
            "INSERT INTO charges (dataset, model, unit, price, rho, time, what, run, schedule, period, allowance) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (new.dataset, new.model, new.unit, new.price, new.rho, new.time, new.what, new.run, *new.of_schedule),
        )
        [number] = self.execute("SELECT last_insert_rowid()").fetchone()
        return number, new.time

    def release(self, charge: int, statement: str, file: str | None) -> None:
        """Note what a charge was spent on."""
        self.execute(
            "UPDATE charges SET state = 'released', statement = ?, file = ? WHERE id = ?", (statement, file, charge)
        )

    def release_again(self, charge: int, dataset: str, file: str | None) -> None:
        """Note what the charge for a question asked once more was spent on."""
        self.execute(
            "UPDATE charges SET state = 'released', file = ? WHERE id = ? AND dataset = ?", (file, charge, dataset)
        )

    def set_cap(self, dataset: str, model: Model, old: str | None, cap: str, rho: str, now: Noted) -> None:
        """Set the cap of a page."""
        self.execute(
            "UPDATE pages SET cap = ?, cap_rho = ? WHERE dataset = ? AND model = ?", (cap, rho, dataset, model)
        )
        self.execute(_CHANGE, (dataset, model, old, cap, *now))

    def set_protects(self, dataset: str, old: str | None, new: str, now: Noted) -> None:
        """Say whom a data set protects."""
        self.execute("UPDATE datasets SET protects = ?, earlier = NULL WHERE name = ?", (new, dataset))
        self.execute(_CHANGE, (dataset, None, old, new, *now))

    def remember(self, dataset: str, fingerprint: bytes, most: int) -> None:
        """Keep the fingerprint of a table that paid; one that is just the same is replaced."""
        if not self.execute("SELECT 1 FROM datasets WHERE name = ?", (dataset,)).fetchone():
            return
        self.execute("DELETE FROM fingerprints WHERE dataset = ? AND fingerprint = ?", (dataset, fingerprint))
        self.execute("INSERT INTO fingerprints (dataset, fingerprint) VALUES (?, ?)", (dataset, fingerprint))
        self.execute(
            "DELETE FROM fingerprints WHERE dataset = ? AND id NOT IN "
            "(SELECT id FROM fingerprints WHERE dataset = ? ORDER BY id DESC LIMIT ?)",
            (dataset, dataset, most),
        )

    def forget(self, before: str, dataset: str | None) -> Forgotten:
        """Forget payloads; a charge keeps its price, its file's name and everything that is added up."""
        statements = self.execute(
            "UPDATE charges SET statement = NULL WHERE state = 'released' AND statement IS NOT NULL AND time < ? "
            "AND coalesce(dataset = ?, TRUE)",
            (before, dataset),
        ).rowcount
        fingerprints = self.execute(
            "DELETE FROM fingerprints WHERE coalesce(dataset = ?, TRUE) AND NOT EXISTS "
            "(SELECT 1 FROM charges WHERE charges.dataset = fingerprints.dataset AND time >= ?)",
            (dataset, before),
        ).rowcount
        return Forgotten(statements, fingerprints)


T = TypeVar("T")

APPLICATION = 0x48415A45  # "HAZE", in SQLite's header: this file is a ledger and no other database
SCHEMA = 3

SUFFIX = " (values only)"
"""What schema 1 added to the name of a data set to have a page for values-only. Names mean nothing any more, so that a
name that ends in this is refused: it probably means the page."""

TABLES = (
    """CREATE TABLE datasets (
        name TEXT PRIMARY KEY NOT NULL,
        protects TEXT,
        earlier TEXT,
        created TEXT NOT NULL
    )""",
    """CREATE TABLE pages (
        dataset TEXT NOT NULL REFERENCES datasets (name),
        model TEXT NOT NULL CHECK (model IN ('full', 'values-only')),
        cap TEXT,
        cap_rho TEXT,
        created TEXT NOT NULL,
        PRIMARY KEY (dataset, model)
    )""",
    """CREATE TABLE charges (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL,
        model TEXT NOT NULL,
        unit TEXT,
        price TEXT NOT NULL,
        rho TEXT NOT NULL,
        time TEXT NOT NULL,
        what TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'charged' CHECK (state IN ('charged', 'released')),
        file TEXT,
        statement TEXT,
        run TEXT,
        schedule TEXT,
        period TEXT,
        allowance TEXT,
        FOREIGN KEY (dataset, model) REFERENCES pages (dataset, model)
    )""",
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL REFERENCES datasets (name),
        model TEXT,
        old TEXT,
        new TEXT NOT NULL,
        time TEXT NOT NULL,
        who TEXT NOT NULL,
        why TEXT
    )""",
    """CREATE TABLE fingerprints (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        dataset TEXT NOT NULL REFERENCES datasets (name),
        fingerprint BLOB NOT NULL
    )""",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {SCHEMA}",
)
"""A budget is JSON of rationals. Its ρ stands beside it: for (ε, δ) it comes of a search in floats, and what
was paid must not change with the machine that reads it. No index but the names': a damaged one hides rows.

`run` names the journal of the run that paid (`execution.journal`), where there was one. A charge of a schedule
names it, the `period` that it pays for, and what all periods of the year may cost (`privacy.ledger_units`).

`earlier` are the kinds of what an older hazemap charged, where it did not note whose it was. A change without a model
is one of whom the data set protects. `fingerprints` are for warnings alone (see `privacy.duplicate_tables`), are in no
history, and mean nothing without their key, which is another file.
"""

_GONE = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'charges'), 0) - count(*) FROM charges"
"""How many charges are there no more: numbers are given one after another, and none is given back."""

_ELSEWHERE = "make its folder writable for you, or let HAZEMAP_HOME name the folder of your ledger"


@dataclass(frozen=True)
class LedgerFile:
    """The database at `path`; a transaction waits up to `patience` seconds for those of others.

    >>> with LedgerFile(Path("/nowhere/ledger.sqlite"), 60).reading() as db:
    ...     db.execute("SELECT count(*) FROM charges").fetchone()
    (0,)
    """

    path: Path
    patience: float

    @property
    def place(self) -> str:
        """Its path."""
        return str(self.path)

    @property
    def runs(self) -> Path:
        """Where journals are, by whichever link the file is named, and apart from those of its neighbours."""
        path = Path(os.path.realpath(self.path))
        return path.with_name(f"{path.name}.runs")

    @property
    def key_file(self) -> Path:
        """Beside the ledger, not in it."""
        return self.path.with_suffix(".key")

    @contextmanager
    def reading(self) -> Iterator[FileTransaction]:
        """See the ledger at one instant; one that is not there yet is empty, and stays not there."""
        with self._translated():
            there = self.path.exists()
            if not there:
                self._refuse_if_lost()
            source = f"{self.path.as_uri()}?mode=rw" if there else "file::memory:"
            with closing(self._connection(source)) as db:
                db.execute("BEGIN")
                if self._recognise(db, anew=not there) == SCHEMA:
                    yield FileTransaction(db)
                    return
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
                    db.backup(copy)  # who looks at an older ledger may not be allowed to write it
                    copy.execute("BEGIN")
                    migrate(copy)
                    yield FileTransaction(copy)

    def write(self, body: Callable[[FileTransaction], T]) -> T:
        """Have the ledger alone for `body`."""
        with self.writing() as db:
            return body(FileTransaction(db))

    def exist(self) -> None:
        """Make the file if it is not there: before anything is kept beside it, so that nothing is there without it."""
        if not self.path.exists():
            with self.writing():
                pass

    def begin_anew(self) -> None:
        """Make an empty ledger in the place of one that is gone; `InputError` where one is there."""
        with self._translated():
            if self.path.exists():
                with closing(self._connection(f"{self.path.as_uri()}?mode=rw")) as db:
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                        raise InputError(f"the ledger {self.path} is there, so nothing begins anew")
        with self.writing(anew=True):
            pass

    def _refuse_if_lost(self) -> None:
        """`LedgerError` where a ledger was here: its key, or journals of runs that it has paid for, still are."""
        beside = [self.key_file.name] if self.key_file.exists() else []
        if any(self.runs.glob("*.journal")):
            beside.append(self.runs.name)
        if beside:
            raise LedgerError(
                f"the ledger {self.path} is gone or empty, but {' and '.join(beside)} beside it "
                f"{'is' if len(beside) == 1 else 'are'} still there, so it has been charged: {RESTORE}, caps included. "
                "If that is what you want, `hazemap ledger begin-anew` makes an empty one"
            )

    @contextmanager
    def writing(self, anew: bool = False) -> Iterator[sqlite3.Connection]:
        """Have the ledger alone, made if need be; what the block wrote is on the disk when it ends.

        Raises `LedgerError` where a ledger was and is no more, unless a steward begins `anew`.
        """
        with self._translated():
            make_folder(self.path.parent)  # SQLite syncs the ledger's own folder, nobody those above it
            if not anew and not self.path.exists():
                self._refuse_if_lost()  # before an empty file is made
            with closing(self._connection(f"{self.path.as_uri()}?mode=rwc")) as db:
                db.execute("BEGIN IMMEDIATE")
                if self._recognise(db, anew) < SCHEMA:
                    migrate(db)
                yield db
                db.execute("COMMIT")

    def _connection(self, source: str) -> sqlite3.Connection:
        db = sqlite3.connect(source, uri=True, timeout=self.patience, isolation_level=None)
        db.execute("PRAGMA foreign_keys = ON")
        # FULL leaves the removal of the journal to the system: after a power cut it would undo the charge
        db.execute("PRAGMA synchronous = EXTRA")
        return db

    def _recognise(self, db: sqlite3.Connection, anew: bool) -> int:
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
            if not anew:
                self._refuse_if_lost()
            for statement in TABLES:
                db.execute(statement)
            return SCHEMA
        if application != APPLICATION:
            raise LedgerError(f"{self.path} is a database, but no ledger of hazemap's: {_ELSEWHERE}")
        if version > SCHEMA:
            raise LedgerError(f"the ledger {self.path} was written by a newer hazemap: upgrade hazemap to use it")
        if version < 1 or db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise LedgerError(f"the ledger {self.path} is damaged: {RESTORE}")
        if db.execute(_GONE).fetchone() != (0,):
            raise LedgerError(f"charges were removed from the ledger {self.path}: {RESTORE}")
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


_KINDS = {
    "a person's values alone": "values",
    "a person: all rows of one id": "person",
    "a person: all rows on one device": "device",
    "a row": "row",
}
"""How the statements of schema 1's time begin to say whom they protect."""

_FIXED = {"row": '{"kind": "row", "model": "full"}', "device": '{"kind": "device", "model": "full"}'}
_PROTECTS = {"row": '{"kind": "row"}', "device": '{"kind": "device"}'}


def migrate(db: sqlite3.Connection) -> None:
    """Turn the tables of an older schema into these, within the transaction that is open; nothing is lost."""
    if db.execute("PRAGMA user_version").fetchone() == (1,):
        _from_first(db)
        return
    for column in ("schedule", "period", "allowance"):  # schema 2 knew no schedules
        db.execute(f"ALTER TABLE charges ADD COLUMN {column} TEXT")
    db.execute(f"PRAGMA user_version = {SCHEMA}")


def _from_first(db: sqlite3.Connection) -> None:
    """Turn the tables of schema 1 into these: every charge and every cap stays.

    Whose a charge was is known from its statement, where it was released; by which column people were told apart is
    not, so the next charge asks for it (`Ledger.charge`). A data set named "x (values only)" becomes the values-only
    page of x, unless something else was charged to it.
    """
    old = {name: rest for name, *rest in db.execute("SELECT name, cap, cap_rho, created FROM datasets ORDER BY name")}
    charges = db.execute(
        "SELECT id, dataset, price, rho, time, what, state, file, statement FROM charges ORDER BY id"
    ).fetchall()
    kinds: dict[str, set[str]] = {name: set() for name in old}
    for charge in charges:
        kinds[charge[1]].add(_kind(charge[-1]))
    pages = {name: _page(name, kinds[name]) for name in old}
    db.execute("DROP TABLE charges")
    db.execute("DROP TABLE datasets")
    for statement in TABLES:
        db.execute(statement)
    for dataset in sorted({dataset for dataset, _ in pages.values()}):
        own = [name for name in old if pages[name][0] == dataset]
        known = set().union(*(kinds[name] for name in own))
        protects, earlier = _protects(known)
        created = min(old[name][2] for name in own)
        db.execute("INSERT INTO datasets VALUES (?, ?, ?, ?)", (dataset, protects, earlier, created))
    for name, (cap, rho, created) in old.items():
        db.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", (*pages[name], cap, rho, created))
    for number, name, *rest, statement in charges:
        unit = _FIXED.get(_kind(statement))
        db.execute(
            "INSERT INTO charges (id, dataset, model, unit, price, rho, time, what, state, file, statement) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *pages[name], unit, *rest, statement),
        )


def _kind(statement: str | None) -> str:
    try:
        unit = json.loads(statement)["unit"] if statement else ""
        return next((kind for words, kind in _KINDS.items() if unit.startswith(words)), "unknown")
    except (ValueError, TypeError, KeyError, AttributeError):
        return "unknown"  # whoever looks at the history is told that this statement cannot be read


def _page(name: str, kinds: set[str]) -> tuple[str, str]:
    apart = name.endswith(SUFFIX) and kinds <= {"values", "unknown"}
    return (name.removesuffix(SUFFIX), "values-only") if apart else (name, "full")


def _protects(kinds: Iterable[str]) -> tuple[str | None, str | None]:
    """Whom a data set protects, where its charges say it, or else the kinds of what was charged."""
    found = sorted({"person" if kind == "values" else kind for kind in kinds})
    if not found:
        return None, None
    if len(found) == 1 and found[0] in _PROTECTS:
        return _PROTECTS[found[0]], None
    return None, ",".join(found)
