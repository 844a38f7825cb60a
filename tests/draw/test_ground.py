"""The base map under and over cells: there on the ground, absent on a plane and in mid-ocean, the same every time."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from hazemap import draw
from hazemap.draw.figure_layout import width
from hazemap.draw.ground import NAME, Ground
from hazemap.draw.viewport import Viewport
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree

NEW_YORK = Box(-74.3, 40.4, -73.7, 41.0)


def gids(figure):
    return {str(artist.get_gid()) for axes in figure.axes for artist in axes.get_children()}


@pytest.fixture
def city(make):
    tree = Quadtree.around(NEW_YORK, 8)
    return make(tree, tree.grid(2).ravel(), 5.0)


def test_new_york_is_new_york(city):
    figure = draw.draw_map(city, box=NEW_YORK, width=5)
    assert {"land", "shores", "states", "place"} <= gids(figure)
    names = {text.get_text() for text in figure.axes[0].texts if text.get_gid() == "place"}
    assert "New York" in names


def test_without_the_base_map_none_of_it_is_drawn(city):
    figure = draw.draw_map(city, box=NEW_YORK, width=5, base=False)
    assert not {"land", "shores", "states", "place"} & gids(figure)


def test_own_lines_lie_over_the_base_map(city):
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    own = geopandas.GeoDataFrame(geometry=[shapely.LineString([(-74.2, 40.5), (-73.8, 40.9)])], crs="OGC:CRS84")
    axes = draw.draw_map(city, box=NEW_YORK, width=5, outlines=own).axes[0]
    orders = {str(each.get_gid()): each.get_zorder() for each in axes.get_children()}
    assert orders["land"] < 1 < orders["shores"] < orders["outlines"]


def test_a_plane_has_no_ground():
    page = PlaneBox(0, 0, 1000, 800)
    plane = Viewport.of(page, PlaneQuadtree.over(Plane.parse("1000,800"), page, 4))
    assert Ground.of(plane, None).base is None
    with pytest.raises(InputError, match="on a plane"):
        Ground.of(plane, "own.geojson")


def test_mid_ocean_is_water_and_no_failure(make):
    tree = Quadtree.around(Box(-30.0, 0.0, -29.99, 0.01), 4)
    figure = draw.draw_map(make(tree, tree.grid(1).ravel(), 5.0), width=5)
    FigureCanvasAgg(figure).draw()
    assert not {"land", "shores", "place"} & gids(figure)


@pytest.mark.parametrize("box", [Box(3, 50, 8, 54), Box(-125, 24, -66, 50), Box(-180, -85, 180, 85)])
def test_names_keep_clear_of_each_other_and_of_the_edge(box):
    view = Viewport.of(box)
    found = Ground.of(view, None).named(4.0)
    assert 2 <= len(found) <= 12
    assert all(view.west < x < view.east and view.south < y < view.north for _, x, y, _ in found)
    assert len({place for place, *_ in found}) == len(found)
    metres = view.width / 4
    for (one, x, y, side), (two, other_x, other_y, other_side) in combinations(found, 2):
        ends = sorted((x, x + side * width(one.name, NAME) * metres))
        others = sorted((other_x, other_x + other_side * width(two.name, NAME) * metres))
        assert abs(y - other_y) > metres * NAME / 72 or ends[1] < others[0] or others[1] < ends[0]


def test_a_view_over_the_antimeridian_and_of_more_than_the_world_is_drawn():
    world = Viewport.of(Box(-180, -85, 180, 85))
    assert Ground.of(world.padded(0.2), None).base is not None
    assert Ground.of(world.padded(2.0), None).base is None
    fiji = Ground.of(Viewport(1.97e7, -2.2e6, 2.03e7, -1.6e6), None).base
    assert max(ring[:, 0].max() for area in fiji.land for ring in area) > 180


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_the_same_picture_is_the_same_bytes(city, suffix):
    first, again = (draw.encode(draw.draw_map(city, box=NEW_YORK, width=5), suffix) for _ in range(2))
    if suffix == ".svg":  # matplotlib salts the names of clip paths
        assert len(first) == len(again)
    else:
        assert first == again
        assert np.frombuffer(first[:4], "u1").tolist() == [137, 80, 78, 71]
