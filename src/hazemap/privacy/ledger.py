"""The ledger: what each data set's people have paid, in an append-only database.

A charge is written, and on the disk, before the first query can be seen; it is never refunded. So after a
crash at any instant a file without its charge cannot exist, and a charge without a file is a round that
failed and is paid. One SQLite transaction checks every cap and writes the charge, so of two processes that
race for the last of a cap exactly one gets it.

Sums are exact rationals (Bun and Steinke 2016, lemma 1.7: ρ's add; Dwork et al. 2006: ε's add). Under a cap
in pure ε nothing but pure ε may be charged; under any other cap a pure ε costs ρ = ε²/2.

Only prices of one unit of privacy are added. A data set protects one kind of people (`ProtectedUnit`), fixed by its
first charge; a charge about others is refused. It has a page for the full model, and one for values-only, where a
charge of the full model counts too, at the price of a replacement (`privacy.ledger_balance.for_a_replacement`).
"""

import json
import os
import sqlite3
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hazemap.errors import HazemapWarning, InputError, LedgerError, OtherUnit
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.ledger_balance import (
    check_room,
    check_unit,
    counted,
    page_status,
    pure,
    read_budget,
    read_protected,
    read_unit,
    unsettled,
)
from hazemap.privacy.ledger_file import RESTORE, SUFFIX, LedgerFile
from hazemap.privacy.ledger_records import (
    Charge,
    LedgerBalance,
    LedgerChange,
    LedgerCharge,
    Occasion,
    PaidPeriod,
    ProtectedUnit,
)
from hazemap.privacy.ledger_rows import CHANGES, CHARGES, change_of, charge_of
from hazemap.privacy.ledger_schedules import asked_again, check_occasion, paid_periods
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Model, Unit
from hazemap.privacy.statement import Statement, budget_to_json


@dataclass(frozen=True)
class LedgerAccount:
    """A data set's page in the ledger, opened for one run: it pays once."""

    ledger: "Ledger"
    dataset: str
    what: str
    unit: Unit
    run: str | None = None
    occasion: Occasion | None = None
    _charges: list[Charge] = field(default_factory=list, init=False, repr=False, compare=False)

    def charge(self, price: Budget) -> None:
        """Pay, for good; raises `CapExceeded`, `OtherUnit` or `LedgerError`, and then the run must not begin."""
        if self._charges:
            raise LedgerError(
                f"this account has paid for its run of {self.dataset!r} already (charge {self.receipt}): "
                "open another account for another run"
            )
        self._charges.append(self.ledger.charge(self.dataset, price, self.what, self.unit, self.run, self.occasion))

    def check(self, price: Budget) -> None:
        """Raise now what a charge would; nothing is paid or promised, others may spend what is left."""
        self.ledger.check(self.dataset, price, self.unit, self.occasion)

    @property
    def receipt(self) -> int | None:
        """The id of the charge, once it is paid."""
        return self._charges[0].id if self._charges else None


