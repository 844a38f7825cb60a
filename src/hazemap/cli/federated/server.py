"""`hazemap server`: the coordinator of campaigns among devices; who may enrol, order and look."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.federated.serving_options import (
    KEPT,
    LOCAL,
    REACHED,
    CoordinatorOptions,
    Server,
    Serving,
    TrustCertificate,
    serving,
)
from hazemap.cli.main import RunByDefault
from hazemap.cli.shared_options import AsJson, LedgerPlace, ledger_at
from hazemap.errors import CodecError, InputError
from hazemap.files.text_files import read_text

LET_IN = "Who enrols"


app = typer.Typer(
    name="server",
    cls=RunByDefault,
    help="Run the coordinator and manage who may enrol devices, order and view campaigns.",
    epilog="Example: [bold]hazemap server --data coordinator[/bold]",
    no_args_is_help=True,
)


@app.command(epilog="Example: [bold]hazemap server run --data coordinator[/bold]")
@serving(8470, "page_origin", "enrolments")
def run(
    serving: Serving,
    url: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", rich_help_panel=REACHED, help="Public URL of the server. May be repeated."),
    ] = None,
    enrolment: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            rich_help_panel=LET_IN,
            help="How devices enrol besides with a one-time code: token (DIR/enrolment.token, which all share; for "
            "tests), codes (no other way), attestation, or open (anyone).",
        ),
    ] = "token",
    attestation: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            rich_help_panel=LET_IN,
            help="Python function that decides who may enrol.",
        ),
    ] = None,
    ticket_days: Annotated[
        int,
        typer.Option(
            min=1, max=3650, rich_help_panel=LET_IN, help="Days until a device must prove its identity again."
        ),
    ] = 90,
    peers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=KEPT,
            help="Aggregators and shufflers that campaigns may name, with their tokens: TOML, a table with url and "
            "token in the list 'server' for each.",
        ),
    ] = None,
    peer_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="PEM", rich_help_panel=KEPT, help="TLS: certificate authority of the peers, if not a public one."
        ),
    ] = None,
    ledger: LedgerPlace = None,
) -> None:
    """Serve devices and campaigns until Ctrl-C; start it again, and everything goes on where it was.

    DIR/operator.token lets `hazemap campaign` and `hazemap server` give orders. It is made at the first start, and only
    you may read it.
    """
    from hazemap.federated.device.recipes.recipe_check import check_recipe
    from hazemap.federated.server.campaign_house import NO_PEERS, PeerServers
    from hazemap.federated.server.server_process import ServerProcess

    process = ServerProcess(
        serving.state,
        serving.address(),
        urls=tuple(url or ()),
        page_origins=serving.page_origins,
        enrolment=enrolment,
        attestation=attestation,
        ticket_days=ticket_days,
        ledger=ledger_at(ledger),
        peers=NO_PEERS if peers is None else PeerServers.read(peers, peer_certificate),
        judge=lambda recipe, policy, honest: check_recipe(recipe, policy, honest).reasons,
    )
    serving.begin("the server", process.address.url)
    process.run()


@app.command(epilog="Example: [bold]hazemap server codes --number 300 --days 30 --token-file operator.token[/bold]")
def codes(
    coordinator: CoordinatorOptions,
    number: Annotated[int, typer.Option(min=1, max=100_000, help="Number of codes.")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until the codes expire.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Make enrolment codes, one for each device. They are shown once, since the server keeps only their hashes."""
    with coordinator.connect() as line:
        made = line.order("/v1/codes", {"number": number, "days": days})["codes"]
    deliver({"codes": made, "days": days}, as_json, *made)


