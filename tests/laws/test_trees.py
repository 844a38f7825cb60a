"""The laws of `Tree`, over all trees of places: a city, the equator, the far north, the world, a pentagon."""

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Cells, Columns, Leaves, Tree
from hazemap.errors import InputError, TableError
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.spatial.subdivided_districts import DistrictQuadtree, SubdividedDistricts

CITY = Box(-74.05, 40.68, -73.90, 40.80)
EQUATOR = Box(-3.0, -2.0, 4.0, 2.5)
NORTH = Box(-180.0, 72.0, 180.0, 90.0)
ARCTIC = Box(10.0, 70.0, 40.0, 84.0)
ANTARCTIC = Box(-120.0, -84.9, -110.0, -80.0)
PENTAGON = Box(10.0, 64.4, 11.0, 65.0)  # base cell 4 of H3 has its centre at 64.70 N, 10.54 E
EAST = Box(179.0, -18.0, 180.0, -16.0)

QUADTREES = {
    "world": (Quadtree.world(24), WORLD),
    "shallow": (Quadtree.world(1), WORLD),
    "root only": (Quadtree.around(CITY, 0), CITY),
    "city": (Quadtree.around(CITY, 12), CITY),
    "equator": (Quadtree.around(EQUATOR, 20), EQUATOR),
    "arctic": (Quadtree.around(ARCTIC, 9), ARCTIC),
    "antarctic": (Quadtree.around(ANTARCTIC, 24), ANTARCTIC),
    "east": (Quadtree.around(EAST, 7), EAST),
}
HEXAGONS = {
    "world": (Hexagons(WORLD, 0, 4), WORLD),
    "city": (Hexagons(CITY, 6, 10), CITY),
    "one resolution": (Hexagons(CITY, 8, 8), CITY),
    "finest": (Hexagons(Box(-74.0, 40.7, -73.99, 40.71), 7, 15), CITY),
    "equator": (Hexagons(EQUATOR, 3, 8), EQUATOR),
    "north": (Hexagons(NORTH, 1, 6), NORTH),
    "pentagon": (Hexagons(PENTAGON, 0, 7), PENTAGON),
    "pentagon deep": (Hexagons(PENTAGON, 4, 9), PENTAGON),
    "east": (Hexagons(EAST, 3, 8), EAST),
}


def grids(box: Box, first: int, most: int) -> TwoLevelGrid:
    """A grid of grids around a box, its blocks cut in up to `most` parts each way."""
    second = np.random.default_rng(first).integers(1, most + 1, first * first)
    return TwoLevelGrid.regular(Quadtree.around(box, 12), first).cut(second)


def cuts(box: Box, number: int, depth: int = 10) -> BinaryPartition:
    """The square around a box, cut at random so many times."""
    rng, tree = np.random.default_rng(number), BinaryPartition.uncut(Quadtree.around(box, depth))
    for _ in range(number):
        end = rng.choice(tree.ends, 1)
        west, north, east, south = (int(line[0]) for line in tree.rectangles(end))
        axis = int(east - west < south - north or (east - west == south - north and rng.integers(2)))
        low, high = (west, east) if axis == 0 else (north, south)
        if high - low > 1:
            tree = tree.cut(end, np.array([axis]), rng.integers(low + 1, high, 1))
    return tree


GRIDS = {
    "world": (grids(WORLD, 7, 30), WORLD),
    "one block": (grids(CITY, 1, 1), CITY),
    "city": (grids(CITY, 79, 9), CITY),
    "no block cut": (grids(EQUATOR, 10, 1), EQUATOR),
    "arctic": (grids(ARCTIC, 3, 50), ARCTIC),
    "east": (grids(EAST, 13, 6), EAST),
}
CUTS = {
    "world": (cuts(WORLD, 40), WORLD),
    "not cut": (cuts(CITY, 0), CITY),
    "pixels": (cuts(CITY, 60, 2), CITY),
    "deep": (cuts(EQUATOR, 200, 20), EQUATOR),
}


