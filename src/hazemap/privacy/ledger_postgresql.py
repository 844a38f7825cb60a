"""The ledger of many stewards: a PostgreSQL database, whose own functions write it (`team_ledger.sql`).

Every transaction that writes is serialisable. One that another's has undone is done again, until `patience` is over.
It leaves a token, so if the connection is lost while it ends, the next attempt sees whether it counted: nothing is
paid twice, and nothing that was paid is lost. Who may do what is decided by the database, by the three groups of
logins, which are made with the tables and the functions.
"""

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hazemap.errors import CapExceeded, InputError, LedgerError
from hazemap.privacy.ledger_store import RESTORE, Forgotten, NewCharge, Noted, home
from hazemap.privacy.privacy_unit import VALUES_ONLY, Model
from hazemap.sources import postgresql
from hazemap.sources.postgresql import checked_url

T = TypeVar("T")

VERSION = 3
SCHEMA = "hazemap_ledger"
GROUPS = ("steward", "owner", "auditor")

_FULL, _REFUSED = "HZ001", "HZ002"
_AGAIN = {"40001", "40P01", "23505"}
"""Others came first: serialisation, a deadlock, a number or a period that another has just taken."""
_WAITED = {"55P03", "57014"}
_NO_LEDGER = "is not there, or was made by an older hazemap ({said}): have who administers the database make it, with \
`hazemap ledger init`"
_ADVICE = {
    _REFUSED: "refuses: {said}; nothing was written",
    "42501": "does not let this login do that ({said}): stewards charge and read, owners set caps, say whom data sets "
    "protect and forget, auditors read; who administers the database says who is what (see `hazemap ledger init`). "
    "Nothing was written",
    **dict.fromkeys(("42P01", "3F000", "42883"), _NO_LEDGER),
}
"""What to do, by the SQLSTATE of what PostgreSQL says."""
_PAUSES = (0.005, 0.3)
"""Seconds, at most, before a transaction is done again, the first time and after many."""


@dataclass(frozen=True)
class TeamTransaction:
    """A transaction of the database; what a login may not do, the database refuses."""

    db: Any
    payer: ClassVar[str] = "who"

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
        """A question."""
        return self.db.execute(postgresql.to_postgresql_sql(sql), values)

    def check_page(self, dataset: str, model: Model) -> None:
        """A ledger of many stewards takes no charge without a cap: a new name would escape every one."""
        found = self.execute("SELECT cap FROM pages WHERE dataset = ? AND model = ?", (dataset, model)).fetchone()
        if found is None or found[0] is None:
            page = "values-only page" if model == VALUES_ONLY else "page"
            raise CapExceeded(
                f"the data set {dataset!r} has no {page} with a cap in this ledger, and a ledger of many stewards "
                "takes no charge without one: have its owner set it, with `hazemap ledger cap`, or name another with "
                "--dataset"
            )

    def open_page(self, dataset: str, model: Model | None, _time: str) -> None:
        """An owner's right."""
        self.execute("SELECT open_page(?, ?)", (dataset, model))

    def admit(self, dataset: str, model: Model, _time: str) -> None:
        """The page has to be there, with a cap."""
        self.check_page(dataset, model)

    def charge(self, new: NewCharge) -> tuple[int, str]:
        """A steward's right. The database notes who and when, and fixes whom the data set protects."""
        number, paid = self.execute(
            "SELECT * FROM write_charge(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (new.dataset, new.model, new.unit, new.price, new.rho, new.what, new.run, *new.of_schedule),
        ).fetchone()
        return number, paid

    def release(self, charge: int, statement: str, file: str | None) -> None:
        """The right of whoever paid."""
        self.execute("SELECT note_release(?, ?, ?)", (charge, statement, file))

    def release_again(self, charge: int, dataset: str, file: str | None) -> None:
        """The right of whoever paid."""
        self.execute("SELECT note_release_again(?, ?, ?)", (charge, dataset, file))

    def set_cap(self, dataset: str, model: Model, _old: str | None, cap: str, rho: str, now: Noted) -> None:
        """An owner's right; the database notes the change."""
        self.execute("SELECT set_cap(?, ?, ?, ?, ?)", (dataset, model, cap, rho, now.why))

    def set_protects(self, dataset: str, _old: str | None, new: str, now: Noted) -> None:
        """An owner's right; the database notes the change."""
        self.execute("SELECT set_protects(?, ?, ?)", (dataset, new, now.why))

    def remember(self, dataset: str, fingerprint: bytes, most: int) -> None:
        """A steward's right."""
        self.execute("SELECT remember(?, ?, ?)", (dataset, fingerprint, most))

    def forget(self, before: str, dataset: str | None) -> Forgotten:
        """An owner's right; the database notes what was forgotten."""
        return Forgotten(*self.execute("SELECT * FROM forget(?, ?)", (before, dataset)).fetchone())


