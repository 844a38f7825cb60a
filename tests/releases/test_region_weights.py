"""What share of each cell lies in a region, against slow and plain ways to work it out."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import mapping

from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError
from hazemap.releases.cell_geometry import CellGeometry, equal_area
from hazemap.releases.region_weights import weights
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

from .conftest import BERLIN, flat, hexagons, nested, with_nowhere


def slow_shares(leaves: Leaves, region) -> np.ndarray:
    """Every base cell is cut with the region on its own, in EPSG:6933, and given to the leaf that owns it."""
    from pyproj import Transformer

    to_metres = Transformer.from_crs("EPSG:4326", "EPSG:6933", always_xy=True)
    base = Leaves.at_level(leaves.tree, leaves.tree.depth).cells
    owner = leaves.locate(base)
    base, owner = base[owner >= 0], owner[owner >= 0]

    def flatten(shapes):
        return shapely.transform(shapes, lambda xy: np.column_stack(to_metres.transform(xy[:, 0], xy[:, 1])))

    shapes = flatten(leaves.tree.outlines(base))
    inside = shapely.area(shapely.intersection(shapes, flatten(shapely.segmentize(region, 0.25))))
    whole = np.bincount(owner, shapely.area(shapes), leaves.size)
    return np.bincount(owner, inside, leaves.size) / np.where(whole > 0, whole, 1)


degrees = st.integers(-60_000, 80_000).map(lambda thousandths: thousandths / 1000)
points = st.tuples(degrees.map(lambda lon: 1.5 * lon - 80), degrees)


@settings(max_examples=25)
@given(st.lists(points, min_size=3, max_size=8, unique=True))
def test_polygons_over_nested_squares_agree_with_cutting_every_base_cell(corners):
    region = shapely.convex_hull(shapely.multipoints(corners))
    if region.geom_type != "Polygon" or region.area < 1:
        return
    leaves = nested(depth=5)
    wanted = slow_shares(leaves, region)
    if (wanted > 1e-9).any():
        assert weights(CellGeometry(leaves), region) == pytest.approx(wanted, abs=1e-6)


@settings(max_examples=25)
@given(points, st.floats(0.5, 200), st.floats(0.5, 60))
def test_boxes_over_nested_squares_agree_with_cutting_every_base_cell(corner, width, height):
    box = Box(corner[0], corner[1], min(corner[0] + width, 180), min(corner[1] + height, 90))
    leaves = nested(depth=5)
    polygon = shapely.box(box.west, box.south, box.east, box.north)
    wanted = slow_shares(leaves, polygon)
    if (wanted > 1e-9).any():
        found = weights(CellGeometry(leaves), box)
        assert found == pytest.approx(wanted, abs=1e-6)
        assert weights(CellGeometry(leaves), polygon) == pytest.approx(found, abs=1e-6)


def test_a_region_with_holes_and_many_corners_over_a_fine_grid():
    leaves = flat(6, depth=6)
    rings = [shapely.Point(13.4, 52.5).buffer(size, quad_segs=200) for size in (0.09, 0.03)]
    region = shapely.union(rings[0] - rings[1], shapely.Point(13.25, 52.45).buffer(0.02))
    assert weights(CellGeometry(leaves), region) == pytest.approx(slow_shares(leaves, region), abs=1e-9)


def test_hexagons_give_the_share_of_their_outline():
    leaves = hexagons()
    ground = CellGeometry(leaves)
    region = shapely.Point(13.3, 52.45).buffer(0.08)
    found = weights(ground, region)
    holders = np.unique(leaves.holder[leaves.holder >= 0])
    plain = np.setdiff1d(np.arange(leaves.size), holders)
    shapes = shapely.transform(leaves.tree.outlines(leaves.cells[plain]), equal_area)
    cut = shapely.intersection(shapes, shapely.transform(region, equal_area))
    assert found[plain] == pytest.approx(shapely.area(cut) / shapely.area(shapes), abs=1e-9)
    assert ((found > 0) & (found < 1)).sum() > 3


def test_a_hexagon_with_cells_inside_it_owns_the_children_they_leave_free():
    leaves = hexagons()
    holder = np.unique(leaves.holder[leaves.holder >= 0])
    assert len(holder) == 1
    cells, owner = CellGeometry(leaves).pieces
    inside = leaves.cells[leaves.holder == holder[0]]
    children = leaves.tree.children(leaves.cells[holder])
    assert set(cells[owner == holder[0]]) == set(children) - set(inside)


@pytest.mark.parametrize("leaves", [flat(), nested(), hexagons(), with_nowhere()])
def test_parts_of_a_map_add_up_to_all_of_it(leaves):
    ground = CellGeometry(leaves)
    west, south, east, north = ground.extent
    middle = west + 0.37 * (east - west)
    halves = (Box(west, south, middle, north), Box(middle, south, east, north))
    assert sum(weights(ground, half) for half in halves) == pytest.approx((leaves.cells != NOWHERE).astype(float))


def test_a_very_small_region_in_a_very_large_cell_is_not_lost():
    ground = CellGeometry(nested())
    box = Box(100.0, 40.0, 100.00001, 40.00001)
    outline = shapely.box(box.west, box.south, box.east, box.north)
    assert 0 < weights(ground, box).sum() < 1e-12
    assert weights(ground, box).sum() == pytest.approx(weights(ground, outline).sum(), rel=1e-3)


def test_a_box_along_the_edges_of_cells_cuts_none():
    leaves = flat()
    bounds = leaves.tree.outlines(leaves.tree.named(["root-01"]))[0].bounds
    found = weights(CellGeometry(leaves), Box(*bounds))
    assert set(found) == {0.0, 1.0}
    assert found.sum() == 16


def test_a_cell_that_others_fill_goes_with_the_region_that_holds_it_all():
    tree = Quadtree.world(depth=3)
    quarters = tree.children(tree.root)
    ground = CellGeometry(Leaves(tree, np.concatenate([tree.root, quarters])))
    assert ground.km2[0] == 0
    assert weights(ground, "root").tolist() == [1, 1, 1, 1, 1]
    assert weights(ground, "0").tolist() == [0, 1, 0, 0, 0]
    assert ground.outlines(ground.places)[0].is_empty


@pytest.mark.parametrize("leaves", [flat(), nested(), with_nowhere()])
def test_a_cell_of_any_level_counts_what_its_outline_counts(leaves):
    ground = CellGeometry(leaves)
    tree = leaves.tree
    for level in range(4):
        cells = Leaves.at_level(tree, level).cells
        for cell in cells[leaves.locate(tree.span(cells)[0]) > 0][:5]:
            one = np.array([cell])
            [name], [outline] = tree.names(one), tree.outlines(one)
            assert weights(ground, name) == pytest.approx(weights(ground, outline), abs=1e-9)


def test_hexagons_inside_and_around_leaves_are_counted_by_name():
    leaves = hexagons()
    tree, ground = leaves.tree, CellGeometry(leaves)
    whole = weights(ground, tree.names(leaves.cells[:1])[0])
    assert whole.tolist() == [1.0, *[0.0] * (leaves.size - 1)]
    children = tree.children(leaves.cells[:1])
    parts = sum(weights(ground, name) for name in tree.names(children))
    assert parts[0] == pytest.approx(tree.area(children).sum() / tree.area(leaves.cells[:1])[0])
    ancestor = weights(ground, tree.names(tree.root[2:3])[0])
    assert ancestor.sum() == len(tree.children(tree.root[2:3]))
    holder = int(leaves.holder.max())
    free = np.setdiff1d(tree.children(leaves.cells[holder : holder + 1]), leaves.cells)
    assert weights(ground, tree.names(free))[holder] == pytest.approx(1)


def test_names_that_overlap_are_counted_once():
    ground = CellGeometry(nested())
    assert weights(ground, ["00", "0", "001", "0"]).tolist() == weights(ground, "0").tolist()
    assert weights(ground, iter(["1", "2"])).sum() == 2


def test_geojson_of_every_kind_is_the_same_region(release):
    polygon = shapely.Point(13.4, 52.5).buffer(0.05)
    feature = {"type": "Feature", "properties": {}, "geometry": mapping(polygon)}
    left, right = (polygon & shapely.box(*edges) for edges in ((13, 52, 13.4, 53), (13.4, 52, 14, 53)))
    collection = {
        "type": "FeatureCollection",
        "features": [{**feature, "geometry": mapping(part)} for part in (left, right)],
    }

    class Shape:
        __geo_interface__ = mapping(polygon)

    wanted = release.count(polygon)
    for region in (mapping(polygon), feature, collection, Shape(), shapely.MultiPolygon([polygon])):
        found = release.count(region)
        assert found.unbiased == pytest.approx(wanted.unbiased, abs=1e-6)
        assert found.cut == pytest.approx(wanted.cut)


def test_the_number_in_cut_cells_is_said(release):
    west, south, east, north = release.ground.extent
    assert release.count(Box(west, south, east, north)).cut == 0
    half = release.count(Box(west, south, west + 0.0125, north))
    assert half.cut == pytest.approx(2 * half.best_guess)


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (Box(0, 0, 1, 1), "lies outside the map, which covers 13.2"),
        (shapely.box(1_480_000, 6_890_000, 1_490_000, 6_900_000), "in degrees"),
        (shapely.Polygon([(13, 52), (14, 53), (14, 52), (13, 53)]), "make_valid"),
        (shapely.Point(13.4, 52.5), "found a Point"),
        (shapely.Polygon(), "empty"),
        ({"type": "Polygon"}, "not GeoJSON"),
        ({"type": "Feature", "geometry": None}, "not GeoJSON"),
        ({"type": "Nonsense", "coordinates": []}, "not GeoJSON"),
        ({}, "not GeoJSON"),
        ("nonsense", "nonsense"),
        (["root-0", 7], "found a list"),
        ([], "found a list"),
        (7, "found a int"),
    ],
)
def test_a_region_that_makes_no_sense_is_explained(release, region, message):
    with pytest.raises(InputError, match=message):
        release.count(region)


def test_a_hexagon_of_the_map_that_crosses_the_antimeridian_counts_on_both_sides():
    from hazemap.spatial.h3_hexagons import Hexagons

    tree = Hexagons(Box(179.0, -1.0, 180.0, 1.0), 3, 5)
    ground = CellGeometry(Leaves(tree, tree.root))
    sides = [weights(ground, Box(*edges)) for edges in ((-180, -10, -90, 10), (90, -10, 180, 10))]
    both = [(a, b) for a, b in zip(*sides, strict=True) if a and b]
    assert both
    assert sum(sides) == pytest.approx(np.ones(len(tree.root)))


def test_berlin_is_covered():
    assert weights(CellGeometry(flat()), BERLIN).max() == 1
