"""How to cap a data set that has paid and has no cap: a hint beside the result."""

from math import ceil, floor, log10
from shlex import quote
from typing import TYPE_CHECKING

from hazemap.cli.console_output import note

if TYPE_CHECKING:
    from hazemap.privacy.ledger_records import LedgerBalance


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
