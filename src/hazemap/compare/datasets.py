"""The maps and tables that methods are compared on, by name: made up, of the evaluation data, and a user's own."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hazemap.compare.evaluation_data import Evaluation
from hazemap.compare.ground_truth_maps import GroundTruthMap
from hazemap.compare.location_visits import Visits
from hazemap.compare.synthetic_maps import city, gaussian, mixture
from hazemap.compare.trial_settings import Place
from hazemap.compare.user_level import datasets as archive
from hazemap.compare.user_maps import own_map
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

PIXELS = 10
"""The depth of a map that is made of points."""

NEW_YORK = Box(-74.27, 40.48, -73.69, 40.93)
CELLS = 5
"""Of a table of speeds so many of the fullest cells are compared on."""

IMAGES = 10
"""Of so many pictures the fixations are used, one in 63 by name."""

PLACES: dict[str, tuple[str, Box, str]] = {
    "san-francisco": ("cabspotting_sf_pickups_2008", Box(-122.52, 37.59, -122.28, 37.83), "taxi pickups, 2008"),
    "gowalla": ("gowalla_nyc_2009_2010", NEW_YORK, "Gowalla check-ins in New York, 2009 and 2010"),
    "uber": ("uber_nyc_2014_apr_jul_partial", NEW_YORK, "Uber pickups in New York, 2014"),
    "tokyo": ("foursquare_tokyo_2012_2013_no_ts", Box(139.47, 35.51, 139.91, 35.87), "Foursquare check-ins, 2012–13"),
    "accidents": ("uk_road_accidents", Box(-7.6, 49.8, 1.9, 60.9), "road accidents in Great Britain"),
}
"""Tables of points in the evaluation data: the file, the box (public, not read off the rows), and what they are."""

HISTOGRAMS = {
    "adult": "Adult_2D",
    "beijing": "BeijingTaxiS",
    "cabs": "cabspottingS",
    "stroke": "Stroke_2D",
    "twitter": "twitter",
}
"""The DPBench histograms of two dimensions (Hay et al. 2016), 256 × 256."""


@dataclass(frozen=True)
class Dataset:
    """A map or a table that can be asked for by name; `needs_data` if it is made of the evaluation data."""

    name: str
    what: str
    needs_data: bool
    make: Callable[["Datasets"], Place]


@dataclass(frozen=True)
class Datasets:
    """Where maps come from: the folder of the evaluation data, if there is one, and a user's own files by name.

    >>> Datasets().map("gaussian-20").people
    1000000
    """

    data: Path | None = None
    own: tuple[tuple[str, Path], ...] = ()

    def map(self, name: str) -> Place:
        """The map of this name; `name@N` is the same with N of its people, `name/S` with S × S larger pixels.

        A table of values has no pixels, and one name.
        """
        if name in TABLES:
            return self._known(TABLES[name], name)
        rest, _, number = name.partition("@")
        plain, _, side = rest.partition("/")
        found = self._plain(plain)
        if side:
            found = found.coarser(_whole(side, name).bit_length() - 1)
            if found.side != int(side):
                raise InputError(f"a map is seen in 2, 4, 8, … × as many pixels; {name!r} asks for {side}")
        if number:
            if not isinstance(found, GroundTruthMap):
                raise InputError(f"{plain} has people with several rows each, of whom a comparison draws some itself")
            found = found.sample(_whole(number, name), plain.encode())
        return replace(found, name=name)

    def _plain(self, name: str) -> GroundTruthMap | Visits:
        for own, path in self.own:
            if name == own:
                return _own(name, path)
        if name not in ENTRIES:
            raise InputError(f"there is no map {name!r}; there are {', '.join(ENTRIES)}, and your own: --map NAME=FILE")
        found = self._known(ENTRIES[name], name)
        if not isinstance(found, GroundTruthMap | Visits):
            raise InputError(f"{name} is a table, and has no pixels")
        return found

    def _known(self, entry: "Dataset", name: str) -> Place:
        if entry.needs_data and self.data is None:
            raise InputError(
                f"{name} is made of the evaluation data: say where that is with --data FOLDER. Without it "
                f"there are {', '.join(free_maps())}, and your own: --map NAME=FILE"
            )
        return _kept(entry.make, self)

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation data."""
        if self.data is None:
            raise InputError("the evaluation data is not here: say where it is with --data FOLDER")
        return Evaluation(self.data)


def free_maps() -> list[str]:
    """The maps that need no data."""
    return [name for name, entry in ENTRIES.items() if not entry.needs_data]


@cache
def _kept(make: Callable[["Datasets"], Place], atlas: "Datasets") -> Place:
    """A map is made once in a process."""
    return make(atlas)


