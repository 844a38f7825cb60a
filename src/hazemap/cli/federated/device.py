"""`hazemap device` and `hazemap browser-device`: a person's own rows, answering from where they are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.federated.device_options import (
    CLOCK,
    TABLE,
    TESTS,
    ColumnOptions,
    EnrolmentOptions,
    Number,
    PolicyFile,
    StoreOptions,
    StorePlace,
    clock,
    one_device,
)
from hazemap.cli.federated.recipe import EXPLAIN, explain
from hazemap.cli.main import RunByDefault
from hazemap.cli.shared_options import AsJson
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from hazemap.federated.device.account.recipe_account import BudgetLine


app = typer.Typer(
    name="device",
    cls=RunByDefault,
    help="Keep a person's rows and answer campaigns without revealing them.",
    epilog="Example: [bold]hazemap device --many 1000 --table people.parquet --token-file enrolment.token[/bold]",
    no_args_is_help=True,
)


@app.command(epilog="Example: [bold]hazemap device enrol --server https://maps.example --token-file token[/bold]")
def enrol(
    coordinator: EnrolmentOptions,
    store: StoreOptions,
    new_identity: Annotated[
        bool,
        typer.Option(
            "--new-identity",
            help="Accept a new identity of the server, if its operator has confirmed that identity.key was lost.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Enrol this device with a server. It keeps its identity, or gets one if it has none."""
    import asyncio

    from hazemap.federated.device.device_process import DeviceProcess
    from hazemap.federated.device.enrolment import add, devices, read
    from hazemap.federated.device.http_client import check_server_address

    server = check_server_address(coordinator.server)
    with store.open(create=True) as file:
        if not devices(file):
            add(file)
        running = DeviceProcess(file, store.rules(), coordinator.trust_certificate)
        new = asyncio.run(running.enrol(server, coordinator.tokens, moved=new_identity))
        names = [read(file, device).name for device in devices(file)]
    who = f"{names[0]} is" if len(names) == 1 else f"{len(names):,} devices are"
    facts = {"server": server, "devices": names, "new": new}
    deliver(facts, as_json, f"{who} enrolled at {server}; `hazemap device run` answers it")


@app.command(epilog="Example: [bold]hazemap device add visits.csv --keep 30[/bold]")
def add(
    source: Annotated[
        str,
        typer.Argument(metavar="TABLE", help="Parquet, CSV or GeoParquet: rows of this one person, or of many."),
    ],
    columns: ColumnOptions,
    store: StoreOptions,
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", rich_help_panel=TABLE, help="Add events of this stream instead of rows of places."
        ),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=TABLE,
            help="Column of the person's id: each person gets a device in this store.",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="DAYS",
            min=1,
            rich_help_panel=TABLE,
            help="Days that each row is kept. Default: as the policy says.",
        ),
    ] = None,
    device: Number = None,
    as_json: AsJson = False,
) -> None:
    """Add rows, or events of a stream, to the encrypted store. The device deletes old ones for good.

    With --person each person of the table gets a device of their own in this store, for tests and load tests.
    """
    from hazemap.cli.federated.device_options import donate_events, keep_many, keep_places

    table = columns.table
    if person is not None and device is not None:
        raise InputError("--person gives each person a device: leave --device out")
    with store.open(create=True) as file:
        if stream not in (None, "places"):
            if keep is not None or any(value for name, value in table.items() if name != "time_format"):
                raise InputError("columns and retention of a stream are the policy's: leave out the other options")
            facts, said = donate_events(file, Path(source), stream, person, device, store, table["time_format"])
        elif person is not None:
            facts, said = keep_many(file, source, person, keep or store.rules().keep, table)
        else:
            facts, said = keep_places(file, source, device, keep or store.rules().keep, table)
    deliver(facts, as_json, said)


