"""`hazemap release`: from a table to a published map."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.options import (
    BOX,
    FILE,
    PRIVACY,
    TABLE,
    AsJson,
    Delta,
    Epsilon,
    Force,
    Latitude,
    LedgerFile,
    Longitude,
    Memory,
    Payer,
    Person,
    Rho,
    Since,
    Source,
    Until,
    ledger_at,
)
from hazemap.cli.output import deliver, note, progress
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.privacy.ledger import DatasetStatus
    from hazemap.releases import Release

EXAMPLE = "Example: [bold]hazemap release visits.parquet --person user --epsilon 1 -o map.parquet[/bold]"

MAP = "The map"


def release(
    source: Source,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", rich_help_panel=FILE, help="The file to publish: .parquet, or .tif for a grid."),
    ],
    person: Person = None,
    lon: Longitude = None,
    lat: Latitude = None,
    time: Annotated[
        str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="When, for --since and --until.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Weight of a row, for 'one vote'.")
    ] = None,
    since: Since = None,
    until: Until = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    bounding: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            rich_help_panel=PRIVACY,
            help="What one person may contribute: 'one row', rows:K, cells:K, 'one vote', 'rows are people'.",
        ),
    ] = "one row",
    dataset: Payer = None,
    ledger: LedgerFile = None,
    box: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=MAP, help=f"The smallest square around it is mapped: {BOX}. Found where left out."
        ),
    ] = None,
    cells: Annotated[
        str,
        typer.Option(
            metavar="CELLS",
            rich_help_panel=MAP,
            help="quadtree, quadtree:DEPTH, h3:COARSEST-FINEST or districts:FILE,…",
        ),
    ] = "quadtree",
    method: Annotated[
        str, typer.Option(metavar="METHOD", rich_help_panel=MAP, help="auto, fitted-level, flat:LEVEL or another.")
    ] = "auto",
    outside: Annotated[
        str, typer.Option(metavar="WHAT", rich_help_panel=MAP, help="Rows outside the map: drop, or count them.")
    ] = "drop",
    force: Force = False,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Publish where the people of a table are, under differential privacy per person."""
    if outside not in ("drop", "count"):
        raise InputError(f"--outside is drop or count; found {outside!r}")
    from hazemap.publish import release as publish

    book = ledger_at(ledger)
    with progress() as tell:
        made = publish(
            source,
            person=person,
            lon=lon,
            lat=lat,
            time=time,
            value=value,
            since=since,
            until=until,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            bounding=bounding,
            dataset=dataset,
            ledger=book,
            box=box,
            cells=cells,
            method=method,
            outside="count" if outside == "count" else "drop",
            output=output,
            overwrite=force,
            memory_limit=None if memory is None else memory << 20,
            progress=tell,
        )
    [status] = [each for each in book.datasets() if each.name == made.statement.dataset]
    left = f", which leaves {status.remaining} of its cap, {status.cap}" if status.cap else ""
    deliver(
        facts(made, output, status),
        as_json,
        f"{output}: {made.map.cells.size:,} cells, {made.total()} in all",
        made.statement.line(),
        f"Charged {made.statement.budget} to the data set {status.name!r}{left}.",
    )
    if not status.cap and not as_json:
        note(f"{status.name!r} has no cap yet; `hazemap ledger cap {status.name} 1` lets it spend ε = 1 in all, ever")


def facts(made: "Release", file: Path, status: "DatasetStatus") -> dict[str, Any]:
    """A release for machines."""
    from dataclasses import asdict

    left = status.remaining
    return {
        "file": str(file),
        "cells": made.map.cells.size,
        "total": asdict(made.total()),
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "statement": made.statement.to_json(),
    }
