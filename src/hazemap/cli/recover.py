"""`hazemap recover`: files that were paid for and are not there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.shared_options import AsJson, Force, LedgerPlace, Memory, ledger_at
from hazemap.errors import HazemapError, InputError
from hazemap.specs.spec_fields import FILE

if TYPE_CHECKING:
    from hazemap.execution.crash_recovery import Recoverable
    from hazemap.privacy.ledger import Ledger


def recover(
    charge: Annotated[
        int | None,
        typer.Argument(help="Number of a charge in the ledger. Default: list all charges that can be recovered."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", rich_help_panel=FILE, help="Write this file instead of the one in the original command."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Finish all runs that can be finished, each to its own file.")
    ] = False,
    same_table: Annotated[
        bool,
        typer.Option(
            "--same-table",
            help=(
                "Confirm that the rows are unchanged where hazemap cannot tell: the file was touched, or the "
                "table is in a database or Spark."
            ),
        ),
    ] = False,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Pay the rest of a release that stopped after its first rounds.")
    ] = False,
    force: Force = False,
    memory: Memory = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the file of a paid release after a crash, a full disk or a failed write.

    It uses the answers that were kept, at no price, and asks the same table what was not asked yet. Only a question
    that was being answered in the instant of the crash is paid again.
    """
    if everything and go_on:
        raise InputError("--continue needs the number of a charge: hazemap recover CHARGE --continue")
    if everything and (charge is not None or output is not None):
        raise InputError("give either one charge (and -o if you like) or --all")
    book = ledger_at(ledger)
    if charge is None and not everything:
        return show(book, as_json)
    from hazemap.execution.crash_recovery import recover as made_again
    from hazemap.execution.crash_recovery import recoverable, sweep

    options: dict[str, Any] = {
        "ledger": book,
        "overwrite": force,
        "same_table": same_table,
        "go_on": go_on,
        "memory_limit": None if memory is None else memory << 20,
    }
    found = recoverable(book) if charge is None else []
    numbers = (
        [each.record.charge.id for each in found if (each.output or each.fault) and not each.stopped]
        if charge is None
        else [charge]
    )
    done, failed = [], []
    for number in numbers:
        try:
            with progress() as tell:
                made_again(number, output=output, progress=tell, **options)
        except HazemapError as error:
            if not everything:
                raise
            failed.append((number, error))
            note(f"charge {number}: {error}") if not as_json else None
            continue
        done.append({"charge": number, "file": _file(book, number)})
    sweep(book)
    lines = [f"{each['file']}: recovered, of charge {each['charge']}" for each in done]
    missed = [{"charge": number, "error": str(error)} for number, error in failed]
    deliver({"recovered": done, "failed": missed}, as_json, *(lines or ["nothing was recovered"]))
    if failed:
        raise typer.Exit(failed[0][1].exit_code)
    return None


def show(book: "Ledger", as_json: bool) -> None:
    """List what can be recovered."""
    from rich.table import Table

    from hazemap.execution.crash_recovery import recoverable, sweep

    sweep(book)
    found = recoverable(book)
    table = Table("charge", "when (UTC)", "data set", "price", "file", "what is there", box=None)
    for each in found:
        charge = each.record.charge
        file = each.output or ("not known" if each.fault else "none (in memory)")
        row = (str(charge.id), charge.time, charge.dataset, str(charge.price), file)
        table.add_row(*row, each.state)
    facts = {"recoverable": [_facts(each) for each in found]}
    deliver(facts, as_json, table if found else f"every charge has its file ({book.place}), or nothing of it is kept")


def _facts(each: "Recoverable") -> dict[str, Any]:
    charge = each.record.charge
    return {
        "charge": charge.id,
        "dataset": charge.dataset,
        "what": charge.what,
        "file": each.output,
        "source": None if each.source is None else str(each.source),
        "answered": each.answered,
        "ended": each.ended,
        "running": each.running,
        "fault": each.fault,
        "stopped": each.stopped,
    }


def _file(book: "Ledger", charge: int) -> str | None:
    return next(record.file for record in book.history() if record.charge.id == charge)
