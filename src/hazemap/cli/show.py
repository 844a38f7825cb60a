"""`hazemap show`: a picture of a release."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, ReleaseFile
from hazemap.errors import InputError
from hazemap.specs.spec_fields import BOX

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
        bool, typer.Option("--uncertainty/--no-uncertainty", help="One more panel with the uncertainty of each cell.")
    ] = True,
    box: Annotated[str | None, typer.Option(help=f"Show this part: {BOX}.")] = None,
    frame: Annotated[
        str, typer.Option(metavar="WHAT", help="Without a box: all of the map, or only where people stand out.")
    ] = "map",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="A heading.")] = None,
    cell: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of statistics: the profile of this cell over all slots.")
    ] = None,
    slot: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="With --cell: the histogram of the value there in this slot, if it has bins."
        ),
    ] = None,
    statistic: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Of statistics: mean, variance, or a quantile such as q0.5. Maps show the best guess of the mean.",
        ),
    ] = None,
    width: Annotated[float, typer.Option(metavar="INCHES", min=2, max=40, help="How wide the picture is.")] = 10.0,
    as_json: AsJson = False,
) -> None:
    """Draw a release as a map, with a legend, a scale bar, its uncertainty and its privacy statement.

    It shows all of the map, or the part that you ask for; and it says, in the picture and here, how many people lie
    outside.

    Statistics of a value are drawn as a small map for every slot, as the profile of one --cell, or, with a --slot too,
    as the histogram of the value there.
    """
    from hazemap.releases import Statistics, open_release
    from hazemap.releases.estimates import PeopleOutside
    from hazemap.releases.study_answers import StudyAnswers
    from hazemap.spatial.bounding_box import Box

    if frame not in ("map", "people"):
        raise InputError(f"--frame is map or people; found {frame!r}")
    said: dict[str, Any] = {}
    release = open_release(file)
    if isinstance(release, StudyAnswers):
        raise InputError(f"{file} holds {release.HOLDS}, which are no map: `hazemap ask {file}` lists them")
    if not isinstance(release, Statistics) and (cell, slot, statistic) != (None, None, None):
        raise InputError(f"{file} is a map: --cell, --slot and --statistic are for statistics of a value")
    if slot is not None and (cell is None or statistic is not None):
        raise InputError("a histogram needs one --cell and one --slot, and no --statistic")
    with progress() as tell:
        tell("drawing", None)
        from hazemap.draw import MapExtent, MapPanel, save, shown_part

        part: dict[str, Any] = {"frame": MapExtent(frame), "box": Box.parse(box) if box else None}

        if not isinstance(release, Statistics):
            panels = (MapPanel.DENSITY, MapPanel.UNCERTAINTY) if uncertainty else (MapPanel.DENSITY,)
            said = PeopleOutside.of(release, shown_part(release.map, **part)).to_json()
            look = {"title": title, "width": width, "note": said["said"]}
            figure = release.plot(panels=panels, outlines=outlines, **part, **look)
        elif cell is not None and slot is not None:
            found = release.histogram(cell, slot)
            unit = f"{release.value} in {found.cell}, {found.slot}"
            figure = found.plot(unit=unit, title=title, caption=release.statement.line(), width=width)
        elif cell is not None:
            figure = release.plot(statistic, cell, title=title, width=width)
        else:
            look = {"title": title, "width": width, "outlines": outlines, "uncertainty": uncertainty}
            figure = release.plot(statistic, **look, **part)
            said = {"said": release.shown(statistic, **part)}
        goal = output or file.with_suffix(".png")
        tell("writing the picture", None)
        save(figure, goal)
    deliver({"picture": str(goal), **said}, as_json, str(goal), *([said["said"]] if said else []))