def layer(shapes: list[shapely.Geometry], **columns: list[str]) -> geopandas.GeoDataFrame:
    names = [f"no. {i}" for i in range(len(shapes))]
    return geopandas.GeoDataFrame({"name": names, **columns}, geometry=shapes, crs="EPSG:4326")


def jigsaw(area: shapely.Geometry, pieces: int, seed: int) -> list[shapely.Geometry]:
    """Polygons that tile an area."""
    west, south, east, north = area.bounds
    points = np.random.default_rng(seed).uniform([west, south], [east, north], (pieces, 2))
    cells = shapely.voronoi_polygons(shapely.multipoints(points), extend_to=area)
    return [shape for shape in shapely.intersection(shapely.get_parts(cells), area) if shape.area > 1e-6 * area.area]


def country(box: Box, states: int, counties: int) -> Districts:
    """States that tile a box; counties that tile some of them, not quite others; a town in every second county."""
    upper = jigsaw(shapely.box(box.west, box.south, box.east, box.north), states, 1)
    inner = [
        (f"no. {i}", shape) for i, state in enumerate(upper[1:], 1) for shape in jigsaw(state, counties, i)[i % 2 :]
    ]
    middle = layer([shape for _, shape in inner], state=[state for state, _ in inner])
    towns = [shape.representative_point().buffer(shape.area**0.5 / 1e3) for _, shape in inner[::2]]
    return Districts.of(layer(upper), DistrictLayer(middle, parent="state"), layer(towns))


DISTRICTS = {
    "country": (country(EQUATOR, 9, 7), EQUATOR),
    "city": (country(CITY, 4, 3), CITY),
    "one layer": (Districts.of(layer(jigsaw(shapely.box(10, 70, 40, 84), 20, 3))), ARCTIC),
    "one district": (Districts.of(layer([shapely.box(179, -18, 180, -16)])), EAST),
}
DISTRICT_SQUARES = {
    "country": (DistrictQuadtree(DISTRICTS["country"][0], Quadtree.world(15)), EQUATOR),
    "city": (DistrictQuadtree(DISTRICTS["city"][0], Quadtree.around(CITY, 9)), CITY),
    "no squares": (DistrictQuadtree(DISTRICTS["one layer"][0], Quadtree.world(0)), ARCTIC),
}


def cut_districts(district_squares: DistrictQuadtree, dynamic: int, times: int) -> SubdividedDistricts:
    """Some districts of every level made dynamic, and cut here and there."""
    rng, tree, districts = (
        np.random.default_rng(times),
        SubdividedDistricts.uncut(district_squares),
        district_squares.districts,
    )
    for level in range(1, districts.depth + 1):
        cells = Leaves.at_level(districts, level).cells
        cells = cells[tree.level(cells) >= 0]
        tree = tree.turned(rng.choice(cells, min(dynamic, len(cells)), replace=False))
    for _ in range(times):
        cells = rng.choice(tree.ends, 20)
        cells = np.unique(cells[np.isin((cells >> np.uint64(44)) << np.uint64(44) | np.uint64(1), tree.dynamic)])
        axis, edges = rng.integers(2, size=len(cells)), tree.rectangles(cells)
        low, high = np.where(axis, edges.north, edges.west), np.where(axis, edges.south, edges.east)
        wide = high - low > 1
        tree = tree.cut(cells[wide], axis[wide], rng.integers(low[wide] + 1, high[wide]))
    return tree


