"""Small tables of made-up people for the tests of this folder and of the laws."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from hazemap.cells import Tree
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.memory import MemoryTable
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson
from hazemap.tables.votes import Votes

BOX = Box(13.0, 52.3, 13.8, 52.7)
QUADTREE = Quadtree.around(BOX, 3)
DEEP = Quadtree.around(BOX, 20)
HEXAGONS = Hexagons(BOX, 4, 6)
TREES = [QUADTREE, HEXAGONS]

PERSONAL = [
    *(rule(k, outside) for rule in (AtMostRows, AtMostCells) for k in (1, 3) for outside in Outside),
    *(OneVote(scale, outside) for scale in (1, 5, 1024) for outside in Outside),
]
RULES = [*PERSONAL, RowIsPerson(), *(RowIsPerson(outside) for outside in (Outside.PEOPLE, Outside.COUNT))]

IDS = [0, 1, 2, -1, 2**63 - 1, -(2**63)]
PLACES = [
    *((lon, lat) for lon in (13.05, 13.3, 13.31, 13.75) for lat in (52.35, 52.5, 52.65)),
    (13.0, 52.3),
    (-20.0, 10.0),
    (float("nan"), 52.5),
    (13.3, 95.0),
    (400.0, float("inf")),
]
WEIGHTS = [1.0, 0.0, 0.001, 3.5, 1e12, 1e300, -2.0, float("nan"), float("inf")]

rows = st.tuples(st.sampled_from(IDS), st.sampled_from(PLACES), st.sampled_from(WEIGHTS))
keys = st.one_of(st.integers(), st.binary(max_size=20))


@st.composite
def tables(draw: st.DrawFn, most: int = 12, weighted: bool | None = None) -> MemoryTable:
    chosen = draw(st.lists(rows, max_size=most))
    with_weights = draw(st.booleans()) if weighted is None else weighted
    return table(chosen, draw(keys), with_weights)


def table(chosen: list, key: int | bytes = 0, weighted: bool = True) -> MemoryTable:
    person = np.array([who for who, _, _ in chosen], dtype=np.int64)
    lon, lat = (np.array([place[i] for _, place, _ in chosen], dtype=np.float64) for i in (0, 1))
    columns = {"lon": lon, "lat": lat}
    if weighted:
        columns["weight"] = np.array([weight for _, _, weight in chosen], dtype=np.float64)
    return MemoryTable(person, columns, key)


def without(whole: MemoryTable, person: int) -> MemoryTable:
    others = whole.person != person
    return MemoryTable(whole.person[others], {n: c[others] for n, c in whole.columns.items()}, whole.key)


def arrow(memory: MemoryTable) -> pa.Table:
    return pa.table({"user": memory.person, **memory.columns})


def engine(memory: MemoryTable, **options) -> EngineTable:
    """The same rows in an engine."""
    value = "weight" if "weight" in memory.columns else None
    return open_table(arrow(memory), key=memory.key, value=value, **options)


def crowd(people: int, count: int, seed: int = 5, key: int | bytes = 11) -> MemoryTable:
    """Rows of people with heavy tails, a third of them in few places, some nowhere."""
    rng = np.random.default_rng(seed)
    person = (people * rng.random(count) ** 3).astype(np.int64) * 7919 - 2**40
    lon, lat = rng.uniform(12.9, 13.9, count), rng.uniform(52.25, 52.75, count)
    often = rng.random(count) < 0.3
    lon[often], lat[often] = 13.3 + person[often] % 5 * 0.05, 52.5
    lon[rng.random(count) < 0.02] = np.nan
    weight = rng.gamma(0.3, 2.0, count)
    return MemoryTable(person, {"lon": lon, "lat": lat, "weight": weight}, key)


def same(one: Votes, other: Votes) -> bool:
    return np.array_equal(one.cells, other.cells) and np.array_equal(one.weights, other.weights)


def minus(one: Votes, other: Votes) -> Votes:
    cells, weights = np.concatenate([one.cells, other.cells]), np.concatenate([one.weights, -other.weights])
    return Votes.gathered(cells, weights)


def coarser(votes: Votes, tree: Tree) -> Votes:
    """The same votes one level up; `NOWHERE` stays what it is."""
    cells = votes.cells.copy()
    somewhere = cells != 0
    cells[somewhere] = tree.parent(cells[somewhere])
    return Votes.gathered(cells, votes.weights)
