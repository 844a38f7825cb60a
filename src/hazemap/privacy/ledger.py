"""The ledger: what each data set's people have paid, in an append-only database.

A charge is written, and on the disk, before the first query can be seen; it is never refunded. So after a
crash at any instant a file without its charge cannot exist, and a charge without a file is a round that
failed and is paid. One transaction checks every cap and writes the charge, so of two processes that race for the last
of a cap exactly one gets it. A ledger is a file (SQLite), or a database of many stewards (PostgreSQL).

Sums are exact rationals (Bun and Steinke 2016, lemma 1.7: ρ's add; Dwork et al. 2006: ε's add). Under a cap
in pure ε nothing but pure ε may be charged; under any other cap a pure ε costs ρ = ε²/2.

Only prices of one unit of privacy are added. A data set protects one kind of people (`ProtectedUnit`), fixed by its
first charge; a charge about others is refused. It has a page for the full model, and one for values-only, where a
charge of the full model counts too, at the price of a replacement (`privacy.ledger_balance.for_a_replacement`).
"""

import json
import os
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hazemap.errors import HazemapWarning, InputError, LedgerError
from hazemap.privacy.budget import Budget, PrivacyAmount, PureDP, make_up
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger_balance import (
    CHANGES,
    CHARGES,
    change_of,
    charge_of,
    check_room,
    page_status,
    paid_by,
    paid_with,
    pure_by,
    read_budget,
    read_unit,
)
from hazemap.privacy.ledger_file import SUFFIX, LedgerFile
from hazemap.privacy.ledger_postgresql import TeamLedger
from hazemap.privacy.ledger_records import (
    Charge,
    LedgerBalance,
    LedgerChange,
    LedgerCharge,
    Occasion,
    PaidPeriod,
    ProtectedUnit,
)
from hazemap.privacy.ledger_store import (
    RESTORE,
    Forgotten,
    LedgerReads,
    LedgerStore,
    LedgerWrites,
    NewCharge,
    Noted,
    home,
)
from hazemap.privacy.ledger_units import asked_again, check_occasion, check_unit, paid_periods, settle, to_fix
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Model, Unit
from hazemap.privacy.statement import Statement, budget_to_json
from hazemap.sources.postgresql import checked_url, is_postgresql_url

REST = ":rest"
"""What the name of a run ends in whose charge is the rest of another's."""


class Foreseen(NamedTuple):
    """What a page will have paid in all with a charge, and the cap that it gets with it, if it gets one."""

    total: PrivacyAmount
    cap: FirstCap | None


