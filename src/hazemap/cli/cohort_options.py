"""Options by which campaigns and studies say whom they ask, and how long people have."""

from typing import Annotated

import typer

PEOPLE, TIME = "The people", "Time"

People = Annotated[int, typer.Option(min=2, rich_help_panel=PEOPLE, help="How many are asked in a round.")]
ShardSize = Annotated[
    int | None, typer.Option(min=2, rich_help_panel=PEOPLE, help="People in one secure sum. By default 1000.")
]
Dropout = Annotated[
    str, typer.Option(metavar="PART", rich_help_panel=PEOPLE, help="The part of a shard that may drop out.")
]
Corrupt = Annotated[
    str, typer.Option(metavar="PART", rich_help_panel=PEOPLE, help="The part that may work with the server.")
]
StageSeconds = Annotated[
    float, typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="How long devices have for each stage.")
]
QuietSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        rich_help_panel=TIME,
        help="End a stage early: enough have answered, and nobody else for this long.",
    ),
]
WaitSeconds = Annotated[
    float, typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="How long a round waits for its people.")
]
