"""`hazemap ask`: a number from a release, and how far it may be from the truth."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.shared_options import AsJson, ReleaseFile
from hazemap.errors import FileError, InputError
from hazemap.files.number_text import decimals
from hazemap.files.text_files import MOST_OF_A_LIST, read_text
from hazemap.specs.spec_fields import BOX

if TYPE_CHECKING:
    from hazemap.federated.study.study_answers import StudyAnswers
    from hazemap.releases import Estimate, Release, Statistics
    from hazemap.releases.estimates import PeopleOutside

SHOWN = 20
"""Lines of an answer of a study: the largest counts."""


def ask(
    file: ReleaseFile,
    box: Annotated[str | None, typer.Option(help=f"Ask about a box: {BOX}.")] = None,
    polygon: Annotated[
        Path | None, typer.Option(metavar="GEOJSON", help="Ask about the polygons of a GeoJSON file.")
    ] = None,
    cell: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Ask about a cell, of any level of a map. May be repeated.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="LON,LAT", help="Ask about the cell around a point; a map answers with the number per km²."
        ),
    ] = None,
    slot: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Timeslot, by its name or number; for a map with time also 7-9 or 7,18."),
    ] = None,
    histogram: Annotated[
        bool,
        typer.Option("--histogram", help="With --cell and --slot: show the number of people in each bin of the value."),
    ] = False,
    mark: Annotated[
        list[str] | None,
        typer.Option(metavar="MARK", help="For a map with marks: show the share of this mark only. May be repeated."),
    ] = None,
    top: Annotated[int | None, typer.Option(metavar="K", help="For a map: list the K fullest cells.")] = None,
    by: Annotated[str, typer.Option(metavar="WHAT", help="With --top: order by count or density.")] = "count",
    confidence: Annotated[float, typer.Option(metavar="P", help="Confidence of the interval, between 0 and 1.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Ask a release for a number: in a box, a polygon, a cell, at a point, or by default in all.

    The answer is the best guess, as pictures show it, and an interval that holds the truth with the --confidence that
    you choose. Asking is free.

    A map with time (hazemap release --slots) answers of all slots together, or of the --slot or slots that you name.

    Statistics of a value (hazemap stats) answer for every timeslot, or for one --slot; and for whole cells: of a box
    or a polygon, for those with at least half of their area inside.

    A map with marks (hazemap release --mark) answers which share of the people carries each mark; one with time too
    (--mark and --slots) of all slots together, or of the --slot or slots that you name.

    Answers of a study (hazemap study release) are listed, the largest counts of each round first.
    """
    asked = {"--box": box, "--polygon": polygon, "--cell": cell, "--at": at, "--top": top}
    given = [name for name, value in asked.items() if value]
    if len(given) > 1:
        raise InputError(f"one question at a time: {' and '.join(given)} were given")
    if top is None and by != "count":
        raise InputError("--by says by what --top cells are the fullest: say --top K too")
    from hazemap.releases import is_kind, open_release
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.plane import PlaneBox, plane_of

    release: Any = open_release(file)
    if is_kind(release, "StudyAnswers"):
        _answers(release, given or [slot] * (slot is not None) or histogram, confidence, as_json)
        return
    kind = PlaneBox if plane_of(getattr(getattr(release, "cells", None), "tree", None)) else Box
    region = kind.parse(box) if box else _geojson(polygon) if polygon else None
    point = None if at is None else _point(at)
    if is_kind(release, "Statistics"):
        for option, given_ in (("--top", top is not None), ("--mark", mark)):
            if given_:
                raise InputError(f"{file} holds statistics of a value: {option} is for maps")
        _of_statistics(release, cell, point or region, slot, histogram, confidence, as_json)
        return
    shown = _in_slots(release, file, slot, histogram)
    if mark and not is_kind(release, "MarkedRelease"):
        raise InputError(f"{file} counts no marks: --mark is for maps that `hazemap release --mark` made")
    if top is not None:
        _top(shown, top, by, confidence, as_json)
    elif is_kind(release, "MarkedRelease"):
        marked: Any = shown
        where = cell or (region if point is None else marked.named_at(*point))
        shares = marked.share(where, mark, confidence)
        deliver(shares.to_json(), as_json, str(shares))
    else:
        _of_map(shown, region if cell is None else cell, point, slot is not None, confidence, as_json)


def _of_statistics(
    release: "Statistics",
    cell: list[str] | None,
    where: Any,
    slot: str | None,
    histogram: bool,
    confidence: float,
    as_json: bool,
) -> None:
    """What a value is in some cells, around a point, in a region or everywhere."""
    if histogram:
        _histogram(release, cell, slot, confidence, as_json)
    elif cell or isinstance(where, tuple):
        answers = [each for name in cell or () for each in release.ask(name, slot, confidence)]
        answers += release.at(where[0], where[1], slot, confidence) if isinstance(where, tuple) else []
        said = {"said": release.who_counts} if release.who_counts else {}
        deliver(
            {"statistics": [each.to_json() for each in answers], **said}, as_json, *map(str, answers), *said.values()
        )
    else:
        found = release.region(where, slot, confidence)
        deliver(found.to_json(), as_json, str(found))


def _of_map(
    made: "Release", region: Any, point: tuple[float, float] | None, timed: bool, confidence: float, as_json: bool
) -> None:
    """How many are in a region, or around a point, or in all."""
    from hazemap.releases.estimates import PeopleOutside

    if point:
        told(made.density(*point, confidence), as_json)
    elif region is not None:
        told(made.count(region, confidence), as_json)
    else:
        left_out = PeopleOutside.of(made, confidence=confidence) if not timed else None
        told(made.total(confidence), as_json, left_out)


