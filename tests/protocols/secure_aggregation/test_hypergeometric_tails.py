"""Tails are never too small, and hardly too large."""

from fractions import Fraction
from math import comb, exp, log

import pytest

from hazemap.protocols.secure_aggregation.hypergeometric_tails import at_least, log_all_gone, log_choose


def exact(population: int, marked: int, drawn: int, least: int) -> Fraction:
    """P(X >= least), term by term in whole numbers."""
    ways = sum(comb(marked, x) * comb(population - marked, drawn - x) for x in range(max(0, least), drawn + 1))
    return Fraction(ways, comb(population, drawn))


@pytest.mark.parametrize(("population", "marked", "drawn"), [(52, 4, 13), (30, 20, 15), (1000, 100, 40), (12, 0, 5)])
def test_a_tail_is_the_exact_one_rounded_up(population, marked, drawn):
    for least in range(drawn + 2):
        right = exact(population, marked, drawn, least)
        found = Fraction(at_least(population, marked, drawn, least))
        if least * population <= marked * drawn:
            assert found == 1 and right >= Fraction(1, 2)
        else:
            assert right <= found <= right * (1 + Fraction(3, 10**6))


def test_a_tail_far_out_among_a_million_is_still_rounded_up():
    right = exact(1_000_000, 330_000, 500, 260)
    assert right <= Fraction(at_least(1_000_000, 330_000, 500, 260)) <= right * (1 + Fraction(3, 10**6))
    assert right < Fraction(1, 2**40)


def test_all_gone_and_ways_to_choose_are_rounded_up():
    for population, gone, places in [(10, 4, 2), (1000, 200, 40), (20, 20, 3)]:
        right = log(comb(population - places, gone - places)) - log(comb(population, gone))
        assert right <= log_all_gone(population, gone, places) <= right + 3e-6
    assert exp(log_all_gone(10, 3, 4)) == 0
    assert log(comb(500, 123)) <= log_choose(500, 123) <= log(comb(500, 123)) + 3e-6
