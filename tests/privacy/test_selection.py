"""Permute-and-flip: its law by every order of the candidates, and what it refuses."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from hazemap.errors import InputError
from hazemap.privacy.samplers import permute_and_flip
from hazemap.privacy.stream import Stream

LEVEL = 1e-6


def by_all_orders(scores: list[int], sensitivity: int, epsilon: float) -> np.ndarray:
    """The law of McKenna and Sheldon's algorithm, over every order of the candidates."""
    heads = np.exp(-epsilon * (max(scores) - np.array(scores)) / (2 * sensitivity))
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * heads[candidate] / len(orders)
            reached *= 1 - heads[candidate]
    return law


def exponential_mechanism(scores: list[int], sensitivity: int, epsilon: float) -> np.ndarray:
    weight = np.exp(-epsilon * (max(scores) - np.array(scores)) / (2 * sensitivity))
    return weight / weight.sum()


@pytest.mark.parametrize(
    ("scores", "sensitivity", "epsilon"),
    [([0, 1, 2, 3, 3], 1, 1), ([5, -2, 0, 4], 3, 4), ([7, 7, 7], 1, 2), ([0, 10], 2, 1)],
)
def test_permute_and_flip_has_its_law(scores, sensitivity, epsilon):
    """Chi-square at 1e-6, on a fixed stream; the exponential mechanism must be told apart by the same test."""
    stream, n = Stream.fixed(b"choice"), 3000
    question = (np.array(scores), sensitivity, Fraction(epsilon))
    chosen = np.bincount([permute_and_flip(stream, *question) for _ in range(n)], minlength=len(scores))
    assert chisquare(chosen, by_all_orders(scores, sensitivity, epsilon) * n).pvalue > LEVEL
    if len(set(scores)) > 2:
        assert chisquare(chosen, exponential_mechanism(scores, sensitivity, epsilon) * n).pvalue < LEVEL


def test_permute_and_flip_survives_the_widest_scores():
    ends = np.iinfo(np.int64)
    scores = np.array([ends.min, 0, ends.max])
    assert {permute_and_flip(Stream.fixed(b"wide"), scores, 1, Fraction(1)) for _ in range(20)} == {2}


@pytest.mark.parametrize(
    ("scores", "sensitivity", "epsilon"),
    [
        (np.array([], dtype=np.int64), 1, Fraction(1)),
        (np.zeros((2, 2), dtype=np.int64), 1, Fraction(1)),
        (np.zeros(2), 1, Fraction(1)),
        (np.zeros(2, dtype=np.int64), 0, Fraction(1)),
        (np.zeros(2, dtype=np.int64), 1, Fraction(0)),
    ],
)
def test_permute_and_flip_refuses_what_it_cannot_choose_from(scores, sensitivity, epsilon):
    with pytest.raises(InputError, match=r"choose|choice"):
        permute_and_flip(Stream.from_os(), scores, sensitivity, epsilon)