@dataclass(frozen=True)
class Ledger:
    """The ledger in a file, made with its folder by the first charge or cap; or in a database, by URL (`TeamLedger`).

    Every call opens it, does one transaction and closes it, so a ledger may be shared by threads and processes. A call
    waits up to `patience` seconds for others. Raises `LedgerError` wherever the ledger cannot be read or written, with
    what to do. A file of an older hazemap is brought up to date by the first that writes.

    >>> from tempfile import TemporaryDirectory
    >>> people = Unit.person("user", "whole numbers")
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.sqlite")
    ...     _ = ledger.cap("nyc", PureDP(1))
    ...     _ = ledger.charge("nyc", PureDP("0.3"), "a flat map", people)
    ...     str(ledger.datasets()[0].remaining)
    'ε = 0.7'
    """

    place: Path | str
    patience: float = 60.0

    def __post_init__(self) -> None:
        if is_postgresql_url(self.place):
            checked_url(str(self.place))
        elif is_postgresql_url(str(self.place)) or "://" in str(self.place):
            raise InputError("a ledger is a file, or a URL as text that begins with postgresql://")
        else:
            object.__setattr__(self, "place", Path(self.place).expanduser().absolute())

    @cached_property
    def store(self) -> LedgerStore:
        """Where it is kept."""
        if isinstance(self.place, Path):
            return LedgerFile(self.place, self.patience)
        return TeamLedger(self.place, self.patience)

    @property
    def path(self) -> Path:
        """The file; `InputError` for a ledger that is a database."""
        if not isinstance(self.place, Path):
            raise InputError(f"the ledger {self.place} is a database, and no file")
        return self.place

    @classmethod
    def default(cls) -> "Ledger":
        """The one that HAZEMAP_LEDGER names, or else the file in HAZEMAP_HOME, or in the folder for a user's data."""
        return cls(os.environ.get("HAZEMAP_LEDGER") or home() / "ledger.sqlite")

    def charge(
        self,
        dataset: str,
        price: Budget,
        what: str,
        unit: Unit,
        run: str | None = None,
        occasion: Occasion | None = None,
        cap: FirstCap | None = None,
        whole: Budget | None = None,
        rho: Fraction | None = None,
    ) -> Charge:
        """Pay `price` for `what` (one line) of the privacy of `unit`: on the disk when this returns, and for good.

        Raises, and writes nothing, `CapExceeded` where a cap does not allow it, of the page that pays or of another
        on which it counts, and `OtherUnit` where the data set protects others. A data set that the ledger does not
        know is added, with this `cap`, or without one. Warns (`HazemapWarning`) where ids are read otherwise than they
        were. `run` names the journal of the run that pays, `occasion` the period of a schedule: `PeriodPaid` for one
        that was paid for. A price that is a part of a `whole` is paid only where there is room for all of that. `rho`
        is what it is booked with, where that is more than the ρ of the price by itself.
        """
        if not isinstance(unit, Unit):
            raise InputError(f"a charge needs a Unit that says whose privacy it is about, not {unit!r:.80}")
        name, line = _name(dataset), _one_line(what)
        booked_with = price.rho if rho is None else max(rho, price.rho)
        asked = (price, booked_with) if whole is None else (whole, whole.rho)
        paid = (_json(unit.to_json()), _json(budget_to_json(price)), str(booked_with))
        warned: list[str] = []

        def pay(db: LedgerWrites) -> tuple[int, str, PrivacyAmount]:
            now = _now()
            db.admit(name, unit.model, now)
            caution = check_unit(db, name, unit)
            if _room(db, name, *asked, unit.model, cap) and cap:
                noted = Noted(now, _login(), "with the first charge")
                db.set_cap(name, unit.model, None, _json(budget_to_json(cap.budget)), str(cap.budget.rho), noted)
            if occasion:
                check_occasion(db, name, *asked, occasion, asked_again(run))
            if caution and not warned:  # before anything is paid: where warnings are errors, nothing is
                warned.append(caution)
                warnings.warn(caution, HazemapWarning, stacklevel=4)
            protects = to_fix(db, name, ProtectedUnit.of(unit))
            number, time = db.charge(NewCharge(name, unit.model, *paid, now, line, run, protects, occasion))
            return number, time, paid_by(db, name, unit.model, number)

        number, time, total = self.store.write(pay)
        return Charge(number, name, price, line, time, unit.model, unit, total)

    def paid_by(self, charge: Charge) -> PrivacyAmount:
        """What the people of a charge's page had paid in all with it."""
        with self.store.reading() as db:
            return paid_by(db, charge.dataset, charge.model, charge.id)

    def check(
        self,
        dataset: str,
        price: Budget,
        unit: Unit | Model,
        occasion: Occasion | None = None,
        cap: FirstCap | None = None,
    ) -> Foreseen:
        """Raise what a charge would; nothing is paid or promised. What would then be paid in all, and under which cap.

        Where the table has not been opened, so that nobody knows its column of ids, the model alone tells whether
        there is room.
        """
        name = _name(dataset)
        model = unit.model if isinstance(unit, Unit) else unit
        with self.store.reading() as db:
            db.check_page(name, model)
            if isinstance(unit, Unit):
                check_unit(db, name, unit)
            capped = _room(db, name, price, price.rho, model, cap)
            if occasion:
                check_occasion(db, name, price, price.rho, occasion, again=False)
            return Foreseen(paid_with(db, name, model, price), cap if capped else None)

    def account(
        self,
        dataset: str,
        what: str,
        unit: Unit,
        run: str | None = None,
        occasion: Occasion | None = None,
        cap: FirstCap | None = None,
        whole: Budget | None = None,
    ) -> "LedgerAccount":
        """Who pays for one run, and whose privacy; for a `whole` in two parts, if need be."""
        return LedgerAccount(self, _name(dataset), _one_line(what), unit, run, occasion, cap, whole)

    def released(self, charge_id: int, statement: Statement, file: str | None, again: Sequence[int] = ()) -> None:
        """Note what a charge was spent on, once `file` is in its place; `again` paid for questions asked once more."""
        text = json.dumps(statement.to_json())
        place = None if file is None else _encodable(file)

        def note(db: LedgerWrites) -> None:
            asked = "SELECT dataset, price, state, unit, run FROM charges WHERE id = ?"
            found = db.execute(asked, (charge_id,)).fetchone()
            if found is None:
                raise LedgerError(f"the ledger {self.place} holds no charge {charge_id}: charge before releasing")
            dataset, price, state, unit, run = found
            if state != "charged":
                raise LedgerError(f"charge {charge_id} is released already: another release needs another charge")
            rest = db.execute("SELECT price FROM charges WHERE run = ?", (f"{run}{REST}",)).fetchall() if run else []
            parts = [read_budget(text) for text in (price, *(text for (text,) in rest))]
            whole = make_up(parts, statement.budget) if rest else statement.budget == parts[0]
            if data_set_name(statement.dataset) != dataset or not whole:
                raise LedgerError(
                    f"the statement names {statement.budget} of {statement.dataset!r}, "
                    f"but charge {charge_id} paid {' and '.join(map(str, parts))} of {dataset!r}"
                )
            paid, said = read_unit(unit), statement.circumstances.unit
            if None not in (paid, said) and said != paid:
                raise LedgerError(f"the statement is about {said}, but charge {charge_id} paid for {paid}")
            db.release(charge_id, text, place)
            for number in again:
                db.release_again(number, dataset, place)

        self.store.write(note)

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
        name, now = _name(dataset), _noted(why)
        text = _json(budget_to_json(budget))

        def change(db: LedgerWrites) -> LedgerBalance:
            db.open_page(name, model, now.time)
            if protects is not None:
                settle(db, name, protects, now)
            status = self._page(db, name, model)
            if model == VALUES_ONLY and status.protects and status.protects.kind != "person":
                raise InputError(
                    f"the data set {name!r} protects {status.protects}, so nobody's values have a page: values-only "
                    "is about people told apart by a column of ids"
                )
            if isinstance(budget, PureDP) and not pure_by(db, name, model):
                raise InputError(
                    f"{status.page} has paid in ρ, which implies no finite pure ε, so no cap in pure "
                    "ε can hold: give it a cap in ρ or in (ε, δ)"
                )
            old = None if status.cap is None else _json(budget_to_json(status.cap))
            db.set_cap(name, model, old, text, str(budget.rho), now)
            return self._page(db, name, model)

        return self.store.write(change)

    def protect(self, dataset: str, protected: ProtectedUnit, *, why: str | None = None) -> None:
        """Have a steward say whom a data set protects, before its first charge or for charges of an older hazemap.

        Raises `OtherUnit` where its charges are known to be about others.
        """
        name, now = _name(dataset), _noted(why)

        def change(db: LedgerWrites) -> None:
            db.open_page(name, None, now.time)
            settle(db, name, protected, now)

        self.store.write(change)

    def forget(self, before: datetime, dataset: str | None = None) -> Forgotten:
        """Forget what releases said (their statements) that were paid before a time, and fingerprints unused since.

        Charges, their prices and files' names, caps and changes stay for ever: they are what is added up. `InputError`
        for a time that is yet to come or has no zone, and for a data set not known.
        """
        if before.tzinfo is None or before > datetime.now(UTC):
            raise InputError(f"what is forgotten was paid before a time that is over, with its zone; found {before}")

        def clean(db: LedgerWrites) -> Forgotten:
            return db.forget(_text(before), self._known(db, dataset))

        return self.store.write(clean)

    def status(self, dataset: str, model: Model) -> LedgerBalance | None:
        """One page of a data set; `None` where there is no such page."""
        with self.store.reading() as db:
            return page_status(db, data_set_name(dataset), model)

    def datasets(self) -> list[LedgerBalance]:
        """Every page of every data set, by name, that of the full model first."""
        with self.store.reading() as db:
            names = db.execute("SELECT dataset, model FROM pages ORDER BY dataset, model").fetchall()
            return [status for name, model in names if (status := page_status(db, name, model))]

    def history(self, dataset: str | None = None) -> list[LedgerCharge]:
        """Every charge, or those of one data set, the oldest first; `InputError` for a data set not known."""
        with self.store.reading() as db:
            name = self._known(db, dataset)
            return [charge_of(row) for row in db.execute(CHARGES.format(payer=db.payer)) if name in {None, row[1]}]

    def changes(self, dataset: str | None = None) -> list[LedgerChange]:
        """Every change of a cap or of whom a data set protects, the oldest first."""
        with self.store.reading() as db:
            name = self._known(db, dataset)
            return [change_of(row) for row in db.execute(CHANGES) if name in {None, row[0]}]

    def periods(self, schedule: str) -> list[PaidPeriod]:
        """Every charge for a period of a schedule, the oldest first."""
        with self.store.reading() as db:
            return paid_periods(db, schedule)

    def _page(self, db: LedgerReads, name: str, model: Model) -> LedgerBalance:
        status = page_status(db, name, model)
        if status is None:
            raise LedgerError(f"the ledger {self.place} has lost the {model} page of {name!r}: {RESTORE}")
        return status

    def _known(self, db: LedgerReads, dataset: str | None) -> str | None:
        name = None if dataset is None else data_set_name(dataset)
        known = [found for (found,) in db.execute("SELECT name FROM datasets ORDER BY name")]
        if name is not None and name not in known:
            raise InputError(
                f"the ledger {self.place} knows no data set {name!r}; it knows {', '.join(map(repr, known)) or 'none'}"
            )
        return name


