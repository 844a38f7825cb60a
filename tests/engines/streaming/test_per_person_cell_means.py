"""Entries count up to 2²⁷ − 1 records; more of them are more entries, and nothing is lost."""

import numpy as np

from hazemap.engines.streaming.per_person_bottom_k import BITS, MANY, ONE, PersonCellMeans, _divide
from hazemap.engines.streaming.row_buffer import RowBuffer
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.values.value_encoding import ValueEncoding


def piled(entries, people):
    row_buffer = RowBuffer(valued=False)
    for place, word, many in entries:
        row_buffer.place[row_buffer.size], row_buffer.word[row_buffer.size] = (
            place,
            np.uint64(word) << BITS | np.uint64(many),
        )
        row_buffer.size += 1
    row_buffer.arrange(people)
    return row_buffer


def rule(value_encoding):
    averages = PersonCellMeans(OwnMeans(2, 1 << 16, scale=value_encoding.scale), value_encoding.parts)
    averages._people = np.full((2, 2), np.uint64(2**64 - 1))
    return averages


def test_records_that_fit_no_counter_are_kept_in_another_entry():
    value_encoding, full = ValueEncoding(0, 65), int(MANY)
    row_buffer = piled([(0, 6, full - 1), (0, 6, 5), (0, 6, 1), (1, 6, 2), (0, 7, 1)], 2)
    averages = rule(value_encoding)
    averages.fold(row_buffer)
    kept = [(int(p), int(w >> BITS), int(w & MANY)) for p, w in zip(row_buffer.place, row_buffer.word, strict=True)][
        : row_buffer.size
    ]
    assert sum(many for place, word, many in kept if (place, word) == (0, 6)) == full + 5
    assert (1, 6, 2) in kept and (0, 7, 1) in kept and max(many for *_, many in kept) <= full


def test_the_mean_of_two_hundred_million_records_is_exact():
    value_encoding, many = ValueEncoding(0, 65), 100_000_000
    readings = 100, 900
    row_buffer = piled([(0, 1 + reading, many) for reading in readings], 1)
    averages = rule(value_encoding)
    averages.fold(row_buffer)
    until = np.cumsum(value_encoding.parts, axis=1)
    end, cells, weights = _divide(row_buffer.entries, row_buffer.size, 0, until, 1)
    assert end == row_buffer.size and cells.tolist() == [1, 2]
    assert weights.tolist() == [value_encoding.scale - 500 * 1024, 500 * 1024]


def test_an_entry_of_the_last_place_and_reading_fits():
    last = np.uint64(1 + 1025 * (1 << 26))
    assert (last << BITS | ONE) >> BITS == last
