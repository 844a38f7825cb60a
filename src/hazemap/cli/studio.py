"""`hazemap studio`: release maps in a browser."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import note
from hazemap.cli.federated.serving_options import REACHED, Serving, serving
from hazemap.cli.shared_options import LedgerPlace
from hazemap.errors import InputError

SERVER = "Campaigns and studies"


@serving(
    8475,
    state=False,
    words={
        "connections": "Connections open at a time. Default: 256.",
        "per_address": "Connections open, and requests under way, from one address. Default: 64.",
    },
)
def studio(
    serving: Serving,
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of tables and maps; nothing outside of it is read or written.")
    ] = None,
    ledger: LedgerPlace = None,
    users: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Serve several users: a TOML file with a table for each, of folder, ledger and token file.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", rich_help_panel=SERVER, help="URL of a coordinator, to run campaigns and studies."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=SERVER,
            help="File with your token for the coordinator; browsers never see it.",
        ),
    ] = None,
    trust_certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="PEM", rich_help_panel=SERVER, help="TLS: certificate authority of the server, if not a public one."
        ),
    ] = None,
    aggregator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL[,FILE]",
            rich_help_panel=SERVER,
            help=(
                "URL of an aggregator whose health is shown; with the file of its operator's token also its "
                "tasks. May be repeated."
            ),
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the studio in a browser.")] = True,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", rich_help_panel=REACHED, help="Another host name of the studio. May be repeated."),
    ] = None,
) -> None:
    """Publish maps in a browser: look at a table, plan, compare prices, release and view.

    It listens on this machine alone, and prints a link that lets one browser in. Another address needs TLS and --users.

    With --server it also runs campaigns and studies on a coordinator; then FOLDER is by default the one you are in.

    It keeps nothing: the ledger and the folder do. Everything it does it shows as a command and as Python, too.
    """
    import logging

    from hazemap.studio.coordinator_access import CoordinatorAccess
    from hazemap.studio.stewards import Stewards
    from hazemap.studio.studio_process import Studio

    if server is not None and users is None and folder is None:
        folder = Path()
    if (folder is None) == (users is None):
        raise InputError(
            "name the folder of your tables and maps, or with --users a file that names those of each user"
        )
    if users is not None and ledger is not None:
        raise InputError("users have a ledger each, which their file names: leave --ledger out")
    if users is not None and (server or token_file or trust_certificate or aggregator):
        raise InputError("users have a server each, which their file names with server and server_token")
    if (server is None) != (token_file is None) or (server is None and (trust_certificate or aggregator)):
        raise InputError("name a coordinator with --server and the file of your token for it with --token-file")
    access = None
    if server is not None and token_file is not None:
        access = CoordinatorAccess.at(server, token_file, trust_certificate, tuple(aggregator or ()))
    stewards = Stewards.alone(folder, ledger, access) if folder is not None else Stewards.of_file(users or Path())
    process = Studio(stewards, serving.address(), tuple(name or ()))
    serving.log(logging.WARNING)
    for steward in stewards.by_name.values():
        token = f"; the token is in {steward.token}" if steward.token else ""
        note(f"{steward.name} works in {steward.root.path} with the ledger {steward.ledger.place}{token}")
    note("Ctrl-C ends it; what was paid for and is not there then, `hazemap recover` makes")
    process.run(browser)
