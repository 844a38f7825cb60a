"""The maps that methods are compared on, by name: synthetic ones, a user's own, and others that a caller adds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, InputError
from hazemap.gdal.own_files import open_tiff
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, in_pixels, middles
from hazemap.lab.compare.map_families import FAMILIES
from hazemap.lab.compare.trial_settings import Place
from hazemap.planning.synthetic_city import City, normal, uniform
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import DEEPEST, Quadtree
from hazemap.tables.contribution_bounding import RowIsPerson

DEPTH = 10
"""A table of points is seen in 4^DEPTH pixels."""

LARGEST = 4096
"""Pixels along the longer side of a picture."""

CITY_PEOPLE, GAUSSIAN_PEOPLE, SIDE = 3_500_000, 1_000_000, 1024


def city() -> GroundTruthMap:
    """A city of the size of the one in the evaluation data."""
    day = City.built(Stream.fixed(b"the city of comparisons"), SIDE).day
    counts = day.counts(Stream.fixed(b"the people of the city of comparisons"), CITY_PEOPLE)
    return GroundTruthMap.of("city", counts, "a city made up by hazemap (not the one of the evaluation data)")


def gaussian(sigma: int) -> GroundTruthMap:
    """One cluster of a million points around a place drawn at random (Shaham et al. 2021); none outside the map."""
    stream = Stream.fixed(f"gaussian {sigma}".encode())
    middle = uniform(stream, 2) * SIDE
    counts, need = np.zeros((SIDE, SIDE), dtype=np.int64), GAUSSIAN_PEOPLE
    while need:
        rows, columns = (np.floor(at + sigma * normal(stream, need)).astype(np.int64) for at in middle)
        inside = (rows >= 0) & (rows < SIDE) & (columns >= 0) & (columns < SIDE)
        np.add.at(counts, (rows[inside], columns[inside]), 1)
        need -= int(inside.sum())
    return GroundTruthMap.of(f"gaussian-{sigma}", counts, f"a Gaussian cluster, σ = {sigma} pixels")


def mixture(clusters: int) -> GroundTruthMap:
    """Gaussians of equal weight with random means, spreads and slants (Ghazi et al. 2022, appendix E.3): a density.

    Spreads are 1 to 6 % of the side in each of two directions.
    """
    stream, side = Stream.fixed(f"mixture {clusters}".encode()), 256
    axis, density = (np.arange(side) + 0.5) / side, np.zeros((side, side))
    for _ in range(clusters):
        x, y, across, along, turn = uniform(stream, 5)
        right, down = np.meshgrid(axis - x, axis - y)
        u = np.cos(np.pi * turn) * right + np.sin(np.pi * turn) * down
        v = np.cos(np.pi * turn) * down - np.sin(np.pi * turn) * right
        bell = np.exp(-0.5 * ((u / (0.01 + 0.05 * across)) ** 2 + (v / (0.01 + 0.05 * along)) ** 2))
        density += bell / bell.sum()
    counts = np.rint(density * 1e8 / clusters).astype(np.int64)
    return GroundTruthMap.of(f"mixture-{clusters}", counts, f"a density of {clusters} Gaussians")


@dataclass(frozen=True)
class Dataset:
    """A map or a table that can be asked for by name; `needs_data` if it is made of files that may not be here."""

    name: str
    what: str
    make: Callable[[], Place]
    needs_data: bool = False
    kind: str = "maps"


MADE_UP = {
    entry.name: entry
    for entry in (
        Dataset("city", "3.5 million people in a made-up city, 1024 × 1024", city),
        *(
            Dataset(
                f"gaussian-{sigma}",
                f"a million people in one Gaussian of σ = {sigma} pixels",
                partial(gaussian, sigma),
            )
            for sigma in (20, 50, 100)
        ),
        *(
            Dataset(f"mixture-{number}", f"a density of {number} Gaussians, 256 × 256", partial(mixture, number))
            for number in (2, 5, 10, 20, 50)
        ),
        *(Dataset(family.name, f"{family.what}, 256 × 256", family.map) for family in FAMILIES.values()),
    )
}
"""The maps that need no data."""


@dataclass(frozen=True)
class Datasets:
    """The maps that there are: a user's own files by name, and `known` ones.

    >>> Datasets().map("gaussian-20").people
    1000000
    """

    own: tuple[tuple[str, Path], ...] = ()
    known: Mapping[str, Dataset] = field(default_factory=lambda: MADE_UP)

    def map(self, name: str) -> Place:
        """The map of this name; `name@N` is the same with N of its people, `name/S` with S × S larger pixels.

        A table of values has no pixels.
        """
        rest, _, number = name.partition("@")
        plain, _, side = rest.partition("/")
        found: Any = self._plain(plain)
        if side:
            if not hasattr(found, "coarser"):
                raise InputError(f"{plain} is a table, and has no pixels")
            found = found.coarser(_whole(side, name).bit_length() - 1)
            if found.side != int(side):
                raise InputError(f"a map is seen in 2, 4, 8, … × as many pixels; {name!r} asks for {side}")
        if number:
            if not isinstance(found, GroundTruthMap):
                raise InputError(f"{plain} has people with several rows each, of whom a comparison draws some itself")
            found = found.sample(_whole(number, name), plain.encode())
        return found if name == plain else replace(found, name=name)  # type: ignore[no-any-return]

    def _plain(self, name: str) -> Place:
        for own, path in self.own:
            if name == own:
                return _own(name, path)
        if name not in self.known:
            maps = [entry.name for entry in self.known.values() if entry.kind == "maps"]
            raise InputError(f"there is no map {name!r}; there are {', '.join(maps)}, and your own: --map NAME=FILE")
        return _kept(self.known[name].make)


@cache
def _kept(make: Callable[[], Place]) -> Place:
    """A map is made once in a process."""
    return make()


@cache
def _own(name: str, path: Path) -> GroundTruthMap:
    return own_map(name, path)


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) < 2**40:
        raise InputError(f"a map is called name, name@PEOPLE or name/SIDE; found {name!r}")
    return int(text)


def own_map(name: str, path: Path) -> GroundTruthMap:
    """People in pixels: rows of a table with longitudes and latitudes, or the numbers of a raster or an array.

    A picture that is not a square of 2^n pixels lies in the north-west of one. What is not a number, or below 0, is
    nobody; parts of people are rounded. Comparing methods shows the truth of a map, so it should be a public one.
    """
    if not path.is_file():
        raise FileError(f"the map {name} is made of {path}, which is not there")
    origin = f"your own: {path.name}"
    match path.suffix.lower():
        case ".npy":
            try:
                numbers = np.load(path, mmap_mode="r", allow_pickle=False)  # no longer than the file, whatever it says
            except (OSError, ValueError, EOFError) as error:
                raise FileError(f"{path.name} holds no array of NumPy") from error
            return _picture(name, numbers, origin)
        case ".tif" | ".tiff":
            with open_tiff(path) as raster:
                if max(raster.width, raster.height) > LARGEST:
                    raise InputError(f"the map {name} has {raster.width} × {raster.height} pixels: {LARGEST} at most")
                band = raster.read(1, masked=True)
            return _picture(name, np.ma.filled(band.astype(np.float64), 0.0), origin)
        case _:
            return _table(name, path, origin)


def _picture(name: str, numbers: NDArray[np.generic], origin: str) -> GroundTruthMap:
    if numbers.ndim != 2 or numbers.dtype.kind not in "iufb" or max(numbers.shape) > LARGEST:
        raise InputError(
            f"the map {name} is made of rows and columns of numbers, {LARGEST} × {LARGEST} at most; found "
            f"{' × '.join(map(str, numbers.shape))} of {numbers.dtype}"
        )
    people = np.maximum(np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0), 0.0)
    if people.max(initial=0) > 2**40:
        raise InputError(f"the map {name} has more than {2**40:,} people in a pixel: these are no counts of people")
    return GroundTruthMap.of(name, np.rint(people).astype(np.int64), origin)


def _table(name: str, path: Path, origin: str) -> GroundTruthMap:
    """The rows are read once, into the finest squares of the world; these are laid in the pixels around them all."""
    from hazemap.readers.open_table import open_table

    world = Quadtree.world(DEEPEST)
    votes = open_table(path).votes(world, RowIsPerson())
    if not len(votes.cells):
        raise InputError(f"the map {name} has no row with a longitude and a latitude")
    west, south, east, north = world.bounds(votes.cells)
    box = Box(float(west.min()), float(south.min()), float(east.max()), float(north.max()))
    tree = Quadtree.around(box, DEPTH)
    cells = tree.cell_at(middles(world, votes.cells), tree.depth)
    return in_pixels(name, cells, votes.weights, tree, origin)
