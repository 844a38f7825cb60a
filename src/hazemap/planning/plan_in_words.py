"""A plan of a map in words and for machines: the same in a terminal and in a browser."""

from dataclasses import asdict
from typing import Any

from hazemap.planning.release_plan import Expected, ExpectedSlots, Plan
from hazemap.planning.spoken_numbers import metres, percent
from hazemap.privacy.estimand import Estimand, estimand


def heading(made: Plan) -> str:
    """The question of the plan."""
    return made.heading


def facts(made: Plan, method: str) -> dict[str, Any]:
    """A plan for machines; `method` is the name of the one that was asked for."""
    return {
        "box": str(made.box),
        "people": made.people,
        "budget": str(made.budget),
        "bounding": str(made.bounding),
        "cells": str(made.cells),
        "levels": [asdict(level) for level in made.levels],
        "recommended": {"flat": made.flat.name, "uniform": made.uniform.name},
        "adaptive": asdict(made.adaptive),
        "method": made.method and {"name": method, **asdict(made.method)},
        "slots": made.slots and asdict(made.slots),
    }


def advice(made: Plan, method: str | None = None) -> list[str]:
    """The plan in sentences."""
    level, counted = made.flat, Estimand.of(made.bounding).noun
    number = f"{level.level}" if level.name.startswith("level") else level.name.split()[1]
    return [
        f"A cell with {level.least:,.0f} {counted} or more is known to ± 20 % (95 % interval), at any level.",
        f"Best flat map: {level.name}, cells of {metres(level.metres)} (--method flat:{number}). "
        f"The method fitted-level would take {made.uniform.name}.",
        _expectation("Adaptive (the default)", made, made.adaptive),
        *([_expectation(str(method), made, made.method)] if made.method else []),
        *(_of_slots(made, made.slots) if made.slots else []),
        "Typical: the cell that half the people are in, or a fuller one. "
        "Misplaced: people that the map shows in a wrong place, of all.",
    ]


def _expectation(name: str, made: Plan, expected: Expected) -> str:
    return (
        f"{name}: about {expected.cells:,} cells, the finest {metres(expected.finest)}, a typical "
        f"person's {metres(expected.typical)}; it misplaces {percent(expected.misplaced)} "
        f"of all people, the best flat map {percent(made.flat.misplaced)}. Its total is known to "
        f"± {expected.total:,.0f} {estimand(made.bounding)} (standard error)."
    )


def _of_slots(made: Plan, slots: ExpectedSlots) -> list[str]:
    counted = estimand(made.bounding)
    counted_in = "1 cell is" if slots.cells == 1 else f"{slots.cells:,} cells are"
    return [
        f"Maps of {slots.number:,} slots ({slots.slots}), all for this one price:",
        _expectation("all slots together", made, slots.expected),
        f"In each slot about {counted_in} counted, a typical person's {metres(slots.typical)}; a cell is known to "
        f"± {slots.cell:,.3g} {counted} (standard error), everybody in a slot to ± {slots.stddev:,.3g}. A slot's map "
        f"misplaces {percent(slots.misplaced)} of its people.",
    ]
