"""The ledger: what each data set's people have paid, in a database that forgets nothing.

A charge is written, and on the disk, before the first query can be seen; it is never refunded. So after a
crash at any instant a file without its charge cannot exist, and a charge without a file is a round that
failed and is paid. One SQLite transaction checks the cap and writes the charge, so of two processes that
race for the last of a cap exactly one gets it.

Sums are exact rationals (Bun and Steinke 2016, lemma 1.7: ρ's add; Dwork et al. 2006: ε's add). Under a cap
in pure ε nothing but pure ε may be charged; under any other cap a pure ε costs ρ = ε²/2.
"""

import json
import os
import shlex
import sqlite3
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Literal

from hazemap.errors import CapExceeded, CodecError, InputError, LedgerError
from hazemap.privacy.budget import ZCDP, Budget, PureDP
from hazemap.privacy.ledger_file import RESTORE, LedgerFile
from hazemap.privacy.statement import Statement, budget_from_json, budget_to_json


@dataclass(frozen=True)
class Amount:
    """So much privacy, or none: ε's of pure differential privacy, or ρ's of zero-concentrated.

    >>> str(Amount("ε", Fraction(0)))
    'ε = 0'
    """

    measure: Literal["ε", "ρ"]
    value: Fraction

    def __str__(self) -> str:
        return f"{self.measure} = {_shown(self.value)}"


@dataclass(frozen=True)
class Charge:
    """A price that has been paid: what for, and when (UTC, ISO 8601).

    >>> Charge(1, "nyc", PureDP(1), "flat map", "2026-01-02T03:04:05Z").id
    1
    """

    id: int
    dataset: str
    price: Budget
    what: str
    time: str


@dataclass(frozen=True)
class ChargeRecord:
    """A charge and what became of it.

    A record that is not `released` was paid for a run that failed, or is still going on.

    >>> ChargeRecord(Charge(1, "nyc", PureDP(1), "flat map", "2026-01-02T03:04:05Z"), False, None, None).file
    """

    charge: Charge
    released: bool
    statement: Statement | None
    file: str | None


@dataclass(frozen=True)
class DatasetStatus:
    """What a data set may spend, has spent and has left.

    Without a cap `spent` is in ε if all charges are pure, else in ρ, and `remaining` is `None`. A cap that
    was lowered below what is spent leaves 0.

    >>> zero = Amount("ε", Fraction(0))
    >>> DatasetStatus("nyc", None, zero, None, 0, "2026-01-02T03:04:05Z").remaining
    """

    name: str
    cap: Budget | None
    spent: Amount
    remaining: Amount | None
    charges: int
    created: str


@dataclass(frozen=True)
class Account:
    """A data set's page in the ledger, opened for one run: it pays once."""

    ledger: "Ledger"
    dataset: str
    what: str
    _charges: list[Charge] = field(default_factory=list, init=False, repr=False, compare=False)

    def charge(self, price: Budget) -> None:
        """Pay, for good; raises `CapExceeded` or `LedgerError`, and then the run must not begin."""
        if self._charges:
            raise LedgerError(
                f"this account has paid for its run of {self.dataset!r} already (charge {self.receipt}): "
                "open another account for another run"
            )
        self._charges.append(self.ledger.charge(self.dataset, price, self.what))

    def check(self, price: Budget) -> None:
        """Raise `CapExceeded` now if a charge would; nothing is paid or promised, others may spend what is left."""
        self.ledger.check(self.dataset, price)

    @property
    def receipt(self) -> int | None:
        """The id of the charge, once it is paid."""
        return self._charges[0].id if self._charges else None


