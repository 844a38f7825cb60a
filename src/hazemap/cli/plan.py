"""`hazemap plan` and `hazemap stats --plan`: what a release would be like, before any data is touched."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.shared_options import AsJson, SpecFile, WrittenSpec, options, specified, written
from hazemap.errors import InputError
from hazemap.specs.spec_fields import RELEASE

if TYPE_CHECKING:
    from rich.table import Table

    from hazemap.planning.release_plan import Plan
    from hazemap.planning.statistics_plan import StatsPlan
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.statistics_spec import StatisticsSpec


@options(
    RELEASE, "box", "epsilon", "delta", "rho", "cells", "bounding", "method", "slots", "time_zone", "since", "until"
)
def plan(
    ctx: typer.Context,
    people: Annotated[int, typer.Option(metavar="N", help="About how many people the table has; must be public.")],
    spec: SpecFile = None,
    write_spec: WrittenSpec = None,
    picture: Annotated[
        Path | None, typer.Option("-o", "--picture", help="Also draw the plan: .png, .svg or .pdf.")
    ] = None,
    trust: Annotated[
        str | None,
        typer.Option("--trust", metavar="WHO", help="Compare trust models instead: all, or the name of one."),
    ] = None,
    like: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Choose c0 of the method prefix on this release of a similar map. May be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Plan a release without any data: how certain cells of each size can be, and which to choose.

    Error bars are exact. What depends on where people are was tried on a made-up city with as many people.
    """
    from hazemap.planning.release_plan import advice, facts, planned
    from hazemap.specs.release_spec import ReleaseSpec

    order = specified(ctx, ReleaseSpec, spec, asked, table=False)
    if write_spec is not None:
        return written(order, write_spec, as_json)
    if like:
        if picture is not None or trust is not None:
            raise InputError("what similar maps choose is a table: leave --picture and --trust out")
        return show_constants(as_json, order, people, like)
    if trust is not None:
        if picture is not None:
            raise InputError("a plan of trust models is a table; it has no picture: leave out --picture or --trust")
        from hazemap.cli.federated.trust_options import show_plan_of_trusts

        return show_plan_of_trusts(as_json, order, people, trust)
    made = planned(order, people)
    if picture:
        _draw(made, picture)
    deliver(
        {**facts(made, order.method), "picture": picture and str(picture)},
        as_json,
        made.heading,
        _table(made),
        "",
        *advice(made, order.method),
        *([str(picture)] if picture else []),
    )
    return None


def show_constants(as_json: bool, spec: "ReleaseSpec", people: int, files: list[Path]) -> None:
    """Try the c₀ of the prefix tree on similar maps, and say which is best."""
    from rich.table import Table

    from hazemap.planning.similar_maps import try_constants

    tried = try_constants(spec, people, files)
    best = min(tried, key=lambda each: each.l1)
    chosen = f"{spec.method}{',' if ':' in spec.method else ':'}c0={float(best.c0):g}"
    table = Table("c0", "L1 error", "±", "rounds", "", box=None)
    for each in tried:
        mark = "◂ best" if each is best else ""
        table.add_row(f"{float(each.c0):g}", f"{each.l1:.3f}", f"{each.band:.3f}", f"{each.rounds:.3g}", mark)
    rows = [{**asdict(each), "c0": float(each.c0)} for each in tried]
    said = f"People were drawn from {', '.join(file.name for file in files)}, at the same price; no table was read."
    deliver({"tried": rows, "method": chosen}, as_json, table, "", said, f"Take --method {chosen}")


def _table(made: "Plan") -> "Table":
    from rich.table import Table

    from hazemap.planning.release_plan import metres, percent

    table = Table(
        "flat map", "cell side", "cells", "± a cell", "average cell", "typical cell", "misplaced", "", box=None
    )
    for level in made.levels:
        chosen = ["flat"] if level == made.flat else []
        chosen += ["uniform"] if level == made.uniform else []
        table.add_row(
            level.name,
            metres(level.metres),
            f"{level.cells:,}",
            f"{level.stddev:.3g}",
            *(percent(number) for number in (level.average, level.typical, level.misplaced)),
            "◂ " + " and ".join(chosen) if chosen else "",
        )
    return table


def _draw(made: "Plan", path: Path) -> None:
    import numpy as np

    from hazemap.draw import ErrorCurve, draw_plan, save

    sides = np.array([level.metres for level in made.levels])
    average, typical = (np.array([getattr(level, name) for level in made.levels]) for name in ("average", "typical"))
    curves = [ErrorCurve("a typical person's cell", sides, typical), ErrorCurve("an average cell", sides, average)]
    title = f"How sure could cells be? {made.people:,} people, {made.budget}"
    save(draw_plan(curves, chosen=made.flat.metres, title=title, caption=made.heading), path)


def show_plan_of_statistics(as_json: bool, spec: "StatisticsSpec") -> None:
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
        "bin_width": made.bin_width,
    }
    deliver(facts, as_json, heading_of_statistics(made), _table_of_statistics(made), "", *advice_on_statistics(made))


def heading_of_statistics(made: "StatsPlan") -> str:
    """The question of the plan."""
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


def _table_of_statistics(made: "StatsPlan") -> "Table":
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


def advice_on_statistics(made: "StatsPlan") -> list[str]:
    """The plan in sentences."""
    from hazemap.planning.statistics_plan import PEOPLE

    reach, quantiles = made.asked, list[str]()
    if made.bin_width is not None:
        unit = "" if made.bounds else " of the range"
        pairs = zip(PEOPLE, reach.medians, strict=True)
        known = [f"{_width(each, made)}{unit} with {people:,}" for people, each in pairs if each is not None]
        spread = f" If values are spread evenly between the bounds, a median is ± {', '.join(known)}." if known else ""
        ends = f"An interval of a quantile ends at edges of bins, {_width(made.bin_width, made)}{unit} wide."
        quantiles = [ends + spread]
    return [
        f"A place (a cell in a slot) is published if it has about {reach.threshold:,.0f} {made.counted} or more, "
        f"after the cap: of a person in more than {reach.max_cells_per_person:,} places, as many are drawn.",
        "Half the cap needs fewer people in a place, but leaves more of them out there; if people are in fewer places "
        "than the cap, choose a lower one.",
        "Mean ±: half of its 95 % interval, in the middle of the bounds; near one of them up to √2 times as much. It "
        "speaks of the noise alone.",
        *quantiles,
    ]
