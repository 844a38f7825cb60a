"""`hazemap aggregator`: one of the two servers of DAP."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import note
from hazemap.errors import InputError

EXAMPLE = "Example: [bold]hazemap aggregator --role leader --data leader --task tasks/leader.toml[/bold]"
REACHED, KEPT = "How it is reached", "What it keeps"


def aggregator(
    role: Annotated[str, typer.Option(metavar="ROLE", help="'leader', which takes reports, or 'helper'.")],
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", rich_help_panel=KEPT, help="Its folder: database and keys.")
    ],
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
    page_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            rich_help_panel=REACHED,
            help="Where the page is served that makes a browser's tab a device; again for each other one. "
            "By default none.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(rich_help_panel=REACHED, help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, rich_help_panel=REACHED, help="The port. 8471 for a leader, 8472 for a helper."),
    ] = None,
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
    trust_certificate: Annotated[
        Path | None,
        typer.Option(
            "--trust-certificate", metavar="PEM", help="TLS: who signed the helper's certificate, if unusual."
        ),
    ] = None,
) -> None:
    """Run one of the two servers of DAP, each of which sees half of every report.

    Run the leader and the helper on machines of two parties who do not work together: the privacy of reports needs one
    honest server. Stop it with Ctrl-C and start it again: everything goes on where it was.
    """
    import logging

    from hazemap.aggregator.aggregator_process import AggregatorProcess
    from hazemap.aggregator.task_file import TaskFile

    if not task and take_tasks_at is None:
        raise InputError("name a task with --task, or say --take-tasks-at URL to take tasks from coordinators")
    serving = AggregatorProcess(
        role,
        data,
        tuple(TaskFile.read(path) for path in task or ()),
        host,
        port or (8471 if role == "leader" else 8472),
        database=database,
        certificate=certificate,
        key=key,
        behind_proxy=behind_proxy,
        trust_certificate=trust_certificate,
        take_tasks_at=None if take_tasks_at is None else f"{take_tasks_at.rstrip('/')}/",
        page_origins=tuple(page_origin or ()),
    )
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    note(f"the {role} at {serving.url}, from {data}; Ctrl-C ends it, and what runs goes on at the next start")
    serving.run()
