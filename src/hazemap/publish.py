"""From a table to a published map, or to statistics of a value: where rows, methods, noise, money and files meet.

The order of the steps is the privacy argument: whatever can be wrong with an order is found out before
anything is paid; the price is in the ledger, on the disk, before the first answer; the file appears whole;
then the ledger notes it. A run that fails after its charge has paid for nothing, and says so.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar

from hazemap.domains import Box
from hazemap.domains.zones import moment
from hazemap.errors import HazemapError, LedgerError
from hazemap.orders.finding import Finding
from hazemap.orders.order import Order, free_place, named_after, rule_of
from hazemap.orders.spelling import budget as spelled_budget
from hazemap.orders.spelling import cells as spelled_cells
from hazemap.orders.spelling import cells_of_values
from hazemap.orders.values import ValueOrder
from hazemap.orders.values import slots as spelled_slots
from hazemap.orders.values_only import FULL, ValuesOnlyOrder, of_full_model, values_only
from hazemap.orders.ways import reach, way
from hazemap.privacy.budget import Budget, Number
from hazemap.privacy.ledger import Account, Ledger
from hazemap.privacy.statement import Statement
from hazemap.privacy.stream import Stream
from hazemap.releases import Release, Statistics
from hazemap.rounds import Algorithm, Answer, Prices, Query, Question, Trust
from hazemap.session import Result, run
from hazemap.tables import open_table
from hazemap.tables.bounding import Bounding
from hazemap.trust import Curator

AnyPath = str | os.PathLike[str]
T = TypeVar("T")
Made = TypeVar("Made", Release, Statistics)
Progress = Callable[[str, float | None], None]
"""Is told what is being done now, and which part of it is done, 0 to 1, where that is known."""


def release(
    source: Any,
    *,
    person: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    value: str | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    box: Box | str | None = None,
    since: str | None = None,
    until: str | None = None,
    cells: str = "quadtree",
    method: str = "auto",
    bounding: Bounding | str = "one row",
    outside: Literal["drop", "count"] = "drop",
    dataset: str | None = None,
    ledger: Ledger | None = None,
    output: AnyPath | None = None,
    overwrite: bool = False,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    stream: Stream | None = None,
) -> Release:
    """Publish where the people of a table are, under differential privacy per person.

    `source` is a file, a folder or glob of files (Parquet, CSV, GeoParquet), or a table in memory (Arrow, pandas,
    polars, GeoPandas); columns that are not named are guessed. The budget is `epsilon` (pure), `epsilon` with
    `delta`, or `rho`. `since <= time < until` choose rows. The map covers the smallest square around `box`, or the
    hexagons that touch it; without a box a share of the budget finds one. Rows `outside` are dropped, or counted
    (with noise) as one number more. `progress` is told what is being done, and how much of it is done.

    The price is charged to `dataset` (by default named after the file) in `ledger`. With `output`, `.parquet` or
    `.tif`, the release is saved there. `stream` is for tests and demos alone: whoever knows it can subtract the noise.

    Raises `InputError` for what the caller can mend, `CapExceeded` where the data set may not pay; neither costs
    anything, unless it says so.

    >>> import numpy as np, pyarrow as pa, tempfile
    >>> from pathlib import Path
    >>> table = pa.table({"user": np.arange(500), "lon": np.full(500, 2.35), "lat": np.full(500, 48.85)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = Ledger(Path(folder) / "ledger.sqlite")
    ...     made = release(table, person="user", epsilon=1, box="2.2,48.8,2.5,48.9", ledger=book)
    >>> made.statement.budget, bool(abs(made.total().value - 500) < 200)
    (PureDP(epsilon=Fraction(1, 1)), True)
    """
    say: Progress = progress or (lambda _what, _part: None)
    money = spelled_budget(epsilon, delta, rho)
    frame = Box.parse(box) if isinstance(box, str) else box
    kind = spelled_cells(cells)
    rule = rule_of(bounding, person, value, outside)
    algorithm = way(method, kind, frame, rule)
    goal = None if output is None else free_place(Path(output), source, overwrite, algorithm)
    book = ledger or Ledger.default()
    account = book.account(
        of_full_model(dataset or named_after(source)), f"{method} map" + (f" in {goal.name}" if goal else "")
    )
    order = Order(account.dataset, money, rule, method, kind, frame, since, until, value)
    account.check(money)  # a cap that is spent is said before hours of reading; the charge below decides

    say("opening the table", None)
    table = open_table(
        source,
        person=person,
        lon=lon,
        lat=lat,
        time=time,
        value=value,
        box=reach(algorithm),
        since=since,
        until=until,
        memory_limit=memory_limit,
        progress=lambda part: say("reading rows", part),
    )
    return _made(
        Curator(table, stream or Stream.from_os()),
        algorithm,
        account,
        money,
        goal,
        say,
        lambda result: Release(result.value, order.statement(), algorithm, result.transcript),
    )


def stats(
    source: Any,
    *,
    value: str,
    low: float | None = None,
    high: float | None = None,
    bounds: str | None = None,
    person: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    time_zone: str = "UTC",
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    box: Box | str | None = None,
    since: str | None = None,
    until: str | None = None,
    cells: str = "h3:7",
    slots: str = "always",
    variance: bool = False,
    quantiles: Sequence[float] = (),
    bins: int | None = None,
    most_cells: int | None = None,
    most_records: int = 1,
    select: bool = False,
    model: str = FULL,
    dataset: str | None = None,
    ledger: Ledger | None = None,
    output: AnyPath | None = None,
    overwrite: bool = False,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    stream: Stream | None = None,
) -> Statistics:
    """Publish statistics of a value in every cell and timeslot, under differential privacy per person.

    The mean, and if asked for `variance` and `quantiles`, of the column `value` between `low` and `high`, which have to
    be declared: values outside are clipped to them, and rows without a value (or, with slots, without a time) are left
    out. Times without an offset are those of `time_zone`. In a place every person counts with the mean of their own
    records there, as 1 (or as their number of records, up to `most_records`); and in at most `most_cells` places, drawn
    by a keyed hash. The cells are all that the box touches (or those of the districts' file), whether anybody is there
    or not; without a box, for hexagons, a share of the budget finds one. Everything else is as in `release`.

    With `bounds="private"` a share of the budget finds the bounds (one of `low` and `high` may still be declared); with
    `select` a share finds the cells that have many people, and the values are asked in these alone.

    With `model="values-only"` it is taken to be public where people are and how many, and only values are protected:
    cells are those with rows, numbers of people are exact, who counts where is chosen for the least error, and the data
    set "… (values only)" pays (docs/how-to/values.md).

    >>> import numpy as np, pyarrow as pa, tempfile
    >>> from pathlib import Path
    >>> place = {"lon": np.full(5000, 2.35), "lat": np.full(5000, 48.85)}
    >>> table = pa.table({"user": np.arange(5000), **place, "speed": np.linspace(10, 30, 5000)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = Ledger(Path(folder) / "ledger.sqlite")
    ...     made = stats(table, value="speed", low=0, high=65, epsilon=1, box="2.3,48.8,2.4,48.9", ledger=book)
    >>> mean = made.found("mean")
    >>> bool(abs(np.nanmax(mean.value) - 20) < 1), int((~mean.too_few).sum())
    (True, 1)
    """
    say: Progress = progress or (lambda _what, _part: None)
    money = spelled_budget(epsilon, delta, rho)
    frame = Box.parse(box) if isinstance(box, str) else box
    order = ValueOrder.understood(
        value=value,
        bounds=(low, high),
        cells=cells_of_values(cells),
        box=frame,
        slots=spelled_slots(slots, time_zone, since, until),
        variance=variance,
        quantiles=quantiles,
        bins=bins,
        most=(most_cells, most_records),
        window=(since, until),
        budget=money,
        finding=Finding.understood(bounds, low, high, select),
    )
    only = ValuesOnlyOrder.of(order, most_cells) if values_only(model) else None
    goal = None if output is None else free_place(Path(output), source, overwrite, order.method)
    book, name = ledger or Ledger.default(), dataset or named_after(source)
    what = "statistics of a value" + (f" in {goal.name}" if goal else "")
    account = only.account(book, name, what) if only else book.account(of_full_model(name), what)
    account.check(money)
    say("opening the table", None)
    table = open_table(
        source,
        person=person,
        lon=lon,
        lat=lat,
        time=time,
        measured=value,
        timed=order.slots.timed,
        box=order.reach,
        since=None if since is None else moment(time_zone, since),
        until=None if until is None else moment(time_zone, until),
        memory_limit=memory_limit,
        progress=lambda part: say("reading rows", part),
    )
    randomness = stream or Stream.from_os()
    if only:
        asked, counting = only.kept(table)
        stated = only.statement(account.dataset, asked)
        return _made(
            Curator(counting, randomness),
            asked,
            account,
            money,
            goal,
            say,
            lambda done: Statistics(done.value, value, order.ranks, stated, asked, done.transcript),
        )
    return _made(
        Curator(table, randomness),
        order.method,
        account,
        money,
        goal,
        say,
        lambda done: Statistics(
            done.value, value, order.ranks, order.statement(account.dataset, done), order.method, done.transcript
        ),
    )


def _made(
    trust: Curator,
    algorithm: Algorithm[T],
    account: Account,
    money: Budget,
    goal: Path | None,
    say: Progress,
    finished: Callable[[Result[T]], Made],
) -> Made:
    """Read, pay, ask, write and note, in this order; what fails after the charge says that it stands."""
    _read(trust, algorithm, money)
    try:
        made = finished(run(algorithm, _Announced(trust, say), money, account))
        if goal:
            say("writing the file", None)
            made.save(goal)
        _note(account, made.statement, goal)
    except (HazemapError, OSError, MemoryError) as error:
        if account.receipt is None:
            raise
        raise _paid(error, account, money) from error
    except Exception as error:
        error.add_note(_stands(account, money))
        raise
    return made


def _read(trust: Curator, algorithm: Algorithm[T], money: Budget) -> None:
    """Have the table read its rows now: a file that is damaged in the middle must not cost anything.

    What is read is thrown away here (the table keeps it); nothing was asked, so nothing is answered.
    """
    first = next(algorithm.rounds(trust.prices(money)))
    if isinstance(first, Query):
        first.encoder.total(trust.table)
    elif first.where is not None:
        cells, rule = first.where
        trust.table.votes(cells.tree, rule)


@dataclass(frozen=True)
class _Announced:
    """A trust model that tells which question it is answering."""

    trust: Trust
    say: Progress
    number: "count[int]" = field(default_factory=lambda: count(1))

    def prices(self, budget: Budget) -> Prices:
        return self.trust.prices(budget)

    def answers(self, question: type[Question]) -> bool:
        return self.trust.answers(question)

    def answer(self, question: Question, price: Budget) -> Answer:
        self.say(f"answering query {next(self.number)}", None)
        return self.trust.answer(question, price)


def _note(account: Account, statement: Statement, goal: Path | None) -> None:
    """Tell the ledger what the charge was spent on."""
    if account.receipt is None:
        raise LedgerError("a run ended without having paid, so its result must not be published")
    try:
        account.ledger.released(account.receipt, statement, None if goal is None else str(goal.absolute()))
    except LedgerError as error:
        raise LedgerError(f"{error}. The release is whole; only the ledger does not know of it") from error


def _paid(error: Exception, account: Account, money: Budget) -> HazemapError:
    """The same error, and that the money is gone."""
    if isinstance(error, HazemapError):
        return type(error)(f"{error}. {_stands(account, money)}")
    return HazemapError(f"the system refused ({error or type(error).__name__}). {_stands(account, money)}")


def _stands(account: Account, money: Budget) -> str:
    if account.receipt is None:
        return f"The data set {account.dataset!r} has paid nothing for this"
    return (
        f"The data set {account.dataset!r} has paid {money} for this (charge {account.receipt}), and the charge "
        f"stands: see `hazemap ledger history {account.dataset}`"
    )