CUT_DISTRICTS = {
    "all dynamic": (cut_districts(DISTRICT_SQUARES["city"][0], 99, 0), CITY),
    "country": (cut_districts(DISTRICT_SQUARES["country"][0], 3, 30), EQUATOR),
    "city": (cut_districts(DISTRICT_SQUARES["city"][0], 2, 10), CITY),
    "none dynamic": (cut_districts(DISTRICT_SQUARES["country"][0], 0, 0), EQUATOR),
}
TREES = [
    *(pytest.param(*case, id=f"districts, {name}") for name, case in DISTRICTS.items()),
    *(pytest.param(*case, id=f"district squares, {name}") for name, case in DISTRICT_SQUARES.items()),
    *(
        pytest.param(*case, id=f"cut districts, {name}", marks=[pytest.mark.slow] * (name != "all dynamic"))
        for name, case in CUT_DISTRICTS.items()
    ),
    *(pytest.param(*case, id=f"cuts, {name}") for name, case in CUTS.items()),
    *(pytest.param(*case, id=f"grids, {name}") for name, case in GRIDS.items()),
    *(pytest.param(*case, id=f"quadtree, {name}") for name, case in QUADTREES.items()),
    *(pytest.param(*case, id=f"hexagons, {name}") for name, case in HEXAGONS.items()),
]
every_tree = pytest.mark.parametrize(("tree", "box"), TREES)
every_quadtree = pytest.mark.parametrize("tree", [case[0] for case in QUADTREES.values()], ids=list(QUADTREES))
seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=max(5, settings().max_examples // 12), deadline=None)


def rows(box: Box, seed: int, count: int = 200) -> Columns:
    """Points of a box, some on its edges."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(box.west, box.east, count), rng.uniform(box.south, box.north, count)
    lon[:10], lat[5:15] = rng.choice([box.west, box.east], 10), rng.choice([box.south, box.north], 10)
    return {"lon": lon, "lat": lat}


def walks(tree: Tree, seed: int, count: int = 20) -> list[Cells]:
    """For each level some cells, found by walking down from random roots."""
    rng = np.random.default_rng(seed)
    levels = [rng.choice(tree.root, min(count, len(tree.root)), replace=False)]
    levels[0][:1] = tree.root[:1]
    for _ in range(tree.depth):
        children = tree.children(levels[-1])
        levels.append(rng.choice(children, min(count, len(children)), replace=False))
    return levels


@every_tree
def test_the_root_is_level_0_in_ascending_order(tree: Tree, box: Box) -> None:
    assert tree.root.dtype == np.uint64
    assert len(tree.root) > 0
    assert (tree.root[:-1] < tree.root[1:]).all()
    assert (tree.level(tree.root) == 0).all()


@every_tree
@given(seeds)
@quick
def test_children_have_the_cell_as_parent_and_their_spans_tile_its_span(tree: Tree, box: Box, seed: int) -> None:
    for level, cells in enumerate(walks(tree, seed)[:-1]):
        each = [tree.children(np.array([cell])) for cell in cells]
        children, which = np.concatenate(each), np.repeat(np.arange(len(cells)), [len(some) for some in each])
        siblings = which[:-1] == which[1:]
        assert np.array_equal(tree.children(cells), children)
        assert np.array_equal(tree.parent(children), cells[which])
        assert (tree.level(children) == level + 1).all()
        assert (children[:-1] < children[1:])[siblings].all()
        assert NOWHERE not in children
        (first, last), whole = tree.span(children), tree.span(cells)
        assert np.array_equal(first[~np.append(False, siblings)], whole[0])
        assert np.array_equal(last[~np.append(siblings, False)], whole[1])
        assert (first <= last).all()
        assert (last[:-1] + np.uint64(1) == first[1:])[siblings].all()


@every_tree
def test_no_other_number_stands_for_a_cell(tree: Tree, box: Box) -> None:
    """Else a list of distinct numbers would hold a cell twice."""
    cells = np.unique(np.concatenate([some[:3] for some in walks(tree, 0)]))
    bits = np.array([pair << at for pair in (1, 3) for at in range(63)] + [1 << 63], dtype=np.uint64)
    others, which = (cells[:, None] ^ bits).ravel(), np.repeat(cells, len(bits))
    real = (tree.level(others) >= 0) & (tree.level(others) <= tree.depth) & (others != NOWHERE)
    others, which = others[real], which[real]
    assert not ((tree.level(others) == tree.level(which)) & (tree.span(others)[0] == tree.span(which)[0])).any()


@every_tree
@given(seeds)
@quick
def test_the_cell_of_a_row_lies_in_its_cell_one_level_up(tree: Tree, box: Box, seed: int) -> None:
    places = rows(box, seed)
    for level in range(1, tree.depth + 1):
        cells, above = tree.cell_at(places, level), tree.cell_at(places, level - 1)
        inside = cells != NOWHERE
        assert np.array_equal(inside, above != NOWHERE)
        assert (tree.level(cells[inside]) == level).all()
        assert np.array_equal(tree.parent(cells[inside]), above[inside])


@every_tree
@given(seeds)
@quick
def test_every_point_of_the_box_lies_in_a_root(tree: Tree, box: Box, seed: int) -> None:
    box = tree.box if isinstance(tree, Hexagons) else box
    cells = tree.cell_at(rows(box, seed, 2000), 0)
    assert np.isin(cells, tree.root).all()


@every_tree
@given(seeds)
@quick
def test_the_span_holds_the_base_cells_of_the_cell_and_no_others(tree: Tree, box: Box, seed: int) -> None:
    base = np.concatenate([tree.cell_at(rows(box, seed), tree.depth), walks(tree, seed)[-1]])
    base = base[base != NOWHERE]
    assert (tree.span(base)[0] <= base).all() and (base <= tree.span(base)[1]).all()
    ancestor = base
    for _ in range(tree.depth):
        ancestor = tree.parent(ancestor)
        for cell in np.unique(ancestor)[:10]:
            first, last = tree.span(np.array([cell]))
            assert np.array_equal((first <= base) & (base <= last), ancestor == cell)
    first, last = tree.span(tree.root)
    assert (last[:-1] < first[1:]).all()


@every_tree
@given(seeds)
@quick
def test_names_can_be_read_back(tree: Tree, box: Box, seed: int) -> None:
    cells = np.unique(np.concatenate(walks(tree, seed)))
    names = tree.names(cells)
    assert len(set(names)) == len(cells)
    assert all(isinstance(name, str) and name for name in names)
    assert np.array_equal(tree.named(names), cells)
    assert tree.names(cells[:0]) == []
    assert tree.named([]).dtype == np.uint64


@every_tree
def test_names_of_no_cell_are_refused(tree: Tree, box: Box) -> None:
    for name in ("", "nowhere", "0120x", "+1", " 1", "1 ", "1_0", "٠", "8f" + "f" * 13, "0" * 45):
        with pytest.raises(InputError, match="found"):
            tree.named([name])


@every_tree
@given(seeds)
@quick
def test_a_row_is_placed_whatever_rows_are_beside_it(tree: Tree, box: Box, seed: int) -> None:
    places = rows(box, seed)
    nowhere = [np.nan, np.inf, -np.inf, 181.0, -180.1, 720.0, 1e300]
    mixed = {
        "lon": np.concatenate([places["lon"], nowhere, np.zeros(len(nowhere))]),
        "lat": np.concatenate([places["lat"], np.zeros(len(nowhere)), nowhere]),
    }
    order = np.random.default_rng(seed).permutation(len(mixed["lon"]))
    shuffled = tree.cell_at({name: column[order] for name, column in mixed.items()}, tree.depth)
    cells = np.empty_like(shuffled)
    cells[order] = shuffled
    assert np.array_equal(cells[: len(places["lon"])], tree.cell_at(places, tree.depth))
    assert (cells[len(places["lon"]) :] == NOWHERE).all()


@every_tree
def test_any_number_type_and_stride_gives_the_same_cells(tree: Tree, box: Box) -> None:
    lon, lat = (np.array(values) for values in ([10, -74, 0], [64, 40, 0]))
    cells = tree.cell_at({"lon": lon.astype(float), "lat": lat.astype(float)}, tree.depth)
    assert np.array_equal(tree.cell_at({"lon": lon, "lat": lat.astype(np.float32)}, tree.depth), cells)
    strided = {"lon": np.repeat(lon, 2)[::2], "lat": np.repeat(lat, 3)[::3]}
    assert np.array_equal(tree.cell_at(strided, tree.depth), cells)
    empty = tree.cell_at({"lon": np.empty(0), "lat": np.empty(0)}, 0)
    assert (empty.dtype, empty.shape) == (np.uint64, (0,))


@every_tree
def test_a_level_outside_the_tree_and_missing_columns_are_refused(tree: Tree, box: Box) -> None:
    for level in (-1, tree.depth + 1):
        with pytest.raises(InputError, match=f"levels 0 to {tree.depth}; found {level}"):
            tree.cell_at(rows(box, 0), level)
    with pytest.raises(TableError, match="not found: lat"):
        tree.cell_at({"lon": np.zeros(1), "x": np.zeros(1)}, 0)
    with pytest.raises(TableError, match="equally long"):
        tree.cell_at({"lon": np.zeros(1), "lat": np.zeros(2)}, 0)


@every_tree
def test_equal_trees_are_one_key_of_a_dictionary(tree: Tree, box: Box) -> None:
    twin = type(tree)(**{name: getattr(tree, name) for name in tree.__dataclass_fields__})  # type: ignore[attr-defined]
    assert {tree: "found"}[twin] == "found"
    assert tree != Quadtree.world(23)


@every_tree
@given(seeds)
@quick
def test_areas_are_positive_and_outlines_valid_and_on_the_map(tree: Tree, box: Box, seed: int) -> None:
    import shapely

    for cells in walks(tree, seed, count=5)[:8]:
        areas, outlines = tree.area(cells), tree.outlines(cells)
        assert areas.shape == outlines.shape == cells.shape
        if isinstance(tree, DistrictQuadtree | SubdividedDistricts):  # a rectangle may lie beside its district
            assert np.array_equal(areas == 0, shapely.is_empty(outlines))
            areas, outlines = areas[areas > 0], outlines[areas > 0]
        assert (areas > 0).all()
        assert shapely.is_valid(outlines).all()
        west, south, east, north = shapely.bounds(outlines).T
        assert (np.minimum(west, -east) >= -180).all()
        assert (np.minimum(south, -north) >= -90).all()


@every_tree
def test_no_cells_have_no_children_areas_or_outlines(tree: Tree, box: Box) -> None:
    none = tree.root[:0]
    sizes = [len(answer) for answer in (tree.children(none), tree.parent(none), tree.area(none), tree.outlines(none))]
    assert sizes == [0, 0, 0, 0]
    assert all(len(end) == 0 for end in tree.span(none))


@every_quadtree
@given(seeds)
@quick
def test_the_areas_of_a_squares_quarters_sum_to_its_area(tree: Quadtree, seed: int) -> None:
    for cells in walks(tree, seed)[:-1]:
        quarters = tree.area(tree.children(cells)).reshape(-1, 4).sum(axis=1)
        np.testing.assert_allclose(quarters, tree.area(cells), rtol=1e-12)


@every_quadtree
@given(seeds)
@quick
def test_a_square_holds_its_points_and_no_others(tree: Quadtree, seed: int) -> None:
    """Also points on corners, to the last bit: a cell owns its western and northern edge."""
    cells = np.concatenate(walks(tree, seed))
    west, south, east, north = tree.bounds(cells)
    points = {"lon": np.concatenate([west, east, west, east]), "lat": np.concatenate([south, south, north, north])}
    root = [edge[0] for edge in tree.bounds(tree.root)]
    for level in range(tree.depth + 1):
        found = tree.cell_at(points, level)
        assert (found != NOWHERE).all()
        west, south, east, north = tree.bounds(found)
        lon, lat = points["lon"], points["lat"]
        assert ((west <= lon) & ((lon < east) | (lon == root[2]))).all()
        assert ((lat <= north) & ((south < lat) | (lat == root[1]))).all()


@every_quadtree
def test_points_just_outside_the_root_are_nowhere(tree: Quadtree) -> None:
    west, south, east, north = (edge[0] for edge in tree.bounds(tree.root))
    lon = [np.nextafter(west, -999), np.nextafter(east, 999), west, west]
    lat = [south, south, np.nextafter(south, -99), np.nextafter(north, 99)]
    assert (tree.cell_at({"lon": np.array(lon), "lat": np.array(lat)}, tree.depth) == NOWHERE).all()