@app.command(epilog="Example: [bold]hazemap server devices --token-file operator.token[/bold]")
def devices(coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """List all devices that ever enrolled, with the times of their enrolment, expiry and last contact."""
    with coordinator.connect() as line:
        every = line.get("/v1/devices")["devices"]

    def told(row: dict[str, Any]) -> str:
        state = f"revoked {row['revoked']}" if row["revoked"] else f"until {row['expires'] or 'it enrols again'}"
        heard = "not since the server was started" if row["silent"] is None else f"{row['silent']:,.0f} s ago"
        return f"{row['device']}  enrolled {row['enrolled']}, {state}, heard of {heard}"

    deliver({"devices": every}, as_json, *map(told, every), f"{len(every):,} devices")


@app.command(epilog="Example: [bold]hazemap server revoke ee5702d297e516eb --token-file operator.token[/bold]")
def revoke(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="Name of the device, as `hazemap server devices` lists it.")
    ],
    coordinator: CoordinatorOptions,
) -> None:
    """Revoke a device at once and for good. In a sum that is under way it counts as dropped out."""
    from urllib.parse import quote

    with coordinator.connect() as line:
        line.post(f"/v1/devices/{quote(device, safe='')}/revoke")
    note(f"{device} is revoked")


@app.command(
    epilog="Example: [bold]hazemap server token --role auditor --name ben --days 90 --token-file operator.token[/bold]"
)
def token(
    coordinator: CoordinatorOptions,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the holder: one person or one machine.")],
    role: Annotated[str | None, typer.Option(metavar="ROLE", help="operator, analyst or auditor.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until the token expires.")] = 90,
    epsilon: Annotated[
        str | None, typer.Option(metavar="ε", help="Most that all campaigns of this analyst may cost together.")
    ] = None,
    campaigns: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=1_000, help="Most campaigns of this analyst at a time. Default: 1."),
    ] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the token of this name instead.")] = False,
) -> None:
    """Issue a token, or revoke it with --revoke. A new token replaces one of the same name at once."""
    from urllib.parse import quote

    if revoke == (role is not None):
        raise InputError("give --role to issue a token, or --revoke to end one")
    with coordinator.connect() as line:
        if revoke:
            line.post(f"/v1/tokens/{quote(name, safe='')}/revoke")
            note(f"the token of {name} is revoked")
            return
        limits = {key: value for key, value in (("epsilon", epsilon), ("campaigns", campaigns)) if value is not None}
        made = line.order("/v1/tokens", {"name": name, "role": role, "days": days, **limits})
    typer.echo(made["token"])


@app.command(epilog="Example: [bold]hazemap server tokens --token-file operator.token[/bold]")
def tokens(coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """List the holders of tokens with role and expiry."""
    with coordinator.connect() as line:
        every = line.get("/v1/tokens")["tokens"]

    def told(row: dict[str, Any]) -> str:
        limits = f", ε = {row['epsilon']} in all, {row['campaigns']} at a time" if row["epsilon"] else ""
        state = f"revoked {row['revoked']}" if row["revoked"] else f"until {row['expires']}"
        return f"{row['name']}  {row['role']}{limits}, issued {row['issued']}, {state}"

    deliver({"tokens": every}, as_json, *map(told, every))


@app.command(epilog="Example: [bold]hazemap server audit --verify --token-file auditor.token[/bold]")
def audit(
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", metavar="FILE", envvar="HAZEMAP_TOKEN_FILE", help="An auditor's or operator's token."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that no entry was changed, and print the last one.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(metavar="JSONL", help="Read this exported log instead of a server's.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="Hash of an earlier entry, which must be in the log.")
    ] = None,
    server: Server = LOCAL,
    trust_certificate: TrustCertificate = None,
) -> None:
    """Print the audit log as JSON lines, or check it."""
    from hazemap.federated.server.roles import checked

    if file is not None:
        lines = read_text(file, "the log", 1 << 32).splitlines()
    elif token_file is None:
        raise InputError("give --token-file to ask a server for its log, or --file with one that was exported")
    else:
        coordinator = CoordinatorOptions(token_file=token_file, server=server, trust_certificate=trust_certificate)
        with coordinator.connect() as line:
            lines = []
            while some := line.content(f"/v1/audit?after={len(lines)}").decode().splitlines():
                lines += some
    if not verify and head is None:
        for each in lines:
            typer.echo(each)
        return
    found = checked(lines)
    if head is not None and not any(f'"digest":"{head}"' in each for each in lines):
        raise CodecError("the audit log does not hold the entry that was noted: its end was cut off, or all is new")
    typer.echo(f"{found.entries:,} entries follow each other; the last is {found.digest}")
