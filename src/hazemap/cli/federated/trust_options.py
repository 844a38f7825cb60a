"""Options for trust models and cohorts, and what `hazemap plan --trust` says of each trust model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver

if TYPE_CHECKING:
    from rich.table import Table

    from hazemap.federated.planning.trust_plan import PlannedTrust
    from hazemap.specs.release_spec import ReleaseSpec


TRUST, PEOPLE, TIME = "Who is trusted", "The people", "Time"
LEVELS = 8
"""Levels of a tree that one report answers, unless another number is given."""


@dataclass(frozen=True, kw_only=True)
class CohortOptions:
    """Options of campaigns and studies: who is asked, for how long, and which servers take their reports."""

    people: Annotated[int, typer.Option(min=2, rich_help_panel=PEOPLE, help="Number of people asked in a round.")]
    shard: Annotated[
        int | None, typer.Option(min=2, rich_help_panel=PEOPLE, help="People in one secure sum. Default: 1000.")
    ] = None
    dropout: Annotated[
        str, typer.Option(metavar="PART", rich_help_panel=PEOPLE, help="Share of a shard that may drop out.")
    ] = "0.2"
    corrupt: Annotated[
        str,
        typer.Option(metavar="PART", rich_help_panel=PEOPLE, help="Share of people who may collude with the server."),
    ] = "0.1"
    leader: Annotated[
        str | None,
        typer.Option(
            metavar="URL", rich_help_panel=TRUST, help="For two servers: URL of the leader, which receives reports."
        ),
    ] = None
    helper: Annotated[
        str | None, typer.Option(metavar="URL", rich_help_panel=TRUST, help="For two servers: URL of the helper.")
    ] = None
    least: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=TRUST,
            help="Fewest reports that two servers or a shuffler open. Default: all but those that may drop out.",
        ),
    ] = None
    stage: Annotated[
        float, typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="Seconds that devices have for each stage.")
    ] = 120.0
    quiet: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=TIME,
            help="End a stage early once enough devices have answered and none for this many seconds.",
        ),
    ] = None
    wait: Annotated[
        float,
        typer.Option(metavar="SECONDS", rich_help_panel=TIME, help="Seconds that a round waits for its people."),
    ] = 3600.0


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
