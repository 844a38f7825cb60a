"""`hazemap release`: from a table to a published map."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hazemap.cli.cap_advice import (
    Cap,
    GoOn,
    NoCap,
    People,
    Yes,
    advise_cap,
    cap_for,
    foretell,
    notes_where_it_stops,
    reading_notes,
    where_nobody_is,
)
from hazemap.cli.console_output import deliver, note, progress, several
from hazemap.cli.shared_options import (
    AsJson,
    LedgerPlace,
    Memory,
    Schema,
    SpecFile,
    WrittenSpec,
    ledger_at,
    options,
    print_schema,
    specified,
    written,
)
from hazemap.errors import InputError
from hazemap.specs.spec_fields import RELEASE, SCHEMAS

if TYPE_CHECKING:
    from hazemap.privacy.ledger_records import LedgerBalance
    from hazemap.releases import Release
    from hazemap.specs.release_spec import ReleaseSpec

EXAMPLE = "Example: [bold]hazemap release visits.parquet --person user --epsilon 1 -o map.parquet[/bold]"

MANY_OUTSIDE = 0.05
"""People outside, as a part of those on the map, from which on a wider box is advised."""


@options(RELEASE)
def release(
    ctx: typer.Context,
    ledger: LedgerPlace = None,
    spec: SpecFile = None,
    write_spec: WrittenSpec = None,
    schema: Schema = False,
    memory: Memory = None,
    cap: Cap = None,
    no_cap: NoCap = False,
    go_on: GoOn = False,
    people: People = None,
    yes: Yes = False,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Publish where the people of a table are, under differential privacy per person."""
    if schema:
        return print_schema(SCHEMAS["release"])
    from hazemap.publish import run_release
    from hazemap.releases import MarkedRelease, MarkedTimedRelease, TimedRelease
    from hazemap.specs.release_spec import ReleaseSpec

    order = specified(ctx, ReleaseSpec, spec, asked)
    if write_spec is not None:
        return written(order, write_spec, as_json)
    if order.output is None:
        raise InputError("name a file for the map: -o map.parquet")
    book, file = ledger_at(ledger), Path(order.output)
    limit = None if memory is None else memory << 20
    foretell(order, people, yes, as_json)
    money = cap_for(book, order.dataset, "full", order.budget, cap, no_cap, as_json)
    with notes_where_it_stops(order, as_json), progress() as tell:
        made = run_release(order, ledger=book, memory_limit=limit, progress=tell, go_on=go_on, **money)
    status = book.status(made.statement.dataset, "full")
    assert status is not None  # noqa: S101 - it has just paid
    cells = made.maps.cells.size if isinstance(made, TimedRelease) else made.cells.size
    timed = made if isinstance(made, TimedRelease | MarkedTimedRelease) else None
    left = f", which leaves {status.remaining} of its cap, {status.cap}" if status.cap else ""
    deliver(
        facts(made, file, status) | {"notes": reading_notes(order)},
        as_json,
        f"{file}: {several(made.ground.places.size, 'cell')}, {made.total()} in all",
        *([] if timed is None else [f"{len(timed.slots)} slots, each counted in {several(cells, 'cell')}"]),
        *_where(made, order),
        *(map(str, made.share().shares) if isinstance(made, MarkedRelease) else ()),
        made.statement.line(),
        f"Charged {made.statement.budget} to the data set {status.name!r}{left}.",
    )
    if not as_json:
        advise_cap(status)
        for line in reading_notes(order):
            note(line)
    return None


def _where(made: "Release", order: "ReleaseSpec") -> list[str]:
    """The box that was found, the number of people outside the map, and what to check if that is odd."""
    from hazemap.algorithms import PrivateBoundingBox
    from hazemap.releases.estimates import PeopleOutside

    box, algorithm = found_box(made), made.algorithm
    words = f"The map covers the box that was found, {box}."
    if isinstance(algorithm, PrivateBoundingBox) and not algorithm.found_in(made.transcript):
        words = "No place stands out of the noise, so the map covers the world: for a map of a place, declare its box."
    lines = [*([words] if box else []), str(PeopleOutside.of(made))]
    if made.nowhere is not None and made.nowhere.low > MANY_OUTSIDE * max(made.total().best_guess, 1.0):
        few = made.nowhere.low > made.total().high
        most = f"That is most of them: {where_nobody_is(order)} (numbers with the sign of --decimal)."
        lines.append(most if few else "That is many: a wider --box would have them on the map.")
    elif made.total().low <= 0:
        lines.append(f"There may be nobody on the map: {where_nobody_is(order)}.")
    return lines


def found_box(made: "Release") -> str | None:
    """West, south, east and north of a map whose box was found."""
    from hazemap.algorithms import PrivateBoundingBox

    if not isinstance(made.algorithm, PrivateBoundingBox):
        return None
    return ",".join(f"{edge:.5g}" for edge in made.ground.extent)


def facts(made: "Release", file: Path, status: "LedgerBalance") -> dict[str, Any]:
    """A release for machines."""
    from dataclasses import asdict

    from hazemap.releases import MarkedRelease, MarkedTimedRelease, TimedRelease

    left = status.remaining
    return {
        "file": str(file),
        "cells": made.ground.places.size,
        **({"slots": list(made.slots), "slot_cells": made.maps.cells.size} if isinstance(made, TimedRelease) else {}),
        **({"slots": list(made.slots), "slot_cells": made.cells.size} if isinstance(made, MarkedTimedRelease) else {}),
        "total": asdict(made.total()),
        "nowhere": made.nowhere and asdict(made.nowhere),
        "found_box": found_box(made),
        **({"shares": [asdict(each) for each in made.share().shares]} if isinstance(made, MarkedRelease) else {}),
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "statement": made.statement.to_json(),
    }
