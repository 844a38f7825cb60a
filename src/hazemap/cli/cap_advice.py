"""The cap of a data set, and notes on how its rows were read.

A cap is asked for at the first charge, and a result without one gets a hint. Notes on reading are general sentences
that follow from options, names and headers alone: whether a time or a line could be read is a secret of the rows, so
anything more specific follows from the noisy numbers that the run has paid for.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, floor, log10
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import note
from hazemap.errors import HazemapError, InputError, Stopped
from hazemap.sources.source import LocalFiles

if TYPE_CHECKING:
    from hazemap.privacy.budget import Budget
    from hazemap.privacy.ledger import Ledger
    from hazemap.privacy.ledger_records import LedgerBalance
    from hazemap.privacy.privacy_unit import Model
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.statistics_spec import StatisticsSpec


MONEY = "Money"

Cap = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT",
        rich_help_panel=MONEY,
        help=(
            "The most that the data set may ever spend (ε, or ρ with --rho), if it has no cap yet. Default at the"
            " first charge: 3."
        ),
    ),
]
NoCap = Annotated[bool, typer.Option("--no-cap", rich_help_panel=MONEY, help="Set no cap for the data set.")]


def show_forecast(order: "ReleaseSpec | StatisticsSpec", people: int | None, yes: bool, as_json: bool) -> None:
    """Say what numbers an order can tell, before it is paid.

    `InputError` where so many people, as declared, say beforehand that it can tell nothing, unless somebody said `yes`.
    """
    from hazemap.planning.statistics_plan import OrderForecast

    if as_json and people is None:
        return
    made = OrderForecast.of(order, people)
    if made is None:
        return
    if made.known is not None and not yes:
        raise InputError(f"{made.known}. Nothing was charged; to pay for it nevertheless, add --yes")
    if not as_json:
        note(f"With {order.budget}, {made.sentence}.")


def ask_for_cap(
    book: "Ledger", dataset: str, model: "Model", budget: "Budget", cap: str | None, no_cap: bool, as_json: bool
) -> dict[str, Any]:
    """Options about the cap of a data set, and the question at its first charge on a terminal."""
    from hazemap.privacy.first_cap import FirstCap

    said = {"cap": cap, "no_cap": no_cap}
    ask = cap is None and not no_cap and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
    if not ask or not isinstance(book.place, Path):
        return said
    status, full = book.status(dataset, model), book.status(dataset, "full")
    known = (status is not None and (status.cap or status.charges)) or (full is not None and full.cap)
    if known:
        return said
    usual = FirstCap.usual(budget).budget
    note(f"The data set {dataset!r} is charged for the first time. How much may all its releases cost together, ever?")
    answer = str(typer.prompt(f"A cap, or 'none' ({usual})", default="", show_default=False, err=True)).strip()
    return {"cap": None, "no_cap": True} if answer == "none" else {"cap": answer or usual, "no_cap": False}


def advise_cap(status: "LedgerBalance") -> None:
    """Say which command caps the page, at what it has spent or a little more; nothing where there is a cap."""
    if status.cap:
        return
    pure, spent = status.spent.measure == "ε", float(status.spent.value)
    most = max(1, ceil(spent)) if pure else _rounded_up(spent)
    so_far = f", and has spent {status.spent}" if spent > 1 or not pure else ""
    values_only = " --values-only" if status.model == "values-only" else ""
    amount = f"{most}" if pure else f"--rho {most:g}"
    page = status.page if values_only else repr(status.name)
    lets = f"`hazemap ledger cap {quote(status.name)} {amount}{values_only}` lets it spend {status.spent.measure}"
    note(f"{page} has no cap yet{so_far}; {lets} = {most:g} in all, ever")


def _rounded_up(number: float) -> float:
    """To two digits, and never down.

    >>> _rounded_up(0.0243), _rounded_up(0.5), _rounded_up(12.1)
    (0.025, 0.5, 13.0)
    """
    digits = 1 - floor(log10(number))
    near = round(number, digits)
    return near if near >= number else round(number + 10.0**-digits, digits)


NO_TIME = "whether times are written as is said below, or need --time-format"
NO_LINE = "whether lines are written as is said below"


def reading_notes(order: "ReleaseSpec | StatisticsSpec") -> list[str]:
    """How times are read, where a run uses any, and which lines count, where it reads CSV."""
    notes = []
    if order.timed:
        notes.append(f"Times were read as {order.table.times}.")
    if _is_csv(order):
        notes.append(_of_lines(order))
    return notes


@contextmanager
def notes_where_it_stops(order: "ReleaseSpec | StatisticsSpec", as_json: bool) -> Iterator[None]:
    """Print the notes of a run that stops after its look; one that goes on prints them beside its result."""
    try:
        yield
    except Stopped:
        for line in () if as_json else reading_notes(order):
            note(line)
        raise


def advise_on_empty_map(order: "ReleaseSpec | StatisticsSpec") -> str:
    """What to check if the noise hides whether any row counted, from options and names alone."""
    looks = ["whether the box is the right one", "whether coordinates are degrees, not swapped, in the right columns"]
    looks += [NO_TIME] if order.timed else []
    looks += [NO_LINE] if _is_csv(order) else []
    return f"look {', '.join(looks[:-1])} and {looks[-1]}"


def _is_csv(order: "ReleaseSpec | StatisticsSpec") -> bool:
    from hazemap.readers.file_formats import reads_csv

    return order.table.address is not None and reads_csv(order.table.address)


def _of_lines(order: "ReleaseSpec | StatisticsSpec") -> str:
    """By the header of a single local file; in general words for other sources."""
    from hazemap.readers.csv_files import read_header
    from hazemap.readers.stored_file import LocalFile

    source, fields = order.table.address, "as many fields as its header"
    if isinstance(source, LocalFiles) and os.path.isfile(source.path):  # noqa: PTH113 - a path as it was written
        try:
            names = read_header(LocalFile(source.path), order.table.dialect).names
        except HazemapError:
            names = ()
        if names:
            fields = f"{len(names)} field{'' if len(names) == 1 else 's'}, as its header has"
    return (
        f"A line of CSV counted if it has {fields}, each bare or whole in quotes; any other was left out, and nothing "
        "says how many: row names, or a delimiter at the end of lines, make a field more than the header has."
    )
