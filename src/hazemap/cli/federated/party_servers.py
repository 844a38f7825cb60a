"""`hazemap aggregator` and `hazemap shuffler`: servers of parties who do not work with the coordinator."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import note
from hazemap.cli.federated.serving_options import KEPT, Serving, serving
from hazemap.errors import InputError


@serving(
    None, "page_origin", "uploads", words={"port": "Port to listen on. Default: 8471 for a leader, 8472 for a helper."}
)
def aggregator(
    role: Annotated[str, typer.Option(metavar="ROLE", help="leader, which receives reports, or helper.")],
    serving: Serving,
    task: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Task file for this role, written by `hazemap collector task`. May be repeated."
        ),
    ] = None,
    take_tasks_at: Annotated[
        str | None,
        typer.Option(
            "--take-tasks-at",
            metavar="URL",
            help="Take tasks from coordinators that have the token DIR/provisioning.token; URL is this server's own "
            "address, as devices use it.",
        ),
    ] = None,
    trust_certificate: Annotated[
        Path | None,
        typer.Option(
            "--trust-certificate", metavar="PEM", help="TLS: certificate authority of the helper, if not a public one."
        ),
    ] = None,
) -> None:
    """Run one of the two servers of DAP, each of which sees half of every report.

    Run the leader and the helper on machines of two parties who do not work together: the privacy of reports needs one
    honest server. Stop it with Ctrl-C and start it again: everything goes on where it was.
    """
    from hazemap.federated.aggregator.aggregator_process import AggregatorProcess
    from hazemap.federated.aggregator.task_file import TaskFile

    if not task and take_tasks_at is None:
        raise InputError("name a task with --task, or say --take-tasks-at URL to take tasks from coordinators")
    process = AggregatorProcess(
        role,
        serving.state,
        tuple(TaskFile.read(path) for path in task or ()),
        serving.address(8471 if role == "leader" else 8472),
        trust_certificate=trust_certificate,
        take_tasks_at=None if take_tasks_at is None else f"{take_tasks_at.rstrip('/')}/",
        page_origins=serving.page_origins,
    )
    serving.begin(f"the {role}", process.address.url)
    process.run()


@serving(8473)
def shuffler(
    serving: Serving,
    least: Annotated[
        int, typer.Option(min=1, metavar="PEOPLE", help="Fewest people whose messages are passed on.")
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
    from hazemap.federated.shuffler.shuffler_process import ShufflerProcess
    from hazemap.federated.shuffler.shuffler_service import BatchLimits

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