@cache
def _own(name: str, path: Path) -> GroundTruthMap:
    return own_map(name, path)


def _whole(text: str, name: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**40:
        raise InputError(f"a map is called name, name@PEOPLE or name/SIDE; found {name!r}")
    return int(text)


def _city(atlas: Datasets) -> GroundTruthMap:
    """The synthetic city of the evaluation data, or without it one that is much like it."""
    if atlas.data is None:
        return city()
    return GroundTruthMap.of("city", atlas.evaluation.city(), "the synthetic city of the evaluation data")


def _made(make: Callable[[int], GroundTruthMap], number: int) -> Callable[[Datasets], GroundTruthMap]:
    return lambda _: make(number)


def _points(name: str) -> Callable[[Datasets], GroundTruthMap]:
    file, box, what = PLACES[name]
    return lambda atlas: atlas.evaluation.points(name, file, box, PIXELS, what)


def _histogram(name: str) -> Callable[[Datasets], GroundTruthMap]:
    return lambda atlas: GroundTruthMap.of(
        name, atlas.evaluation.histogram(HISTOGRAMS[name]), f"DPBench: {HISTOGRAMS[name]}"
    )


def _new_york(atlas: Datasets) -> GroundTruthMap:
    return GroundTruthMap.of(
        "new-york", atlas.evaluation.new_york(), "where phones were in New York: a grey level is a person"
    )


def _visits(name: str) -> Callable[[Datasets], Visits]:
    file, box, what = PLACES[name]
    return lambda atlas: atlas.evaluation.visits(f"{name}-people", file, box, PIXELS, what)


def _fixations(number: int) -> Callable[[Datasets], Visits]:
    return lambda atlas: atlas.evaluation.fixations(f"fixations-{number}", number / IMAGES, PIXELS)


def _fullest(city: str, rank: int) -> Callable[[Datasets], Place]:
    return lambda atlas: archive.fullest(atlas.evaluation, city, rank)


def _by_the_hour(city: str) -> Callable[[Datasets], Place]:
    return lambda atlas: archive.by_the_hour(atlas.evaluation, city)


def _free(make: Callable[[], Place]) -> Callable[[Datasets], Place]:
    return lambda _: make()


_EVERY = (
    Dataset("city", "3.5 million people, 1024 × 1024; without --data another city of the same size", False, _city),
    *(
        Dataset(
            f"gaussian-{sigma}",
            f"a million people in one Gaussian of σ = {sigma} pixels",
            False,
            _made(gaussian, sigma),
        )
        for sigma in (20, 50, 100)
    ),
    *(
        Dataset(f"mixture-{number}", f"a density of {number} Gaussians, 256 × 256", False, _made(mixture, number))
        for number in (2, 5, 10, 20, 50)
    ),
    *(Dataset(name, f"DPBench's {kind}, 256 × 256", True, _histogram(name)) for name, kind in HISTOGRAMS.items()),
    Dataset("new-york", "54.6 million people, 1024 × 1024: the picture of the location-heatmap paper", True, _new_york),
    *(
        Dataset(name, f"{what}, 1024 × 1024; a row is a person", True, _points(name))
        for name, (_, _, what) in PLACES.items()
    ),
    *(
        Dataset(f"{name}-people", f"people and where they were: {PLACES[name][2]}", True, _visits(name))
        for name in ("gowalla", "tokyo")
    ),
    *(
        Dataset(f"fixations-{number}", "where people looked in a picture", True, _fixations(number))
        for number in range(IMAGES)
    ),
)
ENTRIES = {entry.name: entry for entry in _EVERY}
"""Every map that has a name."""

_TABLES = (
    Dataset(
        "surat-cell",
        "speeds of buses in one hexagon and hour: the very cell of the paper on values",
        True,
        lambda atlas: archive.surat(atlas.evaluation),
    ),
    *(
        Dataset(f"{city}-cell-{rank + 1}", f"speeds in one of the fullest cells: {what}", True, _fullest(city, rank))
        for city, (*_, what) in archive.SPEEDS.items()
        for rank in range(CELLS)
    ),
    *(
        Dataset(f"{city}-cells", f"who was in which hexagon and hour: {what}", True, _by_the_hour(city))
        for city, (*_, what) in archive.SPEEDS.items()
    ),
    Dataset(
        "one-heavy-person", "360 people in one of 12 cells, and one in all", False, _free(archive.one_heavy_person)
    ),
    Dataset("two-humps", "20,000 people with a value each", False, _free(archive.two_humps)),
)
TABLES = {entry.name: entry for entry in _TABLES}
"""Every table of values that has a name."""
