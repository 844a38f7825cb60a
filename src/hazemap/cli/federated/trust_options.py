"""Options by which a campaign says whom it trusts: `--trust` and what that needs."""

from typing import Annotated

import typer

TRUST = "Who is trusted"
LEVELS = 8
"""Levels of a tree that one report answers, unless said otherwise."""

TrustName = Annotated[
    str,
    typer.Option(
        "--trust",
        metavar="NAME",
        rich_help_panel=TRUST,
        help="How reports become a map: secure-sum, local, two-servers, one-report or shuffled.",
    ),
]
StudyTrust = Annotated[
    str,
    typer.Option(
        "--trust",
        metavar="NAME",
        rich_help_panel=TRUST,
        help="How reports become sums: secure-sum or two-servers. Recipes name it as their carrier.",
    ),
]
Leader = Annotated[
    str | None,
    typer.Option(
        metavar="URL", rich_help_panel=TRUST, help="For two servers: URL of the leader, which receives reports."
    ),
]
Helper = Annotated[
    str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="For two servers: URL of the helper.")
]
Shuffler = Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="The shuffler's address.")]
ShufflerKey = Annotated[
    str | None,
    typer.Option("--shuffler-key", metavar="HEX", rich_help_panel=TRUST, help="The key that the shuffler prints."),
]
LeastReports = Annotated[
    int | None,
    typer.Option(
        "--least",
        min=1,
        rich_help_panel=TRUST,
        help="The fewest reports that two servers or a shuffler open. Default: all but those that may drop out.",
    ),
]
Levels = Annotated[
    int | None,
    typer.Option(
        min=1,
        rich_help_panel=TRUST,
        help=f"For one-report: the number of levels that a report answers. Default: {LEVELS}.",
    ),
]
