"""`hazemap plan`: what a release would be like, before any data is touched."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.shared_options import BOX, AsJson

if TYPE_CHECKING:
    from rich.table import Table

    from hazemap.planning.release_plan import Expected, Plan

EXAMPLE = "Example: [bold]hazemap plan --box=-74.1,40.6,-73.8,40.9 --people 100000 --epsilon 1[/bold]"


def plan(
    box: Annotated[str, typer.Option(help=f"Where the people are: {BOX}.")],
    people: Annotated[int, typer.Option(metavar="N", help="About how many people the table has; publicly known.")],
    epsilon: Annotated[str | None, typer.Option("-e", "--epsilon", metavar="ε", help="The price in ε.")] = None,
    delta: Annotated[str | None, typer.Option(metavar="δ", help="With --epsilon: the price is (ε, δ).")] = None,
    rho: Annotated[str | None, typer.Option(metavar="ρ", help="The price in ρ (zCDP), instead of ε.")] = None,
    cells: Annotated[
        str, typer.Option(metavar="CELLS", help="quadtree, quadtree:DEPTH or h3:COARSEST-FINEST.")
    ] = "quadtree",
    bounding: Annotated[
        str, typer.Option(metavar="RULE", help="'one row', rows:K, cells:K, 'one vote' or 'rows are people'.")
    ] = "one row",
    method: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Try this method too, if it asks for sums over people alone.")
    ] = None,
    picture: Annotated[Path | None, typer.Option("-o", "--picture", help="Draw it too: a .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan a release without touching any data: how certain cells of each size can be, and which to choose.

    Error bars are exact. What depends on where people are was tried on a made-up city with as many people.
    """
    from hazemap.planning.release_plan import plan as planned

    made = planned(
        box, people=people, epsilon=epsilon, delta=delta, rho=rho, cells=cells, bounding=bounding, method=method
    )
    if picture:
        _draw(made, picture)
    facts = {
        "box": str(made.box),
        "people": people,
        "budget": str(made.budget),
        "bounding": str(made.bounding),
        "cells": str(made.cells),
        "levels": [asdict(level) for level in made.levels],
        "recommended": {"flat": made.flat.name, "uniform": made.uniform.name},
        "adaptive": asdict(made.adaptive),
        "method": made.method and {"name": method, **asdict(made.method)},
        "picture": picture and str(picture),
    }
    deliver(
        facts, as_json, heading(made), _table(made), "", *advice(made, method), *([str(picture)] if picture else [])
    )


def heading(made: "Plan") -> str:
    """What the plan is for."""
    return (
        f"{made.people:,} people in {made.box}, {made.budget}, {made.bounding}: "
        "expectations for a typical city (made up; no data was touched)"
    )


def _table(made: "Plan") -> "Table":
    from rich.table import Table

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


def advice(made: "Plan", method: str | None = None) -> list[str]:
    """What the numbers come to, in sentences."""
    level, counted = made.flat, made.bounding.counted
    number = f"{level.level}" if level.name.startswith("level") else level.name.split()[1]
    return [
        f"A cell with {level.least:,.0f} {counted} or more is known to ± 20 % (95 % interval), at any level.",
        f"Best flat map: {level.name}, cells of {metres(level.metres)} (--method flat:{number}). "
        f"The method fitted-level would take {made.uniform.name}.",
        _expectation("Adaptive (the default)", made, made.adaptive),
        *([_expectation(str(method), made, made.method)] if made.method else []),
        "Typical: the cell that half the people are in, or a fuller one. "
        "Misplaced: people that the map shows in a wrong place, of all.",
    ]


def _expectation(name: str, made: "Plan", expected: "Expected") -> str:
    return (
        f"{name}: about {expected.cells:,} cells, the finest {metres(expected.finest)}, a typical "
        f"person's {metres(expected.typical)}; it misplaces {percent(expected.misplaced)} "
        f"of all people, the best flat map {percent(made.flat.misplaced)}. Its total is known to "
        f"± {expected.total:,.0f} {made.bounding.counted} (standard error)."
    )


def _draw(made: "Plan", path: Path) -> None:
    import numpy as np

    from hazemap.draw import ErrorCurve, draw_plan, save

    sides = np.array([level.metres for level in made.levels])
    average, typical = (np.array([getattr(level, name) for level in made.levels]) for name in ("average", "typical"))
    curves = [ErrorCurve("a typical person's cell", sides, typical), ErrorCurve("an average cell", sides, average)]
    title = f"How sure could cells be? {made.people:,} people, {made.budget}"
    save(draw_plan(curves, chosen=made.flat.metres, title=title, caption=heading(made)), path)


def metres(length: float) -> str:
    """A length as people say it."""
    return f"{length / 1000:.3g} km" if length >= 1000 else f"{length:.3g} m"


def percent(part: float) -> str:
    """A part of 1 as people say it."""
    return f"{100 * part:.2g} %" if part < 1 else f"{100 * part:,.0f} %"
