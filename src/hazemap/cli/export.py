"""`hazemap export`: the numbers of a release for other tools."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, ReleaseFile
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease

STYLED = (".geojson", ".fgb", ".csv")
"""Exports beside which QGIS looks for a style of the same name."""

EXAMPLE = "Example: [bold]hazemap export map.parquet -o map.geojson[/bold]"


def export(
    file: ReleaseFile,
    output: Annotated[Path, typer.Option("-o", "--output", help="A .geojson, .gpkg, .fgb, .pmtiles, .csv or .tif.")],
    pixel: Annotated[
        float | None, typer.Option(metavar="METRES", help="For a .tif: the width of a pixel at the equator, at most.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of statistics and marks, for a .tif: the column that it holds, by default value or shares.",
        ),
    ] = None,
    style: Annotated[
        bool, typer.Option(help="For a .geojson, .fgb or .csv: write how to draw it beside it, as .qml and .sld.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the numbers of a release, a map or statistics, for other tools. The statement goes with them.

    Answers of a study are written as .csv. A .tif of statistics has a band for every timeslot. QGIS takes the colours
    of a .gpkg out of the file itself, those of a .geojson from the .qml beside it; styles that are there already stay.
    """
    if output.exists() and not force:
        raise FileError(f"{output} is there already: choose another name, or --force")
    from hazemap.releases import open_release
    from hazemap.releases.study_answers import StudyAnswers

    beside: list[Path] = []
    with progress() as tell:
        release = open_release(file)
        tell("writing", None)
        if not isinstance(release, StudyAnswers):
            release.export(output, pixel, column)
            beside = _style(release, output, force) if style else []
        elif (pixel, column) == (None, None):
            release.export(output)
        else:
            raise InputError(f"{file} holds {release.HOLDS}: --pixel and --column are for a .tif of cells")
    names = [str(each) for each in beside]
    deliver({"file": str(output)} | ({"styles": names} if names else {}), as_json, str(output), *names)


def _style(release: "BaseRelease", output: Path, force: bool) -> list[Path]:
    """Write styles beside an export that has none in it: somebody's own are not replaced without being told to."""
    if output.suffix.lower() not in STYLED or not any(style.writable for style in release.layer_styles()):
        return []
    wanted = [output.with_suffix(suffix) for suffix in (".qml", ".sld")]
    made = [path for path in wanted if force or not path.exists()]
    for path in made:
        release.export(path)
    return made
