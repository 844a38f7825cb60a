"""`hazemap release` and `hazemap stats`: from a table to a published map, or to published statistics of a value."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.cap_advice import (
    MONEY,
    Cap,
    NoCap,
    advise_cap,
    advise_on_empty_map,
    ask_for_cap,
    notes_where_it_stops,
    reading_notes,
    show_forecast,
)
from hazemap.cli.console_output import deliver, note, progress, several
from hazemap.cli.plan import show_plan_of_statistics
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
from hazemap.files.number_text import noun
from hazemap.specs.spec_fields import RELEASE, SCHEMAS, STATISTICS

if TYPE_CHECKING:
    from hazemap.privacy.ledger_records import LedgerBalance
    from hazemap.privacy.privacy_unit import Model
    from hazemap.releases import Release, Statistics
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.statistics_spec import StatisticsSpec

MANY_OUTSIDE = 0.05
"""People outside, as a part of those on the map, from which on a wider box is advised."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Options of a run: its specification, how it is paid, and what it may use."""

    ledger: LedgerPlace = None
    spec: SpecFile = None
    write_spec: WrittenSpec = None
    schema: Schema = False
    memory: Memory = None
    cap: Cap = None
    no_cap: NoCap = False
    go_on: Annotated[
        bool,
        typer.Option("--continue", rich_help_panel=MONEY, help="Pay the rest whatever the first rounds show."),
    ] = False
    people: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            rich_help_panel=MONEY,
            help="About how many people the table has, if that is public: refuses an order whose answers would all be "
            "noise.",
        ),
    ] = None
    yes: Annotated[
        bool, typer.Option("--yes", rich_help_panel=MONEY, help="Pay even if all answers will be noise.")
    ] = False
    as_json: AsJson = False

    def run(
        self, order: "ReleaseSpec | StatisticsSpec", publish: Callable[..., Any], model: "Model"
    ) -> "tuple[Any, LedgerBalance]":
        """Publish what a specification asks for; the release, and the page of the ledger that has paid."""
        book = ledger_at(self.ledger)
        show_forecast(order, self.people, self.yes, self.as_json)
        money = ask_for_cap(book, order.dataset, model, order.budget, self.cap, self.no_cap, self.as_json)
        limit = None if self.memory is None else self.memory << 20
        with notes_where_it_stops(order, self.as_json), progress() as tell:
            made = publish(order, ledger=book, memory_limit=limit, progress=tell, go_on=self.go_on, **money)
        status = book.status(made.statement.dataset, model)
        assert status is not None  # noqa: S101 - it has just paid
        return made, status

    def advise(self, status: "LedgerBalance", *notes: str) -> None:
        """Print advice on the cap and other notes beside a result for people."""
        if not self.as_json:
            advise_cap(status)
            for line in notes:
                note(line)


@options(RELEASE)
def release(ctx: typer.Context, asks: RunOptions, **asked: Any) -> None:
    """Publish where the people of a table are, under differential privacy per person."""
    if asks.schema:
        return print_schema(SCHEMAS["release"])
    from hazemap.publish import run_release
    from hazemap.releases import MarkedRelease, MarkedTimedRelease, TimedRelease
    from hazemap.specs.release_spec import ReleaseSpec

    order = specified(ctx, ReleaseSpec, asks.spec, asked)
    if asks.write_spec is not None:
        return written(order, asks.write_spec, asks.as_json)
    if order.output is None:
        raise InputError("name a file for the map: -o map.parquet")
    file = Path(order.output)
    made, status = asks.run(order, run_release, "full")
    cells = made.maps.cells.size if isinstance(made, TimedRelease) else made.cells.size
    timed = made if isinstance(made, TimedRelease | MarkedTimedRelease) else None
    left = f", which leaves {status.remaining} of its cap, {status.cap}" if status.cap else ""
    deliver(
        facts(made, file, status) | {"notes": reading_notes(order)},
        asks.as_json,
        f"{file}: {several(made.ground.places.size, 'cell')}, {made.total()} in all",
        *([] if timed is None else [f"{len(timed.slots)} slots, each counted in {several(cells, 'cell')}"]),
        *_where(made, order),
        *(map(str, made.share().shares) if isinstance(made, MarkedRelease) else ()),
        made.statement.line(),
        f"Charged {made.statement.budget} to the data set {status.name!r}{left}.",
    )
    return asks.advise(status, *reading_notes(order))


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
        most = f"That is most of them: {advise_on_empty_map(order)} (numbers with the sign of --decimal)."
        lines.append(most if few else "That is many: a wider --box would have them on the map.")
    elif made.total().low <= 0:
        lines.append(f"There may be nobody on the map: {advise_on_empty_map(order)}.")
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


