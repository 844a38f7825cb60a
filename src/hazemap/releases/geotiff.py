"""A regular grid of squares as a cloud-optimised GeoTIFF: one pixel a cell, everything else in its tags."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.atomic_write import write_whole
from hazemap.cells import Cells, Tree
from hazemap.errors import FileError
from hazemap.releases.file_integrity import Digest, reading, understood
from hazemap.releases.file_metadata import MapContents, assemble, describe, pack, parse
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release

BANDS = ("count", "unbiased", "stddev")
LARGEST = 1 << 26
"""Pixels of a saved grid: its bands are held in memory."""

EQUATOR = 2 * np.pi * 6378137.0
"""The side of the world in EPSG:3857, in metres."""

COG = {"driver": "COG", "COMPRESS": "DEFLATE", "PREDICTOR": "YES", "BLOCKSIZE": 256, "BIGTIFF": "IF_SAFER"}


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
        x = _spread(np.arange(self.column, self.column + self.width, dtype=np.uint64))
        y = _spread(np.arange(self.row, self.row + self.height, dtype=np.uint64)[rows])
        first = np.uint64(1) << np.uint64(2 * self.level)
        cells: Cells = first | x[None, :] | (y[:, None] << np.uint64(1))
        return cells

    def profile(self, tree: Quadtree) -> dict[str, Any]:
        """Size, place and coordinate system for rasterio."""
        from rasterio.transform import Affine

        pixel = EQUATOR * tree.side / 2**self.level
        west = EQUATOR * (tree.left - 0.5) + pixel * self.column
        north = EQUATOR * (0.5 - tree.top) - pixel * self.row
        place = Affine(pixel, 0, west, 0, -pixel, north)
        return {"width": self.width, "height": self.height, "crs": "EPSG:3857", "transform": place}


def columns_and_rows(tree: Quadtree, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each cell is in the grid of its level."""
    x, y, side = tree.square(cells)
    column, row = (np.rint((edge - start) / side) for edge, start in ((x, tree.left), (y, tree.top)))
    return column.astype(np.int64), row.astype(np.int64)


def write(release: "Release", path: Path) -> None:
    """One COG, whole or not at all; `FileError` unless all cells are squares of one level."""
    import rasterio
    from rasterio.io import MemoryFile
    from rasterio.shutil import copy

    tree, window, pixels = _pixels(release)
    digest, packed = Digest(), pack(release.transcript)
    digest.add(*_parts(pixels), packed.encode())
    label = digest.seal({**describe(release), "window": list(window)})
    profile = {**window.profile(tree), "count": len(BANDS), "dtype": "float64", "nodata": np.nan}
    with rasterio.Env(), MemoryFile() as plain, MemoryFile() as optimised:
        with plain.open(driver="GTiff", **profile) as picture:
            picture.write(pixels)
            picture.descriptions = BANDS
            picture.update_tags(
                HAZEMAP=label,
                HAZEMAP_TRANSCRIPT=packed,
                TIFFTAG_IMAGEDESCRIPTION=release.statement.line(),
            )
        copy(plain.name, optimised.name, OVERVIEW_RESAMPLING="AVERAGE", **COG)
        write_whole(path, optimised.read())


def read(path: Path) -> MapContents:
    """What `write` wrote; `FileError` for any other file, and for a damaged one."""
    import rasterio

    with reading(path), rasterio.open(path, driver="GTiff") as picture:
        tags = picture.tags()
        if "HAZEMAP" not in tags:
            raise FileError(
                f"{path} is a TIFF, but no release of hazemap: it has no tag HAZEMAP."
                " Tools that rewrite a file drop it; open the file that was published"
            )
        label, packed = parse(path, tags["HAZEMAP"]), tags["HAZEMAP_TRANSCRIPT"]
        pixels: NDArray[np.float64] = picture.read()
        digest = Digest()
        digest.add(*_parts(pixels), packed.encode())
        digest.check(label)
        with understood(path, label):
            tree, window = codec.from_json(label["tree"]), Window(*label["window"])
        found = {"width": picture.width, "height": picture.height, "transform": picture.transform}
        wanted = window.profile(tree)
        if any(wanted[name] != value for name, value in found.items()) or picture.crs.to_epsg() != 3857:
            raise ValueError("its pixels are not where its label says")
        cells, numbers = window.cells().ravel(), pixels.reshape(len(BANDS), -1)
        known = ~np.isnan(numbers[2])
        order = np.argsort(cells[known])
        with understood(path, label):
            return assemble(label, packed, cells[known][order], numbers[:, known][:, order])


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


def _spread(numbers: Cells) -> Cells:
    """Each bit i moved to bit 2i: how columns and rows stand in the number of a cell."""
    spread = np.zeros_like(numbers)
    for bit in np.arange(24, dtype=np.uint64):
        spread |= ((numbers >> bit) & np.uint64(1)) << (np.uint64(2) * bit)
    return spread
