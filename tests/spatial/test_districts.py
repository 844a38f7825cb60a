"""Districts from files and frames: who belongs to whom, what is left over, what is refused."""

import geopandas
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import FileError, InputError
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts

Named = dict[str, BaseGeometry]


def layer(shapes: Named, crs: str | None = "EPSG:4326", **columns: list) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame({"name": list(shapes), **columns}, geometry=list(shapes.values()), crs=crs)


STATES: Named = {"West": shapely.box(0, 0, 2, 2), "East": shapely.box(2, 0, 4, 2), "Far": shapely.box(9, 0, 10, 1)}
COUNTIES: Named = {
    "North": shapely.box(0, 1, 2, 2),
    "South": shapely.box(0, 0, 2, 1),
    "Harbour": shapely.box(2.5, 0.5, 3.5, 1.5),
}
CITIES: Named = {"Town": shapely.box(0.25, 0.25, 0.75, 0.75), "Port": shapely.box(2.5, 0.5, 3, 1)}


@pytest.fixture(scope="module")
def tree() -> Districts:
    return Districts.of(layer(STATES), layer(COUNTIES), layer(CITIES))


def at(tree: Districts, *places: tuple[float, float]) -> list[str]:
    lon, lat = np.array(places, dtype=float).T
    cells = tree.cell_at({"lon": lon, "lat": lat}, tree.depth)
    return [tree.names(np.array([cell]))[0] if cell != NOWHERE else "nowhere" for cell in cells]


@pytest.mark.slow
def test_what_children_do_not_cover_is_unincorporated(tree):
    found = at(tree, (0.5, 0.5), (0.5, 0.1), (2.7, 0.7), (3.2, 1.2), (2.1, 0.1), (9.5, 0.5), (5, 5))
    assert found == [
        "West > South > Town",
        "West > South > unincorporated",
        "East > Harbour > Port",
        "East > Harbour > unincorporated",
        "East > unincorporated > unincorporated",
        "Far > unincorporated > unincorporated",
        "nowhere",
    ]


def test_children_that_cover_their_parent_leave_nothing_over(tree):
    west = tree.named(["West"])
    assert tree.names(tree.children(west)) == ["West > North", "West > South"]


def test_districts_without_children_have_an_only_child(tree):
    far = tree.named(["Far"])
    assert tree.names(tree.children(tree.children(far))) == ["Far > unincorporated > unincorporated"]
    assert tree.depth == 3
    assert tree.sizes.tolist() == [1, 3, 5, 7]


def test_the_areas_of_children_sum_to_that_of_their_parent(tree):
    for level in range(tree.depth):
        for cell in Leaves.at_level(tree, level).cells:
            inside = tree.area(tree.children(np.array([cell])))
            assert (inside > 0).all()
            assert inside.sum() == pytest.approx(tree.area(np.array([cell]))[0], rel=1e-12)


def test_the_finer_file_is_right_where_two_draw_a_border_differently():
    states = layer({"A": shapely.box(0, 0, 2, 1), "B": shapely.box(2, 0, 4, 1)})
    counties = layer({"a": shapely.box(0, 0, 2.1, 1), "b": shapely.box(2.1, 0, 4, 1)}, of=["A", "B"])
    tree = Districts.of(states, DistrictLayer(counties, parent="of"))
    assert at(tree, (2.05, 0.5), (1.95, 0.5), (2.15, 0.5)) == ["A > a", "A > a", "B > b"]
    assert tree.sizes.tolist() == [1, 2, 2]


def test_parents_may_be_named_by_any_column_of_the_coarser_file():
    states = layer({"A": shapely.box(0, 0, 2, 1), "B": shapely.box(2, 0, 4, 1)}, code=[7.0, 8.0])
    counties = layer({"x": shapely.box(0, 0, 1, 1), "y": shapely.box(3, 0, 4, 1)}, state=[8, 7])
    tree = Districts.of(states, DistrictLayer(counties, parent="state"))
    assert at(tree, (0.5, 0.5), (3.5, 0.5)) == ["B > x", "A > y"]


