"""Shuffled parts tell nothing but the sum: the bound against what it bounds, enumerated and summed exactly."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import factorial, isqrt, prod, sqrt

import numpy as np
import pytest
from mpmath import e as mpe
from mpmath import floor, log, mpf, workdps

from hazemap.errors import InputError
from hazemap.federated.protocols.shuffle.shuffle_parameters import excess, is_secure, parts_for


def components(people: int, parts: int, order: tuple[int, ...]) -> int:
    """Connected components where part number i of one splitting stands at order[i] in the other."""
    root = list(range(people))

    def find(at: int) -> int:
        while root[at] != at:
            at = root[at]
        return at

    for part, place in enumerate(order):
        root[find(part // parts)] = find(place // parts)
    return sum(find(each) == each for each in range(people))


def expectation(people: int, parts: int, size: int) -> Fraction:
    """E[size^C] = n!/(mn)! [tⁿ] (Σ_s (ms)!/s! t^s)^size: colourings that are the same on each component."""
    weights = [Fraction(factorial(parts * s), factorial(s)) for s in range(people + 1)]
    power, base, left = [Fraction(1)] + [Fraction(0)] * people, weights, size
    while left:
        if left & 1:
            power = product_of(power, base)
        base, left = product_of(base, base), left >> 1
    return power[people] * factorial(people) / factorial(parts * people)


def product_of(one: list[Fraction], other: list[Fraction]) -> list[Fraction]:
    return [sum(one[i] * other[k - i] for i in range(k + 1)) for k in range(len(one))]


@pytest.mark.parametrize(("people", "parts"), [(2, 2), (3, 2), (2, 4)])
def test_components_are_counted_by_colours(people, parts):
    """Over every matching of the parts."""
    orders = list(permutations(range(people * parts)))
    for size in (2, 3, 4):
        mean = Fraction(sum(size ** components(people, parts, order) for order in orders), len(orders))
        assert mean == expectation(people, parts, size)


@pytest.mark.parametrize("people", [19, 24])
@pytest.mark.parametrize("group_bits", [1, 3, 9])
@pytest.mark.parametrize("inner", [3, 4, 7])
def test_the_bound_is_above_the_exact_expectation_and_near_it(people, group_bits, inner):
    exact = expectation(people, inner, 1 << group_bits) / (1 << group_bits) - 1
    bound = excess(people, inner + 1, group_bits)
    assert bound is None or exact <= bound
    if exact < Fraction(1, 1000):
        assert bound is not None and bound < 4 * exact


def derived(people: int, parts: int, group_bits: int) -> mpf | None:
    """The bound of docs/concepts/shuffle.md, in floats of 40 digits."""
    n, m = people, parts - 1
    size = 3 * mpf(2) ** group_bits * factorial(m - 1)

    def ratio(j: int) -> mpf:
        return size / prod(m * (n - j) + i for i in range(1, m))

    end = size * mpe**m / (mpf(m) ** (m - 1) * mpf(n - 1) ** m)
    if ratio(3) > 4 or end > 0.5:
        return None
    second = ratio(1) / 2
    last = mpf(2) ** -(int(floor(-log(end, 2) + mpf(10) ** -7)) * (n - 1)) / n
    return second + (n - 2) * max(second * ratio(2) / 3, last)


def test_the_bound_is_the_one_that_was_derived():
    """On a grid in which the largest term is now the third and now the last."""
    shown = 0
    with workdps(40):
        for people, parts, group_bits in product((19, 20, 27, 60, 300), range(4, 12), range(1, 48)):
            found, wanted = excess(people, parts, group_bits), derived(people, parts, group_bits)
            assert (found is None) == (wanted is None), (people, parts, group_bits)
            if found is not None:
                shown += 1
                assert abs(mpf(found.numerator) / found.denominator / wanted - 1) < 1e-7
    assert shown > 200
    assert excess(18, 9, 1) is None is excess(1_000, 3, 1), "fewer people, and fewer parts, are not looked at"


def test_a_security_is_reached_to_the_last_block():
    """blocks · τ ≤ 2^−security, where τ = ½ √excess."""
    for people, parts, bits in ((100, 9, 8), (1_000, 8, 16)):
        most = isqrt(int(4 / (excess(people, parts, bits) * 4**10)))
        assert most > 20
        assert is_secure(people, parts, bits, most, 10) and not is_secure(people, parts, bits, most + 1, 10)


def views(inputs: tuple[int, ...], parts: int) -> Counter:
    """How often each multiset of shuffled bits comes out, over all ways to split bits in parts."""
    found: Counter = Counter()
    for free in product((0, 1), repeat=len(inputs) * (parts - 1)):
        ones = 0
        for person, value in enumerate(inputs):
            own = free[person * (parts - 1) : (person + 1) * (parts - 1)]
            ones += sum(own) + (value - sum(own)) % 2
        found[ones] += 1
    return found


@pytest.mark.parametrize(("people", "parts"), [(2, 3), (2, 5), (3, 3), (3, 4), (4, 3)])
def test_no_two_inputs_of_one_sum_are_told_apart_by_more_than_is_proved(people, parts):
    """By all inputs and all splittings of bits: TV ≤ √(E − 1) with one part fewer. Twin: two parts tell more."""
    allowed = sqrt(expectation(people, parts - 1, 2) / 2 - 1)
    worst = told_apart(people, parts)
    assert worst <= allowed
    assert told_apart(people, 2) > worst


def told_apart(people: int, parts: int) -> float:
    ways = 2 ** (people * (parts - 1))
    every = {inputs: views(inputs, parts) for inputs in product((0, 1), repeat=people)}
    return max(
        sum(abs(mine[kind] - theirs[kind]) for kind in {*mine, *theirs}) / ways / 2
        for one, mine in every.items()
        for other, theirs in every.items()
        if sum(one) % 2 == sum(other) % 2
    )


def test_parts_are_the_fewest_that_are_enough_and_fewer_than_published():
    """Balle et al. (2020, theorem 2): (2σ + log₂ |G|)/(log₂ n − log₂ e) + 2 parts, for one sum."""
    for honest, bits, blocks in ((19, 16, 1), (1_000, 17, 1), (100_000, 272, 256), (10**6, 20, 4_096)):
        parts = parts_for(honest, bits, blocks)
        assert is_secure(honest, parts, bits, blocks, 60) and not is_secure(honest, parts - 1, bits, blocks, 60)
        published = (2 * (60 + np.log2(blocks)) + bits) / (np.log2(honest) - np.log2(np.e)) + 2
        assert parts <= published
    assert parts_for(1_000, 16) >= parts_for(2_000, 16) >= parts_for(10**6, 16)


def test_few_people_and_huge_groups_are_refused():
    for honest, bits in ((18, 1), (1_000, 10**5)):
        with pytest.raises(InputError, match="ask more people"):
            parts_for(honest, bits)
    with pytest.raises(InputError, match="at least 1 bit"):
        parts_for(1_000, 0)
