"""The maps and tables of the evaluation data by name, beside the made-up ones that `hazemap compare` knows."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from hazemap.errors import InputError
from hazemap.lab.compare.datasets import MADE_UP, Dataset, Datasets
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.trial_settings import Place
from hazemap.spatial.bounding_box import Box
from research.compare.evaluation_data import Evaluation
from research.compare.user_level import tables

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
    "geolife": ("geolife_beijing_1min", Box(116.1, 39.7, 116.7, 40.2), "GPS traces in Beijing, a row a minute"),
    "austin": ("austin_bus_2015", Box(-97.95, 30.1, -97.55, 30.5), "positions of buses in Austin, 2015"),
    "america": ("foursquare_us_2012_2013", Box(-125, 24, -66, 50), "Foursquare check-ins in the United States"),
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

TABLES = "tables of values"


def evaluation_datasets(data: Path | None = None, own: tuple[tuple[str, Path], ...] = ()) -> Datasets:
    """A user's own maps, the made-up ones and those of the evaluation data, if its folder is given.

    >>> evaluation_datasets().map("two-humps").people
    20000
    """
    return Datasets(own, known_datasets(data))


@cache
def known_datasets(data: Path | None) -> dict[str, Dataset]:
    """Every map and table that has a name; those of the evaluation data are refused where its folder is not given."""
    city = replace(
        MADE_UP["city"], what="3.5 million people, 1024 × 1024; without --data another city of the same size"
    )
    if data is not None:
        city = replace(city, make=partial(_city, Evaluation(data)))
    entries = [*(MADE_UP | {"city": city}).values(), *_maps(data), *_tables(data)]
    return {entry.name: entry for entry in entries}


def _maps(data: Path | None) -> Iterator[Dataset]:
    for name, histogram in HISTOGRAMS.items():
        yield _of_data(data, name, f"DPBench's {histogram}, 256 × 256", partial(_histogram, name=name))
    what = "54.6 million people, 1024 × 1024: the picture of the location-heatmap paper"
    yield _of_data(data, "new-york", what, _new_york)
    yield _of_data(data, "africa", "people in Africa, one for each that a km² has, 512 × 512", _africa)
    for name, (file, box, what) in PLACES.items():
        points = partial(Evaluation.points, name=name, file=file, box=box, depth=PIXELS, what=what)
        yield _of_data(data, name, f"{what}, 1024 × 1024; a row is a person", points)
    for name in ("gowalla", "tokyo"):
        file, box, what = PLACES[name]
        visits = partial(Evaluation.visits, name=f"{name}-people", file=file, box=box, depth=PIXELS, what=what)
        yield _of_data(data, f"{name}-people", f"people and where they were: {what}", visits)
    for number in range(IMAGES):
        name = f"fixations-{number}"
        fixations = partial(Evaluation.fixations, name=name, part=number / IMAGES, depth=PIXELS)
        yield _of_data(data, name, "where people looked in a picture", fixations)


def _tables(data: Path | None) -> Iterator[Dataset]:
    what = "speeds of buses in one hexagon and hour: the very cell of the paper on values"
    yield _of_data(data, "surat-cell", what, tables.surat, TABLES)
    for city, (*_, what) in tables.SPEEDS.items():
        for rank in range(CELLS):
            fullest = partial(tables.fullest, city=city, rank=rank)
            said = f"speeds in one of the fullest cells: {what}"
            yield _of_data(data, f"{city}-cell-{rank + 1}", said, fullest, TABLES)
    for city, (*_, what) in tables.SPEEDS.items():
        by_the_hour = partial(tables.by_the_hour, city=city)
        yield _of_data(data, f"{city}-cells", f"who was in which hexagon and hour: {what}", by_the_hour, TABLES)
    heavy = "360 people in one of 12 cells, and one in all"
    yield Dataset("one-heavy-person", heavy, tables.one_heavy_person, kind=TABLES)
    yield Dataset("two-humps", "20,000 people with a value each", tables.two_humps, kind=TABLES)


def _of_data(
    data: Path | None, name: str, what: str, make: Callable[[Evaluation], Place], kind: str = "maps"
) -> Dataset:
    """What is made of the evaluation data."""
    made = partial(_refuse, name) if data is None else partial(make, Evaluation(data))
    return Dataset(name, what, made, needs_data=True, kind=kind)


def _refuse(name: str) -> Place:
    raise InputError(
        f"{name} is made of the evaluation data: say where that is with --data FOLDER. Without it "
        f"there are {', '.join(MADE_UP)}, and your own: --map NAME=FILE"
    )


def _city(evaluation: Evaluation) -> GroundTruthMap:
    return GroundTruthMap.of("city", evaluation.city(), "the synthetic city of the evaluation data")


def _histogram(evaluation: Evaluation, name: str) -> GroundTruthMap:
    return GroundTruthMap.of(name, evaluation.histogram(HISTOGRAMS[name]), f"DPBench: {HISTOGRAMS[name]}")


def _new_york(evaluation: Evaluation) -> GroundTruthMap:
    origin = "where phones were in New York: a grey level is a person"
    return GroundTruthMap.of("new-york", evaluation.new_york(), origin)


def _africa(evaluation: Evaluation) -> GroundTruthMap:
    return GroundTruthMap.of("africa", evaluation.africa(), "people per km² in Africa, 2020 (afrimapr)")
