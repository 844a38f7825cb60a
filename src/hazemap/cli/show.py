"""`hazemap show`: a picture of a release, or its page, with changes since another release."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, ReleaseFile
from hazemap.errors import InputError
from hazemap.specs.spec_fields import BOX

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hazemap.draw import Beside
    from hazemap.releases import MarkedTimedRelease, Release, Statistics, TimedRelease
    from hazemap.releases.heatmap import Heatmap
    from hazemap.releases.release_difference import ReleaseDifference
    from hazemap.spatial.bounding_box import Box


def slot_of_page(
    release: "Release | Statistics", slot: str | None, title: str | None, since: Path | None
) -> "tuple[Release | Statistics, str | None, str | None]":
    """The release that a page shows: for marks in slots the named slots, which its heading names too."""
    from hazemap.releases import MarkedTimedRelease

    if slot is None or since is not None or not isinstance(release, MarkedTimedRelease):
        return release, slot, title
    return release.during(slot), None, title or f"{release.statement.dataset}, {slot}"


def difference(file: Path, release: "Release | Statistics", since: Path) -> "ReleaseDifference":
    """The changes since another release."""
    from hazemap.releases import Release, open_release

    before = open_release(since)
    if not isinstance(release, Release) or not isinstance(before, Release):
        other = since if isinstance(release, Release) else file
        raise InputError(f"{other} is not a map: changes are shown between two maps")
    return release.since(before)


def page_of(
    release: "Release | Statistics | ReleaseDifference",
    output: Path,
    title: str | None,
    seen: dict[str, Any],
    as_json: bool,
    of_pictures: list[str],
) -> None:
    """Write a page for a browser; `InputError` for options of pictures. `seen` are lines over it, and a box."""
    from hazemap.files.atomic_write import write_whole
    from hazemap.releases.release_difference import ReleaseDifference

    if of_pictures:
        raise InputError(f"a page shows all of the map, to be moved and zoomed: leave {', '.join(of_pictures)} out")
    said = {"said": release.summary} if isinstance(release, ReleaseDifference) else {}
    with progress() as tell:
        tell("writing the page", None)
        write_whole(output, release.to_html(title, **seen).encode())
    deliver({"page": str(output), **said}, as_json, str(output), *said.values())


MOVING = (".gif", ".apng")


def show(
    file: ReleaseFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help=(
                "The picture (.png, .svg, .pdf; with --blur also .tif; with slots also .gif, .apng) or a page for"
                " browsers (.html). Default: PNG."
            ),
        ),
    ] = None,
    outlines: Annotated[
        Path | None, typer.Option(metavar="GEOJSON", help="Draw these lines over the map, such as districts.")
    ] = None,
    base: Annotated[
        bool, typer.Option("--base/--no-base", help="Draw coasts, rivers, borders and places of Natural Earth.")
    ] = True,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty/--no-uncertainty", help="Add a panel with the uncertainty of each cell.")
    ] = True,
    box: Annotated[str | None, typer.Option(help=f"Show this part: {BOX}.")] = None,
    frame: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Without --box: show all of the map (map), or where people stand out of the noise (people).",
        ),
    ] = "map",
    blur: Annotated[
        float | None,
        typer.Option(
            metavar="METRES",
            min=0,
            help=(
                "Draw a heatmap, the density under a Gaussian of this σ in metres (or the plane's unit). Default "
                "for pyramids; 0 shows their cells."
            ),
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading.")] = None,
    since: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Show what changed in each cell since this release of a map, as a page (.html)."
        ),
    ] = None,
    cell: Annotated[
        str | None, typer.Option(metavar="NAME", help="For statistics: draw the profile of this cell over all slots.")
    ] = None,
    slot: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For a map with time: the slots, such as 8 or 7-9. With --cell: the histogram of the value there.",
        ),
    ] = None,
    borrow_detail: Annotated[
        bool,
        typer.Option(
            "--borrow-detail", help="With --slot: borrow detail inside cells from all slots together, hatched."
        ),
    ] = False,
    statistic: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help=(
                "For statistics: mean, variance, a quantile such as q0.5, or guess (the best guess of the mean). "
                "Default: mean."
            ),
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help=(
                "For a map with marks, the panel beside each share: width (of its interval), density (of people) "
                "or nothing."
            ),
        ),
    ] = None,
    width: Annotated[
        float | None,
        typer.Option(metavar="INCHES", min=2, max=40, help="Width of the picture in inches. Default: 10."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="WxH",
            help="Size of the picture instead of a width, such as 10x7 (inches), 25x18cm or 1600x900px.",
        ),
    ] = None,
    theme: Annotated[
        str | None,
        typer.Option(metavar="THEME", help="light or dark; both are safe for colour-blind readers."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a release as a map, with a legend, a scale bar, its uncertainty and its privacy statement.

    It shows all of the map, or the part that you ask for; and it says, in the picture and here, how many people lie
    outside.

    A page (.html) holds all of the release in one file, for any browser and without a network: move, zoom, ask.

    With --since the page shows what changed in each cell since another release, with its interval, and hatches cells
    whose change noise explains.

    A heatmap (--blur) shows the density as the eye sees it from afar; a .tif of it is a GeoTIFF with its error.

    A map with marks shows the share of each mark, and beside it how wide its interval is.

    A map with time is drawn as a small map for every slot, in one scale; or, as .gif or .apng, one slot after another.
    With marks too, these are of the share of each mark. A slot is drawn as finely as it was counted.

    Statistics of a value are drawn as a small map for every slot, as the profile of one --cell, or, with a --slot too,
    as the histogram of the value there.
    """
    from hazemap.federated.study.study_answers import StudyAnswers
    from hazemap.releases import MarkedRelease, MarkedTimedRelease, Statistics, TimedRelease, open_release
    from hazemap.releases.estimates import PeopleOutside

    _check(frame, since, output)
    said: dict[str, Any] = {}
    release = open_release(file)
    if isinstance(release, StudyAnswers):
        raise InputError(f"{file} holds {release.HOLDS}, which are no map: `hazemap ask {file}` lists them")
    if output is not None and output.suffix.lower() == ".html":
        release, slot, title = slot_of_page(release, slot, title, since)
        chosen: dict[str, Any] = {
            "--blur": blur,
            "--cell": cell,
            "--slot": slot,
            "--borrow-detail": borrow_detail or None,
            "--no-base": None if base else True,
            "--statistic": statistic,
            "--beside": beside,
            "--frame": frame if frame != "map" else None,
            "--width": width,
            "--size": size,
            "--theme": theme,
        }
        seen = {"outlines": outlines, "box": _box(release, box)}
        shown = release if since is None else difference(file, release, since)
        page_of(shown, output, title, seen, as_json, [name for name, value in chosen.items() if value is not None])
        return
    page = _paper(width, size, theme)
    if beside is not None:
        _check_beside(release, file, blur, slot)
    goal, of_values = output or file.with_suffix(".png"), cell or statistic
    release, slot = _in_slots(release, file, slot, goal, of_values, borrow_detail)
    _fit(file, isinstance(release, Statistics), blur, cell, slot, statistic)
    if isinstance(release, TimedRelease | MarkedTimedRelease) and not (blur and _still(goal)):
        _every_slot(release, goal, {"title": title, "outlines": outlines, "base": base, **page}, frame, box, as_json)
        return
    with progress() as tell:
        tell("drawing", None)
        from hazemap.draw import MapExtent, MapPanel, save, shown_part

        part: dict[str, Any] = {"frame": MapExtent(frame), "box": _box(release, box)}

        if not isinstance(release, Statistics):
            look = {"title": title or release.heading, "outlines": outlines, "base": base, **page, **part}
            heatmap = release.heatmap(blur or None) if _blurred(release, blur) else None
            if output is not None and output.suffix.lower() == ".tif":
                _geotiff(heatmap, output, as_json, whole=box is None and frame == "map", paper=width or size or theme)
                return
            shown = shown_part(release.map, **part) if heatmap is None else heatmap.shown_part(**part)
            said = PeopleOutside.of(release, shown).to_json()
            look["note"] = f"{said['said']} {release.said_of_detail}".strip()
            if heatmap is not None:
                figure = heatmap.plot(uncertainty=uncertainty, **look)
            elif isinstance(release, MarkedRelease):
                figure = release.plot(beside=_beside(beside, uncertainty), **look)
            else:
                panels = (MapPanel.DENSITY, MapPanel.UNCERTAINTY) if uncertainty else (MapPanel.DENSITY,)
                figure = release.plot(panels=panels, **look)
        else:
            look = {"title": title, **page}
            ground = {"outlines": outlines, "base": base, **part}
            figure, said = _of_values(release, cell, slot, statistic, look, uncertainty, ground)
        tell("writing the picture", None)
        save(figure, goal)
    deliver({"picture": str(goal), **said}, as_json, str(goal), *([said["said"]] if said else []))


