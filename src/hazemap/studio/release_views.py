"""What there is to see of a published file: its facts, pictures, and the file itself for other tools.

All of it is post-processing: whoever has the file could make the same.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hazemap.errors import InputError
from hazemap.federated.study.study_answers import StudyAnswers
from hazemap.privacy.estimand import Estimand
from hazemap.releases import MarkedTimedRelease, Release, Statistics, TimedRelease, open_release
from hazemap.releases.estimates import PeopleOutside
from hazemap.releases.page.map_payload import interval
from hazemap.studio.refusals import refused

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPORTS = (".geojson", ".gpkg", ".fgb", ".pmtiles", ".csv", ".tif")
LARGEST = 256 << 20
"""Bytes of the largest file that a browser is given; larger ones are for the command line."""

_drawing = threading.Lock()
"""One picture at a time: matplotlib shares fonts and texts between threads."""


def opened(path: Path) -> "Release | Statistics":
    """The map or the statistics in a file."""
    found = open_release(path)
    if isinstance(found, StudyAnswers):
        raise refused(InputError, "answersAreNoMap", name=path.name)
    return found


def facts(path: Path) -> dict[str, Any]:
    """What is said of a release beside its picture."""
    release = opened(path)
    statement = release.statement
    about: dict[str, Any] = {
        "kind": type(release).__name__,
        "dataset": statement.dataset,
        "price": str(statement.budget),
        "method": statement.method,
        "line": statement.line(),
        "statement": statement.text(),
        "cells": release.ground.places.size,
        "slots": list(release.slots) if isinstance(release, TimedRelease | MarkedTimedRelease) else [],
        "exports": _exports(release, path),
        "total": None,
        "estimand": None,
        "outside": None,
    }
    if isinstance(release, Release):
        total = release.total()
        about |= {
            "total": interval(total),
            "estimand": Estimand.of(statement.bounding)._asdict(),
            "outside": str(PeopleOutside.of(release)),
        }
    return about


def picture(path: Path, width: float = 9.0) -> bytes:
    """A release as a PNG, `width` inches wide."""
    return _drawn(lambda: opened(path).plot(width=width))


def page(path: Path) -> bytes:
    """A release as one page for a browser, which reaches nothing else; of marks in slots, that of all slots."""
    release = opened(path)
    if isinstance(release, MarkedTimedRelease):
        return release.during(range(len(release.slots))).to_html(f"{path.name}, all slots together").encode()
    return release.to_html(path.name).encode()


def difference(before: Path, after: Path) -> tuple[bytes, dict[str, int]]:
    """What changed from one map to another as a page, and in how many of how many cells by more than noise explains."""
    one, other = _map(before), _map(after)
    found = other.since(one)
    summary = {"changed": int(found.changed.sum()), "cells": found.cells.size}
    return found.to_html(f"{before.name} → {after.name}").encode(), summary


def side_by_side(paths: tuple[Path, Path], width: float = 11.0) -> bytes:
    """Two maps as a PNG, in one scale and one view."""
    from hazemap.draw import draw_side_by_side

    maps = [(path.name, _map(path)) for path in paths]
    shown = [(name, release.map) for name, release in maps]
    caption = " · ".join(f"{name}: {release.statement.line()}" for name, release in maps)
    return _drawn(lambda: draw_side_by_side(shown, caption=caption, width=width))


def _map(path: Path) -> Release:
    release = opened(path)
    if not isinstance(release, Release):
        raise refused(InputError, "statisticsAreNoMap", name=path.name)
    return release


def exported(path: Path, ending: str) -> bytes:
    """The numbers of a release as another kind of file; or, with its own ending, the file as it was published."""
    if ending == path.suffix.lower():
        opened(path)
        return _content(path)
    if ending not in EXPORTS:
        raise InputError(f"a release is exported as {', '.join(EXPORTS)}; found {ending!r:.20}")
    with TemporaryDirectory(prefix="hazemap-") as folder:
        goal = Path(folder) / f"{path.stem}{ending}"
        opened(path).export(goal)
        return _content(goal)


def _exports(release: "Release | Statistics", path: Path) -> list[str]:
    """The endings that it can be saved with."""
    of_ground = release.crs is None
    fitting = [ending for ending in EXPORTS if not (of_ground and ending in (".pmtiles", ".tif"))]
    return [path.suffix.lower(), *(ending for ending in fitting if ending != path.suffix.lower())]


def _content(path: Path) -> bytes:
    if path.stat().st_size > LARGEST:
        raise refused(InputError, "tooLargeToSave", name=path.name, most=LARGEST >> 20)
    return path.read_bytes()


def _drawn(draw: "Callable[[], Figure]") -> bytes:
    from hazemap.draw import encode

    with _drawing:
        return encode(draw())
