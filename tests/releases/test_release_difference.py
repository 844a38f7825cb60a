"""What changed between two releases: sums of cells that both know, with all of the noise of both."""

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.cellmap import CellMap
from hazemap.cells import Leaves
from hazemap.cli.main import main
from hazemap.errors import InputError
from hazemap.estimate.noise_drift import moved_p, moved_ps
from hazemap.privacy.random_stream import Stream
from hazemap.releases.page.map_payload import difference_payload
from hazemap.releases.release_difference import ReleaseDifference
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BOX, 3)


def table(people, moved=0):
    """Each of them once, around one place; some have moved to another."""
    rng = np.random.default_rng(7)
    lon, lat = rng.normal((13.35, 52.48), 0.03, (people, 2)).T
    lon[:moved] += 0.12
    return pa.table({"user": np.arange(people), "lon": lon, "lat": lat})


def releases(folder, moved=0, people=6_000, seeds=(b"one", b"other"), **more):
    """Two maps of the same people, of whom some have moved in between."""
    asked = {"person": "user", "epsilon": 2, "box": BOX, "ledger": hazemap.Ledger(folder / "ledger.sqlite"), **more}
    streams = [Stream.fixed(seed) if seed else Stream.from_os() for seed in seeds]
    return [
        hazemap.release(table(people, each), dataset="town", stream=stream, **asked)
        for each, stream in zip((0, moved), streams, strict=True)
    ]


def of_cells(release, cells, numbers, tree=TREE):
    """The same release of other cells, each known to ± 1."""
    leaves = Leaves(tree, np.array(cells, dtype=np.uint64))
    counts = CellMap.independent(leaves, np.array(numbers, dtype=float), np.ones(len(cells)), 0.0)
    return hazemap.Release(counts, release.statement, None, ())


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return releases(tmp_path_factory.mktemp("pair"), method="flat:3")


def test_each_cell_is_as_coarse_as_the_coarser_of_the_two_maps_has_it(pair):
    below = TREE.children(TREE.root)
    first, second = TREE.children(below[:1]), TREE.children(below[1:2])
    before = of_cells(pair[0], [*first, *below[1:]], [1, 2, 3, 4, 50, 60, 70])
    after = of_cells(pair[0], [below[0], *second, *below[2:]], [30, 11, 12, 13, 14, 61, 72])
    found = after.since(before)
    assert found.cells.cells.tolist() == below.tolist()
    assert found.difference.tolist() == [20, 0, 1, 2]
    assert np.allclose(found.stddev, [5**0.5, 5**0.5, 2**0.5, 2**0.5])
    low, high = found.interval
    assert (low < found.difference).all() and (low % 1 == 0).all()
    assert np.array_equal(high - found.difference, found.difference - low)
    assert np.array_equal(before.since(after).difference, -found.difference)
    assert found.changed.tolist() == [True, False, False, False]


def test_cells_around_others_and_deeper_trees_are_compared_too(pair):
    deeper = Quadtree.around(BOX, 5)
    below = deeper.children(deeper.root)
    inside = deeper.children(below[:1])
    before = of_cells(pair[0], [*below, inside[2]], [5, 6, 7, 8, 100], deeper)  # the first owns what the last leaves
    after = of_cells(pair[0], TREE.children(TREE.root), [110, 6, 7, 8])
    found = after.since(before)
    assert found.difference.tolist() == [5, 0, 0, 0] and found.cells.tree == deeper


def test_ground_that_one_map_does_not_know_is_left_out(pair):
    below = TREE.children(TREE.root)
    before = of_cells(pair[0], [*below[:2], TREE.children(below[2:3])[0]], [5, 6, 7])
    after = of_cells(pair[0], below, [5, 7, 9, 9])
    assert after.since(before).difference.tolist() == [0, 1]
    with pytest.raises(InputError, match="no ground in common"):
        of_cells(pair[0], below[3:], [1]).since(of_cells(pair[0], below[:1], [1]))
    elsewhere = Quadtree.around(Box(2, 48, 3, 49), 3)
    other = of_cells(pair[0], elsewhere.root, [1], elsewhere)
    with pytest.raises(InputError, match="different ground"):
        other.since(after)


@pytest.mark.parametrize("method", ["flat:3", "auto"])
def test_errors_of_sums_are_those_of_the_maps_own_estimates(tmp_path, method):
    before, after = releases(tmp_path, method=method)
    found = after.since(before)
    for place in np.flatnonzero(found.cells.levels >= 0)[:40]:
        variance = 0.0
        for each in (before, after):
            first, last = (ends[place] for ends in found.cells.spans)
            tree = found.cells.tree
            own = Leaves(tree, each.cells.cells)
            inside = (own.spans[0] >= first) & (own.spans[1] <= last) & each.map.places
            variance += each.estimate(inside.astype(float), "people").stddev ** 2
        assert np.isclose(found.stddev[place], variance**0.5)
    assert np.isclose(found.difference.sum(), after.total().unbiased - before.total().unbiased)


def test_noise_alone_changes_nothing_and_people_who_move_are_seen(tmp_path):
    before, same = releases(tmp_path, method="flat:4")
    _, after = releases(tmp_path, moved=2_000, method="flat:4")
    quiet, loud = same.since(before), after.since(before)
    assert not quiet.changed.any() and "0 of 256 cells" in quiet.summary
    assert loud.changed.any() and not loud.changed.all()
    left, came = loud.difference[loud.changed].min(), loud.difference[loud.changed].max()
    assert left < 0 < came
    assert list(loud.columns()) == ["cell", "difference", "stddev", "low", "high", "chance", "changed"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["flat:4", "auto", "privtree"])
def test_intervals_hold_and_hardly_any_pair_seems_to_have_changed(tmp_path, method):
    held, changed, rounds = [], 0, 12
    for _ in range(rounds):
        before, after = releases(tmp_path, people=4_000, seeds=(None, None), method=method)
        found = after.since(before)
        low, high = found.interval
        held.append(np.mean((low <= 0) & (high >= 0)))
        changed += found.changed.any()
    assert np.mean(held) > 0.9  # 0.95 or more is promised
    assert changed <= 8  # of 12 pairs, each with a chance of 1 in 20 at most: more come less than once in 10⁹


def test_p_values_of_many_are_those_of_each():
    rng = np.random.default_rng(3)
    differences, stddevs = rng.normal(0, 30, 200), rng.uniform(1, 9, 200)
    for kurtosis in (0.0, 3.0):
        found = moved_ps(differences, stddevs, kurtosis)
        assert found.tolist() == [moved_p(*each, kurtosis) for each in zip(differences, stddevs, strict=True)]
        assert (moved_ps(differences, stddevs, kurtosis, lambda _: 5.0) >= found).all()


def test_a_page_is_told_every_difference_and_the_command_writes_it(tmp_path, pair, capsys):
    found = pair[1].since(pair[0])
    data = difference_payload(found)
    assert data["kind"] == "difference" and data["before"]["line"] == pair[0].statement.line()
    assert data["difference"]["length"] == data["changed"]["length"] == found.cells.size
    files = [tmp_path / f"{name}.parquet" for name in "ab"]
    for file, release in zip(files, pair, strict=True):
        release.save(file)
    words = ["show", str(files[1]), "--since", str(files[0]), "-o", str(tmp_path / "change.html")]
    code = main(words)
    said = capsys.readouterr()
    if "make studio" in said.err:
        pytest.skip("the page was not built")
    assert code == 0 and "64 cells changed by more than noise explains" in said.out
    assert main([*words[:-1], str(tmp_path / "change.png")]) == 2
    assert isinstance(found, ReleaseDifference)