def test_names_of_two_columns_tell_apart_what_is_called_the_same():
    towns = layer({"Lee": shapely.box(0, 0, 1, 1)}, kind=["city"])
    both = geopandas.pd.concat([towns, layer({"Lee": shapely.box(1, 0, 2, 1)}, kind=["County"])])
    tree = Districts.of(DistrictLayer(both, name="name+kind"))
    assert tree.names(tree.finest) == ["Lee city", "Lee County"]
    with pytest.raises(InputError, match=r"no column 'name\+colour'"):
        Districts.of(DistrictLayer(both, name="name+colour"))
    with pytest.raises(InputError, match="join two columns"):
        Districts.of(DistrictLayer(both))


def test_a_shared_border_belongs_to_the_first_district_in_the_order(tree):
    assert at(tree, (1.0, 1.0), (2.0, 0.5)) == ["West > North > unincorporated", "West > South > unincorporated"]
    assert at(tree, (2.5, 0.5), (0.25, 0.5)) == ["East > Harbour > Port", "West > South > Town"]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_outlines_are_disjoint_and_hold_the_points_of_their_district(tree, seed):
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform([[-1], [-1]], [[11], [3]], (2, 100))
    for level in range(tree.depth + 1):
        cells = tree.cell_at({"lon": lon, "lat": lat}, level)
        every = Leaves.at_level(tree, level).cells
        outlines = tree.outlines(every)
        held = np.array([shapely.contains_xy(shape, lon, lat) for shape in outlines])
        assert (held.sum(axis=0) == (cells != NOWHERE)).all()
        assert np.array_equal(every[held.argmax(axis=0)][cells != NOWHERE], cells[cells != NOWHERE])


def test_a_misspelt_name_is_answered_with_the_nearest_one(tree):
    with pytest.raises(InputError, match=r"found 'West > Sout': perhaps 'West > South'\?"):
        tree.named(["West > Sout"])


def test_numbers_that_are_no_districts_are_known_as_such(tree):
    numbers = np.array([0, 1, 2 << 44, (2 << 44) | 2, 99 << 44 | 1, 2**64 - 1], dtype=np.uint64)
    assert (tree.level(numbers) == -1).all()
    with pytest.raises(InputError, match="not districts of this tree"):
        tree.names(numbers)


def test_files_of_any_kind_and_coordinates_become_the_same_districts(tree, tmp_path):
    plain = Districts.of(layer(STATES))
    layer(STATES).to_file(tmp_path / "states.geojson")
    layer(STATES).to_crs("EPSG:3857").to_file(tmp_path / "states.gpkg")
    assert Districts.of(tmp_path / "states.geojson") == plain
    assert hash(Districts.of(str(tmp_path / "states.geojson"))) == hash(plain)
    other = Districts.of(tmp_path / "states.gpkg")
    assert other.labels == plain.labels
    np.testing.assert_allclose(other.area(other.root), plain.area(plain.root), rtol=1e-9)


def test_the_root_is_called_as_somebody_wants():
    tree = Districts.of(layer(STATES), whole="Utopia")
    assert tree.names(tree.root) == ["Utopia"]
    assert tree != Districts.of(layer(STATES))


def test_polygons_across_the_antimeridian_are_cut_there():
    islands = {"Atoll": shapely.box(-185, 0, -175, 5), "Reef": shapely.box(170, 10, 190, 11)}
    tree = Districts.of(layer(islands))
    assert at(tree, (-179, 1), (179, 1), (-172, 10.5), (175, 10.5), (171, 1)) == [
        "Atoll",
        "Atoll",
        "Reef",
        "Reef",
        "nowhere",
    ]
    bounds = shapely.bounds(tree.outlines(tree.children(tree.root)))
    assert (np.abs(bounds[:, [0, 2]]) <= 180).all()


def test_rings_that_hardly_cross_themselves_are_mended_and_others_refused():
    touching = shapely.Polygon([(0, 0), (2, 0), (2, 2), (1, 0), (0, 2)])
    tree = Districts.of(layer({"Twins": touching}))
    assert shapely.is_valid(tree.outlines(tree.root)).all()
    bowtie = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])
    with pytest.raises(InputError, match=r"the border of 'Bow' in a table of districts crosses itself .*: mend it"):
        Districts.of(layer({"Bow": bowtie}))