@app.command(epilog="Example: [bold]hazemap device accept policy.signed.json --key 9f86d0…[/bold]")
def accept(
    policy: Annotated[Path, typer.Argument(metavar="FILE", help="A policy signed by `hazemap policy sign`.")],
    store: StoreOptions,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="HEX", help="Public key that must have signed the policy, on first use. It is pinned for good."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Accept a signed policy: which recipes this device may answer, at which price. Older versions are refused."""
    from datetime import UTC, datetime

    from hazemap.cli.federated.policy import parse_public_key, read_signed_policy
    from hazemap.federated.device.policy.shipped_policies import ShippedPolicies

    signed = read_signed_policy(policy)
    with store.open(create=True) as file:
        taken = ShippedPolicies(file).accept(signed, parse_public_key(key), datetime.now(UTC)).policy
    facts = {"name": taken.name, "version": taken.version, "key": signed.key.hex()}
    deliver(facts, as_json, f"{taken.name}, version {taken.version}, rules what recipes may ask of this device")


@app.command(epilog="Example: [bold]hazemap device budget[/bold]")
def budget(store: StoreOptions, device: Number = None, policy: PolicyFile = None, as_json: AsJson = False) -> None:
    """Show what is left of the budgets for recipes: per analysis, per field and in total."""
    from datetime import UTC, datetime

    from hazemap.federated.device.account.account_clock import AccountClock
    from hazemap.federated.device.account.recipe_account import budget_lines

    with store.open() as file:
        rules = store.allowed(file, policy)
        now = AccountClock(file).reading(datetime.now(UTC)).now
        lines = list(budget_lines(file, one_device(file, device), rules, now))
    facts = {"policy": rules.name, "version": rules.version, "budgets": [each.to_json() for each in lines]}
    deliver(facts, as_json, f"{rules.name}, version {rules.version}, within your own rules", budget_table(lines))


def budget_table(lines: "list[BudgetLine]") -> "Table":
    """Every budget and what is left of it, for people."""
    from rich.table import Table

    table = Table("", "of", "days", "allowed", "used", "left", "δ used", "reports", "ε₀ at most", box=None)
    for each in lines:
        numbers = [f"{each.unit} = {float(number):.6g}" for number in (each.allowed, each.used, each.left)]
        local = "" if each.local_epsilon is None else f"{float(each.local_epsilon):.6g}"
        reports = f"{each.reports_used:,} of {each.reports_allowed:,}"
        table.add_row(each.kind, each.name, f"{each.days:,}", *numbers, f"{float(each.delta_used):.3g}", reports, local)
    return table


@app.command(epilog="Example: [bold]hazemap device run --until-idle 600[/bold]")
def run(
    columns: ColumnOptions,
    coordinator: EnrolmentOptions,
    store: StoreOptions,
    many: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            rich_help_panel=TESTS,
            help="Number of devices, one for each of the first people of --table.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", rich_help_panel=TESTS, help="Table of the people of --many: Parquet or CSV."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel=TESTS, help="Column of the person's id. Default: guessed."),
    ] = None,
    each_row: Annotated[
        bool, typer.Option("--each-row", rich_help_panel=TESTS, help="Count each row of the table as a person.")
    ] = False,
    drop: Annotated[
        str,
        typer.Option(metavar="PART", rich_help_panel=TESTS, help="Share of devices that fall silent during a session."),
    ] = "0",
    connections: Annotated[
        int, typer.Option(min=1, max=1024, rich_help_panel=TESTS, help="Connections that devices share.")
    ] = 32,
    until_idle: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="End after so many seconds without a question. Default: never."),
    ] = None,
    policy: PolicyFile = None,
    as_json: AsJson = False,
) -> None:
    """Ask the server for work and answer it, for as long as the policy and its budget allow, until Ctrl-C.

    With --many each person of a table gets a device. Without --store these devices are forgotten at the end.
    """
    import asyncio
    import logging
    from contextlib import ExitStack
    from dataclasses import asdict, replace
    from tempfile import TemporaryDirectory

    from hazemap.cli.federated.device_options import place_people
    from hazemap.federated.device.device_process import DeviceProcess
    from hazemap.privacy.budget import exact

    part, places = exact(drop, "--drop"), columns.table
    if not 0 <= part <= 1:
        raise InputError(f"--drop is a fraction of the devices, from 0 to 1; found {drop}")
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("hazemap.federated.device").setLevel(logging.ERROR if many else logging.INFO)
    with ExitStack() as stack:
        if many and store.store is None:
            folder = stack.enter_context(TemporaryDirectory(prefix="hazemap-devices-"))
            store = replace(store, store=Path(folder) / "devices.sqlite")
        file = stack.enter_context(store.open(create=bool(many)))
        running = DeviceProcess(
            file,
            store.rules(policy),
            coordinator.trust_certificate,
            connections,
            part,
            until_idle,
            lean=bool(many),
            tell=lambda tally: note(str(tally)) if many and not as_json else None,
        )
        if many:
            place_people(file, many, table, person, each_row, **places)
            asyncio.run(running.enrol(coordinator.server, coordinator.tokens))
        tally = asyncio.run(running.run())
    deliver(asdict(tally), as_json, str(tally))


@app.command(epilog="Example: [bold]hazemap device log[/bold]")
def log(store: StoreOptions, device: Number = None, as_json: AsJson = False) -> None:
    """Show every request to this device, what it sent, what that cost, and what it refused."""
    from hazemap.federated.device.account.activity_log import ActivityLog

    with store.open() as file:
        lines = ActivityLog(file, one_device(file, device)).entries()
    facts = [line.to_json() for line in lines]
    deliver({"log": facts}, as_json, *(map(str, lines) if lines else ["nothing was ever asked, and nothing sent"]))


@app.command(epilog="Example: [bold]hazemap device policy --write[/bold]")
def policy(
    store: StorePlace,
    write: Annotated[bool, typer.Option("--write", help="Write policy.toml beside the store, for editing.")] = False,
    file: PolicyFile = None,
) -> None:
    """Print the rules of this device with explanations, as TOML."""
    from hazemap.files.atomic_write import write_whole

    text = store.rules(file).to_toml()
    if not write:
        typer.echo(text, nl=False)
        return
    goal = store.policy_path
    if goal.exists():
        raise InputError(f"the file {goal} exists: edit it, or remove it first")
    goal.parent.mkdir(parents=True, exist_ok=True)
    write_whole(goal, text.encode())
    note(f"{goal}: edit it; the device reads it when it starts")


app.command(epilog=EXPLAIN)(explain)
app.command(epilog=CLOCK)(clock)


@app.command(epilog="Example: [bold]hazemap device status[/bold]")
def status(store: StoreOptions, device: Number = None, policy: PolicyFile = None, as_json: AsJson = False) -> None:
    """Show what the device keeps, where it is enrolled, and what it has spent."""
    from datetime import UTC, datetime, timedelta

    from hazemap.federated.device import enrolment
    from hazemap.federated.device.account.account_clock import AccountClock
    from hazemap.federated.device.account.account_head import ForgottenCharges
    from hazemap.federated.device.account.privacy_account import PrivacyAccount, digits, spent
    from hazemap.federated.device.store.row_store import RowStore

    rules = store.rules(policy)
    with store.open() as file:
        devices = len(enrolment.devices(file))
        number = one_device(file, device)
        known, rows = enrolment.read(file, number), len(RowStore(file, number))
        charges = PrivacyAccount(file, number).charges()
        now = AccountClock(file).reading(datetime.now(UTC)).now
        forgotten = ForgottenCharges(file, number).within(rules.days, now)
    recent = max(spent(charges, since=now - timedelta(days=rules.days)), rules.period * forgotten)
    campaigns = {name: spent(charges, campaign=name) for name in dict.fromkeys(each.campaign for each in charges)}
    facts = {
        "store": str(store.path),
        "devices": devices,
        "device": number,
        "name": known.name,
        "server": known.server,
        "rows": rows,
        "spent": str(recent),
        "period": str(rules.period),
        "days": rules.days,
        "campaigns": {name: str(each) for name, each in campaigns.items()},
    }
    who = f"{known.name} at {known.server}" if known.server else "a device that is not enrolled"
    deliver(
        facts,
        as_json,
        f"{who}: {rows:,} rows",
        f"spent ε = {digits(recent)} of {digits(rules.period)} in the last {rules.days} days",
        *(f"  {name}: ε = {digits(each)} of {digits(rules.campaign)}" for name, each in campaigns.items()),
    )


@app.command(epilog="Example: [bold]hazemap device forget --yes[/bold]")
def forget(
    store: StoreOptions,
    everything: Annotated[
        bool,
        typer.Option("--everything", help="Also delete identity, account, log and key: the whole file."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete all rows and events for good; what was sent in sums cannot be taken back."""
    from hazemap.federated.device.store.event_store import forget as forget_events
    from hazemap.federated.device.store.row_store import forget as forget_rows

    what = "the rows, events, identity, account and log" if everything else "all rows and events"
    with store.open() as file:
        if not yes and not typer.confirm(f"Delete {what} in {file.path} for good?"):
            raise typer.Abort
        if everything:
            file.forgotten()
        else:
            forget_rows(file)
            forget_events(file)
    note(f"{what} are gone from {store.path}; copies and backups are yours to look after")


def browser_device(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page to this file, for a web server."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="URL", help="Compare the page at this address with this one, byte by byte.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port on which to serve the page to this machine alone.")
    ] = 8471,
    as_json: AsJson = False,
) -> None:
    """Serve, write or compare the page that makes a browser tab a device, and print its SHA-256.

    Without --output or --compare it is served to this machine alone.

    It must come from another origin than the coordinator, who names that origin with `hazemap server --page-origin`.
    """
    from hazemap.federated.device.tab.device_page import DevicePage
    from hazemap.federated.service.served_address import ServedAddress

    if output is not None and compare is not None:
        raise InputError("give either --output or --compare, not both")
    built = DevicePage.built()
    if compare is not None:
        import httpx

        try:
            with httpx.Client(timeout=30) as http:
                built.compare(http, compare)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise InputError(f"{compare} cannot be reached") from None
        deliver({"sha256": built.digest, "same": True}, as_json, f"the page at {compare} is this one: {built.digest}")
        return
    if output is not None:
        try:
            output.write_bytes(built.content)
        except OSError as error:
            raise FileError(f"{output} cannot be written: {error.strerror}") from None
        deliver({"sha256": built.digest, "file": str(output)}, as_json, f"{built.digest}  {output}")
        return
    address = ServedAddress("127.0.0.1", port)
    deliver({"sha256": built.digest, "url": address.url}, as_json, f"{built.digest}  {address.url}/")
    note("for this machine alone; Ctrl-C ends it")
    address.serve(built.application())