def _room(db: LedgerReads, name: str, price: Budget, rho: Fraction, model: Model, cap: FirstCap | None) -> bool:
    """Raise `CapExceeded` where there is no room for a price; whether the page gets this cap with it."""
    check_room(db, name, price, rho, model, page := None if cap is None else cap.on(db, name, model))
    return page is not None


@dataclass(frozen=True)
class LedgerAccount:
    """A data set's page in the ledger, opened for one run: it pays once. A page that has no cap gets `cap` with it.

    With a `whole` it pays that at once, or in two parts that are exactly the whole: the first only where there is room
    for both, the second, of the run "RUN:rest", once, however often a run is taken up again. `paid` is what it has paid
    in an earlier process.
    """

    ledger: Ledger
    dataset: str
    what: str
    unit: Unit
    run: str | None = None
    occasion: Occasion | None = None
    cap: FirstCap | None = None
    whole: Budget | None = None
    paid: Charge | None = None
    _charges: list[Charge] = field(default_factory=list, init=False, repr=False, compare=False)

    def charge(self, price: Budget) -> None:
        """Pay, for good; raises `CapExceeded`, `OtherUnit` or `LedgerError`, and then the run must not begin."""
        parts = [*(each.price for each in self._charges), price]
        if self.whole is not None and len(parts) == 2 and make_up(parts, self.whole):
            self._charges.append(self._rest(price))
            return
        if self._charges:
            raise LedgerError(
                f"this account has paid for its run of {self.dataset!r} already (charge {self.receipt}): "
                "open another account for another run"
            )
        self._charges.append(self._first(price))

    def _first(self, price: Budget) -> Charge:
        if self.paid is not None:
            return self.paid
        what = self.what if self.whole in (None, price) else f"{self.what}: the look"
        asked = (self.dataset, price, what, self.unit, self.run, self.occasion, self.cap, self.whole)
        return self.ledger.charge(*asked)

    def _rest(self, price: Budget) -> Charge:
        run = f"{self.run}{REST}"
        for record in self.ledger.history(self.dataset):
            if record.run == run:  # paid just before a crash
                return replace(record.charge, total=self.ledger.paid_by(record.charge))
        what = f"{self.what}: the rest, after the look (charge {self.receipt})"
        # A pure ε of two parts is ε-private as a whole, but not ρ-private with the sum of ρ(ε/10) and ρ(9ε/10): the
        # rest may spend what the look left. So both together are booked with the ρ of the whole.
        rho = None if self.whole is None else self.whole.rho - self._charges[0].price.rho
        return self.ledger.charge(self.dataset, price, what, self.unit, run, self.occasion, rho=rho)

    def check(self, price: Budget) -> Foreseen:
        """Raise now what a charge would; nothing is paid or promised, others may spend what is left."""
        return self.ledger.check(self.dataset, price, self.unit, self.occasion, self.cap)

    @property
    def receipt(self) -> int | None:
        """The id of the charge, once it is paid."""
        return self._charges[0].id if self._charges else None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it has paid, the first before the rest."""
        return tuple(self._charges)

    @property
    def later(self) -> tuple[int, ...]:
        """The ids of the charges after the first."""
        return tuple(each.id for each in self._charges[1:])

    @property
    def latest(self) -> Charge:
        """The last charge, which says what the data set's people have paid in all."""
        if not self._charges:
            raise LedgerError("a run has not paid, so nothing of it may be asked or published")
        return self._charges[-1]


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


def _noted(why: str | None) -> Noted:
    return Noted(_now(), _login(), None if why is None else _one_line(why))


def _login() -> str:
    """Who is at work, as the system knows them."""
    import getpass

    try:
        return _one_line(getpass.getuser())
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "not known"


def _now() -> str:
    return _text(datetime.now(UTC))


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
