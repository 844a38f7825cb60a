"""`hazemap release`: from a table to a published map."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.privacy.ledger_records import LedgerBalance
    from hazemap.releases import Release

EXAMPLE = "Example: [bold]hazemap release visits.parquet --person user --epsilon 1 -o map.parquet[/bold]"

MAP = "The map"

MANY_OUTSIDE = 0.05
"""People outside, as a part of those on the map, from which on a wider box is advised."""

_OUTSIDE = ("people", "drop", "count")


def release(
    ctx: typer.Context,
    source: Source = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", rich_help_panel=FILE, help="The file to publish: .parquet, or .tif for a grid."),
    ] = None,
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
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    decimal: DecimalSign = ".",
    multiline: Multiline = False,
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
        str,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=MAP,
            help="Outside the map: count people of whom no row is inside, drop all rows, or count rows like others.",
        ),
    ] = "people",
    spec: SpecFile = None,
    write_spec: WrittenSpec = None,
    force: Force = False,
    memory: Memory = None,
    as_json: AsJson = False,
) -> None:
    """Publish where the people of a table are, under differential privacy per person."""
    if outside not in _OUTSIDE:
        raise InputError(f"--outside is people, drop or count; found {outside!r}")
    from hazemap.publish import run_release
    from hazemap.specs.release_spec import ReleaseSpec

    asked = specified(
        ctx,
        ReleaseSpec,
        spec,
        source=source,
        person=person,
        lon=lon,
        lat=lat,
        time=time,
        value=value,
        since=since,
        until=until,
        delimiter=delimiter,
        encoding=encoding,
        decimal=decimal,
        multiline=multiline,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        bounding=bounding,
        dataset=dataset,
        box=box,
        cells=cells,
        method=method,
        outside=outside,
        output=output,
        overwrite=force,
    )
    if write_spec is not None:
        return written(asked, write_spec, as_json)
    if asked.output is None:
        raise InputError("where shall the map go? Name a file: -o map.parquet")
    book, file = ledger_at(ledger), Path(asked.output)
    with progress() as tell:
        made = run_release(asked, ledger=book, memory_limit=None if memory is None else memory << 20, progress=tell)
    status = book.status(made.statement.dataset, "full")
    assert status is not None  # noqa: S101 - it has just paid
    left = f", which leaves {status.remaining} of its cap, {status.cap}" if status.cap else ""
    deliver(
        facts(made, file, status),
        as_json,
        f"{file}: {made.ground.places.size:,} cells, {made.total()} in all",
        *_where(made),
        made.statement.line(),
        f"Charged {made.statement.budget} to the data set {status.name!r}{left}.",
    )
    if not status.cap and not as_json:
        note(f"{status.name!r} has no cap yet; `hazemap ledger cap {status.name} 1` lets it spend ε = 1 in all, ever")
    return None


def _where(made: "Release") -> list[str]:
    """Which box was found, if one was, and how many people lie outside the map."""
    from hazemap.algorithms import PrivateBoundingBox
    from hazemap.releases.people_outside import PeopleOutside

    box, algorithm = found_box(made), made.algorithm
    words = f"The map covers the box that was found, {box}."
    if isinstance(algorithm, PrivateBoundingBox) and not algorithm.found_in(made.transcript):
        words = "No place stands out of the noise, so the map covers the world: for a map of a place, declare its box."
    lines = [*([words] if box else []), str(PeopleOutside.of(made))]
    if made.nowhere is not None and made.nowhere.low > MANY_OUTSIDE * max(made.total().value, 1.0):
        lines.append("That is many: a wider --box would have them on the map.")
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

    left = status.remaining
    return {
        "file": str(file),
        "cells": made.ground.places.size,
        "total": asdict(made.total()),
        "nowhere": made.nowhere and asdict(made.nowhere),
        "found_box": found_box(made),
        "remaining": left and {"measure": left.measure, "value": float(left.value)},
        "statement": made.statement.to_json(),
    }
