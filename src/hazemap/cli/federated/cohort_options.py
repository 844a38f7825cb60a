"""Options by which campaigns and studies say whom they ask, and how long people have."""

from typing import Annotated

import typer

PEOPLE, TIME = "The people", "Time"

People = Annotated[int, typer.Option(min=2, rich_help_panel=PEOPLE, help="The number of people asked in a round.")]
ShardSize = Annotated[
    int | None, typer.Option(min=2, rich_help_panel=PEOPLE, help="People in one secure sum. By default 1000.")
]
Dropout = Annotated[
    str, typer.Option(metavar="PART", rich_help_panel=PEOPLE, help="The share of a shard that may drop out.")
]
Corrupt = Annotated[
    str,
    typer.Option(metavar="PART", rich_help_panel=PEOPLE, help="The share of people who may collude with the server."),
]
StageSeconds = Annotated[
    float, typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="Seconds that devices have for each stage.")
]
QuietSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        rich_help_panel=TIME,
        help="End a stage early once enough devices have answered and none for this many seconds.",
    ),
]
WaitSeconds = Annotated[
    float, typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="Seconds that a round waits for its people.")
]
