"""Runs a schedule: whatever is due and not there yet, each period paid for once, however often this is run or killed.

What has been done is read from the ledger alone, and the ledger pays for a period once (`privacy.ledger_units`). A
period that was paid for and has no file is finished from its journal, at no second charge. What a run says, and its
exit code, follow from the calendar, the ledger and what files declare: never from rows that nobody paid for.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hazemap.errors import (
    BudgetError,
    CapExceeded,
    HazemapError,
    InputError,
    LedgerError,
    PeriodPaid,
    ScheduleRunning,
    Stopped,
)
from hazemap.execution.crash_recovery import kept, recover, stopped, sweep
from hazemap.execution.output_lock import OutputLocked, lock_output
from hazemap.execution.run import Progress, execute, journal_folder
from hazemap.files.atomic_write import make_folder
from hazemap.privacy.budget import Budget, Number, PrivacyAmount
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import PaidPeriod
from hazemap.privacy.ledger_units import left_in, spent_in
from hazemap.privacy.privacy_unit import FULL
from hazemap.privacy.statement import budget_to_json
from hazemap.releases import Release
from hazemap.releases.release_series import ReleaseSeries
from hazemap.specs.schedule_spec import ScheduleSpec
from hazemap.temporal.time_slots import Period, moment, utc_text

State = Literal["released", "recovered", "there", "due", "unfinished", "lost", "missed", "refused", "stopped", "failed"]
"""`released` and `recovered` just now; `there` before. `due` will be released, and `unfinished`, which is paid for, be
recovered; of one that is `lost` nothing is kept. `missed` is skipped; `refused` has no room; one that `stopped` has
paid for its look alone; `failed` has an error."""


@dataclass(frozen=True)
class PeriodState:
    """The state of a period; `prior` is the file whose cells it began with."""

    period: Period
    state: State
    charge: int | None = None
    file: str | None = None
    prior: str | None = None
    error: HazemapError | None = None

    def to_json(self) -> dict[str, Any]:
        """For machines; what is not known is left out."""
        said = self.error and {"type": type(self.error).__name__, "message": str(self.error)}
        told = {"charge": self.charge, "file": self.file, "prior": self.prior, "error": said}
        return {
            "period": self.period.name,
            "since": utc_text(self.period.since),
            "until": utc_text(self.period.until),
            "state": self.state,
            **{name: value for name, value in told.items() if value is not None},
        }


@dataclass(frozen=True)
class ScheduleStatus:
    """Every period that is over, the oldest first, and what the year of the last has spent and has left."""

    spec: ScheduleSpec
    periods: tuple[PeriodState, ...]
    year: str | None
    spent: PrivacyAmount
    left: PrivacyAmount

    @property
    def exit_code(self) -> int:
        """That of the first period that failed; else that of the newest: refused 3, stopped 7, lost 1, and else 0.

        Older periods that are refused, stopped or lost stay so, and tell nobody anything new every night.
        """
        for each in self.periods:
            if each.state == "failed" and each.error is not None:
                return each.error.exit_code
        newest = self.periods[-1].state if self.periods else "there"
        return {"refused": BudgetError.exit_code, "stopped": Stopped.exit_code, "lost": 1}.get(newest, 0)

    def to_json(self) -> dict[str, Any]:
        """For machines: periods that are there, or were skipped, are only counted."""
        quiet = ("there", "missed")
        return {
            "schedule": self.spec.name,
            "dataset": self.spec.dataset,
            "exit": self.exit_code,
            "periods": [each.to_json() for each in self.periods if each.state not in quiet],
            **{name: sum(each.state == name for each in self.periods) for name in quiet},
            "year": self.year,
            "allowance": budget_to_json(self.spec.yearly),
            "spent": {"measure": self.spent.measure, "value": float(self.spent.value)},
            "left": {"measure": self.left.measure, "value": float(self.left.value)},
        }


def schedule_status(
    spec: ScheduleSpec, *, ledger: Ledger | None = None, now: datetime | str | None = None
) -> ScheduleStatus:
    """The states of all periods; reads the ledger and no table, and changes nothing."""
    book = ledger or Ledger.default()
    return _summary(spec, book, tuple(_standing(spec, book, _instant(spec, now))))


def run_schedule(
    spec: ScheduleSpec,
    *,
    ledger: Ledger | None = None,
    now: datetime | str | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    cap: Number | Budget | None = None,
    no_cap: bool = False,
) -> ScheduleStatus:
    """Release every period that is over, due and not there yet; finish those that are paid for.

    Running it again does nothing again. `now` is the time by which periods have to be over, by default this instant,
    and never later. A data set that was never charged and has no cap gets `cap`, by default ε = 3 or what a year may
    cost, unless there is to be `no_cap`. Where a period fails the others go on, but for `LedgerError`; see
    `ScheduleStatus.exit_code`.
    Raises `ScheduleRunning` while another process of this machine runs the same schedule.
    """
    book, at = ledger or Ledger.default(), _instant(spec, now)
    said = cap is not None or no_cap
    first = FirstCap.of(spec.first.budget, cap, no_cap) if said else FirstCap.usual(spec.yearly)
    with _alone(spec, book):
        if any(journal_folder(book).glob("*.journal")) or any(journal_folder(book).glob(".*.part")):
            sweep(book)
        found = _standing(spec, book, at)
        for place, each in enumerate(found):
            if each.state in ("due", "unfinished"):
                found[place] = _attempt(spec, book, each, found[:place], memory_limit, progress, first)
        return _summary(spec, book, tuple(found))


def _standing(spec: ScheduleSpec, book: Ledger, at: datetime) -> list[PeriodState]:
    """Every period that is over at an instant, as the ledger knows it."""
    paid = {each.occasion.period: each for each in book.periods(spec.name) if not each.again}
    ended = list(spec.calendar.ended(at))
    found = [_known(book, period, paid.get(period.name)) for period in ended]
    if spec.missed == "skip":
        found[:-1] = [PeriodState(each.period, "missed") if each.state == "due" else each for each in found[:-1]]
    return found


def _known(book: Ledger, period: Period, paid: PaidPeriod | None) -> PeriodState:
    if paid is None:
        return PeriodState(period, "due")
    state: State = "there" if paid.released else "unfinished" if kept(book, paid.run) else "lost"
    if state == "unfinished" and stopped(book, paid.run):
        state = "stopped"
    return PeriodState(period, state, paid.charge, paid.file)


def _attempt(
    spec: ScheduleSpec,
    book: Ledger,
    each: PeriodState,
    before: list[PeriodState],
    memory_limit: int | None,
    progress: Progress | None,
    cap: FirstCap | None,
) -> PeriodState:
    """Release a period, or finish it."""
    period, occasion = each.period, spec.occasion(each.period.name)
    prior = _newest_file(before) if spec.share_cells and each.charge is None else None
    state: State
    try:
        if each.charge is not None:
            state = "recovered"
            # Its rows are those of a time that is over: the file may have grown since, the period's rows have not.
            how: dict[str, Any] = {"same_table": True, "memory_limit": memory_limit, "progress": progress}
            recover(each.charge, ledger=book, occasion=occasion, **how)
        else:
            order = spec.of(period, prior)
            book.check(spec.dataset, order.budget, FULL, occasion, cap)
            execute(order, None, book, memory_limit, progress, None, occasion, cap)
            state = "released"
    except LedgerError:
        raise
    except PeriodPaid:
        state = "there"  # another machine with this ledger was faster
    except HazemapError as error:
        state = "refused" if isinstance(error, CapExceeded) else "stopped" if isinstance(error, Stopped) else "failed"
        return PeriodState(period, state, _charged(spec, book, period), None, None, error)
    [paid] = [one for one in book.periods(spec.name) if one.occasion.period == period.name and not one.again]
    return PeriodState(period, state, paid.charge, paid.file, None if prior is None else str(prior))


def _charged(spec: ScheduleSpec, book: Ledger, period: Period) -> int | None:
    """The charge for a period, where there is one."""
    found = (each.charge for each in book.periods(spec.name) if each.occasion.period == period.name)
    return next(found, None)


def _newest_file(before: list[PeriodState]) -> Path | None:
    """The file of the newest earlier period that has one still."""
    files = (Path(each.file) for each in reversed(before) if each.file is not None)
    return next((file for file in files if file.is_file()), None)


def _summary(spec: ScheduleSpec, book: Ledger, found: tuple[PeriodState, ...]) -> ScheduleStatus:
    year, paid = found[-1].period.name[:4] if found else None, book.periods(spec.name)
    spent, left = (of(year or "", paid, spec.yearly) for of in (spent_in, left_in))
    return ScheduleStatus(spec, found, year, spent, left)


def _instant(spec: ScheduleSpec, now: datetime | str | None) -> datetime:
    """The time by which periods must have ended, so that their rows are complete."""
    clock = datetime.now(UTC)
    at = moment(spec.calendar.zone, now) if isinstance(now, str) else now or clock
    if at.tzinfo is None:
        raise InputError("a time of a schedule has an offset: write 2026-03-29T04:00:00+02:00")
    if at > clock:
        raise InputError(f"{utc_text(at)} is yet to come, and a period that is not over is not released")
    return at - spec.wait


@contextmanager
def _alone(spec: ScheduleSpec, book: Ledger) -> Iterator[None]:
    """Have a schedule to run alone on this machine; the ledger keeps other machines from paying twice."""
    folder = journal_folder(book)
    try:
        make_folder(folder, 0o700)
    except OSError as error:
        raise LedgerError(f"the folder {folder} beside the ledger cannot be made ({error.strerror})") from error
    with ExitStack() as stack:
        try:
            name = hashlib.sha256(spec.name.encode()).hexdigest()[:32]
            stack.enter_context(lock_output(folder / f"{name}.schedule"))
        except OutputLocked:
            raise ScheduleRunning(
                f"the schedule {spec.name!r} is being run by another process: nothing was done here"
            ) from None
        yield


def schedule_series(
    spec: ScheduleSpec, *, ledger: Ledger | None = None, now: datetime | str | None = None
) -> ReleaseSeries:
    """The releases of a schedule as a series; a period without a file that is still there leaves a gap.

    Reads published files alone. `InputError` where there is none.
    """
    found = _standing(spec, ledger or Ledger.default(), _instant(spec, now))
    files = ((each.period.name, None if each.file is None else Path(each.file)) for each in found)
    opened = ((name, Release.open(file) if file is not None and file.is_file() else None) for name, file in files)
    return ReleaseSeries.of(spec.name, opened)
