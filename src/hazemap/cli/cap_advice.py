"""The cap of a data set: asked for at its first charge, and a hint beside the result where there is none."""

import sys
from math import ceil, floor, log10
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import note
from hazemap.errors import InputError

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

GoOn = Annotated[
    bool,
    typer.Option("--continue", rich_help_panel=MONEY, help="Pay the rest whatever the first rounds show."),
]

People = Annotated[
    int | None,
    typer.Option(
        "--people",
        metavar="N",
        rich_help_panel=MONEY,
        help=(
            "About how many people the table has, if that is public: an order whose answers would all be noise is"
            " refused."
        ),
    ),
]
Yes = Annotated[bool, typer.Option("--yes", rich_help_panel=MONEY, help="Pay even if all answers will be noise.")]


def foretell(order: "ReleaseSpec | StatisticsSpec", people: int | None, yes: bool, as_json: bool) -> None:
    """Say what numbers an order can tell, before it is paid.

    `InputError` where so many people, as declared, say beforehand that it can tell nothing, unless somebody said `yes`.
    """
    from hazemap.planning.order_forecast import OrderForecast

    if as_json and people is None:
        return
    made = OrderForecast.of(order, people)
    if made is None:
        return
    if made.known is not None and not yes:
        raise InputError(f"{made.known}. Nothing was charged; to pay for it nevertheless, add --yes")
    if not as_json:
        note(f"With {order.budget}, {made.sentence}.")


def cap_for(
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
