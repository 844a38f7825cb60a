"""`hazemap export`: the numbers of a release for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, ReleaseFile
from hazemap.errors import FileError, InputError

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
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the numbers of a release, a map or statistics, for other tools. The statement goes with them.

    Answers of a study are written as .csv. A .tif of statistics has a band for every timeslot.
    """
    if output.exists() and not force:
        raise FileError(f"{output} is there already: choose another name, or --force")
    from hazemap.releases import open_release
    from hazemap.releases.study_answers import StudyAnswers

    with progress() as tell:
        release = open_release(file)
        tell("writing", None)
        if not isinstance(release, StudyAnswers):
            release.export(output, pixel, column)
        elif (pixel, column) == (None, None):
            release.export(output)
        else:
            raise InputError(f"{file} holds {release.HOLDS}: --pixel and --column are for a .tif of cells")
    deliver({"file": str(output)}, as_json, str(output))
