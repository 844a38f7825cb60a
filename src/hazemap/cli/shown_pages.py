"""Pages of `hazemap show`: the release that a page shows, changes since another release, and the file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.cli.console_output import deliver, progress
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.releases import Release, Statistics
    from hazemap.releases.release_difference import ReleaseDifference


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
