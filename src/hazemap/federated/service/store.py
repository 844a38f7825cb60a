"""What the server must not forget: one writer that commits for many at once.

Every write waits for the disk, and a disk can do a few hundred commits a second. So one thread takes all writes that
wait, commits them together and then wakes everybody: thousands of uploads cost a handful of commits. Jobs are committed
and acknowledged in the order of their submission.

Where a database is locked or its disk is full, nothing of a write is there: it is tried again for a minute, and then
refused, until one succeeds. Where a write fails otherwise, what is on the disk is no longer known: the store ends,
nothing more is acknowledged, and whoever serves it ends too, so that the next start reads what is there. So does a
store whose server remembers more than is written, once it has refused a write. `trouble` is the truth about both.
"""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, ClassVar, NamedTuple

from hazemap.errors import StoreError
from hazemap.federated.service.databases import Connection, Database, Sqlite, Unusable, database
from hazemap.federated.service.prometheus_text import DurationHistogram

MOST, HEAVIEST = 2_000, 32 << 20
"""Jobs of one commit, and their bytes: a small message does not wait for hundreds of vectors."""

EMPTIED = 60.0
"""Seconds after which what was deleted or replaced is gone from the journal as well."""

AGAIN, PATIENCE = 2.0, 60.0
"""Seconds between two attempts to write where nothing can be written now, and after which writes are refused."""
ROOM = "0" * 65_536
"""What is written for an attempt, and deleted: more than fits where there was no room for a row."""

Done = Callable[[StoreError | None], None]


PASSING = {"OperationalError", "InterfaceError"}
"""What DB-API calls errors that lie in how a database runs."""


class Contradiction(StoreError):
    """A write that does not fit what the database holds; nothing of its job was written, and the store goes on."""


class Write(NamedTuple):
    """One statement and its values; `rows` is how many it must change, where that decides whether it may count."""

    sql: str
    values: tuple[Any, ...] = ()
    rows: int | None = None


@dataclass(frozen=True)
class Schema:
    """The tables of a kind of store: `fact` names its version, which is `version`; how older ones become it."""

    fact: str
    version: int
    tables: tuple[str, ...]
    migrations: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


class _Job(NamedTuple):
    writes: Sequence[Write]
    done: Done
    loop: asyncio.AbstractEventLoop | None

    @property
    def weight(self) -> int:
        """Bytes of what it stores, as far as they are many."""
        return sum(len(value) for write in self.writes for value in write.values if isinstance(value, bytes))


