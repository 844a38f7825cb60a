"""A nation that does not exist: districts, and 300 million people as counts, of which `national_release.py` makes maps.

The districts are public files: states, counties (parent: their state), and for each of the 1,000 largest cities a disc
around its point, of 2,000 people a km², cut at the border of its county and half way to the next city. The people are
made of the cities' populations, and nobody is real: 6 million blocks of some 50 people. 131 M live in their city, their
density falling off from the middle; 120 M around a city, at some 20 km from it; the others are spread over the
counties, each with a density of its own.
"""

from functools import cache
from pathlib import Path

import geopandas
import numpy as np
import pandas as pd
import shapely

from hazemap.cells import NOWHERE
from hazemap.lab.compare.ground_truth_maps import KnownCounts
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.spatial.quadtree import Quadtree

HERE = Path(__file__).parent
BOUNDARIES = HERE.parents[2] / "shared" / "data" / "boundaries"
PEOPLE = 300_000_000
BLOCK = 50
"""People of a block, on average: they live in one place."""
DENSITY = 2_000
"""People a km² inside a city's disc."""
AROUND = 120_000_000
BLOCKS = Quadtree.world(20)
"""Where blocks are known to lie: squares of some 30 m."""


@cache
def counties() -> geopandas.GeoDataFrame:
    return geopandas.read_file(BOUNDARIES / "us_counties.geojson")


@cache
def cities() -> geopandas.GeoDataFrame:
    """Discs, cut at the border of their county and half way to the next city."""
    table = pd.read_csv(BOUNDARIES / "us_cities_top1000.csv")
    points = shapely.points(table.lon, table.lat)
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.multipoints(points)))
    point, cell = shapely.STRtree(cells).query(points, predicate="intersects")
    table, points = table.iloc[point], points[point]
    borders = shapely.make_valid(counties().geometry.to_numpy(), method="structure", keep_collapsed=False)
    inside, county = shapely.STRtree(borders).query(points, predicate="intersects")
    inside, first = np.unique(inside, return_index=True)
    county = county[first]
    table, points, cells = table.iloc[inside], points[inside], cells[cell[inside]]
    radius = np.sqrt(table.Population.to_numpy() / DENSITY / np.pi) / 111.2
    wide = np.cos(np.radians(table.lat.to_numpy()))
    discs = [
        shapely.affinity.scale(point.buffer(r), 1 / w, 1, origin=point)
        for point, r, w in zip(points, radius, wide, strict=True)
    ]
    shapes = shapely.intersection(shapely.intersection(discs, cells, grid_size=1e-9), borders[county], grid_size=1e-9)
    rows = {"name": table.City.to_numpy(), "county": counties().geo_id.to_numpy()[county]}
    rows |= {"people": table.Population.to_numpy(), "lon": table.lon.to_numpy(), "lat": table.lat.to_numpy()}
    rows |= {"radius": radius}
    return geopandas.GeoDataFrame(rows, geometry=shapes, crs="EPSG:4326")


@cache
def districts() -> Districts:
    return Districts.of(
        BOUNDARIES / "us_states.geojson",
        DistrictLayer(counties(), name="geo_id", parent="state"),
        DistrictLayer(cities(), name="name", parent="county"),
        whole="United States",
    )


@cache
def people() -> KnownCounts:
    """Everybody, as counts of some 6 million squares of 30 m."""
    rng, table, tree = np.random.default_rng(20), cities(), districts()
    home, number = table.people.to_numpy(), AROUND // BLOCK

    def near(which, spread):
        """Places around cities, at a distance with the density of an exponential law."""
        angle, away = rng.uniform(0, 2 * np.pi, len(which)), rng.gamma(2, spread)
        lat = table.lat.to_numpy()[which] + away * np.sin(angle)
        return table.lon.to_numpy()[which] + away * np.cos(angle) / np.cos(np.radians(lat)), lat

    inside = np.repeat(np.arange(len(table)), home // BLOCK)
    around = rng.choice(len(table), number, p=home / home.sum())
    rural = (PEOPLE - AROUND - int(home.sum())) // BLOCK
    whole = tree.finest[np.isin(tree.names(tree.finest), tree.names(tree.finest))]
    bounds = tree.bounds(whole)
    weight = tree.area(whole) ** 0.5 * rng.lognormal(0, 1, len(whole))
    box = bounds[rng.choice(len(whole), 2 * rural, p=weight / weight.sum())]
    away = rng.uniform(box[:, 0], box[:, 2]), rng.uniform(box[:, 1], box[:, 3])
    lands = tree.cell_at({"lon": away[0], "lat": away[1]}, 0) != NOWHERE
    away = away[0][lands][:rural], away[1][lands][:rural]
    lon, lat = np.hstack([near(inside, table.radius.to_numpy()[inside] / 3), near(around, np.full(number, 0.1)), away])
    there = tree.cell_at({"lon": lon, "lat": lat}, 0) != NOWHERE
    cells = BLOCKS.cell_at({"lon": lon[there], "lat": lat[there]}, BLOCKS.depth)
    cells, blocks = np.unique(cells, return_counts=True)
    sizes = rng.multinomial(PEOPLE, blocks / blocks.sum())
    return KnownCounts(BLOCKS, cells[sizes > 0], sizes[sizes > 0])
