"""Hexagons: bit arithmetic against the H3 library, the roots against random points, areas and outlines.

Outlines are cut at the antimeridian and around the poles.
"""

import h3
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Cells, Leaves
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import REACH, Hexagons, cut_at_antimeridian

PENTAGON = Box(10.0, 64.4, 11.0, 65.0)
GLOBE = Hexagons(Box(-180, -90, 180, 90), 0, 15)
places = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
quick = settings(max_examples=100, deadline=None)


def ints(names: list[str]) -> list[int]:
    return sorted(int(name, 16) for name in names)


def cell(lon: float, lat: float, resolution: int) -> Cells:
    return GLOBE.cell_at({"lon": np.array([lon]), "lat": np.array([lat])}, resolution)


@given(places)
@quick
def test_the_finest_cell_is_h3s_and_the_others_are_its_ancestors(place: tuple[float, float]) -> None:
    lon, lat = place
    finest = h3.latlng_to_cell(lat, lon, 15)
    for resolution in range(16):
        assert GLOBE.names(cell(lon, lat, resolution)) == [h3.cell_to_parent(finest, resolution)]


@given(places, st.integers(0, 14))
@quick
def test_children_parents_and_levels_are_h3s(place: tuple[float, float], resolution: int) -> None:
    for found in (cell(*place, resolution), GLOBE.named(h3.get_pentagons(resolution))):
        names = GLOBE.names(found)
        assert GLOBE.children(found).tolist() == [child for name in names for child in ints(h3.cell_to_children(name))]
        assert GLOBE.level(found).tolist() == [h3.get_resolution(name) for name in names]
        if resolution:
            assert GLOBE.names(GLOBE.parent(found)) == [h3.cell_to_parent(name) for name in names]


@pytest.mark.parametrize("other", [lambda cell: cell - 1, lambda cell: cell | 1 << 56, lambda cell: cell & ~(1 << 59)])
def test_a_number_that_is_written_in_another_way_than_a_cell_is_none_of_a_tree(other):
    """Else it would stand for that cell, twice in a list and of no area."""
    tree = Hexagons(Box(13.2, 52.4, 13.6, 52.6), coarsest=6, finest=8)
    for cells in (tree.root, tree.children(tree.root)):
        numbers = np.array([other(cell) for cell in cells.tolist()], dtype=np.uint64)
        assert (tree.level(cells) >= 0).all() and (tree.level(numbers) == -1).all()
        with pytest.raises(InputError, match="cells of other levels"):
            Leaves(tree, numbers[:1])