BOX = shapely.box(0, 0, 1, 1)
REFUSED = {
    "overlap": ([layer({"A": BOX, "B": shapely.box(0.5, 0, 2, 1)})], "'A' and 'B' share 50 % of the smaller one"),
    "twice": ([layer({"A": BOX, "B": BOX})], "'A' and 'B' share 100 %"),
    "same name": (
        [geopandas.GeoDataFrame({"name": ["A", "A"]}, geometry=[BOX, shapely.box(5, 5, 6, 6)], crs="EPSG:4326")],
        "two districts are called 'A'",
    ),
    "empty": ([layer({})], "contains no districts"),
    "nothing": ([], "districts need at least one layer of polygons; found none"),
    "point": ([layer({"A": shapely.Point(1, 1)})], "a district must be a polygon; in .*, 'A' is Point"),
    "no shape": ([layer({"A": shapely.Polygon()})], "'A' is nothing"),
    "metres": ([layer({"A": shapely.box(0, 0, 4e5, 5e6)}, crs=None)], "has no CRS.*give it its CRS"),
    "poles": ([layer({"A": shapely.box(0, 80, 1, 95)})], "'A' in .* lies beyond ±90"),
    "no name": ([layer({"": BOX})], "every district needs a name.*that of row 1 is empty"),
    "arrow": ([layer({"A > B": BOX})], "without '>'; found 'A > B'"),
    "column": ([DistrictLayer(layer({"A": BOX}), name="title")], "has no column 'title'; found name"),
    "names": ([layer({"A": BOX}, long_name=["a"]).drop(columns="name").assign(short_name="x")], "which column"),
    "parents": (
        [layer({"A": BOX}), DistrictLayer(layer({"a": BOX}), parent="of")],
        "no column 'of' of parents; found name",
    ),
    "orphan": (
        [layer({"A": BOX}), DistrictLayer(layer({"a": BOX}, of=["B"]), parent="of")],
        "the parent of 'a' in .* is 'B', but no column",
    ),
    "astray": (
        [layer({"A": BOX}), layer({"a": shapely.box(0.75, 0, 1.75, 1)}, of=["A"])],
        r"'a' in .* lies with only 25 % of its area in any one .* \(it may be 'of'\)",
    ),
    "swallowed": (
        [layer({"A": BOX, "B": shapely.box(1, 0, 4, 1)}), layer({"b": shapely.box(0, 0, 4, 1)})],
        "'A' in .* has no district in it, and districts of other parents fill it",
    ),
    "a number": ([7], "a file or a GeoDataFrame; found a int"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_districts_is_refused_with_a_reason(case):
    layers, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        Districts.of(*layers)


def test_files_that_are_missing_or_foreign_are_refused(tmp_path):
    with pytest.raises(FileError, match="there is no file of districts"):
        Districts.of(tmp_path / "states.geojson")
    (tmp_path / "states.geojson").write_text("{")
    with pytest.raises(FileError, match="could not be read as districts"):
        Districts.of(tmp_path / "states.geojson")
    (tmp_path / "states.csv").write_text("name\nA\n")
    with pytest.raises(FileError, match=r"ends in none of \.geojson"):
        Districts.of(tmp_path / "states.csv")


def test_impossible_trees_are_refused(tree):
    levels = np.array(tree.levels)
    with pytest.raises(InputError, match="each district must stand before those inside it"):
        Districts(tree.labels, levels[::-1], tree.shapes)
    with pytest.raises(InputError, match="with a name, a level and a polygon"):
        Districts(tree.labels[1:], levels[1:], tree.shapes)
    for place in (-1, 3):  # the only child of the only child of Far; the only child of North
        other = levels.copy()
        other[place] -= 1
        with pytest.raises(InputError, match="each district must stand before those inside it, and all"):
            Districts(tree.labels, other, tree.shapes)
    with pytest.raises(InputError, match="damaged"):
        Districts(tree.labels, levels, tree.shapes[:-9])
