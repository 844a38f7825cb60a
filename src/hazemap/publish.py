"""From a table to a published map, or to statistics of a value: rows, methods, noise, ledger and files meet here.

The order of the steps is the privacy argument: whatever can be wrong with an order is found out before
anything is paid; the price is in the ledger, on the disk, before the first answer; the file appears whole;
then the ledger notes it. A run that fails after its charge has paid for nothing, and says so.
"""

import warnings
from typing import Any, TypedDict, Unpack, cast

from hazemap.errors import HazemapWarning
from hazemap.execution.run import Progress, execute
from hazemap.privacy.budget import Budget, Number
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.releases import Release, Statistics
from hazemap.specs.parsing import warning_about
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import ReleaseOptions, StatisticsOptions, takes
from hazemap.specs.statistics_spec import StatisticsSpec


class Money(TypedDict):
    """What is said with a release about money: a cap, and whether it is spent on what may tell nothing."""

    cap: Number | Budget | None
    no_cap: bool
    go_on: bool


@takes(ReleaseOptions)
def release(
    source: Any,
    *,
    ledger: Ledger | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    stream: Stream | None = None,
    cap: Number | Budget | None = None,
    no_cap: bool = False,
    go_on: bool = False,
    **asked: Unpack[ReleaseOptions],
) -> Release:
    """Publish where the people of a table are, under differential privacy per person.

    `source` is a file, a folder or glob of files (Parquet, CSV, GeoParquet), or a table in memory (Arrow, pandas,
    polars, GeoPandas) or in Spark; columns that are not named are guessed. The budget is `epsilon` (pure), `epsilon`
    with `delta`, or `rho`. `since <= time < until` choose rows. The map covers the smallest square around `box`, or the
    hexagons that touch it; without a box a share of the budget finds one. People `outside`, of
    whom no row lies in it, are counted with noise in one number more; or rows there are dropped, or weighed like all
    others ("count"). `progress` is told what is being done, and how much of it is done.

    With a `mark`, or several, a column of yes or no or "COLUMN=VALUE", those who carry it are counted too, and a
    `MarkedRelease` says which share of the people that is; cells are cut for a `goal`, "density" or "width:0.2". With
    `slots` there is a map of every slot too (`TimedRelease`), or with marks the shares in it (`MarkedTimedRelease`).

    `dialect` says how CSV files are written.

    The price is charged to `dataset` (by default named after the file) in `ledger`. A data set that has no cap gets
    `cap` with it, in the terms of the budget (ε, or ρ): all that it may ever spend. One that is charged for the first
    time gets ε = 3, and a warning that says so, unless there is to be `no_cap`. With `output`, `.parquet` or `.tif`,
    the release is saved there. `stream` is for tests and demos alone: whoever knows it can subtract the noise.

    Most methods begin with a look, which a tenth of the budget pays. Where its noisy answers say that the rest would
    buy nothing (nobody is on the map, no box is found), `Stopped` is raised and the rest is not paid; `go_on` pays it
    anyway, and so does `hazemap.recover(charge, go_on=True)` later.

    Raises `InputError` for what the caller can mend, `CapExceeded` where the data set may not pay; neither costs
    anything, unless it says so.

    >>> import numpy as np, pyarrow as pa, tempfile
    >>> from pathlib import Path
    >>> table = pa.table({"user": np.arange(500), "lon": np.full(500, 2.35), "lat": np.full(500, 48.85)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = Ledger(Path(folder) / "ledger.sqlite")
    ...     made = release(table, person="user", epsilon=1, box="2.2,48.8,2.5,48.9", ledger=book)
    >>> made.statement.budget, bool(abs(made.total().unbiased - 500) < 200)
    (PureDP(epsilon=Fraction(1, 1)), True)
    """
    spec, rest = ReleaseSpec.of(source, **asked), Money(cap=cap, no_cap=no_cap, go_on=go_on)
    return run_release(spec, source, ledger=ledger, memory_limit=memory_limit, progress=progress, stream=stream, **rest)


def run_release(
    spec: ReleaseSpec,
    source: Any = None,
    *,
    ledger: Ledger | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    stream: Stream | None = None,
    cap: Number | Budget | None = None,
    no_cap: bool = False,
    go_on: bool = False,
) -> Release:
    """The map that a specification asks for; `source` is the table where the specification does not name its file."""
    first = FirstCap.of(spec.budget, cap, no_cap)
    _warn(warning_about(spec.budget))
    return cast(Release, execute(spec, source, ledger, memory_limit, progress, stream, cap=first, go_on=go_on))


@takes(StatisticsOptions)
def stats(
    source: Any,
    *,
    ledger: Ledger | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    stream: Stream | None = None,
    cap: Number | Budget | None = None,
    no_cap: bool = False,
    go_on: bool = False,
    **asked: Unpack[StatisticsOptions],
) -> Statistics:
    """Publish statistics of a value in every cell and timeslot, under differential privacy per person.

    The mean, and if asked for `variance` and `quantiles`, of the column `value` between `low` and `high`, which have to
    be declared: values outside are clipped to them, and rows without a value (or, with slots, without a time) are left
    out. Times of rows that say no offset are UTC, those of `since`, `until` and `slots` are of `time_zone`. In a place
    every person counts with the mean of their own records there, as 1 (or as their number of records, up to
    `max_records_per_cell`); and in at most `max_cells_per_person` places, drawn by a keyed hash. The cells are all that
    the box touches (or those of the districts' file), whether anybody is there or not; without a box, for hexagons, a
    share of the budget finds one. Everything else is as in `release`.

    With `bounds="private"` a share of the budget finds the bounds (one of `low` and `high` may still be declared); with
    `select` a share finds the cells that have many people, and the values are asked in these alone.

    With `model="values-only"` it is taken to be public where people are and how many, and only values are protected:
    cells are those with rows, numbers of people are exact, who counts where is chosen for the least error, and the data
    set's values-only page pays (docs/how-to/values-only.md).

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
    spec, rest = StatisticsSpec.of(source, **asked), Money(cap=cap, no_cap=no_cap, go_on=go_on)
    return run_stats(spec, source, ledger=ledger, memory_limit=memory_limit, progress=progress, stream=stream, **rest)


def run_stats(
    spec: StatisticsSpec,
    source: Any = None,
    *,
    ledger: Ledger | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    stream: Stream | None = None,
    cap: Number | Budget | None = None,
    no_cap: bool = False,
    go_on: bool = False,
) -> Statistics:
    """The statistics that a specification asks for; `source` is the table where it does not name a file."""
    first = FirstCap.of(spec.budget, cap, no_cap)
    _warn(warning_about(spec.budget))
    return cast(Statistics, execute(spec, source, ledger, memory_limit, progress, stream, cap=first, go_on=go_on))


def _warn(sentence: str | None) -> None:
    """Say what deserves a word and does not stop the work: of a budget far from the usual ones, before it is paid."""
    if sentence:
        warnings.warn(sentence, HazemapWarning, stacklevel=4)