def _paper(width: float | None, size: str | None, theme: str | None) -> dict[str, Any]:
    """The paper of a picture: its width or its size, and its theme."""
    from hazemap.draw import PageSize, theme_named

    if width is not None and size is not None:
        raise InputError("a --size says how wide a picture is: leave --width out")
    look: dict[str, Any] = {"theme": theme_named("light" if theme is None else theme)}
    return look | ({"size": PageSize.parse(size)} if size is not None else {} if width is None else {"width": width})


def _box(release: "Release | Statistics | TimedRelease", text: str | None) -> "Box | None":
    """The part to show, in degrees or in the map's plane."""
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.plane import PlaneBox, plane_of

    if text is None:
        return None
    return (PlaneBox if plane_of(release.cells.tree) else Box).parse(text)


def _check(frame: str, since: Path | None, output: Path | None) -> None:
    """`InputError` for options that show nothing."""
    if frame not in ("map", "people"):
        raise InputError(f"--frame is map or people; found {frame!r}")
    if since is not None and (output is None or output.suffix.lower() != ".html"):
        raise InputError("changes since another release are shown as a page: name an .html with -o")


def _check_beside(release: "Release | Statistics", file: Path, blur: float | None, slot: str | None) -> None:
    """`InputError` where nothing can stand beside a share."""
    from hazemap.releases import MarkedRelease, MarkedTimedRelease

    if blur or not isinstance(release, MarkedRelease):
        why = "a heatmap shows people and no shares" if blur else f"{file} counts no marks"
        raise InputError(f"{why}: --beside is for maps that `hazemap release --mark` made, without --blur")
    if isinstance(release, MarkedTimedRelease) and slot is None:
        raise InputError("small maps of every slot have nothing beside them: leave --beside out, or name a --slot")


