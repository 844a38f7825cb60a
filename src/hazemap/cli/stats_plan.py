"""`hazemap stats --plan`: what statistics would tell, before anything is read or paid."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from hazemap.cli.console_output import deliver

if TYPE_CHECKING:
    from rich.table import Table

    from hazemap.planning.statistics_plan import StatsPlan
    from hazemap.specs.statistics_spec import StatisticsSpec


def show_plan(as_json: bool, spec: "StatisticsSpec") -> None:
    """Plan what a specification asks for, and say what came of it."""
    from hazemap.planning.statistics_plan import PEOPLE, planned

    made = planned(spec)
    facts = {
        "budget": str(made.budget),
        "cells": made.cells,
        "slots": made.slots,
        "places": made.places,
        "share": float(made.share),
        "bounds": made.bounds,
        "selected": made.selected,
        "counted": made.counted,
        "people": PEOPLE,
        "max_cells_per_person": [asdict(reach) for reach in made.reaches],
    }
    deliver(facts, as_json, heading(made), _table(made), "", *advice(made))


def heading(made: "StatsPlan") -> str:
    """What the plan is for."""
    from hazemap.planning.statistics_plan import UNKNOWN

    if made.cells is None:
        where = f"cells of a box that is yet to be found × {made.slots:,} slots (planned as for {UNKNOWN:,} places)"
    else:
        where = f"{made.cells:,} cells × {made.slots:,} slots = {made.places:,} places"
    chosen = ", of which those with many people are selected" if made.selected else ""
    return (
        f"{where}{chosen}; {made.budget}, {100 * float(made.share):.3g} % of it for the values "
        "(nothing was read, and nothing is charged)"
    )


def _table(made: "StatsPlan") -> "Table":
    from rich.table import Table

    from hazemap.planning.statistics_plan import PEOPLE

    unit = "" if made.bounds else " of the range"
    table = Table(
        "--max-cells-per-person",
        "± a counter",
        f"{made.counted} needed",
        *(f"mean ± with {people:,}" for people in PEOPLE),
        "",
        box=None,
    )
    for reach in made.reaches:
        widths = ["too few" if each is None else _width(each, made) + unit for each in reach.widths]
        asked = "◂ as asked" if reach == made.asked else ""
        table.add_row(
            f"{reach.max_cells_per_person:,}", f"{reach.stddev:,.3g}", f"{reach.threshold:,.0f}", *widths, asked
        )
    return table


def _width(width: float, made: "StatsPlan") -> str:
    return f"{width:.3g}" if made.bounds else f"{100 * width:.2g} %"


def advice(made: "StatsPlan") -> list[str]:
    """What the numbers come to, in sentences."""
    reach = made.asked
    return [
        f"A place (a cell in a slot) is told of if it has about {reach.threshold:,.0f} {made.counted} or more, as they "
        f"are left by the cap: of somebody in more than {reach.max_cells_per_person:,} places, so many are drawn.",
        "Half the cap needs fewer people in a place, but leaves more of them out there; if people are in fewer places "
        "than the cap, choose a lower one.",
        "Mean ±: half of its 95 % interval, in the middle of the bounds; near one of them up to √2 times as much. It "
        "speaks of the noise alone.",
    ]
