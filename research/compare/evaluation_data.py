"""The folder of evaluation data: read where it is, never copied."""

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE
from hazemap.errors import FileError
from hazemap.lab.compare.ground_truth_maps import SQUARE, GroundTruthMap, in_pixels
from hazemap.machine_code.arrays import Ints
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from research.compare.location_visits import Visits, laid

CROP = (slice(100, 1124), slice(512, 1536))
"""The square of the picture of New York that the location-heatmap paper looks at: rows, columns."""


@dataclass(frozen=True)
class Evaluation:
    """The folder, or the one above it: `bench` and `data` stand side by side."""

    folder: Path

    def file(self, name: str) -> Path:
        """A file of the data or a script beside it; `FileError` if it is not there."""
        for place in (self.folder, self.folder / "data", self.folder.parent):
            if (place / name).is_file():
                return place / name
        raise FileError(f"{name} is not in the folder {self.folder}: name the folder of the evaluation data")

    def city(self) -> Ints:
        """The synthetic city, made by its own script."""
        return _run(self.file("bench/synthetic_city.py"))

    def histogram(self, dataset: str) -> Ints:
        """A histogram of DPBench."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        table = pq.read_table(self.file("dpbench_2d_histograms_256.parquet"))
        table = table.filter(pc.equal(table["dataset"], dataset))
        if not table.num_rows:
            raise FileError(f"dpbench_2d_histograms_256.parquet holds no {dataset}")
        counts = np.zeros((256, 256), dtype=np.int64)
        np.add.at(counts, (table["row"].to_numpy(), table["col"].to_numpy()), table["count"].to_numpy())
        return counts

    def new_york(self) -> Ints:
        """The picture of New York: a grey level is a number of people."""
        import matplotlib.image

        picture = matplotlib.image.imread(self.file("rasters/nyc_location_heatmap_2048x1365.png"))
        grey: Ints = np.rint(255 * picture[CROP]).astype(np.int64)
        return grey

    def africa(self) -> Ints:
        """The raster of Africa: people per km², rounded; nobody where nothing is known."""
        import rasterio

        with rasterio.open(self.file("rasters/afripop2020.tif")) as raster:
            known = np.ma.filled(raster.read(1, masked=True).astype(np.float64), 0.0)
        people: Ints = np.rint(known).astype(np.int64)
        return people

    def columns(self, file: str, *names: str) -> tuple[NDArray[Any], ...]:
        """Columns of a table."""
        import pyarrow.parquet as pq

        table = pq.read_table(self.file(f"{file}.parquet"), columns=list(names))
        return tuple(table[name].to_numpy() for name in names)

    def points(self, name: str, file: str, box: Box, depth: int, what: str) -> GroundTruthMap:
        """Rows of a table, each a person, in the pixels of the square around a box."""
        lon, lat = self.columns(file, "lon", "lat")
        tree = Quadtree.around(box, depth)
        cells = tree.cell_at({"lon": lon, "lat": lat}, depth)
        return in_pixels(name, cells, np.ones(len(cells), dtype=np.int64), tree, what)

    def visits(self, name: str, file: str, box: Box, depth: int, what: str) -> Visits:
        """Rows of a table by person, in the pixels of the square around a box; those outside are left out."""
        person, lon, lat = self.columns(file, "user", "lon", "lat")
        tree = Quadtree.around(box, depth)
        inside = tree.cell_at({"lon": lon, "lat": lat}, 0) != NOWHERE
        return Visits(name, tree, person[inside].astype(np.int64), lon[inside], lat[inside], what)

    def fixations(self, name: str, part: float, depth: int) -> Visits:
        """Where people looked in one of the pictures, the one that this part of all come before by name."""
        person, image, x, y = self.columns("figrim_fixations_targets", "user", "image", "x", "y")
        names = np.unique(image.astype(str))
        here = image.astype(str) == names[int(part * len(names))]
        tree = Quadtree(SQUARE.left, SQUARE.top, SQUARE.side, depth)
        return laid(name, tree, person[here], x[here] / 1000, y[here] / 1000, "where people looked in a picture")


@cache
def _run(script: Path) -> Ints:
    spec = importlib.util.spec_from_file_location("synthetic_city", script)
    if spec is None or spec.loader is None:
        raise FileError(f"{script} is not a script of the evaluation data")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    counts, _ = module.build()
    whole: Ints = np.asarray(counts, dtype=np.int64)
    return whole
