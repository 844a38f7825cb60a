"""Entries count up to 2²⁷ − 1 records; more of them are more entries, and nothing is lost."""

import numpy as np

from hazemap.domains import Gauge
from hazemap.tables.bounding import OwnMeans
from hazemap.tables.counting.averages import BITS, MANY, ONE, Averages, _divide
from hazemap.tables.counting.pile import Pile


def piled(entries, people):
    pile = Pile(valued=False)
    for place, word, many in entries:
        pile.place[pile.size], pile.word[pile.size] = place, np.uint64(word) << BITS | np.uint64(many)
        pile.size += 1
    pile.arrange(people)
    return pile


def rule(gauge):
    averages = Averages(OwnMeans(2, 1 << 16, scale=gauge.scale), gauge.parts)
    averages._people = np.full((2, 2), np.uint64(2**64 - 1))
    return averages


def test_records_that_fit_no_counter_are_kept_in_another_entry():
    gauge, full = Gauge(0, 65), int(MANY)
    pile = piled([(0, 6, full - 1), (0, 6, 5), (0, 6, 1), (1, 6, 2), (0, 7, 1)], 2)
    averages = rule(gauge)
    averages.fold(pile)
    kept = [(int(p), int(w >> BITS), int(w & MANY)) for p, w in zip(pile.place, pile.word, strict=True)][: pile.size]
    assert sum(many for place, word, many in kept if (place, word) == (0, 6)) == full + 5
    assert (1, 6, 2) in kept and (0, 7, 1) in kept and max(many for *_, many in kept) <= full


def test_the_mean_of_two_hundred_million_records_is_exact():
    gauge, many = Gauge(0, 65), 100_000_000
    readings = 100, 900
    pile = piled([(0, 1 + reading, many) for reading in readings], 1)
    averages = rule(gauge)
    averages.fold(pile)
    until = np.cumsum(gauge.parts, axis=1)
    end, cells, weights = _divide(pile.place, pile.word, pile.size, 0, until, 1)
    assert end == pile.size and cells.tolist() == [1, 2]
    assert weights.tolist() == [gauge.scale - 500 * 1024, 500 * 1024]


def test_an_entry_of_the_last_place_and_reading_fits():
    last = np.uint64(1 + 1025 * (1 << 26))
    assert (last << BITS | ONE) >> BITS == last
