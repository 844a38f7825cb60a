"""Where a ledger is kept: what a store gives to `Ledger`, whether it is a file or a database of many stewards.

Both hold the same tables, and questions are asked in the same SQL. What is written goes through a few verbs, because
in a database of many stewards only its own functions write (`ledger_postgresql`).
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from hazemap.privacy.ledger_records import Occasion
from hazemap.privacy.privacy_unit import Model
from hazemap.privacy.statement import budget_to_json

T = TypeVar("T")

RESTORE = (
    "bring it back from a backup and charge again what was released since; "
    "a new ledger would forget what its people have paid"
)
"""What to do about a ledger that cannot be believed."""


class Noted(NamedTuple):
    """When, by whom and why something is changed; a database of many stewards knows the first two better."""

    time: str
    who: str
    why: str | None


@dataclass(frozen=True)
class NewCharge:
    """A charge as it is written: unit, price and whom it fixes as protected are JSON, ρ is a rational."""

    dataset: str
    model: Model
    unit: str
    price: str
    rho: str
    time: str
    what: str
    run: str | None
    protects: str | None
    occasion: Occasion | None

    @property
    def of_schedule(self) -> tuple[str, str, str] | tuple[None, None, None]:
        """The schedule, its period and its allowance, as JSON."""
        if self.occasion is None:
            return None, None, None
        allowance = json.dumps(budget_to_json(self.occasion.allowance))
        return self.occasion.schedule, self.occasion.period, allowance


class Forgotten(NamedTuple):
    """How many statements of releases, and fingerprints of tables, were forgotten."""

    statements: int
    fingerprints: int


class LedgerReads(Protocol):
    """A transaction that reads."""

    @property
    def payer(self) -> str:
        """The SQL for who paid a charge; NULL where a store does not know."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Any:
        """A question, in SQL that all stores understand, with `?` for a value."""
        ...

    def check_page(self, dataset: str, model: Model, /) -> None:
        """Raise where this page may not be charged at all."""
        ...


class LedgerWrites(LedgerReads, Protocol):
    """A transaction that writes; what it writes counts when it ends, all of it or nothing."""

    def open_page(self, dataset: str, model: Model | None, time: str, /) -> None:
        """Have a data set, and its page for a model, if they are not there."""
        ...

    def admit(self, dataset: str, model: Model, time: str, /) -> None:
        """Have the page that a charge is about to be written on, or raise."""
        ...

    def charge(self, new: NewCharge, /) -> tuple[int, str]:
        """Write a charge: its number, and when it was paid."""
        ...

    def release(self, charge: int, statement: str, file: str | None, /) -> None:
        """Note what a charge was spent on."""
        ...

    def release_again(self, charge: int, dataset: str, file: str | None, /) -> None:
        """Note what the charge for a question asked once more was spent on."""
        ...

    def set_cap(self, dataset: str, model: Model, old: str | None, cap: str, rho: str, now: Noted, /) -> None:
        """Set the cap of a page, and note the change."""
        ...

    def set_protects(self, dataset: str, old: str | None, new: str, now: Noted, /) -> None:
        """Say whom a data set protects, and note the change."""
        ...

    def remember(self, dataset: str, fingerprint: bytes, most: int, /) -> None:
        """Keep the fingerprint of a table that paid, and of these the latest `most`."""
        ...

    def forget(self, before: str, dataset: str | None, /) -> Forgotten:
        """Forget the payloads of what was released before a time, and fingerprints of data sets unused since."""
        ...


class LedgerStore(Protocol):
    """A file, or a database."""

    @property
    def place(self) -> str:
        """What people call it: a path, or a URL without secrets."""
        ...

    @property
    def runs(self) -> Path:
        """The folder of the journals of runs that were paid here, on this machine."""
        ...

    @property
    def key_file(self) -> Path:
        """The file with the key of the fingerprints, on this machine."""
        ...

    def reading(self) -> AbstractContextManager[LedgerReads]:
        """See the ledger at one instant."""
        ...

    def exist(self) -> None:
        """Have it made, where a charge would make it."""
        ...

    def begin_anew(self) -> None:
        """Make an empty one in the place of one that is gone."""
        ...

    def write(self, body: Callable[[LedgerWrites], T]) -> T:
        """Do all of `body` in one transaction that nobody else's can be told apart from before or after it.

        It may be called again from the start, where another's transaction or a lost connection undid the first.
        """
        ...


def home() -> Path:
    """The folder HAZEMAP_HOME, or else the platform's folder for a user's data."""
    named = os.environ.get("HAZEMAP_HOME")
    if not named:
        import platformdirs

        named = platformdirs.user_data_dir("hazemap", appauthor=False)
    return Path(named).expanduser().absolute()
