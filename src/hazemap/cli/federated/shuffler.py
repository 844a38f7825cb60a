"""`hazemap shuffler`: it hands sealed messages on in an order that says nothing."""

from typing import Annotated

import typer

from hazemap.cli.console_output import note
from hazemap.cli.federated.serving_options import KEPT, Serving, serving

EXAMPLE = "Example: [bold]hazemap shuffler --data shuffler --least 1000[/bold]"


@serving(8473)
def shuffler(
    serving: Serving,
    least: Annotated[
        int, typer.Option(min=1, metavar="PEOPLE", help="The fewest people whose messages are passed on.")
    ] = 50,
    largest: Annotated[
        int,
        typer.Option(min=1, metavar="MB", rich_help_panel=KEPT, help="Memory limit of all batches, in megabytes."),
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
            help="Name of an analyser, which gets a token in the folder. May be repeated. Default: analyser.",
        ),
    ] = None,
) -> None:
    """Run a shuffler: it passes on what devices send to an analyser, who cannot see who sent it.

    The shuffler itself can read nothing. Run it on a machine of a party that does not work with the analyser. Give the
    key that it prints to people, whose devices pin it, and each token in its folder to its analyser. A token ends when
    its file is removed. Stop it with Ctrl-C and start it again: everything goes on where it was.
    """
    from hashlib import sha256

    from hazemap.federated.shuffler.analyser_client import FIRST
    from hazemap.federated.shuffler.batch_limits import BatchLimits
    from hazemap.federated.shuffler.shuffler_process import ShufflerProcess

    process = ShufflerProcess(
        serving.state,
        serving.address(),
        BatchLimits(least, largest * 1_000_000, keep_days * 86_400),
        analysers=tuple(analyser or (FIRST,)),
    )
    serving.begin("the shuffler", process.address.url)
    public, tokens = process.key().public, process.tokens()
    note(f"its key: {public.hex()}; devices pin its address with #{sha256(public).hexdigest()}")
    for name in tokens.names:
        note(f"its analyser {name!r} shows the token in {tokens.path(name)}")
    process.run()