def _of_values(
    release: "Statistics",
    cell: str | None,
    slot: str | None,
    statistic: str | None,
    look: dict[str, Any],
    uncertainty: bool,
    of_maps: dict[str, Any],
) -> "tuple[Figure, dict[str, Any]]":
    """Draw statistics of a value: a histogram, a cell's profile or small maps; and the remark about the latter."""
    if cell is not None and slot is not None:
        found = release.histogram(cell, slot)
        unit = f"{release.value} in {found.cell}, {found.slot}"
        return found.plot(unit=unit, caption=release.statement.line(), **look), {}
    if cell is not None:
        return release.plot(statistic, cell, **look), {}
    part = {key: of_maps[key] for key in ("frame", "box")}
    said = {"said": release.shown(statistic, **part)}
    return release.plot(statistic, uncertainty=uncertainty, **look, **of_maps), said


def _still(goal: Path) -> bool:
    """`InputError` for a heatmap that is to move."""
    if goal.suffix.lower() in MOVING:
        raise InputError("a moving picture shows cells: leave --blur out, or name a --slot and a .png")
    return True


def _fit(
    file: Path, values: bool, blur: float | None, cell: str | None, slot: str | None, statistic: str | None
) -> None:
    """Refuse options of maps for statistics of a value, and theirs for maps."""
    if not values and (cell, slot, statistic) != (None, None, None):
        raise InputError(f"{file} is a map: --cell, --slot and --statistic are for statistics of a value")
    if blur is not None and values:
        raise InputError(f"{file} holds statistics of a value: --blur is for maps")
    if slot is not None and (cell is None or statistic is not None):
        raise InputError(
            "statistics of a value are drawn in all slots at once: leave --slot out, or name a --cell too, and no "
            "--statistic, for the histogram there"
        )