class Store:
    """A database, and the thread that alone writes to it. Every schema has the table `facts`.

    >>> from tempfile import TemporaryDirectory
    >>> schema = Schema("version", 1, ("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",))
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder) / "server.sqlite", schema)
    ...     store.write_now(Write("INSERT INTO facts VALUES (?, ?)", ("colour", "green")))
    ...     found = store.read("SELECT value FROM facts WHERE name = ?", "colour")
    ...     store.close()
    >>> found
    [('green',)]
    """

    forgiving: ClassVar[bool] = True
    """Whether it goes on after a write that it refused: whoever serves it remembers nothing that was not written."""

    def __init__(self, place: str | Path | Database, schema: Schema) -> None:
        self._schema = schema
        self._database = database(place) if isinstance(place, str | Path) else place
        self._contradictions: tuple[type[Exception], ...] = (Contradiction, *self._database.contradictions)
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self.broken: StoreError | None = None
        """What ended the store; it writes nothing more."""
        self.failing: StoreError | None = None
        """Why the last write was refused, if it was; a later one may not be."""
        self.ended: Callable[[], None] = lambda: None
        """who is told, by the store's thread, that it has ended"""
        self._reading = threading.Lock()
        self.commit_seconds = DurationHistogram()
        """Seconds that each commit took."""
        self._deleted: float | None = None
        self._failed, self._closing = 0.0, threading.Event()
        try:
            self._writer = self._database.own()
            try:
                self._recognise()
                self._reader = self._database.connect()
            except BaseException:
                self._writer.close()
                raise
        except self._database.failures as error:
            where = f" {self._database.path}" if isinstance(self._database, Sqlite) else ""
            kind = StoreError if _may_pass(error) else Unusable
            raise kind(
                f"the database{where} cannot be opened ({type(error).__name__}): see that it is there, whole and yours"
            ) from error
        self._thread = threading.Thread(target=self._write, name="store", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> StoreError | None:
        """Why nothing can be written now, as far as is known."""
        return self.broken or self.failing

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows, as of the last commit."""
        try:
            with self._reading:
                rows: list[tuple[Any, ...]] = self._reader.execute(self._database.spelled(sql), values).fetchall()
        except self._database.failures as error:
            raise StoreError(f"the server's database cannot be read ({type(error).__name__})") from error
        return rows

    def submit(self, writes: Sequence[Write], done: Done, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Commit these together, some time soon; `done` is then told, by this loop or else by the store's own thread.

        Those of one loop are called in order of submission.
        """
        self._queue.put(_Job(writes, done, loop))

    async def write(self, *writes: Write) -> None:
        """Commit these together; on the disk when this returns."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self.submit(writes, partial(_settle, future), loop)
        await future

    def write_now(self, *writes: Write) -> None:
        """`write`, for code without an event loop."""
        finished, errors = threading.Event(), list[StoreError]()

        def done(error: StoreError | None) -> None:
            errors.extend([error] if error else [])
            finished.set()

        self.submit(writes, done)
        finished.wait()
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Write what was handed in, then let go of the database."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join()
        self.release()

    def release(self) -> None:
        """Close the database after the reads that are under way; later reads fail with `StoreError`."""
        with self._reading:
            for connection in (self._writer, self._reader):
                with suppress(*self._database.failures):
                    connection.close()

    def _recognise(self) -> None:
        """Make the tables where there are none, bring those of an older version up to date; refuse any other."""
        db, schema = self._writer, self._schema
        _begin(db)
        try:
            rows = db.execute(
                self._database.spelled("SELECT value FROM facts WHERE name = ?"), (schema.fact,)
            ).fetchall()
        except self._database.failures:
            db.execute("ROLLBACK")
            _begin(db)
            self._execute(*schema.tables)
            rows = [(str(schema.version),)]
            db.execute(self._database.spelled("INSERT INTO facts VALUES (?, ?)"), (schema.fact, str(schema.version)))
        try:
            for older in range(int(rows[0][0]), schema.version):
                self._execute(*schema.migrations[older])
                rows = [(str(older + 1),)]
                db.execute(
                    self._database.spelled("UPDATE facts SET value = ? WHERE name = ?"), (rows[0][0], schema.fact)
                )
        except (ValueError, IndexError, KeyError):  # no number, none at all, or one before the first
            db.execute("ROLLBACK")
        else:
            db.execute("COMMIT")
        if rows != [(str(schema.version),)]:
            raise Unusable(
                f"the server's database has version {rows[0][0] if rows else 'none'!r:.20}; this hazemap reads "
                f"versions 1 to {schema.version}: start the hazemap that wrote it, or use another database"
            )

    def _execute(self, *statements: str) -> None:
        for statement in statements:
            self._writer.execute(self._database.spelled(statement))

    def _next(self) -> "_Job | None":
        """The next job. A while after something was deleted the journal, which may still hold it, is emptied.

        Where the last one failed, and nobody writes, it is an attempt whether one does not.
        """
        while True:
            left = None if self._deleted is None else self._deleted + EMPTIED - monotonic()
            if left is not None and left <= 0:
                self._deleted = left = None
                with suppress(*self._database.failures):
                    self._database.emptied(self._writer)
            tries = self.failing is not None and self.broken is None
            with suppress(Empty):
                return self._queue.get(timeout=min(AGAIN, left or AGAIN) if tries else left)
            if tries:
                put = Write("INSERT INTO facts VALUES ('room', ?)", (ROOM,))
                return _Job((put, Write("DELETE FROM facts WHERE name = 'room'")), lambda _: None, None)

    def _write(self) -> None:
        while True:
            job = self._next()
            jobs, weight, ends = [], 0, job is None
            while job is not None:
                jobs.append(job)
                weight += job.weight
                if len(jobs) == MOST or weight >= HEAVIEST:
                    break
                try:
                    job = self._queue.get_nowait()
                except Empty:
                    break
                ends = job is None
            outcomes = self._committed(jobs)
            for loop, group in groupby(zip(jobs, outcomes, strict=True), key=lambda pair: pair[0].loop):
                tell = partial(_tell, [(job.done, error) for job, error in group])
                if loop is None:
                    tell()
                    continue
                with suppress(RuntimeError):  # the event loop has ended: nobody waits any more
                    loop.call_soon_threadsafe(tell)
            if ends:
                return

    def _committed(self, jobs: list[_Job]) -> list[StoreError | None]:
        """Commit all jobs together, or, where one of them contradicts what is there, each on its own."""
        if self.broken or not jobs:
            return [self.broken] * len(jobs)
        while True:
            try:
                self._transaction([write for job in jobs for write in job.writes])
            except self._contradictions as error:
                if len(jobs) > 1:
                    return [outcome for job in jobs for outcome in self._committed([job])]
                return [Contradiction(f"this contradicts what the server's database holds ({type(error).__name__})")]
            except self._database.failures as error:
                if not self._is_patient(error):
                    return [self.broken or self.failing] * len(jobs)
            else:
                self.failing = None
                return [None] * len(jobs)

    def _is_patient(self, error: Exception) -> bool:
        """Whether what failed so is to be tried again now; otherwise it is refused, or the store has ended."""
        words = f"the server's database cannot be written ({type(error).__name__})"
        passes = self._database.undone(error, self._writer)
        if passes:
            self._failed = self._failed if self.failing else monotonic()
            self.failing = StoreError(f"{words}: see that its disk has room and that nobody locks it")
            if monotonic() < self._failed + PATIENCE and not self._closing.wait(AGAIN):
                return True
        if not (passes and self.forgiving):
            self.broken = StoreError(
                f"{words}: nothing more is acknowledged; see to its disk, then start the server again"
            )
            self.ended()
        return False

    def _transaction(self, writes: list[Write]) -> None:
        db, begun = self._writer, monotonic()
        try:
            _begin(db)
            for sql, group in groupby(writes, key=lambda write: write.sql):
                same = list(group)
                cursor = db.cursor()
                cursor.executemany(self._database.spelled(sql), [write.values for write in same])
                if same[0].rows is not None and cursor.rowcount != sum(write.rows or 0 for write in same):
                    raise Contradiction("other rows were changed than had to be")
                if self._deleted is None and not sql.startswith("INSERT"):
                    self._deleted = begun
            db.execute("COMMIT")
            self.commit_seconds.observe(monotonic() - begun)
        except BaseException:
            with suppress(*self._database.failures):
                db.execute("ROLLBACK")
            raise


def _begin(db: Connection) -> None:
    db.execute("BEGIN")


def _may_pass(error: Exception) -> bool:
    """Whether what a driver raised may be otherwise later: DB-API has errors of operation, and others for good."""
    return isinstance(error, OSError) or bool(PASSING & {kind.__name__ for kind in type(error).__mro__})


def _settle(future: "asyncio.Future[None]", error: StoreError | None) -> None:
    if future.done():  # who waited has gone
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(None)


def _tell(outcomes: list[tuple[Done, StoreError | None]]) -> None:
    for done, error in outcomes:
        done(error)


def instant(time: datetime | None = None) -> str:
    """A moment, or now, as text: UTC, ISO 8601."""
    return f"{time or datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
