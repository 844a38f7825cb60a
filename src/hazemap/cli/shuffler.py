"""`hazemap shuffler`: it hands sealed messages on in an order that says nothing."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import note

EXAMPLE = "Example: [bold]hazemap shuffler --data shuffler --least 1000[/bold]"
REACHED, KEPT = "How it is reached", "What it keeps"


def shuffler(
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", rich_help_panel=KEPT, help="Its folder: database, key and tokens.")
    ],
    least: Annotated[
        int, typer.Option(min=1, metavar="PEOPLE", help="Nothing below the messages of so many is handed on.")
    ] = 50,
    largest: Annotated[
        int,
        typer.Option(min=1, metavar="MB", rich_help_panel=KEPT, help="Megabytes that all batches together may need."),
    ] = 1_024,
    keep_days: Annotated[
        int,
        typer.Option("--keep-days", min=1, rich_help_panel=KEPT, help="Days that a closed batch waits to be fetched."),
    ] = 7,
    analyser: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=KEPT,
            help="Who may analyse, by a token of its own in the folder; again for others. Without it one, 'analyser'.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(rich_help_panel=REACHED, help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, rich_help_panel=REACHED, help="The port.")] = 8473,
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
) -> None:
    """Run a shuffler: it passes on what devices send to an analyser, who cannot see who sent it.

    The shuffler itself can read nothing. Run it on a machine of a party that does not work with the analyser. Give the
    key that it prints to people, whose devices pin it, and each token in its folder to its analyser. A token ends when
    its file is removed. Stop it with Ctrl-C and start it again: everything goes on where it was.
    """
    import logging
    from hashlib import sha256

    from hazemap.service.served_address import ServedAddress
    from hazemap.shuffler.analyser_tokens import FIRST
    from hazemap.shuffler.batch_limits import BatchLimits
    from hazemap.shuffler.shuffler_process import ShufflerProcess

    serving = ShufflerProcess(
        data,
        ServedAddress(host, port, certificate, key, behind_proxy),
        BatchLimits(least, largest * 1_000_000, keep_days * 86_400),
        database,
        analysers=tuple(analyser or (FIRST,)),
    )
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    note(f"the shuffler at {serving.address.url}, from {data}; Ctrl-C ends it, and what runs goes on at the next start")
    public = serving.public_key()
    note(f"its key: {public}; devices pin its address with #{sha256(bytes.fromhex(public)).hexdigest()}")
    tokens = serving.tokens()
    for name in tokens.names:
        note(f"its analyser {name!r} shows the token in {tokens.path(name)}")
    serving.run()
