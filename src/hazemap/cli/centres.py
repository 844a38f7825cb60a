"""`hazemap centres`: places with people close to them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, Force, ReleaseFile, refuse_replacing
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from hazemap.releases import Centres, Release

MOST = 200
"""Centres of a map: their search is O(k) distances of 1,024 groups, for each exchange."""


def centres(
    file: ReleaseFile,
    number: Annotated[int, typer.Option("-k", "--number", metavar="K", min=1, max=MOST, help="Number of places.")] = 10,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Also write them to a file: .csv or .geojson.")
    ] = None,
    slot: Annotated[
        str | None, typer.Option(metavar="NAME", help="For a map with time: the slots, such as 8 or 7-9.")
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Confidence of the intervals, between 0 and 1.")
    ] = 0.95,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Find K places with people close to them, and how many people are nearest to each.

    Ways are as the crow flies. Asking is free: it looks at released numbers alone. Intervals are those of the noise,
    for these places as if they had been chosen beforehand.
    """
    from hazemap.releases import MarkedTimedRelease, Release, TimedRelease, open_release

    if output is not None and output.suffix.lower() not in (".csv", ".geojson"):
        raise FileError(f"centres can be written as .csv or .geojson; found {str(output)!r}")
    if output is not None and not force:
        refuse_replacing(output)
    with progress() as tell:
        release = open_release(file)
        if not isinstance(release, Release):
            raise InputError(f"{file} holds {release.HOLDS}: centres are those of a map")
        if slot is not None:
            if not isinstance(release, TimedRelease | MarkedTimedRelease):
                raise InputError(f"{file} is a map, which has no slots: leave --slot out")
            release = release.during(slot)
        tell("looking for centres", None)
        found = release.centres(number, confidence)
        if output is not None:
            _write(found, release, output)
    ways = found.ways
    facts = {
        "centres": _rows(found),
        "counted": release.counted,
        "confidence": confidence,
        "ways_km": ways.to_json(),
        "placement_km": found.placement,
        "file": output and str(output),
    }
    said = (
        f"All ways together are {ways}; where in their cells people are changes that by less than "
        f"{found.placement:,.0f} {release.counted} · km."
    )
    deliver(facts, as_json, _table(found, release.counted, confidence), said, *([str(output)] if output else []))


def _rows(found: "Centres") -> list[dict[str, float]]:
    columns = found.columns()
    return [
        {name: round(float(column[at]), 6 if name in ("lon", "lat") else 1) for name, column in columns.items()}
        for at in range(len(found.best_guess))
    ]


def _table(found: "Centres", counted: str, confidence: float) -> Any:
    from rich.table import Table

    table = Table("lon,lat", counted, f"{100 * confidence:.6g} % interval", "mean way", box=None)
    for row in _rows(found):
        way = f"{row['metres'] / 1000:.2f} km" if row["metres"] >= 1000 else f"{row['metres']:.0f} m"
        table.add_row(
            f"{row['lon']:.5f},{row['lat']:.5f}",
            f"{row['best_guess']:z,.0f}",
            f"{row['low']:z,.0f} … {row['high']:z,.0f}",
            way,
        )
    return table


def _write(found: "Centres", release: "Release", output: Path) -> None:
    """As .csv with the statement beside it, or as .geojson with the statement in it; whole or not at all."""
    from pandas import DataFrame

    from hazemap.files.atomic_write import write_whole
    from hazemap.releases.text_tables import write_csv

    rows, statement = _rows(found), release.statement.to_json()
    if output.suffix.lower() == ".csv":
        write_csv(DataFrame(rows, columns=list(found.columns())), release.statement, output)
        return
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [row.pop("lon"), row.pop("lat")]},
            "properties": row,
        }
        for row in rows
    ]
    collection = {
        "type": "FeatureCollection",
        "features": features,
        "ways_km": asdict(found.ways),
        "placement_km": found.placement,
        "statement": statement,
    }
    write_whole(output, (json.dumps(collection, ensure_ascii=False) + "\n").encode())
