"""Cloud-optimised GeoTIFF: a regular grid of squares as a release, and any squares as pixels for other tools.

A saved release has one pixel a cell, and everything else in its tags. An export is for tools that read nothing but
pictures: the counts of a map spread over pixels of one size, or a statistic of a value with a band for every slot.
"""

import json
import math
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.cells import Cells, Tree
from hazemap.errors import FileError
from hazemap.files.atomic_write import whole
from hazemap.gdal.own_files import copy_optimised, new_tiff, open_tiff
from hazemap.releases import byte_digest
from hazemap.releases.column_digests import Digest, Long
from hazemap.releases.file_metadata import (
    MapContents,
    describe,
    map_contents,
    pack,
    parse_label,
    read_later,
    reading,
    understood,
    unpack,
)
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.web_mercator import spread

if TYPE_CHECKING:
    from hazemap.draw.viewport import Viewport
    from hazemap.privacy.statement import Statement
    from hazemap.releases.base_release import Bands, BaseRelease
    from hazemap.releases.map_release import Release

BANDS = ("best_guess", "unbiased", "stddev")
LARGEST = 1 << 26
"""Pixels of a saved grid: its bands are held in memory."""

FREE_CELLS = 1 << 20
"""Beyond so many cells, a saved grid has no more of them than bytes: noise takes some bytes in every cell."""

MOST_PIXELS = 10**9
STRIP = 1 << 22
"""Pixels that are painted at a time."""

EQUATOR = 2 * np.pi * 6378137.0
"""The side of the world in EPSG:3857, in metres."""


class Window(NamedTuple):
    """A rectangle of the cells of one level: its first column and row, counted from the north-west."""

    level: int
    column: int
    row: int
    width: int
    height: int

    @classmethod
    def around(cls, tree: Quadtree, cells: Cells, level: int) -> "Window":
        """The smallest one that holds these cells, of this level or coarser."""
        column, row = columns_and_rows(tree, cells)
        span = 1 << (level - tree.level(cells))
        first = int((column * span).min()), int((row * span).min())
        last = int(((column + 1) * span).max()), int(((row + 1) * span).max())
        return cls(level, *first, last[0] - first[0], last[1] - first[1])

    def cells(self, rows: slice = slice(None)) -> Cells:
        """The cells of some of its rows, uint64[rows, width]."""
        x = spread(np.arange(self.column, self.column + self.width, dtype=np.uint64))
        y = spread(np.arange(self.row, self.row + self.height, dtype=np.uint64)[rows])
        first = np.uint64(1) << np.uint64(2 * self.level)
        cells: Cells = first | x[None, :] | (y[:, None] << np.uint64(1))
        return cells

    def cells_at(self, pixels: NDArray[np.int64]) -> Cells:
        """The cells of some of its pixels, counted row by row; uint64[pixels]."""
        row, column = np.divmod(pixels, self.width)
        x, y = (spread((first + each).astype(np.uint64)) for first, each in ((self.column, column), (self.row, row)))
        cells: Cells = np.uint64(1) << np.uint64(2 * self.level) | x | (y << np.uint64(1))
        return cells

    def profile(self, tree: Quadtree) -> dict[str, Any]:
        """Size, place and coordinate system for rasterio."""
        pixel = EQUATOR * tree.side / 2**self.level
        west = EQUATOR * (tree.left - 0.5) + pixel * self.column
        north = EQUATOR * (0.5 - tree.top) - pixel * self.row
        place = (pixel, 0.0, west, 0.0, -pixel, north)
        return {"width": self.width, "height": self.height, "crs": "EPSG:3857", "transform": place}


