"""Outlines that cross the antimeridian or hold a pole, cut so that every map draws them right."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def cut(polygons: NDArray[Any]) -> NDArray[Any]:
    """The same polygons (rings of points on the sphere, each edge shorter than 180°), within ±180 degrees.

    A ring that crosses the antimeridian becomes a multipolygon; one around a pole is closed along the pole.
    """
    import shapely

    west, _, east, _ = shapely.bounds(polygons).T
    whole = polygons.copy()
    for i in np.flatnonzero(east - west > 180):
        ring = shapely.get_coordinates(polygons[i])
        ring[:, 0] = np.unwrap(ring[:, 0], period=360)
        if abs(ring[-1, 0] - ring[0, 0]) > 180:  # once around a pole
            pole = np.copysign(90.0, ring[:, 1].mean())
            ring = np.vstack([ring, [[ring[-1, 0], pole], [ring[0, 0], pole], ring[0]]])
        turns = [shapely.polygons(ring + np.array([by, 0])) for by in (-360, 0, 360)]
        whole[i] = shapely.union_all(shapely.intersection(turns, shapely.box(-180, -90, 180, 90)))
    return whole