@dataclass(frozen=True)
class TeamLedger:
    """The database at a URL. A transaction waits up to `patience` seconds for others, and for a server that was lost.

    Raises `LedgerError` with what to do, also where a login may not do what it asks.
    """

    url: str
    patience: float

    @property
    def place(self) -> str:
        """Its URL, which holds no password."""
        return self.url

    @cached_property
    def identity(self) -> str:
        """What tells this ledger from all others, by whichever URL it is reached."""
        with self.reading() as db:
            [found] = db.execute("SELECT identity FROM ledger").fetchone()
        if not re.fullmatch("[0-9a-f]{32}", found):
            raise LedgerError(f"the ledger {self.url} has lost its identity: {RESTORE}")
        return str(found)

    @property
    def runs(self) -> Path:
        """On this machine, among the files of this user: whoever ran it recovers it."""
        return home() / f"team-{self.identity}.runs"

    @property
    def key_file(self) -> Path:
        """On this machine; stewards who share the file notice each other's tables."""
        return home() / f"team-{self.identity}.key"

    @contextmanager
    def reading(self) -> Iterator[TeamTransaction]:
        """See the ledger at one instant."""
        with self._translated(), closing(self._connection()) as db:
            self._begin(db, "REPEATABLE READ READ ONLY")
            yield TeamTransaction(db)

    def exist(self) -> None:
        """Whoever administers the database makes it (`hazemap ledger init`)."""

    def begin_anew(self) -> None:
        """Not here: who administers the database answers for it."""
        raise InputError(
            f"the ledger {self.url} is a database: who administers it makes it, with `hazemap ledger init`"
        )

    def write(self, body: Callable[[TeamTransaction], T]) -> T:
        """Do `body` in one serialisable transaction, again if need be; see the head of this file."""
        psycopg = postgresql.driver()
        token, until = secrets.token_hex(16), time.monotonic() + self.patience
        ends: list[T] = []
        reached, in_doubt, pause = False, False, _PAUSES[0]
        while True:
            try:
                with closing(self._connection()) as db:
                    reached = True
                    return self._attempt(db, token, body, ends)
            except psycopg.Error as error:
                lost = _lost(error)
                in_doubt |= lost and bool(ends)
                if not (lost and (reached or error.sqlstate)) and error.sqlstate not in _AGAIN:
                    raise self._too_long(True) if in_doubt else self._told(error) from error
                if time.monotonic() >= until:
                    raise self._too_long(in_doubt) from error
            time.sleep(pause * secrets.randbelow(1000) / 1000)
            pause = min(2 * pause, _PAUSES[1])

    def _attempt(self, db: Any, token: str, body: Callable[[TeamTransaction], T], ends: list[T]) -> T:
        """Once; `ends` are what earlier attempts would have given, of which the last may have counted."""
        if ends and db.execute(f"SELECT {SCHEMA}.was_written(%s)", (token,)).fetchone() == (True,):
            return ends[-1]
        self._begin(db, "SERIALIZABLE")
        # waits for an earlier attempt that the server has not given up yet, and fails if that one counts
        db.execute("SELECT begin_write(%s)", (token,))
        result = body(TeamTransaction(db))
        ends.append(result)
        db.execute("COMMIT")
        return result

    def _connection(self) -> Any:
        psycopg = postgresql.driver()
        try:
            return postgresql.connect(
                self.url,
                connect_timeout=10,
                application_name="hazemap",
                keepalives_idle=20,
                keepalives_interval=10,
                keepalives_count=3,
                tcp_user_timeout=60_000,
            )
        except psycopg.ProgrammingError:
            raise LedgerError("the URL of the ledger cannot be read: see that it is spelled right") from None

    def _begin(self, db: Any, isolation: str) -> None:
        """Begin a transaction with settings of its own: a proxy may give each one another connection."""
        wait = f"'{int(1000 * max(self.patience, 1))}ms'"
        limits = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        settings = {"search_path": f"{SCHEMA}, pg_temp", "synchronous_commit": "on", **dict.fromkeys(limits, wait)}
        db.execute(
            "; ".join(
                [
                    f"BEGIN ISOLATION LEVEL {isolation}",
                    *(f"SET LOCAL {name} = {value}" for name, value in settings.items()),
                ]
            )
        )
        self._recognise(db)

    def _recognise(self, db: Any) -> None:
        [version] = db.execute("SELECT version FROM hazemap_ledger.ledger").fetchone() or [0]
        if version > VERSION:
            raise LedgerError(f"the ledger {self.url} was written by a newer hazemap: upgrade hazemap to use it")
        if 0 < version < VERSION:
            raise LedgerError(
                f"the ledger {self.url} was made by an older hazemap: have who administers the database bring it up to "
                "date, with `hazemap ledger init`; nothing in it changes"
            )
        if version < 1:
            raise LedgerError(f"the ledger {self.url} is damaged: {RESTORE}")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        psycopg = postgresql.driver()
        try:
            yield
        except psycopg.Error as error:
            raise self._told(error) from error

    def _told(self, error: Any) -> LedgerError | CapExceeded:
        """What PostgreSQL has against it, and what to do; none of its words hold a password, and none are of a row."""
        said = error.diag.message_primary or str(error).strip().partition("\n")[0]
        if error.sqlstate == _FULL:
            return CapExceeded(said)
        if error.sqlstate in _WAITED:
            return self._too_long(False)
        if error.sqlstate is None:
            advice = (
                f"cannot be reached ({said}): see that its server runs, and that your user and password (~/.pgpass, a "
                "service file or PGPASSWORD) are right; nothing was written"
            )
        else:
            advice = _ADVICE.get(error.sqlstate, "cannot be used ({said}): nothing was written").format(said=said)
        return LedgerError(f"the ledger {self.url} {advice}")

    def _too_long(self, in_doubt: bool) -> LedgerError:
        if in_doubt:
            return LedgerError(
                f"the connection to the ledger {self.url} was lost while it was writing, and is not back after "
                f"{self.patience:g} s: see with `hazemap ledger history` whether the charge was written"
            )
        return LedgerError(
            f"the ledger {self.url} has been in use by others for {self.patience:g} s, or away: nothing was written; "
            "try again when they are done"
        )