def _geotiff(heatmap: "Heatmap | None", output: Path, as_json: bool, whole: bool, paper: object) -> None:
    """Write a heatmap as a GeoTIFF."""
    if paper is not None:
        raise InputError("a .tif holds numbers and no paper: leave --width, --size and --theme out")
    if heatmap is None:
        raise InputError("a .tif shows a heatmap: say how far to blur with --blur METRES, or use `hazemap export`")
    if not whole:
        raise InputError("a .tif of a heatmap holds all of the map: leave --box and --frame out")
    heatmap.export(output)
    facts = {"picture": str(output), "blur_metres": heatmap.metres}
    deliver(facts, as_json, f"{output}: density per km², its unbiased estimate and its standard error")


def _blurred(release: "Release", blur: float | None) -> bool:
    """Whether a map is drawn as a heatmap: if it is asked for, or if its method makes heatmaps."""
    from hazemap.releases.heatmap import is_heatmap

    if blur is not None:
        return blur > 0
    return is_heatmap(release.algorithm) and release.ground.rectangles


def _beside(text: str | None, uncertainty: bool) -> "Beside":
    """The panel beside the map of a share."""
    from hazemap.draw import Beside

    if text is None:
        return Beside.WIDTH if uncertainty else Beside.NOTHING
    if text not in [each.value for each in Beside]:
        raise InputError(f"--beside is width, density or nothing; found {text!r}")
    return Beside(text)


def _in_slots(
    release: "Release | Statistics", file: Path, slot: str | None, goal: Path, of_values: str | None, borrow: bool
) -> "tuple[Release | Statistics, str | None]":
    """The release to draw: for a map with time the named slots, unless it moves; and the slot if only one is left."""
    from hazemap.releases import MarkedTimedRelease, Statistics, TimedRelease

    if borrow and (slot is None or not isinstance(release, TimedRelease)):
        raise InputError("--borrow-detail is for a --slot of a map with time")
    if isinstance(release, Statistics) or of_values is not None:
        return release, slot
    timed = release if isinstance(release, TimedRelease | MarkedTimedRelease) else None
    moving = goal.suffix.lower() in MOVING
    if timed is None and (slot is not None or moving):
        raise InputError(f"{file} is a map, which has no slots: leave --slot out, and name a .png, .svg or .pdf")
    if moving and slot is not None:
        raise InputError("a moving picture shows all slots, one after another: leave --slot out")
    if timed is None or slot is None:
        return release, None
    return (timed.borrowing(slot) if borrow and isinstance(timed, TimedRelease) else timed.during(slot)), None


def _every_slot(
    release: "TimedRelease | MarkedTimedRelease",
    goal: Path,
    look: dict[str, Any],
    frame: str,
    box: str | None,
    as_json: bool,
) -> None:
    """Small maps of all slots, or a moving picture of them."""
    from hazemap.draw import MapExtent, save, shown_part
    from hazemap.releases.estimates import PeopleOutside
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.plane import PlaneBox, plane_of

    with progress() as tell:
        tell("drawing", None)
        kind = PlaneBox if plane_of(release.cells.tree) else Box
        part: dict[str, Any] = {"frame": MapExtent(frame), "box": kind.parse(box) if box else None}
        said = PeopleOutside.of(release, shown_part(release.map, **part)).to_json()
        look = {**look, **part, "note": release.note(**part)}
        if goal.suffix.lower() in MOVING:
            release.animate(goal, tell=tell, **look)
        else:
            save(release.plot(**look), goal)
    deliver({"picture": str(goal), **said}, as_json, str(goal), said["said"])
