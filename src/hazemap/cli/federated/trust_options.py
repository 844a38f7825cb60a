"""Options for trust models and cohorts, and what `hazemap plan --trust` says of each trust model."""

from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver

if TYPE_CHECKING:
    from rich.table import Table

    from hazemap.federated.planning.trust_plan import PlannedTrust
    from hazemap.specs.release_spec import ReleaseSpec


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


def show_plan_of_trusts(as_json: bool, spec: "ReleaseSpec", people: int, text: str) -> None:
    """Plan what a specification asks for on these trust models, and say what came of it."""
    from hazemap.federated.planning.trust_plan import named_trusts, planned_trusts

    made = planned_trusts(spec, people, named_trusts(text))
    facts = {
        "box": str(spec.box),
        "people": people,
        "method": spec.method,
        "bounding": str(spec.bounding),
        "trusts": [
            {
                "trust": each.name,
                "must not work together": each.apart,
                "budget": str(each.budget),
                "misplaced": each.misplaced,
                "total_stddev": each.total,
                "bytes_a_device": each.bytes,
                "refused": each.refused,
            }
            for each in made
        ],
    }
    deliver(
        facts,
        as_json,
        f"{people:,} people in {spec.box}, {spec.budget}, {spec.bounding}, {spec.method}: "
        "expectations for a typical city (made up; no data was touched)",
        _table(made),
        "",
        *(f"{each.name} is refused: {each.refused}" for each in made if each.refused),
        "Misplaced: people that the map shows in a wrong place, of all; half of the L1 error. Total ±: the standard "
        "error of the number of all people. Everybody is asked, answers, and works with nobody.",
        "Bytes: what a device sends in all rounds, without HTTP. A δ of 1e-06 is added where people's randomised "
        "reports hide each other, and left out where noise is in pure ε.",
    )


def _table(made: "tuple[PlannedTrust, ...]") -> "Table":
    from rich.table import Table

    table = Table("trust", "must not work together", "budget", "misplaced", "total ±", "bytes a device", box=None)
    for each in made:
        if each.misplaced is None or each.total is None:
            table.add_row(each.name, each.apart, str(each.budget), "refused", "", "")
            continue
        sent = "its rows" if each.bytes is None else _size(each.bytes)
        table.add_row(
            each.name, each.apart, str(each.budget), f"{100 * each.misplaced:.3g} %", f"{each.total:,.3g}", sent
        )
    return table


def _size(number: int) -> str:
    return f"{number / 1e6:.3g} MB" if number >= 10**6 else f"{number / 1e3:.3g} kB"