def _lost(error: Any) -> bool:
    """Whether there is no connection any more; class 57P and 08 are the server's words for it."""
    psycopg = postgresql.driver()
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return str(error.sqlstate).startswith(("08", "57P"))


_OLDEST = 140_000
_LONGEST = 40
"""Characters of a database's name: with the group's they make a name of PostgreSQL's, of at most 63 bytes."""


@dataclass(frozen=True)
class TeamGroups:
    """The names of the groups, whose members may do what a steward, an owner and an auditor may."""

    steward: str
    owner: str
    auditor: str

    def grants(self, login: str = "LOGIN") -> list[str]:
        """The statements that make a login a member, one a group.

        >>> print(TeamGroups("s", "o", "a").grants("ann")[1])
        GRANT "o" TO "ann";
        """
        return [f'GRANT "{group}" TO "{login}";' for group in (self.steward, self.owner, self.auditor)]


def set_up(url: str) -> TeamGroups:
    """Make the ledger, or bring its functions and rights up to date: nothing that it holds changes.

    The login has to be allowed to make roles and schemas. `LedgerError` where it is not, and for the ledger of a newer
    hazemap.
    """
    psycopg = postgresql.driver()
    checked_url(url)
    try:
        with closing(postgresql.connect(url, connect_timeout=10, application_name="hazemap")) as db:
            db.execute("SET client_min_messages = warning")
            db.execute("BEGIN")
            groups = _made(db)
            db.execute("COMMIT")
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            raise LedgerError("the URL of the ledger cannot be read: see that it is spelled right") from None
        raise LedgerError(
            f"the ledger cannot be made in {url} ({error.diag.message_primary}): the login has to be allowed to make "
            "roles (CREATEROLE) and schemas (CREATE on the database)"
        ) from error
    except psycopg.Error as error:
        said = error.diag.message_primary or str(error).strip().partition("\n")[0]
        raise LedgerError(f"the ledger cannot be made in {url} ({said}): nothing was changed") from error
    return groups


