"""`hazemap ledger`: what data sets have paid, and may pay."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.options import AsJson, LedgerFile, ledger_at
from hazemap.cli.output import deliver

if TYPE_CHECKING:
    from hazemap.privacy.ledger import ChargeRecord, DatasetStatus

app = typer.Typer(
    name="ledger",
    help="Show and set what data sets have paid, and may pay.",
    epilog="Example: [bold]hazemap ledger cap nyc 1[/bold]",
    no_args_is_help=True,
)


@app.command("list", epilog="Example: [bold]hazemap ledger list[/bold]")
def list_(ledger: LedgerFile = None, as_json: AsJson = False) -> None:
    """List every data set: its cap, what it has spent, what is left."""
    from rich.table import Table

    book = ledger_at(ledger)
    datasets = book.datasets()
    table = Table("data set", "cap", "spent", "left", "charges", box=None)
    for status in datasets:
        table.add_row(status.name, *_shown(status), str(status.charges))
    empty = f"no data set has paid anything yet ({book.path})"
    facts = {"ledger": str(book.path), "datasets": [_facts(status) for status in datasets]}
    deliver(facts, as_json, table if datasets else empty)


@app.command(epilog="Example: [bold]hazemap ledger cap nyc 1[/bold]")
def cap(
    dataset: Annotated[str, typer.Argument(help="The data set's name.")],
    epsilon: Annotated[str | None, typer.Argument(help="All it may ever spend, as ε.")] = None,
    delta: Annotated[str | None, typer.Option(help="With ε: the cap is in (ε, δ).")] = None,
    rho: Annotated[str | None, typer.Option(help="The cap as ρ of zero-concentrated privacy, instead.")] = None,
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """Set all that a data set may ever spend, what it has spent already included."""
    from hazemap.orders.spelling import budget

    status = ledger_at(ledger).cap(dataset, budget(epsilon, delta, rho))
    limit, spent, left = _shown(status)
    deliver(_facts(status), as_json, f"{status.name}: cap {limit}; spent {spent}; left {left}")


@app.command(epilog="Example: [bold]hazemap ledger history nyc[/bold]")
def history(
    dataset: Annotated[str | None, typer.Argument(help="One data set's name; all where left out.")] = None,
    ledger: LedgerFile = None,
    as_json: AsJson = False,
) -> None:
    """List every charge, the oldest first, and the file it paid for."""
    from rich.table import Table

    book = ledger_at(ledger)
    records = book.history(dataset)
    table = Table("charge", "when (UTC)", "data set", "price", "what for", "file", box=None)
    for record in records:
        charge = record.charge
        file = record.file or ("released" if record.released else "none: failed, or still running")
        table.add_row(str(charge.id), charge.time, charge.dataset, str(charge.price), charge.what, file)
    empty = f"nothing has been charged yet ({book.path})"
    facts = {"ledger": str(book.path), "charges": [_charge(record) for record in records]}
    deliver(facts, as_json, table if records else empty)


def _shown(status: "DatasetStatus") -> tuple[str, str, str]:
    cap, left = ("none" if value is None else str(value) for value in (status.cap, status.remaining))
    return cap, str(status.spent), left


def _facts(status: "DatasetStatus") -> dict[str, Any]:
    from hazemap.privacy.statement import budget_to_json

    left = status.remaining
    return {
        "dataset": status.name,
        "cap": status.cap and budget_to_json(status.cap),
        "spent": {"measure": status.spent.measure, "value": float(status.spent.value)},
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "charges": status.charges,
        "created": status.created,
    }


def _charge(record: "ChargeRecord") -> dict[str, Any]:
    from hazemap.privacy.statement import budget_to_json

    charge = record.charge
    return {
        "charge": charge.id,
        "dataset": charge.dataset,
        "price": budget_to_json(charge.price),
        "what": charge.what,
        "time": charge.time,
        "released": record.released,
        "file": record.file,
    }
