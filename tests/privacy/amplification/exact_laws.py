"""Sums of one-hot reports with exact whole numbers: every configuration of the other people, for small sums."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import lcm

Weights = tuple[int, ...]
"""Probabilities times the denominator of the coins to the power of the number of people."""


def coin(weights: list[int], heads: int, whole: int) -> list[int]:
    return [
        (weights[i] * (whole - heads) if i < len(weights) else 0) + (weights[i - 1] * heads if i else 0)
        for i in range(len(weights) + 1)
    ]


@cache
def coordinate(keep: Fraction, turn_on: Fraction, honest: int, holders: int, own: bool) -> Weights:
    """What is sent in one coordinate: by one person whose bit it is (`own`) or not, and by the others."""
    whole = lcm(keep.denominator, turn_on.denominator)
    p, q = int(keep * whole), int(turn_on * whole)
    weights = [1]
    for heads in [p if own else q] + [p] * holders + [q] * (honest - 1 - holders):
        weights = coin(weights, heads, whole)
    return tuple(weights)


def product(*laws: Weights) -> list[int]:
    found = [1]
    for law in laws:
        found = [a * b for a in found for b in law]
    return found


def divergence(likely: list[int], unlikely: list[int], gamma: Fraction) -> Fraction:
    """H_γ, exactly."""
    up, down = gamma.numerator, gamma.denominator
    above = sum(max(0, down * p - up * q) for p, q in zip(likely, unlikely, strict=True))
    return Fraction(above, down * sum(likely))


def configurations(honest: int) -> Iterator[tuple[int, int]]:
    """How many of the others hold the first bin, and how many the second."""
    return ((a, b) for a in range(honest) for b in range(honest - a))


def replacement(keep: Fraction, turn_on: Fraction, honest: int, a: int, b: int) -> tuple[list[int], list[int]]:
    """The laws of two coordinates where one person holds the first bin, and where they hold the second."""
    law = (keep, turn_on, honest)
    return (
        product(coordinate(*law, a, True), coordinate(*law, b, False)),
        product(coordinate(*law, a, False), coordinate(*law, b, True)),
    )


def worst_replacement(keep: Fraction, turn_on: Fraction, honest: int, gamma: Fraction) -> Fraction:
    return max(divergence(*replacement(keep, turn_on, honest, a, b), gamma) for a, b in configurations(honest))


def worst_removal(keep: Fraction, turn_on: Fraction, honest: int, gamma: Fraction) -> Fraction:
    pairs = [[list(coordinate(keep, turn_on, honest, a, own)) for own in (True, False)] for a in range(honest)]
    return max(max(divergence(p, q, gamma), divergence(q, p, gamma)) for p, q in pairs)
