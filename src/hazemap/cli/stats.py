"""`hazemap stats`: from a table to published statistics of a value, per cell and timeslot."""

from typing import TYPE_CHECKING, Annotated, Any

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
from hazemap.specs.spec_fields import SCHEMAS, STATISTICS

if TYPE_CHECKING:
    from hazemap.privacy.privacy_unit import Model
    from hazemap.releases import Statistics
    from hazemap.specs.statistics_spec import StatisticsSpec

EXAMPLE = (
    "Example: [bold]hazemap stats rides.parquet --value speed --low 0 --high 65 --slots hour-of-day "
    "--epsilon 1 -o speed.parquet[/bold]"
)


@options(STATISTICS)
def stats(
    ctx: typer.Context,
    ledger: LedgerPlace = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what to expect, and read, charge and write nothing.")
    ] = False,
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
    """Publish statistics of a value per cell and timeslot, private for all records of a person.

    Declare bounds of the value, or let a part of the budget find them. Cells with too few people are marked.
    """
    if schema:
        return print_schema(SCHEMAS["statistics"])
    from hazemap.specs.statistics_spec import StatisticsSpec

    order = specified(ctx, StatisticsSpec, spec, asked, table=not plan)
    if write_spec is not None:
        return written(order, write_spec, as_json)
    if plan:
        if order.model != "full":
            raise InputError(
                "a plan is made of the full model, from no rows; what values-only tells follows from the rows"
            )
        return show_plan_of_statistics(as_json, order)
    if order.output is None:
        raise InputError("name a file for the statistics: -o speed.parquet; or use --plan first")
    from hazemap.publish import run_stats

    book, limit = ledger_at(ledger), None if memory is None else memory << 20
    model: Model = "values-only" if order.model == "values-only" else "full"
    foretell(order, people, yes, as_json)
    money = cap_for(book, order.dataset, model, order.budget, cap, no_cap, as_json)
    with notes_where_it_stops(order, as_json), progress() as tell:
        made = run_stats(order, ledger=book, memory_limit=limit, progress=tell, go_on=go_on, **money)
    status = book.status(made.statement.dataset, model)
    assert status is not None  # noqa: S101 - it has just paid
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
        as_json,
        f"{order.output}: {several(len(made.names), 'cell')} × {several(len(made.slots), 'slot')}; the mean is "
        f"published for {told:,} of {places:,}",
        f"Values outside {value_encoding.low:g} … {value_encoding.high:g} were clipped to these bounds; "
        "rows without a value were left out.",
        *_whose(made),
        made.statement.line(),
        f"Charged {made.statement.budget} to {status.page}"
        + (f", which leaves {left} of its cap, {status.cap}." if status.cap else "."),
    )
    if not as_json:
        advise_cap(status)
        for line in [*([] if told else [why_nothing(made, order)]), *reading_notes(order)]:
            note(line)
    return None


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
    return f"{few}. The noise hides whether there are any {noun(made.counted)} at all: {where_nobody_is(order)}"


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