def _in_slots(release: "Release", file: Path, slot: str | None, histogram: bool) -> "Release":
    """The map, or of one with time that of the slots that are named."""
    from hazemap.releases import is_kind

    timed: Any = release if is_kind(release, "TimedRelease") or is_kind(release, "MarkedTimedRelease") else None
    if histogram or (slot is not None and timed is None):
        raise InputError(f"{file} is a map, which has no slots and no bins: leave --slot and --histogram out")
    during: Release = timed.during(slot) if timed is not None and slot is not None else release
    return during


def _answers(made: "StudyAnswers", narrowed: object, confidence: float, as_json: bool) -> None:
    """The largest counts of each round; for machines all of them."""
    from rich.table import Table

    from hazemap.federated.study.study_answers import column_of

    if narrowed:
        raise InputError(f"this file holds {made.HOLDS}: ask it with --confidence alone, or read it as a table")
    frame, shown = made.to_dataframe(confidence), list[Any]()
    for number, (each, said) in enumerate(zip(made.rounds, made.summary()[1:], strict=True)):
        names = [column_of(feature.name) for feature in each.recipe.features]
        table = Table(*names, "people", f"{100 * confidence:g} % interval", box=None)
        own = frame[(frame["round"] == each.round) & ~frame["none"]].nlargest(SHOWN, "count")
        for line in own.to_dict("records"):
            count, low, high = (f"{line[name]:z,.0f}" for name in ("count", "low", "high"))
            table.add_row(*(line[name] for name in names), count, f"{low} … {high}")
        shown += ["" if number else f"Answers of the study {made.study}", said, table]
    facts = {"study": made.study, "confidence": confidence, "rounds": made.prices(), "lines": frame.to_dict("records")}
    deliver(facts, as_json, *shown, made.statement.line())


def _histogram(made: "Statistics", cells: list[str] | None, slot: str | None, confidence: float, as_json: bool) -> None:
    from rich.table import Table

    slot = made.slots[0] if slot is None and len(made.slots) == 1 else slot
    if cells is None or len(cells) != 1 or slot is None:
        raise InputError("a histogram needs one --cell and one --slot")
    found = made.histogram(cells[0], slot)
    frame = found.to_dataframe(confidence)
    table = Table("from", "to", "people", f"{100 * confidence:g} % interval", "part below", box=None)
    for bin_ in frame.itertuples(index=False, name=None):
        start, end, people, _, low, high, part = bin_
        table.add_row(f"{start:g}", f"{end:g}", f"{people:z,.0f}", f"{low:z,.0f} … {high:z,.0f}", f"{part:.3f}")
    bins = frame.to_dict("records")
    deliver({"cell": found.cell, "slot": found.slot, "bins": bins}, as_json, table)


def told(answer: "Estimate", as_json: bool, left_out: "PeopleOutside | None" = None) -> None:
    """One answer, and whom it leaves out."""
    lines = [str(answer), answer.said_of_noise]
    if answer.cut >= 1:
        lines.append(
            f"The border cuts cells with {answer.cut:,.0f} {answer.counted}; where in them they are is a guess, of "
            f"standard error {answer.placement_stddev:,.0f}; that of the noise is {answer.noise_stddev:,.0f}."
        )
    facts: dict[str, Any] = answer.to_json()
    if left_out is not None:
        facts["nowhere"] = left_out.to_json()["nowhere"]
        lines.append(str(left_out))
    deliver(facts, as_json, *lines)


def _top(release: "Release", number: int, by: str, confidence: float, as_json: bool) -> None:
    from rich.table import Table

    from hazemap.spatial.plane import ground_unit, plane_of

    if by not in ("count", "density"):
        raise InputError(f"--by is count or density; found {by!r}")
    frame = release.top(number, "density" if by == "density" else "count", confidence)
    unit, lines = ground_unit(release.cells.tree), ("x", "y") if plane_of(release.cells.tree) else ("lon", "lat")
    told = (f"area_{unit.column}", f"per_{unit.column}")
    points = frame.geometry.representative_point()
    rows: list[dict[str, Any]] = [
        {
            "cell": row.iloc[0],
            lines[0]: round(point.x, 6),
            lines[1]: round(point.y, 6),
            **{name: float(row[name]) for name in ("best_guess", "low", "high", "unbiased", "stddev", *told)},
        }
        for (_, row), point in zip(frame.iterrows(), points, strict=True)
    ]
    interval = f"{100 * confidence:.6g} % interval"
    table = Table("cell", ",".join(lines), release.counted, interval, f"per {unit.name}", box=None)
    for row in rows:
        table.add_row(
            row["cell"],
            f"{row[lines[0]]:.4f},{row[lines[1]]:.4f}",
            f"{row['best_guess']:z,.0f}",
            f"{row['low']:z,.0f} … {row['high']:z,.0f}",
            f"{row[told[1]]:,.0f}" if row[told[1]] >= 100 else f"{row[told[1]]:.3g}",
        )
    longer = "Intervals are longer than a cell's own, because the cells were chosen for their numbers."
    said = [longer] if len(rows) < len(release.ground.places) else []  # all cells are no choice
    deliver({"counted": release.counted, "confidence": confidence, "top": rows}, as_json, table, *said)


def _point(text: str) -> tuple[float, float]:
    try:
        lon, lat = decimals(text)
    except ValueError:
        raise InputError(f"a point is two numbers, lon,lat in degrees; found {text!r}") from None
    return lon, lat


def _geojson(path: Path) -> Any:
    import json

    text = read_text(path, "the polygon", MOST_OF_A_LIST)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not GeoJSON: {error}") from error
    if not isinstance(data, dict):
        raise FileError(f"{path} is JSON, but not GeoJSON: it holds no object with a type")
    return data