@given(places, st.integers(0, 11), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_a_span_runs_from_the_first_to_the_last_descendant(
    place: tuple[float, float], resolution: int, levels: int
) -> None:
    tree = Hexagons(GLOBE.box, 0, resolution + levels)
    cells = tree.named([h3.latlng_to_cell(place[1], place[0], resolution), h3.get_pentagons(resolution)[0]])
    descendants = [ints(h3.cell_to_children(name, resolution + levels)) for name in tree.names(cells)]
    first, last = tree.span(cells)
    for i, family in enumerate(descendants):
        beside = np.array([family[0], family[-1]], dtype=np.uint64)
        assert first[i] == tree.span(beside)[0][0]
        assert last[i] == tree.span(beside)[1][1]
    assert tree.span(tree.root)[0][0] > 0


@pytest.mark.parametrize(
    ("box", "coarsest"),
    [
        (Box(-74.05, 40.68, -73.90, 40.80), 9),
        (Box(-74.0, 40.7, -73.9999, 40.7001), 12),
        (PENTAGON, 5),
        (Box(-180, 80, 180, 90), 3),
        (Box(-180, -90, -170, -80), 2),
        (Box(179.9, -17, 180, -16.9), 7),
        (Box(-180, -0.001, 180, 0.001), 3),
        (Box(0, 0, 1e-7, 1e-7), 15),
    ],
)
def test_every_point_of_the_box_has_a_root_and_few_roots_are_idle(box: Box, coarsest: int) -> None:
    tree = Hexagons(box, coarsest, min(coarsest + 4, 15))
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(box.west, box.east, 200_000), rng.uniform(box.south, box.north, 200_000)
    lon[:20_000], lat[10_000:30_000] = (
        rng.choice([box.west, box.east], 20_000),
        rng.choice([box.south, box.north], 20_000),
    )
    found = tree.cell_at({"lon": lon, "lat": lat}, 0)
    assert (found != NOWHERE).all()
    used = len(np.unique(found))
    assert len(tree.root) <= used + 12 + 6 * used**0.5


def test_no_descendant_is_further_from_the_centre_than_the_reach() -> None:
    """The reach that finds the roots, measured: corners of great-grandchildren of cells all over the globe."""
    rng = np.random.default_rng(2)
    for resolution in (0, 1, 2, 5, 9, 12):
        roots = GLOBE.cell_at(
            {"lon": rng.uniform(-180, 180, 60), "lat": np.degrees(np.arcsin(rng.uniform(-1, 1, 60)))}, resolution
        )
        for name in [*GLOBE.names(np.unique(roots)), *h3.get_pentagons(resolution)]:
            descendants = np.array(ints(h3.cell_to_children(name, resolution + 3)), dtype=np.uint64)
            corners = np.array([corner for d in descendants[::3] for corner in h3.cell_to_boundary(h3.int_to_str(d))])
            lat, lon = h3.cell_to_latlng(name)
            distance = Box(lon - 1e-13, lat - 1e-13, lon, lat).distance(corners[:, 1], corners[:, 0])
            assert distance.max() < 0.97 * REACH / 7 ** (resolution / 2)


def test_the_spans_of_a_pentagons_children_leave_no_number_out() -> None:
    for finest in (1, 4, 8, 15):
        tree = Hexagons(GLOBE.box, 0, finest)
        for resolution in range(finest):
            for name in h3.get_pentagons(resolution):
                pentagon = tree.named([name])
                first, last = tree.span(tree.children(pentagon))
                assert len(first) == 6
                assert np.array_equal(last[:-1] + np.uint64(1), first[1:])
                assert ([first[0]], [last[-1]]) == tree.span(pentagon)


def test_points_far_from_the_box_are_nowhere() -> None:
    tree = Hexagons(Box(2.2, 48.8, 2.5, 48.9), 6, 8)
    far = {"lon": np.array([2.35, 2.35, 4.0, -177.65]), "lat": np.array([48.85, 49.9, 48.85, -48.85])}
    assert (tree.cell_at(far, 2) == NOWHERE).tolist() == [False, True, True, True]


def test_the_whole_globe_has_122_roots() -> None:
    assert GLOBE.root.tolist() == ints(h3.get_res0_cells())
    assert len(Hexagons(WORLD, 1, 2).root) == 842


def test_large_inputs_are_cut_in_chunks_that_do_not_show() -> None:
    rng = np.random.default_rng(3)
    tree = Hexagons(WORLD, 0, 6)
    columns = {"lon": rng.uniform(-181, 180, 600_001), "lat": rng.uniform(-90, 90, 600_001)}
    columns["lat"][::1000] = np.nan
    cells = tree.cell_at(columns, 5)
    for rows in (slice(0, 5000), slice(262_000, 263_000), slice(599_990, None)):
        assert np.array_equal(cells[rows], tree.cell_at({k: v[rows] for k, v in columns.items()}, 5))


def test_areas_are_those_of_h3() -> None:
    rng = np.random.default_rng(4)
    for resolution in (0, 3, 8, 15):
        cells = GLOBE.cell_at({"lon": rng.uniform(-180, 180, 5), "lat": rng.uniform(-80, 80, 5)}, resolution)
        expected = [h3.cell_area(name, "m^2") for name in GLOBE.names(cells)]
        np.testing.assert_allclose(GLOBE.area(cells), expected, rtol=1e-6)


def test_outlines_are_those_of_h3_and_hold_nearly_all_points() -> None:
    tree = Hexagons(PENTAGON, 3, 7)
    rng = np.random.default_rng(5)
    lon, lat = rng.uniform(10, 11, 2000), rng.uniform(64.4, 65, 2000)
    finest = tree.cell_at({"lon": lon, "lat": lat}, tree.depth)
    holds = shapely.contains(tree.outlines(finest), shapely.points(lon, lat))
    assert holds.mean() > 0.999  # the edges of H3 are arcs, those of the outline straight on the map
    boundary = [corner[::-1] for corner in h3.cell_to_boundary(tree.names(finest[:1])[0])]
    assert tree.outlines(finest[:1])[0].equals_exact(shapely.Polygon(boundary), 1e-9)


def test_outlines_of_a_resolution_cover_the_globe_once() -> None:
    for resolution in (0, 1, 2):
        tree = Hexagons(GLOBE.box, resolution, resolution)
        outlines = tree.outlines(tree.root)
        assert shapely.is_valid(outlines).all()
        assert shapely.area(outlines).sum() == pytest.approx(360 * 180, rel=1e-6)
        together = shapely.union_all(outlines)
        assert shapely.area(together) == pytest.approx(360 * 180, rel=1e-6)


def test_impossible_resolutions_and_too_many_roots_are_refused() -> None:
    for coarsest, finest in ((-1, 3), (5, 4), (3, 16)):
        with pytest.raises(InputError, match=f"found {coarsest} and {finest}"):
            Hexagons(WORLD, coarsest, finest)
    with pytest.raises(InputError, match="start from resolution 4 or coarser"):
        Hexagons(WORLD, 5, 9)
    with pytest.raises(InputError, match="start from resolution"):
        Hexagons(Box(-180, 0, 180, 1e-9), 15, 15)  # no area, but long
    assert len(Hexagons(WORLD, 4, 9).root) < 300_000


def test_names_of_other_resolutions_places_or_kinds_are_refused() -> None:
    tree = Hexagons(Box(2.2, 48.8, 2.5, 48.9), 6, 8)
    good = h3.latlng_to_cell(48.85, 2.35, 7)
    assert tree.names(tree.named([good])) == [good]
    elsewhere = h3.latlng_to_cell(-48.85, 2.35, 7)
    edge = h3.origin_to_directed_edges(good)[0]
    for wrong in (h3.cell_to_parent(good, 5), h3.cell_to_center_child(good, 9), elsewhere, edge):
        with pytest.raises(InputError, match=f"found '{wrong}'"):
            tree.named([good, wrong])
    for wrong in (good.upper(), "0x" + good, good + "\n", good[:-1]):
        with pytest.raises(InputError, match="15 lower-case hexadecimal digits"):
            tree.named([wrong])


def test_neighbours_are_the_ring_around():
    tree = Hexagons(Box(2.2, 48.8, 2.5, 48.9), coarsest=5, finest=8)
    for level in range(4):
        cells = Leaves.at_level(tree, level).cells
        inside = set(cells.tolist())
        for cell, around in zip(cells.tolist(), tree.neighbours(cells).tolist(), strict=True):
            ring = {h3.str_to_int(name) for name in h3.grid_disk(h3.int_to_str(cell), 1)} - {cell}
            assert set(around) - {0} == ring & inside
            assert around.count(0) == 6 - len(ring & inside)


def test_a_pentagon_has_five_neighbours():
    tree = Hexagons(WORLD, coarsest=0, finest=2)
    pentagon = np.array([h3.str_to_int(name) for name in h3.get_pentagons(2)], dtype=np.uint64)
    assert ((tree.neighbours(pentagon) != NOWHERE).sum(axis=1) == 5).all()


def test_a_polygon_away_from_the_antimeridian_stays_as_it_is() -> None:
    polygons = shapely.box([-180, 0], [0, 0], [-1, 170], [10, 10])
    assert (cut_at_antimeridian(polygons) == polygons).all()


def test_a_ring_across_the_antimeridian_becomes_two_parts() -> None:
    ring = shapely.Polygon([(179, 0), (-179, 0), (-179, 1), (179, 1)])
    (whole,) = cut_at_antimeridian(np.array([ring]))
    assert whole.equals(shapely.MultiPolygon([shapely.box(179, 0, 180, 1), shapely.box(-180, 0, -179, 1)]))


def test_a_ring_around_a_pole_holds_the_pole() -> None:
    for lat, pole in ((80, 90), (-70, -90)):
        for turn in (1, -1):
            ring = shapely.Polygon([(turn * lon, lat) for lon in (10, 100, -170, -80)])
            (whole,) = cut_at_antimeridian(np.array([ring]))
            assert whole.equals(shapely.box(-180, min(lat, pole), 180, max(lat, pole)))