def columns_and_rows(tree: Quadtree, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each cell is in the grid of its level."""
    x, y, side = tree.square(cells)
    column, row = (np.rint((edge - start) / side) for edge, start in ((x, tree.left), (y, tree.top)))
    return column.astype(np.int64), row.astype(np.int64)


def write(release: "Release", path: Path) -> None:
    """One COG, whole or not at all; `FileError` unless all cells are squares of one level."""
    tree, window, pixels = _pixels(release)
    digest, packed = Digest(), pack(release.transcript)
    digest.add(*_parts(pixels), packed.encode())
    label = digest.seal({**describe(release), "window": list(window), "integrity": {"bytes": byte_digest.TAG}})
    profile = {**window.profile(tree), "count": len(BANDS), "dtype": "float64", "nodata": np.nan}
    with whole(path) as part, tempfile.TemporaryDirectory(dir=part.parent, prefix=".hazemap-") as folder:
        plain = Path(folder) / "plain.tif"
        with new_tiff(plain, **profile) as picture:
            picture.write(pixels)
            picture.descriptions = BANDS
            picture.update_tags(
                HAZEMAP=label,
                HAZEMAP_TRANSCRIPT=packed,
                TIFFTAG_IMAGEDESCRIPTION=release.statement.line(),
                **{byte_digest.TAG: byte_digest.UNKNOWN.decode()},
            )
        copy_optimised(plain, part)
        byte_digest.fill(part, byte_digest.GEOTIFF)


def read(path: Path) -> MapContents:
    """What `write` wrote; `FileError` for any other file, and for a damaged one."""
    with reading(path), open_tiff(path) as picture:
        tags = picture.tags()
        if "HAZEMAP" not in tags:
            lost = "it has no tag HAZEMAP. Tools that rewrite a file drop it; open the file that was published"
            drawn = "it is a heatmap that was drawn from one; open that"
            why = drawn if "BLUR_METRES" in tags else lost
            raise FileError(f"{path} is a TIFF, but no release of hazemap: {why}")
        label, packed = parse_label(path, tags["HAZEMAP"]), tags["HAZEMAP_TRANSCRIPT"]
        said = tags.get(byte_digest.TAG, "" if "integrity" in label else None)  # files of older versions have none
        if said is not None and not byte_digest.fits(path, said.encode(), byte_digest.GEOTIFF):
            raise ValueError("its bytes do not match their digest")
        shape = (picture.count, picture.height, picture.width)
        if picture.dtypes != ("float64",) * len(BANDS) or picture.height * picture.width > LARGEST:
            raise ValueError("it has other bands, or more pixels, than any release")
        digest, most = Digest(), max(FREE_CELLS, path.stat().st_size)
        bands = [_Band(picture, number, most) for number in range(1, 1 + len(BANDS))]
        digest.add(repr(shape).encode(), Long(24 * picture.height * picture.width, chain(*bands)), packed.encode())
        digest.check(label)
        with understood(path, label):
            tree, window = codec.from_json(label["tree"]), Window(*label["window"])
        found = {"width": picture.width, "height": picture.height, "transform": tuple(picture.transform)[:6]}
        wanted = window.profile(tree)
        if any(wanted[name] != value for name, value in found.items()) or picture.crs.to_epsg() != 3857:
            raise ValueError("its pixels are not where its label says")
        if any(not np.array_equal(band.known, bands[0].known) for band in bands):
            raise ValueError("a cell lacks a number")
        cells = window.cells_at(bands[0].known)
        order = np.argsort(cells)
        with understood(path, label):
            transcript = read_later(unpack, path, label, packed)
            return map_contents(label, transcript, cells[order], [band.numbers[order] for band in bands])


class _Band:
    """A band being read, some rows at a time: its bytes as the digest covers them, and then what is known in it.

    `known` are the pixels that hold a number, int64[known], and `numbers` these. `ValueError` where that are more than
    `most`: pixels that are alike take next to no bytes.
    """

    def __init__(self, picture: Any, number: int, most: int) -> None:
        self.picture, self.number, self.most = picture, number, most
        self._known, self._numbers, self._size = [np.empty(0, np.int64)], [np.empty(0)], 0

    def __iter__(self) -> Iterator[memoryview]:
        height, width = self.picture.height, self.picture.width
        step = max((1 << 20) // width // 256, 1) * 256
        for start in range(0, height, step):
            place = ((start, min(start + step, height)), (0, width))
            pixels: NDArray[np.float64] = self.picture.read(self.number, window=place).ravel()
            known = np.flatnonzero(~np.isnan(pixels))
            self._known.append(known + start * width)
            self._numbers.append(pixels[known])
            self._size += len(known)
            if self._size > self.most:
                raise ValueError("it says more cells than its bytes can hold")
            yield memoryview(np.where(np.isnan(pixels), np.nan, pixels).astype("<f8").tobytes())

    @property
    def known(self) -> NDArray[np.int64]:
        """Which pixels hold a number."""
        return np.concatenate(self._known)

    @property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers that they hold."""
        return np.concatenate(self._numbers)


def _pixels(release: "Release") -> tuple[Quadtree, Window, NDArray[np.float64]]:
    """The bands, float64[3, height, width], NaN where there is no cell."""
    cellmap, leaves = release.map, release.map.cells
    tree, places = leaves.tree, release.ground.places
    levels = np.unique(leaves.levels[places])
    if not isinstance(tree, Quadtree) or len(levels) != 1:
        raise FileError(
            "a .tif holds squares of one level; this map has "
            + (f"cells of levels {levels.min()} to {levels.max()}" if isinstance(tree, Quadtree) else _kind(tree))
            + ": save it as .parquet, or export it as .tif for a picture of its counts"
        )
    cells = leaves.cells[places]
    window = Window.around(tree, cells, int(levels[0]))
    if window.width * window.height > LARGEST:
        raise FileError(
            f"a .tif of {window.width:,} × {window.height:,} pixels is too large to save, above all for"
            f" {len(cells):,} cells: save it as .parquet"
        )
    column, row = columns_and_rows(tree, cells)
    pixels = np.full((len(BANDS), window.height, window.width), np.nan)
    numbers = (cellmap.values, cellmap.unbiased, cellmap.stddev)
    pixels[:, row - window.row, column - window.column] = [array[places] for array in numbers]
    return tree, window, pixels


def _kind(tree: Tree) -> str:
    return "hexagons" if isinstance(tree, Hexagons) else "rectangles of other sizes"


def _parts(pixels: NDArray[np.float64]) -> list[bytes]:
    return [repr(pixels.shape).encode(), np.where(np.isnan(pixels), np.nan, pixels).astype("<f8").tobytes()]


def rasterise(release: "BaseRelease", path: Path, pixel: float | None, column: str | None) -> None:
    """The counts of a map in one band; or a column of statistics, with a band for every slot.

    Pixels are the cells of one level: that of the finest cell, or the coarsest whose side is at most `pixel` metres at
    the equator. Counts are spread evenly over the ground of each cell, so the pixels of a cell sum to its count; cells
    finer than a pixel are added up. A statistic is no count: every pixel of a cell has the cell's number.
    """
    bands = release.bands(column)
    tree, window = _window(bands, pixel)
    painters = [_Painter(bands, tree, window, numbers) for numbers in bands.numbers]
    with whole(path) as part, tempfile.TemporaryDirectory(dir=part.parent, prefix=".hazemap-") as folder:
        total = _paint(painters, bands, Path(folder) / "plain.tif", release)
        _optimise(Path(folder) / "plain.tif", part, total)


def _paint(painters: "list[_Painter]", bands: "Bands", path: Path, release: "BaseRelease") -> float:
    """A plain GeoTIFF, strip by strip; the sum of its pixels."""
    window, total = painters[0].window, 0.0
    profile = {**window.profile(painters[0].tree), "count": len(painters), "dtype": "float32", "nodata": np.nan}
    layout = {"tiled": True, "bigtiff": "IF_SAFER", "compress": "DEFLATE", "interleave": "band"}
    with new_tiff(path, **layout, **profile) as picture:
        step = max(STRIP // window.width // 256, 1) * 256
        for start in range(0, window.height, step):
            rows = slice(start, min(start + step, window.height))
            for band, painter in enumerate(painters, 1):
                painted = painter.paint(rows).astype(np.float32)
                total += float(np.nansum(painted, dtype=np.float64))
                picture.write(painted, band, window=((rows.start, rows.stop), (0, window.width)))
        picture.descriptions = bands.names
        picture.update_tags(
            TIFFTAG_IMAGEDESCRIPTION=release.statement.line(),
            STATEMENT=json.dumps(release.statement.to_json(), ensure_ascii=False),
            **bands.tags,
        )
    return total


def write_bands(
    path: Path, bands: dict[str, NDArray[np.float64]], view: "Viewport", statement: "Statement", tags: dict[str, str]
) -> None:
    """A COG of bands that cover a part of the sheet, float64[rows, columns] from the north, whole or not at all."""
    rows, columns = next(iter(bands.values())).shape
    across, down = (view.east - view.west) / columns, (view.south - view.north) / rows
    place = (across, 0.0, view.west, 0.0, down, view.north)
    profile = {"width": columns, "height": rows, "crs": "EPSG:3857", "transform": place, "nodata": np.nan}
    pixels = np.array(list(bands.values()), dtype=np.float32)
    with whole(path) as part, tempfile.TemporaryDirectory(dir=part.parent, prefix=".hazemap-") as folder:
        plain = Path(folder) / "plain.tif"
        with new_tiff(plain, count=len(bands), dtype="float32", **profile) as picture:
            picture.write(pixels)
            picture.descriptions = tuple(bands)
            picture.update_tags(
                TIFFTAG_IMAGEDESCRIPTION=statement.line(),
                STATEMENT=json.dumps(statement.to_json(), ensure_ascii=False),
                **tags,
            )
        _optimise(plain, part, float(np.nansum(pixels[0], dtype=np.float64)), 1)


def _optimise(plain: Path, path: Path, total: float, band: int | None = None) -> None:
    """The COG; a band, or all, read back, because GDAL does not always say that a disk was full."""
    copy_optimised(plain, path)
    found = 0.0
    with open_tiff(path) as picture:
        for _, place in picture.block_windows(1):
            found += float(np.nansum(picture.read(band, window=place), dtype=np.float64))
    if not math.isclose(found, total, rel_tol=1e-9, abs_tol=1e-6):
        raise OSError(f"{found:g} of {total:g} could be read back")


def _window(bands: "Bands", pixel: float | None) -> tuple[Quadtree, Window]:
    leaves, places = bands.ground.leaves, bands.ground.places
    tree = leaves.tree
    if not isinstance(tree, Quadtree):
        what = "hexagons" if isinstance(tree, Hexagons) else "cells of this kind"
        raise FileError(f"{what} have no pixels: export them as .gpkg, .geojson or .pmtiles, or save .parquet")
    if pixel is not None and not pixel > 0:
        raise FileError(f"the side of a pixel must be above 0 metres; found {pixel:g}")
    level = int(leaves.levels.max())
    if pixel is not None:
        level = min(max(math.ceil(math.log2(EQUATOR * tree.side / pixel) - 1e-9), 0), tree.depth)
    if not bands.spread and level < leaves.levels.max():
        raise FileError("a pixel of statistics must lie in one cell: choose smaller pixels, or leave --pixel out")
    coarse = leaves.cells[places]
    above = np.maximum(leaves.levels[places] - level, 0).astype(np.uint64)
    window = Window.around(tree, np.unique(coarse >> (above + above)), level)
    if window.width * window.height > MOST_PIXELS:
        side = EQUATOR * tree.side / 2**level
        shrink = 2 ** math.ceil(math.log2(window.width * window.height / MOST_PIXELS) / 2)
        raise FileError(
            f"{window.width:,} × {window.height:,} pixels of {side:.3g} m are more than {MOST_PIXELS:,}:"
            f" ask for pixels of {side * shrink:.3g} m or more, or export .gpkg, which holds the cells themselves"
        )
    return tree, window


class _Painter:
    """Densities of cells turned into counts of pixels, a strip of rows at a time.

    Each pixel takes the density of the deepest leaf around it, of its level or coarser. A finer leaf adds to
    its pixel what its density differs from that of the leaf around it, times its area: so sums telescope.
    """

    def __init__(self, bands: "Bands", tree: Quadtree, window: Window, numbers: NDArray[np.float64]) -> None:
        leaves = bands.ground.leaves
        self.tree, self.window, self._leaves, self._spread = tree, window, leaves, bands.spread
        areas = bands.ground.km2 if bands.spread else np.ones(leaves.size)
        density = np.zeros(leaves.size + 1)  # the last is that of no leaf
        np.divide(numbers, areas, out=density[:-1], where=areas > 0)
        self._density = density
        fine = np.flatnonzero(leaves.levels > window.level)
        rise = (leaves.levels[fine] - window.level).astype(np.uint64)
        column, row = columns_and_rows(tree, leaves.cells[fine] >> (rise + rise))
        self._column, self._row = column - window.column, row - window.row
        self._extra = (density[fine] - density[leaves.holder[fine]]) * tree.area(leaves.cells[fine]) / 1e6

    def paint(self, rows: slice) -> NDArray[Any]:
        """The counts of these rows, float64[rows, width]; NaN where there is no cell."""
        cells = self.window.cells(rows)
        owner = self._leaves.locate(self.tree.span(cells.ravel())[0])
        known = owner >= 0
        levels, holder = np.append(self._leaves.levels, -1), np.append(self._leaves.holder, -1)
        while (fine := levels[owner] > self.window.level).any():
            owner[fine] = holder[owner[fine]]
        counts = self._density[owner].reshape(cells.shape)
        if self._spread:
            counts *= self.tree.area(cells[:, :1]) / 1e6  # all pixels of a row have one area
        here = np.flatnonzero((self._row >= rows.start) & (self._row < rows.stop))
        known = known.reshape(cells.shape)
        np.add.at(counts, (self._row[here] - rows.start, self._column[here]), self._extra[here])
        known[self._row[here] - rows.start, self._column[here]] = True
        counts[~known] = np.nan
        return counts
