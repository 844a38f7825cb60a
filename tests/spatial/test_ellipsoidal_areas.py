"""Areas: against PROJ's geodesics and against high precision."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.web_mercator import mercator_rectangles


@pytest.mark.parametrize(
    ("tree", "level"),
    [
        (Quadtree.world(24), 4),
        (Quadtree.world(24), 10),
        (Quadtree.around(Box(-74.05, 40.68, -73.90, 40.80), 10), 5),
        (Quadtree.around(Box(10, 80, 12, 84), 10), 6),
        (Quadtree.around(Box(-3, -2, 4, 2.5), 10), 8),
    ],
)
def test_areas_agree_with_geodesics_along_finely_cut_edges(tree: Quadtree, level: int) -> None:
    """A parallel is not a geodesic: its error falls with the square of the number of pieces."""
    from pyproj import Geod

    geod = Geod(ellps="WGS84")
    rng = np.random.default_rng(5)
    cells = rng.choice(tree.grid(level).ravel() if level <= 6 else np.arange(4**level, 2 * 4**level), 6)
    for cell, west, south, east, north in zip(cells, *tree.bounds(cells), strict=True):
        along, pieces = np.linspace(west, east, 4001), 4001
        lon = np.concatenate([along, along[::-1]])
        lat = np.concatenate([np.full(pieces, south), np.full(pieces, north)])
        area, _ = geod.polygon_area_perimeter(lon, lat)
        assert tree.area(np.array([cell]))[0] == pytest.approx(area, rel=1e-6)


def test_small_cells_keep_full_precision() -> None:
    """Cells of 2 metres, against the same formula in 60 digits."""
    getcontext().prec = 60
    flattening = 1 / Decimal("298.257223563")
    e2 = flattening * (2 - flattening)
    e, b = e2.sqrt(), Decimal(6378137) * (1 - flattening)
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494")

    def q(y: Decimal) -> Decimal:
        power = (2 * (2 * pi * (Decimal("0.5") - y))).exp()
        s = (power - 1) / (power + 1)
        return s / (1 - e2 * s * s) + ((1 + e * s) / (1 - e * s)).ln() / (2 * e)

    side = Decimal(2) ** -24
    for y in (0.0, 0.01, 0.3, 0.5 - 2.0**-24, 0.5, 0.77, 1 - 2.0**-24):
        exact = b * b / 2 * 2 * pi * side * (q(Decimal(y)) - q(Decimal(y) + side))
        found = mercator_rectangles(np.array([y]), np.array([2.0**-24]), np.array([2.0**-24]))[0]
        assert abs(Decimal(float(found)) / exact - 1) < Decimal("1e-14")
