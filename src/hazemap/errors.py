"""All errors that hazemap raises, in one tree; the type says whose mistake it is.

    HazemapError
    ├── InputError              the caller's options or data
    │   ├── TableError          columns, coordinates, rows
    │   ├── FileError           a file that is missing, foreign or damaged
    │   ├── PlugInError         a plug-in package that is missing, broken or ambiguous
    │   └── OtherUnit           prices that are about other people than a data set's, or another model
    ├── BudgetError             privacy that has been spent
    │   ├── BudgetExceeded      an algorithm asks for more than its run was given
    │   ├── CapExceeded         a data set has less left than a release would cost
    │   └── PeriodPaid          a period of a schedule that was paid for already
    ├── ConversationError       a program's: the two sides do not fit
    │   ├── TranscriptMismatch  stored answers belong to other queries
    │   ├── Unanswerable        this trust model cannot answer this query
    │   ├── Refused             the other side broke a protocol's rules, or asks for less than one's own floors
    │   ├── NotOpened           too few people answered: nothing was opened, nothing learned
    │   ├── Unreachable         the other side does not answer, or not now
    │   └── CodecError          JSON or bytes that no version of hazemap wrote
    ├── Stopped                 a release that looked, and did not go on to spend the rest
    ├── LedgerError             the ledger cannot be read or written
    ├── ScheduleRunning         another process is running this schedule now
    └── StoreError              the server's database cannot be read or written

The roots, and what `hazemap.vdaf` raises, are written in `hazemap.vdaf.errors`, which imports nothing of hazemap.

A message says what was asked, what was found and what to do. It never holds a row or a secret.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.vdaf.errors import CodecError, ConversationError, HazemapError, InputError, Refused

__all__ = [
    "BudgetError",
    "BudgetExceeded",
    "CapExceeded",
    "CodecError",
    "ConversationError",
    "FileError",
    "HazemapError",
    "HazemapWarning",
    "InputError",
    "LedgerError",
    "NotOpened",
    "OtherUnit",
    "PeriodPaid",
    "PlugInError",
    "Refused",
    "ScheduleRunning",
    "Stopped",
    "StoreError",
    "TableError",
    "TranscriptMismatch",
    "Unanswerable",
    "Unreachable",
    "warnings_told",
]

for _root in (HazemapError, InputError, ConversationError, Refused, CodecError):
    _root.__module__ = __name__  # what users see in tracebacks, and import
del _root


class TableError(InputError):
    """A table whose columns or rows cannot be used as asked."""


class FileError(InputError):
    """A file that is missing, foreign or damaged."""


class PlugInError(InputError):
    """A plug-in package that is missing or broken, or brings a name that means something else already."""


class OtherUnit(InputError):
    """A price of another unit of privacy than those that a data set adds up."""


class BudgetError(HazemapError):
    """Privacy that is spent, or would be."""

    exit_code = 3


class BudgetExceeded(BudgetError):
    """An algorithm asks for more than the budget of its run."""


class CapExceeded(BudgetError):
    """A data set has less left under its cap than a release would cost."""


class PeriodPaid(BudgetError):
    """A period of a schedule is paid for once, and was."""


class Stopped(HazemapError):
    """A release that looked at what its first tenth buys, and stopped: the rest is not paid.

    `charge` is that of the look, `statement` what it promises, `rest` the price that is not paid, `why` one of "box",
    "outside", "nobody" and "few", and `advice` what to do. `hazemap.recover(charge, go_on=True)` pays the rest, and
    makes the release of the answers that are kept.
    """

    exit_code = 7

    def __init__(self, message: str, *, charge: int, statement: Any, rest: Any, why: str, advice: str) -> None:
        super().__init__(message)
        self.charge, self.statement, self.rest, self.why, self.advice = charge, statement, rest, why, advice

    @property
    def facts(self) -> dict[str, Any]:
        """Why, what to do, the charge, and its statement as JSON."""
        said = {"charge": self.charge, "why": self.why, "advice": self.advice}
        return {**said, "statement": self.statement.to_json()}


class TranscriptMismatch(ConversationError):
    """Stored answers were given to other queries than the ones now asked."""


class Unanswerable(ConversationError):
    """The trust model in use does not answer this type of query."""


class NotOpened(ConversationError):
    """Too few people answered, so a secure sum was not opened and nothing was learned."""


class Unreachable(ConversationError):
    """The other side does not answer, or not now; `wait` is how many seconds it asks to be left alone."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class LedgerError(HazemapError):
    """The ledger cannot be read or written; nothing was released."""

    exit_code = 5


class ScheduleRunning(HazemapError):
    """Another process is running this schedule; nothing was done here."""

    exit_code = 6


class StoreError(HazemapError):
    """The server's database cannot be read or written; nothing more is acknowledged."""

    exit_code = 5


class HazemapWarning(UserWarning):
    """Something worth saying that does not stop the work."""


@contextmanager
def warnings_told(tell: Callable[[str], bool]) -> Iterator[None]:
    """Hand the words of each of hazemap's warnings to `tell`, as it comes.

    Those that it returns False for, and all other warnings, are shown as they would be.
    """
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any) -> None:
        if not (issubclass(category, HazemapWarning) and tell(str(message))):
            usual(message, category, *rest)

    with warnings.catch_warnings():
        warnings.simplefilter("always", HazemapWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
