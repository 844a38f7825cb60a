"""Rings across the antimeridian and around the poles, on maps from -180 to 180 degrees."""

import numpy as np
import shapely

from hazemap.spatial.h3_hexagons import cut


def test_a_polygon_away_from_the_antimeridian_stays_as_it_is() -> None:
    polygons = shapely.box([-180, 0], [0, 0], [-1, 170], [10, 10])
    assert (cut(polygons) == polygons).all()


def test_a_ring_across_the_antimeridian_becomes_two_parts() -> None:
    ring = shapely.Polygon([(179, 0), (-179, 0), (-179, 1), (179, 1)])
    (whole,) = cut(np.array([ring]))
    assert whole.equals(shapely.MultiPolygon([shapely.box(179, 0, 180, 1), shapely.box(-180, 0, -179, 1)]))


def test_a_ring_around_a_pole_holds_the_pole() -> None:
    for lat, pole in ((80, 90), (-70, -90)):
        for turn in (1, -1):
            ring = shapely.Polygon([(turn * lon, lat) for lon in (10, 100, -170, -80)])
            (whole,) = cut(np.array([ring]))
            assert whole.equals(shapely.box(-180, min(lat, pole), 180, max(lat, pole)))
