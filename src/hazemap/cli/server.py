"""`hazemap server`: the coordinator of campaigns among devices."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import note
from hazemap.cli.shared_options import LedgerFile, ledger_at

EXAMPLE = "Example: [bold]hazemap server --data coordinator[/bold]"

REACHED, KEPT = "How it is reached", "What it keeps"


def server(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="DIR",
            rich_help_panel=KEPT,
            help="Its folder: database, tokens, releases.",
        ),
    ],
    host: Annotated[str, typer.Option(rich_help_panel=REACHED, help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, rich_help_panel=REACHED, help="The port.")] = 8470,
    certificate: Annotated[
        Path | None, typer.Option(metavar="PEM", rich_help_panel=REACHED, help="TLS: the certificate (chain).")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="PEM", rich_help_panel=REACHED, help="TLS: its key.")] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", rich_help_panel=REACHED, help="A proxy before it speaks TLS: plain HTTP."),
    ] = False,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL", rich_help_panel=KEPT, help="postgresql://…, instead of an SQLite file in the folder."
        ),
    ] = None,
    open_enrolment: Annotated[
        bool,
        typer.Option("--open-enrolment", help="Let any device enrol, without the token in DIR/enrolment.token."),
    ] = False,
    ledger: LedgerFile = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log every stage of every sum.")] = False,
) -> None:
    """Serve devices and campaigns until Ctrl-C; start it again, and everything goes on where it was.

    DIR/operator.token lets `hazemap campaign` give orders; DIR/enrolment.token lets devices enrol. Both are made at the
    first start, and only you may read them.
    """
    import logging

    from hazemap.server.server_process import ServerProcess

    serving = ServerProcess(
        data,
        host,
        port,
        database=database,
        certificate=certificate,
        key=key,
        behind_proxy=behind_proxy,
        open=open_enrolment,
        ledger=ledger_at(ledger),
    )
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("hazemap.protocols.secure_aggregation").setLevel(logging.INFO if verbose else logging.WARNING)
    note(f"{serving.url}, from {data}; Ctrl-C ends it, and what runs goes on at the next start")
    serving.run()
