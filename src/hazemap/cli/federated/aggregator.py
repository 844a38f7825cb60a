"""`hazemap aggregator`: one of the two servers of DAP."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.federated.serving_options import Serving, serving
from hazemap.errors import InputError

EXAMPLE = "Example: [bold]hazemap aggregator --role leader --data leader --task tasks/leader.toml[/bold]"


@serving(None, "page_origin", "uploads", words={"port": "The port. 8471 for a leader, 8472 for a helper."})
def aggregator(
    role: Annotated[str, typer.Option(metavar="ROLE", help="'leader', which takes reports, or 'helper'.")],
    serving: Serving,
    task: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A task, as `hazemap collector task` writes it for this role; again for each other."
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
