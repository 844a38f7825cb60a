"""`hazemap stats`: from a table to published statistics of a value, per cell and timeslot."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.shared_options import (
    BOX,
    FILE,
    PRIVACY,
    TABLE,
    AsJson,
    DecimalSign,
    Delimiter,
    Delta,
    Encoding,
    Epsilon,
    Force,
    Latitude,
    LedgerFile,
    Longitude,
    Memory,
    Multiline,
    Payer,
    Person,
    Rho,
    Since,
    Source,
    Until,
    ledger_at,
)
from hazemap.cli.spec_options import SpecFile, WrittenSpec, specified, written
from hazemap.cli.stats_plan import show_plan
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.releases import Statistics

EXAMPLE = (
    "Example: [bold]hazemap stats rides.parquet --value speed --low 0 --high 65 --slots hour-of-day "
    "--epsilon 1 -o speed.parquet[/bold]"
)

WHAT = "What is told, and where"


def stats(
    ctx: typer.Context,
    source: Source = None,
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="The column with the measured numbers."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", rich_help_panel=FILE, help="The file to publish: .parquet.")
    ] = None,
    low: Annotated[
        float | None, typer.Option(metavar="NUMBER", rich_help_panel=TABLE, help="The smallest possible value.")
    ] = None,
    high: Annotated[
        float | None, typer.Option(metavar="NUMBER", rich_help_panel=TABLE, help="The largest possible value.")
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", rich_help_panel=TABLE, help="private: a tenth of the budget finds the bounds not declared."
        ),
    ] = None,
    person: Person = None,
    lon: Longitude = None,
    lat: Latitude = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="When, for slots. Guessed.")
    ] = None,
    since: Since = None,
    until: Until = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: DecimalSign = ".",
    multiline: Multiline = False,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    max_cells_per_person: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            rich_help_panel=PRIVACY,
            help="In how many cells and slots a person counts at most. By default one for each slot, but 8 to 24.",
        ),
    ] = None,
    max_records_per_cell: Annotated[
        int,
        typer.Option(
            metavar="K",
            rich_help_panel=PRIVACY,
            help="For how many records a person counts in a cell and slot at most.",
        ),
    ] = 1,
    select: Annotated[
        bool,
        typer.Option(
            "--select",
            rich_help_panel=PRIVACY,
            help="A tenth of the budget finds the cells with many people; nobody spends their cap elsewhere.",
        ),
    ] = False,
    model: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            rich_help_panel=PRIVACY,
            help="full, or values-only: whereabouts and numbers of people are public, only values are protected.",
        ),
    ] = "full",
    dataset: Payer = None,
    ledger: LedgerFile = None,
    box: Annotated[
        str | None,
        typer.Option(rich_help_panel=WHAT, help=f"All cells of it are published: {BOX}. Found where left out."),
    ] = None,
    cells: Annotated[
        str,
        typer.Option(
            metavar="CELLS",
            rich_help_panel=WHAT,
            help="h3:RESOLUTION, hexagons:FILE (a list), quadtree:DEPTH or districts:FILE.",
        ),
    ] = "h3:7",
    slots: Annotated[
        str,
        typer.Option(
            metavar="SLOTS",
            rich_help_panel=WHAT,
            help="always, hour-of-day, day-of-week, hour, day, clock:7:00,16:00 or times:TIME,TIME,TIME.",
        ),
    ] = "always",
    time_zone: Annotated[
        str, typer.Option(metavar="ZONE", rich_help_panel=WHAT, help="The time zone of the slots.")
    ] = "UTC",
    mean: Annotated[
        bool, typer.Option("--mean", rich_help_panel=WHAT, help="The mean. It is always published.")
    ] = False,
    variance: Annotated[bool, typer.Option("--variance", rich_help_panel=WHAT, help="The variance too.")] = False,
    quantiles: Annotated[
        str | None, typer.Option(metavar="P,P,…", rich_help_panel=WHAT, help="Quantiles too: 0.1,0.5,0.9.")
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(metavar="N", rich_help_panel=WHAT, help="For quantiles: how many bins between the bounds; 16."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what to expect: read, charge and write nothing.")
    ] = False,
    spec: SpecFile = None,
    write_spec: WrittenSpec = None,
    force: Force = False,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Publish the mean of a value per cell and timeslot, under differential privacy per person with all their records.

    Declare bounds of the value, or let a part of the budget find them. Cells with too few people are marked.
    """
    del mean
    from hazemap.specs.statistics_spec import StatisticsSpec

    asked = specified(
        ctx,
        StatisticsSpec,
        spec,
        source=source,
        value=value,
        low=low,
        high=high,
        bounds=bounds,
        person=person,
        lon=lon,
        lat=lat,
        time=time,
        time_zone=time_zone,
        since=since,
        until=until,
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        multiline=multiline,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        box=box,
        cells=cells,
        slots=slots,
        variance=variance,
        quantiles=None if quantiles is None else _ranks(quantiles),
        bins=bins,
        max_cells_per_person=max_cells_per_person,
        max_records_per_cell=max_records_per_cell,
        select=select,
        model=model,
        dataset=dataset,
        output=output,
        overwrite=force,
    )
    if write_spec is not None:
        return written(asked, write_spec, as_json)
    if plan:
        if asked.model != "full":
            raise InputError(
                "a plan is made of the full model, from no rows; what values-only tells follows from the rows"
            )
        return show_plan(as_json, asked)
    if asked.output is None:
        raise InputError("where shall the statistics go? Name a file: -o speed.parquet; or ask for a --plan first")
    from hazemap.publish import run_stats

    book = ledger_at(ledger)
    with progress() as tell:
        made = run_stats(asked, ledger=book, memory_limit=None if memory is None else memory << 20, progress=tell)
    status = book.status(made.statement.dataset, "values-only" if asked.model == "values-only" else "full")
    assert status is not None  # noqa: S101 - it has just paid
    left = status.remaining
    told = int((~made.found("mean").too_few).sum())
    places, value_encoding = made.measurements.tree.places, made.measurements.tree.value_encoding
    facts = {
        "file": asked.output,
        "cells": len(made.names),
        "slots": len(made.slots),
        "told": told,
        "threshold": made.measurements.threshold,
        "low": value_encoding.low,
        "high": value_encoding.high,
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "statement": made.statement.to_json(),
    }
    deliver(
        facts,
        as_json,
        f"{asked.output}: {len(made.names):,} cells × {len(made.slots)} slots; "
        f"the mean is told for {told:,} of {places:,}",
        f"Values outside {value_encoding.low:g} … {value_encoding.high:g} were clipped to these bounds; "
        "rows without a value were left out.",
        *_whose(made),
        made.statement.line(),
        f"Charged {made.statement.budget} to {status.page}"
        + (f", which leaves {left} of its cap, {status.cap}." if status.cap else "."),
    )
    if not told and not as_json:
        note(
            f"too few people to say anything: a cell needs about {made.measurements.threshold:,.0f} {made.counted} in "
            "a slot; ask for coarser cells, fewer slots, a lower --max-cells-per-person or a larger budget"
        )
    return None


def _whose(made: "Statistics") -> list[str]:
    """Under values-only, of how many places with people the mean is told, and who counts there."""
    from hazemap.algorithms import PublicLocationStatistics

    if not isinstance(made.algorithm, PublicLocationStatistics):
        return []
    occupied = int((made.measurements.people > 0).sum())
    return [
        f"Values-only: whereabouts and numbers of people, in {occupied:,} places, are public and exact in this file.",
        f"Route {made.algorithm.route}.",
    ]


def _ranks(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"quantiles are numbers between 0 and 1, such as 0.1,0.5,0.9; found {text!r}") from None
