"""`hazemap show`: a picture of a release."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.options import BOX, AsJson, ReleaseFile
from hazemap.cli.output import deliver, progress

EXAMPLE = "Example: [bold]hazemap show map.parquet -o map.png[/bold]"


def show(
    file: ReleaseFile,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The picture: .png, .svg or .pdf. By default a PNG beside the file."),
    ] = None,
    outlines: Annotated[
        Path | None, typer.Option(metavar="GEOJSON", help="Lines to draw over it: coasts, districts.")
    ] = None,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty/--no-uncertainty", help="A second panel: how sure is each cell?")
    ] = True,
    box: Annotated[str | None, typer.Option(help=f"Show this part: {BOX}.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="A heading.")] = None,
    width: Annotated[float, typer.Option(metavar="INCHES", min=2, max=40, help="How wide the picture is.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Draw a release as a map, with a legend, a scale bar, its uncertainty and its privacy statement."""
    from hazemap.domains import Box
    from hazemap.releases import Release

    view = Box.parse(box) if box else None
    with progress() as tell:
        release = Release.open(file)
        tell("drawing", None)
        from hazemap.draw import Panel, save

        panels = (Panel.DENSITY, Panel.UNCERTAINTY) if uncertainty else (Panel.DENSITY,)
        figure = release.plot(panels=panels, outlines=outlines, box=view, title=title, width=width)
        goal = output or file.with_suffix(".png")
        tell("writing the picture", None)
        save(figure, goal)
    deliver({"picture": str(goal)}, as_json, str(goal))