@dataclass(frozen=True)
class Ledger:
    """The ledger in the SQLite file `path`; made, with its folder, by the first charge or cap.

    Every call opens the file, does one transaction and closes it, so a ledger may be shared by threads and
    processes. A call waits up to `patience` seconds for others. Raises `LedgerError` wherever the file
    cannot be read or written, with what to do. An older ledger is brought up to date by the first that writes.

    >>> from tempfile import TemporaryDirectory
    >>> people = Unit.person("user", "whole numbers")
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.sqlite")
    ...     _ = ledger.cap("nyc", PureDP(1))
    ...     _ = ledger.charge("nyc", PureDP("0.3"), "a flat map", people)
    ...     str(ledger.datasets()[0].remaining)
    'ε = 0.7'
    """

    path: Path
    patience: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser().absolute())

    @property
    def file(self) -> LedgerFile:
        """The database, opened for one transaction at a time."""
        return LedgerFile(self.path, self.patience)

    @classmethod
    def default(cls) -> "Ledger":
        """The ledger in the folder HAZEMAP_HOME, or else in the platform's folder for a user's data."""
        home = os.environ.get("HAZEMAP_HOME")
        if not home:
            import platformdirs

            home = platformdirs.user_data_dir("hazemap", appauthor=False)
        return cls(Path(home) / "ledger.sqlite")

    def charge(
        self,
        dataset: str,
        price: Budget,
        what: str,
        unit: Unit,
        run: str | None = None,
        occasion: Occasion | None = None,
    ) -> Charge:
        """Pay `price` for `what` (one line) of the privacy of `unit`: on the disk when this returns, and for good.

        Raises, and writes nothing, `CapExceeded` where a cap does not allow it, of the page that pays or of another
        on which it counts, and `OtherUnit` where the data set protects others. A data set that the ledger does not
        know is added, without a cap. Warns (`HazemapWarning`) where ids are read otherwise than they were. `run` names
        the journal of the run that pays, `occasion` the period of a schedule: `PeriodPaid` for one that was paid for.
        """
        if not isinstance(unit, Unit):
            raise InputError(f"a charge needs a Unit that says whose privacy it is about, not {unit!r:.80}")
        name, time, line = _name(dataset), _now(), _one_line(what)
        row = (name, unit.model, _json(unit.to_json()), _json(budget_to_json(price)), str(price.rho), time, line, run)
        of: tuple[str, ...] | tuple[None, ...] = (None,) * 3
        if occasion:
            of = (occasion.schedule, occasion.period, _json(budget_to_json(occasion.allowance)))
        with self.file.writing() as db:
            _add(db, name, unit.model, time)
            caution = check_unit(db, name, unit)
            check_room(db, name, price, unit.model)
            if occasion:
                check_occasion(db, name, price, occasion, asked_again(run))
            if caution:  # before anything is written: where warnings are errors, nothing is paid
                warnings.warn(caution, HazemapWarning, stacklevel=2)
            _protect(db, name, ProtectedUnit.of(unit))
            db.execute(_CHARGE, row + of)
            [number] = db.execute("SELECT last_insert_rowid()").fetchone()
        return Charge(number, name, price, line, time, unit.model, unit)

    def check(self, dataset: str, price: Budget, unit: Unit | Model, occasion: Occasion | None = None) -> None:
        """Raise what a charge would; nothing is paid or promised.

        Where the table has not been opened, so that nobody knows its column of ids, the model alone tells whether
        there is room.
        """
        name = _name(dataset)
        with self.file.reading() as db:
            if isinstance(unit, Unit):
                check_unit(db, name, unit)
            check_room(db, name, price, unit.model if isinstance(unit, Unit) else unit)
            if occasion:
                check_occasion(db, name, price, occasion, again=False)

    def account(
        self, dataset: str, what: str, unit: Unit, run: str | None = None, occasion: Occasion | None = None
    ) -> LedgerAccount:
        """Who pays for one run, and whose privacy."""
        return LedgerAccount(self, _name(dataset), _one_line(what), unit, run, occasion)

    def released(self, charge_id: int, statement: Statement, file: str | None, again: Sequence[int] = ()) -> None:
        """Note what a charge was spent on, once `file` is in its place; `again` paid for questions asked once more."""
        text = json.dumps(statement.to_json())
        with self.file.writing() as db:
            found = db.execute("SELECT dataset, price, state, unit FROM charges WHERE id = ?", (charge_id,)).fetchone()
            if found is None:
                raise LedgerError(f"the ledger {self.path} holds no charge {charge_id}: charge before releasing")
            dataset, price, state, unit = found
            if state != "charged":
                raise LedgerError(f"charge {charge_id} is released already: another release needs another charge")
            if (data_set_name(statement.dataset), statement.budget) != (dataset, read_budget(price)):
                raise LedgerError(
                    f"the statement names {statement.budget} of {statement.dataset!r}, "
                    f"but charge {charge_id} paid {read_budget(price)} of {dataset!r}"
                )
            paid, said = read_unit(unit), statement.circumstances.unit
            if None not in (paid, said) and said != paid:
                raise LedgerError(f"the statement is about {said}, but charge {charge_id} paid for {paid}")
            db.execute(
                "UPDATE charges SET state = 'released', statement = ?, file = ? WHERE id = ?",
                (text, None if file is None else _encodable(file), charge_id),
            )
            for number in again:
                db.execute(
                    "UPDATE charges SET state = 'released', file = ? WHERE id = ? AND dataset = ?",
                    (None if file is None else _encodable(file), number, dataset),
                )

    def cap(
        self,
        dataset: str,
        budget: Budget,
        *,
        model: Model = FULL,
        protects: ProtectedUnit | None = None,
        why: str | None = None,
    ) -> LedgerBalance:
        """Allow a page of a data set to spend at most `budget` in all, what it has spent already included.

        With `protects` it is said, too, whom the data set protects (as `protect` does). The change, who made it (their
        login name) and `why` stay in `changes`.
        """
        name, now = _name(dataset), _Noted(_now(), _login(), None if why is None else _one_line(why))
        text = _json(budget_to_json(budget))
        with self.file.writing() as db:
            _add(db, name, model, now.time)
            if protects is not None:
                _settle(db, name, protects, now)
            status = self._page(db, name, model)
            if model == VALUES_ONLY and status.protects and status.protects.kind != "person":
                raise InputError(
                    f"the data set {name!r} protects {status.protects}, so nobody's values have a page: values-only "
                    "is about people told apart by a column of ids"
                )
            if isinstance(budget, PureDP) and not pure(counted(db, name, model)):
                raise InputError(
                    f"{status.page} has paid in ρ, which implies no finite pure ε, so no cap in pure "
                    "ε can hold: give it a cap in ρ or in (ε, δ)"
                )
            old = None if status.cap is None else _json(budget_to_json(status.cap))
            db.execute(
                "UPDATE pages SET cap = ?, cap_rho = ? WHERE dataset = ? AND model = ?",
                (text, str(budget.rho), name, model),
            )
            db.execute(_CHANGE, (name, model, old, text, *now))
            return self._page(db, name, model)

    def protect(self, dataset: str, protected: ProtectedUnit, *, why: str | None = None) -> None:
        """Have a steward say whom a data set protects, before its first charge or for charges of an older hazemap.

        Raises `OtherUnit` where its charges are known to be about others.
        """
        name, now = _name(dataset), _Noted(_now(), _login(), None if why is None else _one_line(why))
        with self.file.writing() as db:
            _add(db, name, None, now.time)
            _settle(db, name, protected, now)

    def status(self, dataset: str, model: Model) -> LedgerBalance | None:
        """One page of a data set; `None` where there is no such page."""
        with self.file.reading() as db:
            return page_status(db, data_set_name(dataset), model)

    def datasets(self) -> list[LedgerBalance]:
        """Every page of every data set, by name, that of the full model first."""
        with self.file.reading() as db:
            names = db.execute("SELECT dataset, model FROM pages ORDER BY dataset, model").fetchall()
            return [status for name, model in names if (status := page_status(db, name, model))]

    def history(self, dataset: str | None = None) -> list[LedgerCharge]:
        """Every charge, or those of one data set, the oldest first; `InputError` for a data set not known."""
        with self.file.reading() as db:
            name = self._known(db, dataset)
            return [charge_of(row) for row in db.execute(CHARGES) if name in {None, row[1]}]

    def changes(self, dataset: str | None = None) -> list[LedgerChange]:
        """Every change of a cap or of whom a data set protects, the oldest first."""
        with self.file.reading() as db:
            name = self._known(db, dataset)
            return [change_of(row) for row in db.execute(CHANGES) if name in {None, row[0]}]

    def periods(self, schedule: str) -> list[PaidPeriod]:
        """Every charge for a period of a schedule, the oldest first."""
        with self.file.reading() as db:
            return paid_periods(db, schedule)

    def _page(self, db: sqlite3.Connection, name: str, model: Model) -> LedgerBalance:
        status = page_status(db, name, model)
        if status is None:
            raise LedgerError(f"the ledger {self.path} has lost the {model} page of {name!r}: {RESTORE}")
        return status

    def _known(self, db: sqlite3.Connection, dataset: str | None) -> str | None:
        name = None if dataset is None else data_set_name(dataset)
        known = [found for (found,) in db.execute("SELECT name FROM datasets ORDER BY name")]
        if name is not None and name not in known:
            raise InputError(
                f"the ledger {self.path} knows no data set {name!r}; it knows {', '.join(map(repr, known)) or 'none'}"
            )
        return name


