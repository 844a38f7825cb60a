"""The counts of an adaptive map as pixels of one size, for tools that read nothing but pictures."""

import json
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.atomic_write import whole
from hazemap.errors import FileError
from hazemap.releases.geotiff import COG, EQUATOR, Window, columns_and_rows
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release

MOST_PIXELS = 10**9
STRIP = 1 << 22
"""Pixels that are painted at a time."""


def rasterise(release: "Release", path: Path, pixel: float | None) -> None:
    """One band, the best guess of how many are in each pixel, spread evenly over the ground of each cell.

    Pixels are the cells of one level: that of the finest cell, or the coarsest whose side is at most `pixel`
    metres at the equator. The pixels of a cell sum to its count; cells finer than a pixel are added up.
    """
    from rasterio._err import CPLE_BaseError  # GDAL's own errors have no public name

    tree, window = _window(release, pixel)
    painter = _Painter(release, tree, window)
    with whole(path) as part, tempfile.TemporaryDirectory(dir=part.parent, prefix=".hazemap-") as folder:
        try:
            total = _paint(painter, Path(folder) / "plain.tif", release)
            _optimise(Path(folder) / "plain.tif", part, total)
        except CPLE_BaseError as error:
            raise OSError(f"GDAL says: {error}") from error


def _paint(painter: "_Painter", path: Path, release: "Release") -> float:
    """A plain GeoTIFF, strip by strip; the sum of its pixels."""
    import rasterio
    from rasterio.windows import Window as Place

    window, total = painter.window, 0.0
    profile = {**window.profile(painter.tree), "count": 1, "dtype": "float32", "nodata": np.nan}
    layout = {"driver": "GTiff", "tiled": True, "bigtiff": "IF_SAFER", "compress": "DEFLATE"}
    with rasterio.open(path, "w", **layout, **profile) as picture:
        step = max(STRIP // window.width // 256, 1) * 256
        for start in range(0, window.height, step):
            rows = slice(start, min(start + step, window.height))
            painted = painter.paint(rows).astype(np.float32)
            total += float(np.nansum(painted, dtype=np.float64))
            picture.write(painted, 1, window=Place(0, start, window.width, rows.stop - start))
        picture.set_band_description(1, "count")
        picture.update_tags(
            TIFFTAG_IMAGEDESCRIPTION=release.statement.line(),
            STATEMENT=json.dumps(release.statement.to_json(), ensure_ascii=False),
        )
    return total


def _optimise(plain: Path, path: Path, total: float) -> None:
    """The COG; read back, because GDAL does not always say that a disk was full."""
    import rasterio
    from rasterio.shutil import copy

    copy(plain, path, OVERVIEW_RESAMPLING="AVERAGE", **COG)
    found = 0.0
    with rasterio.open(path) as picture:
        for _, place in picture.block_windows(1):
            found += float(np.nansum(picture.read(1, window=place), dtype=np.float64))
    if not math.isclose(found, total, rel_tol=1e-9, abs_tol=1e-6):
        raise OSError(f"{found:g} of {total:g} could be read back")


def _window(release: "Release", pixel: float | None) -> tuple[Quadtree, Window]:
    leaves, places = release.map.cells, release.ground.places
    tree = leaves.tree
    if not isinstance(tree, Quadtree):
        what = "hexagons" if isinstance(tree, Hexagons) else "cells of this kind"
        raise FileError(f"{what} have no pixels: export them as .gpkg, .geojson or .pmtiles, or save .parquet")
    if pixel is not None and not pixel > 0:
        raise FileError(f"the side of a pixel is above 0 metres; found {pixel:g}")
    level = int(leaves.levels.max())
    if pixel is not None:
        level = min(max(math.ceil(math.log2(EQUATOR * tree.side / pixel) - 1e-9), 0), tree.depth)
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

    def __init__(self, release: "Release", tree: Quadtree, window: Window) -> None:
        leaves = release.map.cells
        self.tree, self.window, self._leaves = tree, window, leaves
        areas, values = release.ground.km2, np.append(release.map.values, 0)
        density = np.zeros(leaves.size + 1)  # the last is that of no leaf
        np.divide(values[:-1], areas, out=density[:-1], where=areas > 0)
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
        area = self.tree.area(cells[:, 0]) / 1e6  # all pixels of a row have one area
        counts = self._density[owner].reshape(cells.shape) * area[:, None]
        here = np.flatnonzero((self._row >= rows.start) & (self._row < rows.stop))
        known = known.reshape(cells.shape)
        np.add.at(counts, (self._row[here] - rows.start, self._column[here]), self._extra[here])
        known[self._row[here] - rows.start, self._column[here]] = True
        counts[~known] = np.nan
        return counts