def _made(db: object) -> TeamGroups:
    execute = db.execute  # type: ignore[attr-defined]
    [version, name] = execute("SELECT current_setting('server_version_num')::INTEGER, current_database()").fetchone()
    if version < _OLDEST:
        raise InputError("a ledger of many stewards needs PostgreSQL 14 or newer")
    if not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{_LONGEST}}}", name):
        raise InputError(
            f"the groups of a ledger are called after its database, so its name has up to {_LONGEST} letters, digits, "
            "'_' and '-': make one for the ledger alone, such as hazemap"
        )
    if execute("SHOW server_encoding").fetchone() != ("UTF8",):
        raise InputError("a ledger of many stewards is in UTF-8: make its database with ENCODING 'UTF8'")
    execute("SELECT pg_advisory_xact_lock(%s)", (0x48415A4C,))  # of two that make it at once, one after the other
    tables, steward, owner, auditor = (f"hazemap_{name}_{group}" for group in ("tables", *GROUPS))
    for role in (tables, steward, owner, auditor):
        if not execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
            execute(f'CREATE ROLE "{role}" NOLOGIN')
    execute(f'GRANT "{tables}" TO CURRENT_USER')
    execute(f'CREATE SCHEMA IF NOT EXISTS {SCHEMA} AUTHORIZATION "{tables}"')
    execute(f'SET LOCAL ROLE "{tables}"')
    execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
    if execute("SELECT to_regclass(%s)", (f"{SCHEMA}.ledger",)).fetchone() != (None,):
        [there] = execute("SELECT version FROM ledger").fetchone()
        if there > VERSION:
            raise LedgerError("the ledger was written by a newer hazemap: upgrade hazemap to use it")
    script = files("hazemap.privacy").joinpath("team_ledger.sql").read_text(encoding="utf-8")
    for group, role in (("tables", tables), ("steward", steward), ("owner", owner), ("auditor", auditor)):
        script = script.replace(f"{{{group}}}", f'"{role}"')
    execute(script)
    execute(
        "INSERT INTO ledger (version, identity, created) VALUES (%s, %s, utc()) "
        "ON CONFLICT (one) DO UPDATE SET version = excluded.version",
        (VERSION, secrets.token_hex(16)),
    )
    execute("RESET ROLE")
    execute(f'REVOKE "{tables}" FROM CURRENT_USER')
    return TeamGroups(steward, owner, auditor)