@dataclass(frozen=True)
class Ledger:
    """The ledger in the SQLite file `path`; made, with its folder, by the first charge or cap.

    Every call opens the file, does one transaction and closes it, so a ledger may be shared by threads and
    processes. A call waits up to `patience` seconds for others. Raises `LedgerError` wherever the file
    cannot be read or written, with what to do.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.sqlite")
    ...     _ = ledger.cap("nyc", PureDP(1))
    ...     _ = ledger.charge("nyc", PureDP("0.3"), "a flat map")
    ...     str(ledger.datasets()[0].remaining)
    'ε = 0.7'
    """

    path: Path
    patience: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser().absolute())

    @property
    def _file(self) -> LedgerFile:
        return LedgerFile(self.path, self.patience)

    @classmethod
    def default(cls) -> "Ledger":
        """The ledger in the folder HAZEMAP_HOME, or else in the platform's folder for a user's data."""
        home = os.environ.get("HAZEMAP_HOME")
        if not home:
            import platformdirs

            home = platformdirs.user_data_dir("hazemap", appauthor=False)
        return cls(Path(home) / "ledger.sqlite")

    def charge(self, dataset: str, price: Budget, what: str) -> Charge:
        """Pay `price` for `what` (one line): on the disk when this returns, and for good.

        Raises `CapExceeded`, and writes nothing, where the cap does not allow it. A data set that the ledger
        does not know is added, without a cap.
        """
        name, time, line = _name(dataset), _now(), _one_line(what)
        row = (name, json.dumps(budget_to_json(price)), str(price.rho), time, line)
        with self._file.writing() as db:
            _add(db, name, time)
            _check(_status(db, name), price)
            db.execute("INSERT INTO charges (dataset, price, rho, time, what) VALUES (?, ?, ?, ?, ?)", row)
            [number] = db.execute("SELECT last_insert_rowid()").fetchone()
        return Charge(number, name, price, line, time)

    def check(self, dataset: str, price: Budget) -> None:
        """Raise `CapExceeded` where a charge would; nothing is paid or promised."""
        with self._file.reading() as db:
            if db.execute("SELECT 1 FROM datasets WHERE name = ?", (_name(dataset),)).fetchone():
                _check(_status(db, _name(dataset)), price)

    def account(self, dataset: str, what: str) -> Account:
        """Who pays for one run."""
        return Account(self, _name(dataset), _one_line(what))

    def released(self, charge_id: int, statement: Statement, file: str | None) -> None:
        """Note what a charge was spent on, once `file` is in its place."""
        text = json.dumps(statement.to_json())
        with self._file.writing() as db:
            found = db.execute("SELECT dataset, price, state FROM charges WHERE id = ?", (charge_id,)).fetchone()
            if found is None:
                raise LedgerError(f"the ledger {self.path} holds no charge {charge_id}: charge before releasing")
            dataset, price, state = found
            if state != "charged":
                raise LedgerError(f"charge {charge_id} is released already: another release needs another charge")
            if (_name(statement.dataset), statement.budget) != (dataset, _budget(price)):
                raise LedgerError(
                    f"the statement names {statement.budget} of {statement.dataset!r}, "
                    f"but charge {charge_id} paid {_budget(price)} of {dataset!r}"
                )
            db.execute(
                "UPDATE charges SET state = 'released', statement = ?, file = ? WHERE id = ?",
                (text, None if file is None else _encodable(file), charge_id),
            )

    def cap(self, dataset: str, budget: Budget) -> DatasetStatus:
        """Allow a data set to spend at most `budget` in all, what it has spent already included."""
        name = _name(dataset)
        row = (json.dumps(budget_to_json(budget)), str(budget.rho), name)
        with self._file.writing() as db:
            _add(db, name, _now())
            if isinstance(budget, PureDP) and not _pure(_paid(db, name)):
                raise InputError(
                    f"the data set {name!r} has paid in ρ, which implies no finite pure ε, so no cap in pure "
                    "ε can hold: give it a cap in ρ or in (ε, δ)"
                )
            db.execute("UPDATE datasets SET cap = ?, cap_rho = ? WHERE name = ?", row)
            return _status(db, name)

    def datasets(self) -> list[DatasetStatus]:
        """Every data set, by name."""
        with self._file.reading() as db:
            names = db.execute("SELECT name FROM datasets ORDER BY name").fetchall()
            return [_status(db, name) for (name,) in names]

    def history(self, dataset: str | None = None) -> list[ChargeRecord]:
        """Every charge, or those of one data set, the oldest first; `InputError` for a data set not known."""
        name = None if dataset is None else _name(dataset)
        with self._file.reading() as db:
            known = [found for (found,) in db.execute("SELECT name FROM datasets ORDER BY name")]
            if name is not None and name not in known:
                raise InputError(
                    f"the ledger {self.path} knows no data set {name!r}; "
                    f"it knows {', '.join(map(repr, known)) or 'none'}"
                )
            rows = db.execute("SELECT id, dataset, price, what, time, state, statement, file FROM charges ORDER BY id")
            return [_record(row) for row in rows if name in {None, row[1]}]


