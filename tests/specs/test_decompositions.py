"""Methods that only a curator can answer, from a table to a file, a picture and answers; and among devices."""

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap import draw
from hazemap.algorithms import PrivTree
from hazemap.errors import InputError
from hazemap.lab.methods import KDTree
from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.specs.method_from_name import among_devices, method_from_name
from hazemap.specs.parsing import HexagonCells, QuadtreeCells
from hazemap.tables.contribution_bounding import AtMostRows

PARIS, LEFT_BANK = Box(2.2, 48.8, 2.5, 48.9), Box(2.3, 48.83, 2.36, 48.85)
NAMES = ("kd-tree", "kd-tree-uniform", "kd-hybrid", "privtree")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    lon, lat = rng.normal(2.35, 0.03, 20_000), rng.normal(48.85, 0.01, 20_000)
    return pa.table({"user": np.arange(20_000), "lon": np.clip(lon, 2.21, 2.49), "lat": np.clip(lat, 48.81, 48.89)})


SLOW = [("kd-tree-uniform", PARIS), ("kd-hybrid", PARIS), ("kd-tree", None), ("privtree", None)]


@pytest.mark.parametrize(
    ("name", "box"),
    [("kd-tree", PARIS), ("privtree", PARIS), *(pytest.param(*one, marks=pytest.mark.slow) for one in SLOW)],
    ids=str,
)
def test_a_method_by_its_name_gives_a_file_a_picture_and_answers(name, box, people, tmp_path):
    path, ledger = tmp_path / "map.parquet", Ledger(tmp_path / "ledger.sqlite")
    made = hazemap.release(people, person="user", epsilon=2, box=box, method=name, ledger=ledger, output=path)
    stored = Release.open(path)
    lon, lat = (people[column].to_numpy() for column in ("lon", "lat"))
    exact = ((lon > 2.3) & (lon < 2.36) & (lat > 48.83) & (lat < 48.85)).sum()
    found = stored.count(LEFT_BANK)
    assert found == made.count(LEFT_BANK) and found.unbiased == pytest.approx(exact, rel=0.3)
    assert stored.algorithm == made.algorithm and stored.total().unbiased == pytest.approx(20_000, abs=500)
    stored.plot().savefig(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 5_000 and draw.draw_map(stored.map)
    charged = stored.statement.charged
    assert ("where the cells are cut, chosen by permute-and-flip" in charged) == name.startswith("kd")
    assert ("the number of people" in charged) == name.startswith("kd")
    assert "how fine the cells are" in charged


def test_names_give_the_kinds():
    made = [method_from_name(name, QuadtreeCells(None), PARIS, AtMostRows(1)) for name in NAMES]
    assert [type(method) for method in made] == [KDTree, KDTree, KDTree, PrivTree]
    assert [method.growth > 0 for method in made[:3]] == [True, False, True] and made[2].below > 0


def test_a_privtree_grows_of_hexagons_and_a_kd_tree_does_not():
    assert isinstance(method_from_name("privtree", HexagonCells(7, 10), PARIS, AtMostRows(1)).tree, Hexagons)
    with pytest.raises(InputError, match="squares of a quadtree only"):
        method_from_name("kd-tree", HexagonCells(7, 10), PARIS, AtMostRows(1))


@pytest.mark.parametrize("box", [PARIS, None], ids=["a box", "none"])
@pytest.mark.parametrize("name", NAMES)
def test_devices_cannot_be_asked_for_them(name, box):
    with pytest.raises(InputError, match="who sees all rows"):
        among_devices(method_from_name(name, QuadtreeCells(None), box, AtMostRows(1)), 3_000)
