"""`hazemap ledger`: what data sets have paid, and may pay, and whose privacy it is."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.shared_options import AsJson, LedgerPlace, ledger_at
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from hazemap.execution.crash_recovery import Recoverable
    from hazemap.privacy.ledger_records import LedgerBalance, ProtectedUnit

app = typer.Typer(
    name="ledger",
    help="Show what data sets have spent, and set the most that they may spend.",
    epilog="Example: [bold]hazemap ledger cap nyc 1[/bold]",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]
People = Annotated[
    str | None,
    typer.Option("--person", metavar="COLUMN", help="The data set protects people, identified by this column."),
]
Rows = Annotated[bool, typer.Option("--rows", help="The data set protects rows: each counts as a person.")]
Devices = Annotated[bool, typer.Option("--devices", help="The data set protects the people of devices.")]
Why = Annotated[str | None, typer.Option(metavar="TEXT", help="Reason, which the history shows.")]


@app.command("list", epilog="Example: [bold]hazemap ledger list[/bold]")
def list_(ledger: LedgerPlace = None, as_json: AsJson = False) -> None:
    """List every page of every data set: whom it protects, its cap, what it has spent, what is left."""
    from rich.table import Table

    from hazemap.privacy.ledger_extract import balance_facts

    book = ledger_at(ledger)
    pages = book.datasets()
    table = Table("data set", "model", "protects", "cap", "spent", "left", "charges", box=None)
    for status in pages:
        table.add_row(status.name, status.model, _whom(status), *_shown(status), str(status.charges))
    empty = f"no data set has paid anything yet ({book.place})"
    facts = {"ledger": str(book.place), "datasets": [balance_facts(status) for status in pages]}
    deliver(facts, as_json, table if pages else empty)


@app.command(epilog="Example: [bold]hazemap ledger cap nyc 1 --why 'board of 3 May'[/bold]")
def cap(
    dataset: Name,
    epsilon: Annotated[str | None, typer.Argument(help="Most that the data set may ever spend, in ε.")] = None,
    delta: Annotated[str | None, typer.Option(help="Cap in (ε, δ) instead of pure ε.")] = None,
    rho: Annotated[str | None, typer.Option(help="Cap in ρ (zero-concentrated privacy) instead of ε.")] = None,
    values_only: Annotated[
        bool, typer.Option("--values-only", help="Use the page of the values-only model instead of the full model's.")
    ] = False,
    person: People = None,
    rows: Rows = False,
    devices: Devices = False,
    why: Why = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Set all that a data set may ever spend, what it has spent already included, and perhaps whom it protects."""
    from hazemap.privacy.budget import amount_of, much
    from hazemap.privacy.ledger_extract import balance_facts
    from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Model
    from hazemap.specs.parsing import budget

    book, limit = ledger_at(ledger), budget(epsilon, delta, rho)
    model: Model = VALUES_ONLY if values_only else FULL
    status = book.cap(dataset, limit, model=model, protects=_protected(person, rows, devices), why=why)
    shown, spent, left = _shown(status)
    page = f"{status.name} (values only)" if values_only else status.name
    deliver(balance_facts(status), as_json, f"{page}: cap {shown}; spent {spent}; left {left}")
    if (words := much(amount_of(limit))) and not as_json:
        note(words)