_CHARGE = (
    "INSERT INTO charges (dataset, model, unit, price, rho, time, what, run, schedule, period, allowance) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CHANGE = "INSERT INTO changes (dataset, model, old, new, time, who, why) VALUES (?, ?, ?, ?, ?, ?, ?)"


def _add(db: sqlite3.Connection, name: str, model: Model | None, time: str) -> None:
    db.execute("INSERT INTO datasets (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, time))
    if model is not None:
        page = (name, model, time)
        db.execute("INSERT INTO pages (dataset, model, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", page)


class _Noted(NamedTuple):
    """When, by whom and why something is changed."""

    time: str
    who: str
    why: str | None


def _settle(db: sqlite3.Connection, name: str, protected: ProtectedUnit, now: _Noted) -> None:
    """Take a steward's word for whom a data set protects, where nothing in the ledger contradicts it."""
    [text, earlier] = db.execute("SELECT protects, earlier FROM datasets WHERE name = ?", (name,)).fetchone()
    charged = db.execute("SELECT 1 FROM charges WHERE dataset = ?", (name,)).fetchone()
    old = read_protected(text)
    if old is not None and old.agrees_with(protected):
        return
    if old is not None and charged:
        raise OtherUnit(f"the data set {name!r} has paid for {old} already, and its charges stay theirs")
    if earlier is not None:
        known = set(earlier.split(",")) - {"unknown"}
        if len(known) > 1:
            raise OtherUnit(unsettled(name, earlier))
        if known and known != {protected.kind}:
            raise OtherUnit(f"the statements of what {name!r} has paid for say that they are about a {known.pop()}")
    if protected.kind != "person" and page_status(db, name, VALUES_ONLY):
        raise OtherUnit(f"the data set {name!r} has a values-only page, which is about people told apart by ids")
    new = _json(protected.to_json())
    db.execute("UPDATE datasets SET protects = ?, earlier = NULL WHERE name = ?", (new, name))
    db.execute(_CHANGE, (name, None, text, new, *now))


def _protect(db: sqlite3.Connection, name: str, protected: ProtectedUnit) -> None:
    """Fix whom a data set protects, and how their ids are read, where it is not known yet."""
    [text] = db.execute("SELECT protects FROM datasets WHERE name = ?", (name,)).fetchone()
    known = read_protected(text)
    if known is None or (known.kind == "person" and known.read_as is None):
        db.execute("UPDATE datasets SET protects = ? WHERE name = ?", (_json(protected.to_json()), name))


def data_set_name(dataset: str) -> str:
    """One name for one data set, however its letters are composed."""
    name = unicodedata.normalize("NFC", " ".join(dataset.split()))
    if not 0 < len(name) <= 200 or not name.isprintable():
        raise InputError("a data set's name is one line of 1 to 200 printable characters: name it with --dataset")
    return name


def _name(dataset: str) -> str:
    """The name of a data set that pays or is given a cap."""
    name = data_set_name(dataset)
    if name.endswith(SUFFIX.strip()):
        raise InputError(
            f"no data set has a name that ends in {SUFFIX.strip()!r}, which once named a page: {name!r} means another "
            "one, to be named with --dataset (dataset=… in Python); releases under values-only are paid by the "
            "values-only page of the data set itself, which has a cap of its own (`hazemap ledger cap NAME … "
            "--values-only`)"
        )
    return name


def _one_line(what: str) -> str:
    return _encodable(" ".join(what.split()))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()  # a file's name may hold bytes that are no text


def _json(plain: object) -> str:
    return json.dumps(plain, ensure_ascii=False)


def _login() -> str:
    """Who is at work, as the system knows them."""
    import getpass

    try:
        return _one_line(getpass.getuser())
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "not known"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
