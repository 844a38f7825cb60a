"""Votes divided in machine code, where numbers come near the end of 64 bits: against Python's integers."""

from itertools import accumulate, pairwise

import numpy as np
import pytest

from hazemap.engines.memory import MemoryTable
from hazemap.engines.streaming.cell_counter import SparseCellCounter
from hazemap.engines.streaming.keyed_hash import number
from hazemap.engines.streaming.one_vote_per_person import OneVotePerPerson
from hazemap.engines.streaming.row_buffer import RowBuffer
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import LARGEST_TOTAL, OneVote, whole_weights

MOST = 1 << 53
"""The largest weight of a row."""


def piled(people: list[list[int]]) -> RowBuffer:
    """Rows of people with these weights, each in a cell of its own, from cell 1 on."""
    rows = [(who, at + 1, weight) for who, weights in enumerate(people) for at, weight in enumerate(weights)]
    row_buffer = RowBuffer()
    row_buffer.size = len(rows)
    row_buffer.place, row_buffer.word, row_buffer.value = (
        np.array(column, dtype=kind)
        for column, kind in zip(zip(*rows, strict=True), (np.uint32, np.uint64, np.uint64), strict=True)
    )
    return row_buffer


def divided(weights: list[int], scale: int, drawn: int) -> list[int]:
    """By the definition: with cumulative weights that end at 2⁶² − 1, marks ⌊(S·C + u)/W⌋."""
    until = [min(total, 2**62 - 1) for total in accumulate(weights)]
    start = drawn * until[-1] >> 64
    return [b - a for a, b in pairwise([0, *((scale * total + start) // until[-1] for total in until)])]


PEOPLE = {
    "little": [[1], [1, 2, 3], [1024] * 5],
    "just below where products still fit": [[2**45, 2**45 - 1], [2**46 - 1], [1, 2**46 - 3, 1]],
    "just above": [[2**46], [2**45, 2**45], [2**46 - 1, 1], [2**46 - 1, 1, 1]],
    "from here on products do not fit": [[2**48, 2**48 - 1], [2**49, 3], [2**50 - 2, 1]],
    "products do not fit": [[2**50, 1], [2**50 - 1, 2**50], [3, 2**49, 2**51]],
    "the largest weights": [[MOST] * 3, [MOST, 1, MOST], [MOST - 1, 7] * 4],
    "more than there is room for": [[MOST] * 511, [MOST] * 512, [MOST] * 513, [MOST] * 1500, [1, *[MOST] * 600, 1]],
    "nearly all of it": [[2**62 - 2, 1], [2**62 - 1], [2**61, 2**61 - 1], [2**61, 2**61], [2**62 - 1, 2**62 - 1, 5]],
}


@pytest.mark.parametrize("scale", [1, 3, 1000, 1 << 16])
@pytest.mark.parametrize("weights", PEOPLE)
def test_a_vote_is_divided_as_exact_integers_divide_it_whatever_the_weights(weights, scale):
    people, seeds = PEOPLE[weights], np.arange(9, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    row_buffer, tally = piled(people), SparseCellCounter()
    OneVotePerPerson(scale).count(row_buffer, seeds, tally)
    cells: dict[int, int] = {}
    for who, own in enumerate(people):
        parts = divided(own, scale, int(number(seeds[who], np.uint64(0))))
        assert sum(parts) == scale and min(parts) >= 0
        for cell, part in enumerate(parts, 1):
            cells[cell] = cells.get(cell, 0) + part
    found = tally.votes()
    assert dict(zip(found.cells.tolist(), found.weights.tolist(), strict=True)) == {c: n for c, n in cells.items() if n}


def test_rows_of_one_cell_are_added_up_to_the_end_of_what_there_is_room_for():
    """Four rows of 2⁶¹ in a cell would be 2⁶³, which is no weight: they are 2⁶² − 1, as one."""
    row_buffer = piled([[2**61] * 4, [2**61, 2**61 - 2], [5, 6]])
    row_buffer.word[:] = 7
    OneVotePerPerson(1).fold(row_buffer)
    assert row_buffer.size == 3
    assert row_buffer.value[:3].tolist() == [2**62 - 1, 2**62 - 2, 11] == [LARGEST_TOTAL, LARGEST_TOTAL - 1, 11]


def test_fault_12_somebody_with_extreme_weights_has_one_vote_in_memory_too():
    weights = np.array([1e300, 8.0e12, 2.0**43, 1e-9, 3.0] * 400)
    lon = np.tile([-50.0, 50.0, -50.0, 50.0, 50.0], 400)
    rows = MemoryTable(np.zeros(2000, dtype=int), {"lon": lon, "lat": np.full(2000, 10.0), "weight": weights})
    votes = rows.votes(Quadtree.world(1), OneVote(1 << 16)).weights
    assert votes.sum() == 1 << 16 and votes.min() >= 0
    assert whole_weights(weights).max() == MOST
