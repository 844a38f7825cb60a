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
        help="secure-sum, local, two-servers, one-report or shuffled: who stands between reports and the map.",
    ),
]
StudyTrust = Annotated[
    str,
    typer.Option(
        "--trust",
        metavar="NAME",
        rich_help_panel=TRUST,
        help="secure-sum or two-servers: who stands between reports and their sums. Recipes name it as their carrier.",
    ),
]
Leader = Annotated[
    str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="Of two servers: the one that takes reports.")
]
Helper = Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="Of two servers: the other.")]
Shuffler = Annotated[str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="The shuffler's address.")]
ShufflerKey = Annotated[
    str | None, typer.Option("--shuffler-key", metavar="HEX", rich_help_panel=TRUST, help="The key that it prints.")
]
LeastReports = Annotated[
    int | None,
    typer.Option(
        "--least",
        min=1,
        rich_help_panel=TRUST,
        help="The fewest reports that are opened, of servers or shuffled. By default all but those who may drop out.",
    ),
]
Levels = Annotated[
    int | None,
    typer.Option(
        min=1, rich_help_panel=TRUST, help=f"Of one-report: how many levels a report answers. By default {LEVELS}."
    ),
]
