"""`hazemap demo map`: everything once, on a city whose people are not real, with the truth beside the answers."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.shared_options import AsJson
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.planning.synthetic_city import DemoCity
    from hazemap.releases import Estimate, Release

CENTRE = "2.25,54.755,2.31,54.79"
HARBOUR = ((2.36, 54.735), (2.46, 54.745), (2.455, 54.7), (2.38, 54.69))
"""A box and a polygon to ask about."""

GRID, NEIGHBOURHOOD = 8, 5
"""Levels of the squares that the truth is drawn on, and of a neighbourhood: 100 and 800 m wide."""


def city_map(
    folder: Annotated[Path, typer.Option(help="Folder of the demo; created if necessary.")] = Path("demo"),
    people: Annotated[
        int, typer.Option(metavar="N", min=1000, max=2_000_000, help="Number of people of the city.")
    ] = 100_000,
    epsilon: Annotated[str, typer.Option("-e", "--epsilon", metavar="ε", help="Price in ε.")] = "1",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the city.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Make a city up, release a map of it, draw it, ask it three questions, and show the truth beside the answers.

    Nobody in it is real, so the truth may be shown. The demo has a ledger of its own: yours is not touched.
    """
    from hazemap.files.atomic_write import write_whole
    from hazemap.planning.synthetic_city import BOX, DemoCity
    from hazemap.privacy.ledger import Ledger
    from hazemap.publish import release

    there = files_in(folder)
    table, file, page = folder / "city.parquet", folder / "map.parquet", folder / "map.html"
    pictures, harbour = (folder / "map.png", folder / "truth.png"), folder / "harbour.geojson"
    ledger = Ledger(folder / "ledger.sqlite")
    others = [
        path.name
        for path in (table, file, page, harbour, *pictures)
        if path.name in there and ledger.path.name not in there
    ]
    if others:
        raise InputError(f"the folder {folder} has a {others[0]} that no demo made: name another with --folder")
    with progress() as tell:
        tell("making a city up", None)
        city = DemoCity(people, seed)
        city.write(table)
        made = release(
            table,
            person="person",
            epsilon=epsilon,
            box=BOX,
            bounding="one vote",
            dataset="demo",
            ledger=ledger,
            output=file,
            overwrite=True,
            progress=tell,
            no_cap=True,
            go_on=True,
        )
        tell("asking", None)
        write_whole(harbour, json.dumps({"type": "Polygon", "coordinates": [[*HARBOUR, HARBOUR[0]]]}).encode())
        questions = _questions(made, city)
        tell("drawing", None)
        draw(made, city, pictures, "A city that does not exist, released", GRID)
        try:
            write_whole(page, made.to_html("A city that does not exist").encode())
            there_is = str(page)
        except InputError:
            there_is = "not written: this needs `make studio`, with npm"
    [status] = ledger.datasets()
    paths = {"table": str(table), "file": str(file), "pictures": [str(path) for path in pictures]}
    facts = {
        **paths,
        "people": people,
        "rows": len(city.votes),
        "cells": made.ground.places.size,
        "questions": [{"question": q.text, **asdict(q.answer), "truth": q.truth} for q in questions],
        "ledger": str(ledger.path),
        "statement": made.statement.to_json(),
    }
    deliver(
        facts,
        as_json,
        f"{people:,} people who do not exist left {len(city.votes):,} rows in {table}.",
        f"Released with {made.statement.budget}: {made.ground.places.size:,} cells. {made.statement.line()}",
        "",
        _told(questions),
        "",
        f"The picture:               {pictures[0]}",
        f"The truth beside it:       {pictures[1]}",
        f"The page for a browser:    {there_is}",
        f"The release (GeoParquet):  {file}",
    )
    if not as_json:
        note(
            f"The demo's own ledger, {ledger.path}, remembers {status.charges} charge(s), {status.spent} in all; "
            f"see it with: HAZEMAP_HOME={folder} hazemap ledger list"
        )


def files_in(folder: Path) -> set[str]:
    """The names of what is in a demo's folder, which is made if necessary."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {path.name for path in folder.iterdir()}
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made ({error.strerror}): name another with --folder"
        ) from error


@dataclass(frozen=True)
class Question:
    """A question, what the release answers, and what is true."""

    text: str
    answer: "Estimate"
    truth: float


def _questions(made: "Release", city: "DemoCity") -> list[Question]:
    import shapely

    from hazemap.spatial.bounding_box import Box

    rows, votes, box = city.rows, city.votes, Box.parse(CENTRE)
    lon, lat = rows["lon"], rows["lat"]
    inside = (box.west <= lon) & (lon <= box.east) & (box.south <= lat) & (lat <= box.north)
    polygon = shapely.Polygon(HARBOUR)
    there = shapely.contains_xy(polygon, lon, lat)
    asked = [
        Question(f"people in the centre (--box={CENTRE})", made.count(box), float(votes[inside].sum())),
        Question(
            "people around the harbour (--polygon harbour.geojson)", made.count(polygon), float(votes[there].sum())
        ),
    ]
    tree = made.map.cells.tree
    densest = tree.named([made.top(1, by="density").iloc[0, 0]])
    while tree.level(densest)[0] > NEIGHBOURHOOD:
        densest = tree.parent(densest)
    [name], (first, last) = tree.names(densest), tree.span(densest)
    base = tree.cell_at({"lon": lon, "lat": lat}, tree.depth)
    truth = float(votes[(first <= base) & (base <= last)].sum())
    asked.append(Question(f"people in the densest neighbourhood (--cell {name})", made.count(name), truth))
    return asked


def draw(made: "Release", city: "DemoCity", pictures: tuple[Path, Path], title: str, grid: int) -> None:
    """A picture of a release, and one of the truth beside it, on squares of a level of its tree."""
    import numpy as np

    from hazemap.cellmap import CellMap
    from hazemap.cells import Leaves
    from hazemap.draw import draw_side_by_side, save

    save(made.plot(title=title), pictures[0])
    tree, rows = made.map.cells.tree, city.rows
    squares = Leaves.at_level(tree, min(grid, tree.depth))
    at = squares.locate(tree.cell_at({"lon": rows["lon"], "lat": rows["lat"]}, tree.depth))
    counts = np.bincount(at[at >= 0], city.votes[at >= 0], squares.size).astype(np.float64)
    truth = CellMap.independent(squares, counts, np.zeros(squares.size), 0.0)
    shown = [("truth", truth), ("release", made.map)]
    title = "The truth, which only a made-up city may show, and the release"
    save(draw_side_by_side(shown, title=title, caption=made.statement.line()), pictures[1])


def _told(questions: list[Question]) -> Any:
    from rich.table import Table

    table = Table("question", "answer", "95 % interval", "truth", box=None)
    for asked in questions:
        answer = asked.answer
        within = "" if answer.low <= asked.truth <= answer.high else "  (outside)"
        interval = f"{answer.low:,.0f} … {answer.high:,.0f}"
        table.add_row(asked.text, f"{answer.best_guess:,.0f}", interval, f"{asked.truth:,.0f}{within}")
    return table
