"""Reports that are thrown again where they have too many 1s: what that costs, by brute force in exact rationals."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.privacy.local_randomisers import UnaryEncoding, report_within
from hazemap.privacy.random_stream import Stream

SIZE, MOST = 3, 2
LAW = UnaryEncoding(Fraction(3, 4), Fraction(1, 8))


def of_report(place, most=SIZE):
    """The exact law of a report of at most so many 1s, and the probability that the first throw is one."""
    found = {}
    for bits in product((0, 1), repeat=SIZE):
        chance = Fraction(1)
        for at, bit in enumerate(bits):
            one = LAW.keep if at == place else LAW.turn_on
            chance *= one if bit else 1 - one
        if sum(bits) <= most:
            found[bits] = chance
    fits = sum(found.values())
    return {bits: chance / fits for bits, chance in found.items()}, fits


def of_sum(places, most):
    """The exact law of the sum of several people's reports."""
    law = {(0,) * SIZE: Fraction(1)}
    for place in places:
        more = Counter()
        for total, chance in law.items():
            for bits, own in of_report(place, most)[0].items():
                more[tuple(a + b for a, b in zip(total, bits, strict=True))] += chance * own
        law = more
    return law


def delta(one, other, factor):
    """The least δ of this factor e^ε, in one direction."""
    return sum((max(Fraction(0), chance - factor * other.get(at, 0)) for at, chance in one.items()), Fraction(0))


def test_a_first_throw_fits_with_one_probability_whatever_is_said_and_the_local_epsilon_stays():
    assert len({of_report(place, MOST)[1] for place in range(SIZE)}) == 1
    assert of_report(None, MOST)[1] != of_report(0, MOST)[1], "but for who says nothing: recipes let nobody"
    for most in (MOST, SIZE):
        laws = [of_report(place, most)[0] for place in range(SIZE)]
        worst = max(one[bits] / other[bits] for one in laws for other in laws for bits in one)
        assert worst == LAW.keep * (1 - LAW.turn_on) / (LAW.turn_on * (1 - LAW.keep))


@pytest.mark.parametrize("others", list(product(range(SIZE), repeat=2)))
def test_the_sum_costs_no_more_than_is_charged_for_throwing_again(others):
    """(δ + γe^ε)/(1 − γ), as `recipe_terms.price_of_recipe` has it, where γ is large enough to be seen."""
    clumsy = 1 - of_report(0, MOST)[1] ** 3
    beyond = False
    for factor in (Fraction(1), Fraction(2), Fraction(5), Fraction(12)):
        plain = max(delta(of_sum((a, *others), SIZE), of_sum((b, *others), SIZE), factor) for a, b in ((0, 1), (1, 2)))
        again = max(delta(of_sum((a, *others), MOST), of_sum((b, *others), MOST), factor) for a, b in ((0, 1), (1, 2)))
        assert again <= (plain + clumsy * factor) / (1 - clumsy)
        beyond |= again > plain
    assert beyond or others[0] == others[1], "without the charge some price would be too low"


def test_reports_have_at_most_so_many_ones_and_their_law():
    stream, law = Stream.fixed(b"weights"), of_report(1, MOST)[0]
    drawn = Counter(tuple(report_within(LAW, stream, 1, SIZE, MOST).tolist()) for _ in range(20_000))
    assert set(drawn) <= set(law)
    # Seven frequencies beyond 7 standard deviations: with probability below 10^-10
    for bits, chance in law.items():
        assert abs(drawn[bits] - 20_000 * float(chance)) < 7 * np.sqrt(20_000 * float(chance * (1 - chance)))


@pytest.mark.parametrize("most", [0, -1, 4])
def test_a_weight_that_no_report_has_is_refused(most):
    with pytest.raises(InputError, match="at most 1 to 3"):
        report_within(LAW, Stream.fixed(b""), 0, SIZE, most)
