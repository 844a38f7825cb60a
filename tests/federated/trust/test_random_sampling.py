"""Lots are fair. Chi-square tests fail by chance with probability 1e-7; their twins draw unfairly and must fail."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from hazemap.cells import distinct
from hazemap.errors import InputError
from hazemap.federated.trust.sampled_table import happens, without_replacement
from hazemap.privacy.random_stream import Stream, in_any_order

ERROR = 1e-7


def fairness(draw, population, number, times=6_000):
    """The p-value of all sets of this size being equally likely."""
    sets = dict.fromkeys(combinations(range(population), number), 0)
    for _ in range(times):
        sets[tuple(draw(population, number).tolist())] += 1
    return chisquare(list(sets.values())).pvalue


@pytest.mark.slow
@pytest.mark.parametrize(("population", "number"), [(5, 2), (7, 3), (6, 3), (7, 5), (9, 8)])
def test_every_set_of_people_is_as_likely_as_any_other(population, number):
    stream = Stream.fixed(b"sets")
    assert fairness(lambda *args: without_replacement(stream, *args), population, number) > ERROR


def test_who_draws_too_many_and_keeps_the_first_is_found():
    stream = Stream.fixed(b"unfair")

    def unfair(population, number):
        some = np.zeros(0, dtype=np.uint64)
        while len(some) < number:
            some = distinct(np.concatenate([some, stream.words(number) % np.uint64(population)]))
        return some[:number]

    assert fairness(unfair, 7, 3) < ERROR


@pytest.mark.parametrize(("population", "number"), [(1, 0), (1, 1), (10, 10), (54_000_000, 100_000), (3_000, 2_999)])
def test_nobody_is_drawn_twice(population, number):
    some = without_replacement(Stream.from_os(), population, number)
    assert len(some) == number
    assert (np.diff(some) > 0).all()
    assert not number or (some[0] >= 0 and some[-1] < population)


def test_more_people_than_there_are_cannot_be_drawn():
    with pytest.raises(InputError, match="twice"):
        without_replacement(Stream.from_os(), 3, 4)


def test_every_order_is_as_likely_as_any_other():
    stream, orders = Stream.fixed(b"orders"), {}
    for _ in range(6_000):
        order = tuple(in_any_order(stream, 4).tolist())
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 24
    assert chisquare(list(orders.values())).pvalue > ERROR


@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1, 10), Fraction(2, 3), Fraction(1)], ids=str)
def test_things_happen_as_often_as_they_should(probability):
    happened = int(happens(Stream.fixed(b"happens"), 100_000, probability).sum())
    assert binomtest(happened, 100_000, float(probability)).pvalue > ERROR