def _add(db: sqlite3.Connection, name: str, time: str) -> None:
    db.execute("INSERT INTO datasets (name, created) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, time))


def _paid(db: sqlite3.Connection, name: str) -> list[tuple[Budget, Fraction]]:
    rows = db.execute("SELECT price, rho FROM charges WHERE dataset = ?", (name,))
    return [(_budget(price), _rho(rho)) for price, rho in rows]


def _pure(paid: list[tuple[Budget, Fraction]]) -> bool:
    return all(isinstance(price, PureDP) for price, _ in paid)


def _status(db: sqlite3.Connection, name: str) -> DatasetStatus:
    [text, rho, created] = db.execute("SELECT cap, cap_rho, created FROM datasets WHERE name = ?", (name,)).fetchone()
    cap = None if text is None else _budget(text)
    paid = _paid(db, name)
    limit: Amount | None = None
    if isinstance(cap, PureDP):
        limit = Amount("ε", cap.epsilon)
    elif cap is not None:
        limit = Amount("ρ", _rho(rho))
    measure = limit.measure if limit else "ε" if _pure(paid) else "ρ"
    spent = Amount(measure, sum((_cost(price, rho, measure) for price, rho in paid), Fraction(0)))
    remaining = Amount(measure, max(limit.value - spent.value, Fraction(0))) if limit else None
    return DatasetStatus(name, cap, spent, remaining, len(paid), created)


def _cost(price: Budget, rho: Fraction, measure: Literal["ε", "ρ"]) -> Fraction:
    if measure == "ρ":
        return rho
    if isinstance(price, PureDP):
        return price.epsilon
    raise LedgerError(
        f"the ledger holds a charge of {price} under a cap in pure ε, so it was changed by hand: {RESTORE}"
    )


def _check(status: DatasetStatus, price: Budget) -> None:
    """Raise `CapExceeded` unless the cap has room for one more charge; filling it exactly is allowed."""
    left = status.remaining
    if left is None:
        return
    advice = f"raise the cap with `hazemap ledger cap {shlex.quote(status.name)} …` if the people's agreement allows it"
    has = f"the data set {status.name!r} has {left} left of its cap {status.cap} (spent {status.spent})"
    if left.measure == "ε" and not isinstance(price, PureDP):
        raise CapExceeded(
            f"{has}; this release asks for {price}, which implies no finite pure ε: "
            "ask for pure ε, or give the data set a cap in ρ or in (ε, δ) if the people's agreement allows it"
        )
    cost = Amount(left.measure, _cost(price, price.rho, left.measure))
    if cost.value <= left.value:
        return
    asked = str(cost) if left.measure == "ε" or isinstance(price, ZCDP) else f"{price}, which costs {cost}"
    most = left
    if left.measure == "ρ" and isinstance(price, PureDP):
        with localcontext(prec=30):
            most = Amount("ε", Fraction((2 * _decimal(left.value)).sqrt()))
    ask = f"ask for at most {most}, or " if left.value else ""
    raise CapExceeded(f"{has}; this release asks for {asked}: {ask}{advice}")


def _record(row: tuple[int, str, str, str, str, str, str | None, str | None]) -> ChargeRecord:
    number, dataset, price, what, time, state, text, file = row
    try:
        statement = None if text is None else Statement.from_json(json.loads(text))
    except (CodecError, ValueError, TypeError) as error:
        raise LedgerError(f"the statement of charge {number} cannot be read: {error}") from error
    return ChargeRecord(Charge(number, dataset, _budget(price), what, time), state == "released", statement, file)


def _budget(text: str) -> Budget:
    try:
        return budget_from_json(json.loads(text))
    except (CodecError, ValueError, TypeError) as error:
        raise LedgerError(f"the ledger holds a price that hazemap did not write ({error}): {RESTORE}") from error


def _rho(text: str) -> Fraction:
    try:
        rho = Fraction(text)
    except (ValueError, TypeError, ZeroDivisionError):
        rho = Fraction(0)
    if rho <= 0:
        raise LedgerError(f"the ledger holds a ρ that hazemap did not write: {RESTORE}")
    return rho


def _name(dataset: str) -> str:
    """One name for one data set, however its letters are composed."""
    name = unicodedata.normalize("NFC", " ".join(dataset.split()))
    if not 0 < len(name) <= 200 or not name.isprintable():
        raise InputError("a data set's name is one line of 1 to 200 printable characters: name it with --dataset")
    return name


def _one_line(what: str) -> str:
    return _encodable(" ".join(what.split()))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()  # a file's name may hold bytes that are no text


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _shown(value: Fraction) -> str:
    """Nine digits, rounded down: who asks for what is shown to be left is not refused."""
    with localcontext(prec=9, rounding=ROUND_DOWN):
        return f"{float(_decimal(value)):.9g}"
