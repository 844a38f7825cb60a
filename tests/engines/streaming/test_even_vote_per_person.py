"""Rows that weigh alike, in words of 64 bits: against arrays of places, cells and numbers, and against memory."""

from collections import Counter

import numpy as np
import pyarrow
import pytest

from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.engines.memory import MemoryTable
from hazemap.engines.streaming import row_buffer
from hazemap.engines.streaming.row_buffer import PackedRowBuffer
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote, Outside

BOX = Box(0.0, 0.0, 1.0, 1.0)
DEEPEST = Quadtree.around(BOX, 12)
"""The deepest quadtree whose base cells leave six bits or more: seven, so an entry is of 128 rows at most."""
MOST = 128


def filled(tree: Tree, places: np.ndarray, cells: np.ndarray) -> PackedRowBuffer:
    made = PackedRowBuffer(tree)
    made.grow(len(cells))
    assert made.append(cells, np.arange(len(cells)), places) == len(cells) == made.size
    return made


def contents(made: PackedRowBuffer) -> Counter[tuple[int, int]]:
    found = Counter[tuple[int, int]]()
    for place, cell, count in zip(*(column.tolist() for column in made.unpacked(0, made.size)), strict=True):
        found[place, cell] += count
    return found


def rows_of(tree: Tree, people: int, number: int, few: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Places and cells of rows, the first and the last cell and `NOWHERE` among them; a third of one person."""
    chance, cells = np.random.default_rng(number), Leaves.at_level(tree, min(tree.depth, 5)).cells
    first, last = tree.span(tree.root)
    some = np.concatenate([tree.span(cells)[0], [first[0], last[-1], NOWHERE]])[-few:]
    places = np.where(chance.random(number) < 1 / 3, people - 1, chance.integers(0, people, number))
    return places, chance.choice(some, number)


@pytest.mark.parametrize("piece", [16, 1 << 18])
@pytest.mark.parametrize(
    ("people", "number", "few"),
    [(1, 0, 0), (1, 300, 0), (3, 1, 0), (600, 5_000, 0), (9, 5_000, 4), (600, 9_000, 3), (200_000, 20_000, 0)],
)
def test_a_packed_row_buffer_is_put_in_order_and_adds_up(people, number, few, piece, monkeypatch):
    """Buckets of a few entries are inserted, others sorted by digits, and those beyond `PIECE` where they stand."""
    monkeypatch.setattr(row_buffer, "PIECE", piece)
    places, cells = rows_of(DEEPEST, people, number, few)
    made = filled(DEEPEST, places, cells)
    wanted = Counter(zip(places.tolist(), cells.tolist(), strict=True))
    assert contents(made) == wanted
    made.arrange(people)
    place, cell, count = made.unpacked(0, made.size)
    order = np.lexsort((cells, places))
    assert place.tolist() == places[order].tolist() and cell.tolist() == cells[order].tolist() and set(count) <= {1}
    made.fold()
    assert contents(made) == wanted
    assert made.size == sum(-(-rows // MOST) for rows in wanted.values())


def test_more_rows_of_a_cell_than_fit_an_entry_are_several_and_stay_few():
    """128 rows an entry: what was folded is folded again with what came since, in whatever order it stands."""
    made, total = PackedRowBuffer(DEEPEST), 0
    cell = DEEPEST.span(DEEPEST.root)[1]
    for more in (127, 1, 1, 128, 400, 3000):
        made.append(np.full(more, cell[0]), np.arange(more), np.full(more, 7))
        total += more
        made.arrange(8)
        made.fold()
        assert made.size == -(-total // MOST) and contents(made) == {(7, int(cell[0])): total}


def test_a_packed_row_buffer_fills_up_keeps_strikes_and_ends_between_people():
    places, cells = rows_of(DEEPEST, 50, 4_000)
    made = PackedRowBuffer(DEEPEST)
    assert made.bytes_each == 8 and made.capacity == 4096
    assert made.append(cells, np.arange(4_000), places) == 4_000
    assert made.append(cells, np.arange(4_000), places) == 96 and made.size == 4096
    assert made.append(cells, np.arange(4_000), places) == 0
    made.arrange(50)
    made.fold()
    wanted = Counter(zip(places.tolist(), cells.tolist(), strict=True))
    wanted.update(zip(places[:96].tolist(), cells[:96].tolist(), strict=True))
    assert contents(made) == wanted
    begin, ends = 0, []
    while begin < made.size:
        begin = made.border(begin, 100)
        ends.append(begin)
    place = made.unpacked(0, made.size)[0]
    assert ends[-1] == made.size and all(place[end - 1] != place[end] for end in ends[:-1])
    kept = np.arange(50) % 3 == 1
    made.keep(kept)
    assert contents(made) == {(place // 3, cell): n for (place, cell), n in wanted.items() if place % 3 == 1}
    rows = np.full(60, 9, dtype=np.uint32)
    made.strike(rows[:12])
    assert rows.tolist() == [0] * 12 + [9] * 48


def test_trees_with_too_many_cells_are_not_packed():
    assert PackedRowBuffer.suits(DEEPEST) and not PackedRowBuffer.suits(Quadtree.around(BOX, 13))
    made = PackedRowBuffer(DEEPEST)
    first, last = (int(end[0]) for end in DEEPEST.span(DEEPEST.root))
    for outside in (first - 1, last + 1):
        with pytest.raises(ValueError, match="outside the span"):
            made.append(np.array([outside], np.uint64), np.array([0]), np.array([0]))


@pytest.mark.parametrize("outside", Outside)
@pytest.mark.parametrize("limit", [1 << 16, 1 << 30])
@pytest.mark.parametrize("depth", [3, 12, 13])
def test_votes_are_those_of_memory_in_one_pass_or_many_packed_or_not(depth, limit, outside):
    """Also where somebody has more rows than micro-votes, and as if each row had the weight 1/1024."""
    chance = np.random.default_rng(4)
    person = np.where(chance.random(20_000) < 0.2, 5, chance.integers(0, 1_500, 20_000))
    lon, lat = chance.normal(0.5, 0.3, (2, 20_000)).round(2)
    tree, rule = Quadtree.around(BOX, depth), OneVote(1000, outside)
    memory = MemoryTable(person, {"lon": lon, "lat": lat}, 3).votes(tree, rule)
    weighed = pyarrow.table({"user": person, "lon": lon, "lat": lat, "w": np.full(20_000, 1 / 1024)})
    for table, weight in ((weighed.drop_columns("w"), None), (weighed, "w")):
        made = open_table(table, value=weight, key=3, memory_limit=limit, threads=2)
        votes = made.votes(tree, rule)
        assert votes.cells.tolist() == memory.cells.tolist() and votes.weights.tolist() == memory.weights.tolist()
        assert (made.report.passes > 1) == (limit < 1 << 30)