@app.command(epilog="Example: [bold]hazemap ledger unit nyc --person user[/bold]")
def unit(
    dataset: Name,
    person: People = None,
    rows: Rows = False,
    devices: Devices = False,
    why: Why = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Say whom a data set protects: before its first charge, or if an older hazemap did not note it."""
    whom = _protected(person, rows, devices)
    if whom is None:
        raise InputError("say whom the data set protects, with one of --person COLUMN, --rows and --devices")
    book = ledger_at(ledger)
    book.protect(dataset, whom, why=why)
    deliver({"dataset": dataset, "protects": whom.to_json()}, as_json, f"{dataset}: protects {whom}")


@app.command(epilog="Example: [bold]hazemap ledger history nyc[/bold]")
def history(
    dataset: Annotated[str | None, typer.Argument(help="Name of a data set. Default: all.")] = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """List every charge, the oldest first, and the file it paid for; then every change of a cap."""
    from rich.table import Table

    from hazemap.execution.crash_recovery import recoverable
    from hazemap.privacy.ledger_extract import change_facts, charge_facts

    book = ledger_at(ledger)
    records, changes = book.history(dataset), book.changes(dataset)
    found = {each.record.charge.id: each for each in recoverable(book)}
    running = {number: each.running for number, each in found.items()}
    many = any(record.who for record in records)
    table = Table("charge", "when (UTC)", *["by"] * many, "data set", "price", "of", "what for", "file", box=None)
    for record in records:
        charge, by = record.charge, [record.who or ""] * many
        file = record.file or (
            "released, in memory" if record.released else _not_there(charge.id, found.get(charge.id))
        )
        whose = "not noted" if charge.unit is None else str(charge.unit)
        table.add_row(str(charge.id), charge.time, *by, charge.dataset, str(charge.price), whose, charge.what, file)
    kept = Table("when (UTC)", "data set", "changed", "from", "to", "by", "why", box=None)
    for change in changes:
        old, what = "none" if change.old is None else str(change.old), f"cap, {change.model}"
        row = (change.time, change.dataset, what if change.model else "protects", old, str(change.new))
        kept.add_row(*row, change.who, change.why or "")
    empty = f"nothing has been charged yet ({book.place})"
    facts = {
        "ledger": str(book.place),
        "charges": [charge_facts(record, running) for record in records],
        "changes": [change_facts(change) for change in changes],
    }
    deliver(facts, as_json, table if records else empty, *([kept] if changes else []))


@app.command(epilog="Example: [bold]hazemap ledger init postgresql://db.example/ledger[/bold]")
def init(
    url: Annotated[str, typer.Argument(metavar="URL", help="A PostgreSQL database: postgresql://… without password.")],
    as_json: AsJson = False,
) -> None:
    """Make a ledger of many stewards in a PostgreSQL database: tables, and groups of stewards, owners and auditors.

    Whoever administers the database does it once, and after an update of hazemap; nothing in the ledger changes.
    """
    from hazemap.privacy.ledger_postgresql import set_up

    groups = set_up(url)
    facts = {"ledger": url, "steward": groups.steward, "owner": groups.owner, "auditor": groups.auditor}
    said = "The ledger is there. Who administers the database makes logins members of its groups:"
    deliver(facts, as_json, said, *groups.grants())


@app.command("begin-anew", epilog="Example: [bold]hazemap ledger begin-anew --yes[/bold]")
def begin_anew(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Make an empty ledger where one is gone, though its key or its runs are there: charges and caps are forgotten."""
    book = ledger_at(ledger)
    loss = (
        f"The ledger {book.place} forgets what its data sets have paid, and every cap. Bring back a copy if there is "
        "one; otherwise set each cap again, less what was released."
    )
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise InputError(f"{loss} To do it nevertheless, say --yes")
        typer.confirm(f"{loss} Begin anew?", abort=True)
    book.store.begin_anew()
    deliver({"ledger": str(book.place)}, as_json, f"{book.place}: an empty ledger")


@app.command(epilog="Example: [bold]hazemap ledger export nyc --sign page.key -o nyc.page.json[/bold]")
def export(
    dataset: Name,
    sign: Annotated[Path, typer.Option("--sign", metavar="FILE", help="Secret key, made by `hazemap policy key`.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File to write: the signed page, as JSON.")
    ],
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Write all that the ledger says of a data set, signed: charges, caps and who changed them, no fingerprints."""
    from hazemap.cli.federated.policy import read_secret_key
    from hazemap.execution.signed_ledger_page import SignedLedgerPage
    from hazemap.files.atomic_write import write_whole

    signed = SignedLedgerPage.of(ledger_at(ledger), dataset, read_secret_key(sign))
    try:
        write_whole(output, signed.to_json().encode())
    except OSError as error:
        raise FileError(f"the page {output} cannot be written ({error.strerror})") from error
    facts = {"dataset": dataset, "charges": len(signed.page["charges"]), "key": signed.key.hex(), "file": str(output)}
    deliver(facts, as_json, f"{output}: {facts['charges']} charges of {dataset}, signed by {signed.key.hex()}")


@app.command(epilog="Example: [bold]hazemap ledger verify nyc.page.json --key 9f86d0…[/bold]")
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Signed page, written by `hazemap ledger export`.")],
    key: Annotated[str, typer.Option(metavar="HEX", help="Public key that must have signed it.")],
    older: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Older page; everything on it must be on this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a page is signed by a key and whole, that its charges add up, and that nothing older is gone."""
    from hazemap.cli.federated.policy import parse_public_key
    from hazemap.execution.signed_ledger_page import SignedLedgerPage

    def at(path: Path) -> SignedLedgerPage:
        try:
            return SignedLedgerPage.from_json(path.read_bytes())
        except OSError as error:
            raise FileError(f"the page {path} cannot be read ({error.strerror})") from error

    page = at(file).verify(parse_public_key(key) or b"", None if older is None else at(older))
    spent = {each["model"]: each["spent"] for each in page["pages"]}
    facts = {"dataset": page["dataset"], "charges": len(page["charges"]), "spent": spent, "exported": page["exported"]}
    told = "; ".join(f"{model}: {each['measure']} = {each['value']}" for model, each in spent.items())
    whole = f"{page['dataset']}, {len(page['charges'])} charges, spent {told}, as of {page['exported']}"
    deliver(facts, as_json, f"{whole}: signed by {key}, whole, and its sums are right")


@app.command(epilog="Example: [bold]hazemap ledger forget --days 730[/bold]")
def forget(
    days: Annotated[int, typer.Option(min=1, help="Forget statements of charges older than this many days.")],
    dataset: Annotated[str | None, typer.Argument(metavar="DATASET", help="Name of a data set. Default: all.")] = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Forget the statements of old releases, and fingerprints of tables unused since. No charge is ever forgotten."""
    from datetime import UTC, datetime, timedelta

    try:
        before = datetime.now(UTC) - timedelta(days=days)
    except OverflowError:
        raise InputError(f"{days} days ago there was no ledger") from None
    done = ledger_at(ledger).forget(before, dataset)
    facts = {"before": f"{before:%Y-%m-%dT%H:%M:%SZ}", **done._asdict()}
    said = f"{done.statements} statements and {done.fingerprints} fingerprints are forgotten; every charge is kept"
    deliver(facts, as_json, said)


def _protected(person: str | None, rows: bool, devices: bool) -> "ProtectedUnit | None":
    """The privacy unit that the options name, or None."""
    from hazemap.privacy.ledger_records import ProtectedUnit

    if (person is not None) + rows + devices > 1:
        raise InputError("a data set protects one kind of unit: give one of --person COLUMN, --rows and --devices")
    if person is not None:
        return ProtectedUnit("person", person)
    return ProtectedUnit("row") if rows else ProtectedUnit("device") if devices else None


def _whom(status: "LedgerBalance") -> str:
    if status.protects is None:
        return "not noted" if status.charges else "nobody yet"
    return str(status.protects)


def _shown(status: "LedgerBalance") -> tuple[str, str, str]:
    cap, left = ("none" if value is None else str(value) for value in (status.cap, status.remaining))
    return cap, str(status.spent), left


def _not_there(charge: int, found: "Recoverable | None") -> str:
    """The remark about a charge without a file."""
    if found is None:
        return "none, and nothing of it is kept"
    if found.stopped:
        return f"none: stopped after its look; hazemap recover {charge} --continue"
    return "none yet: still running" if found.running else f"none yet: hazemap recover {charge}"