@options(STATISTICS)
def stats(
    ctx: typer.Context,
    asks: RunOptions,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what to expect, and read, charge and write nothing.")
    ] = False,
    **asked: Any,
) -> None:
    """Publish statistics of a value per cell and timeslot, private for all records of a person.

    Declare bounds of the value, or let a part of the budget find them. Cells with too few people are marked.
    """
    if asks.schema:
        return print_schema(SCHEMAS["statistics"])
    from hazemap.specs.statistics_spec import StatisticsSpec

    order = specified(ctx, StatisticsSpec, asks.spec, asked, table=not plan)
    if asks.write_spec is not None:
        return written(order, asks.write_spec, asks.as_json)
    if plan:
        if order.model != "full":
            raise InputError(
                "a plan is made of the full model, from no rows; what values-only tells follows from the rows"
            )
        return show_plan_of_statistics(asks.as_json, order)
    if order.output is None:
        raise InputError("name a file for the statistics: -o speed.parquet; or use --plan first")
    from hazemap.publish import run_stats

    made, status = asks.run(order, run_stats, "values-only" if order.model == "values-only" else "full")
    left = status.remaining
    told = int((~made.found("mean").too_few).sum())
    places, value_encoding = made.measurements.tree.places, made.measurements.tree.value_encoding
    facts = {
        "file": order.output,
        "cells": len(made.names),
        "slots": len(made.slots),
        "told": told,
        "threshold": made.measurements.threshold,
        "low": value_encoding.low,
        "high": value_encoding.high,
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "statement": made.statement.to_json(),
        "notes": reading_notes(order),
    }
    deliver(
        facts,
        asks.as_json,
        f"{order.output}: {several(len(made.names), 'cell')} × {several(len(made.slots), 'slot')}; the mean is "
        f"published for {told:,} of {places:,}",
        f"Values outside {value_encoding.low:g} … {value_encoding.high:g} were clipped to these bounds; "
        "rows without a value were left out.",
        *_whose(made),
        made.statement.line(),
        f"Charged {made.statement.budget} to {status.page}"
        + (f", which leaves {left} of its cap, {status.cap}." if status.cap else "."),
    )
    return asks.advise(status, *([] if told else [why_nothing(made, order)]), *reading_notes(order))


def why_nothing(made: "Statistics", order: "StatisticsSpec") -> str:
    """Possible reasons why no mean is published, from the released numbers alone."""
    import numpy as np

    few = (
        f"too few people to say anything: a cell needs about {made.measurements.threshold:,.0f} {noun(made.counted)} "
        "in a slot; ask for coarser cells, fewer slots, a lower --max-cells-per-person or a larger budget"
    )
    people, _, margin = made.measurements.numbers(np.arange(made.measurements.tree.places)[None, :])
    if people.item() > margin:
        return few
    return f"{few}. The noise hides whether there are any {noun(made.counted)} at all: {advise_on_empty_map(order)}"


def _whose(made: "Statistics") -> list[str]:
    """Under values-only, for how many places with people the mean is published, and who counts there."""
    from hazemap.algorithms import PublicLocationStatistics, PublishedStatistics

    if not isinstance(made.algorithm, PublicLocationStatistics | PublishedStatistics):
        return []
    occupied = int((made.measurements.people > 0).sum())
    return [
        f"Values-only: whereabouts and numbers of people, in {several(occupied, 'place')}, are public and exact in "
        "this file.",
        f"{'Estimator' if isinstance(made.algorithm, PublishedStatistics) else 'Route'} {made.algorithm.route}.",
    ]
