"""Permute-and-flip: its law by every order of the candidates, and what it refuses."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chisquare

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import permute_and_flip, permute_and_flip_each
from hazemap.privacy.samplers.private_selection import below_each

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


@pytest.mark.slow
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
    ("scores", "sensitivity", "epsilon", "words"),
    [
        (np.array([], dtype=np.int64), 1, Fraction(1), "groups of one candidate or more"),
        (np.zeros((2, 2), dtype=np.int64), 1, Fraction(1), "permute-and-flip needs a one-dimensional array of scores"),
        (np.zeros(2), 1, Fraction(1), "permute-and-flip needs a one-dimensional array of at least"),
        (np.zeros(2, dtype=np.uint64), 1, Fraction(1), "permute-and-flip needs a one-dimensional array of at least"),
        (np.zeros(2, dtype=np.int64), 0, Fraction(1), "a choice needs a sensitivity of at least 1 and a positive"),
        (np.zeros(2, dtype=np.int64), 1, Fraction(0), "a positive epsilon"),
        (np.zeros(2, dtype=np.int64), 1, Fraction(-1), "a positive epsilon"),
    ],
)
def test_permute_and_flip_refuses_what_it_cannot_choose_from(scores, sensitivity, epsilon, words):
    with pytest.raises(InputError, match=words):
        permute_and_flip(Stream.from_os(), scores, sensitivity, epsilon)


GROUPS = ([0, 1, 2, 3, 3], [9], [-4, 0], [7, 7, 7])


def test_each_of_many_groups_has_its_law_and_knows_nothing_of_the_others():
    """Chi-square at 1e-6 for every group, and for the pairs of two groups; in one run of many groups at a time."""
    n, scale = 2_000, Fraction(3, 2)
    scores = np.array([score for group in GROUPS for score in group] * n)
    starts = np.concatenate([[0], np.cumsum([len(group) for group in GROUPS] * n)])
    chosen = permute_and_flip_each(Stream.fixed(b"groups"), scores, starts, 3, 6 / scale).reshape(n, -1)
    laws = [by_all_orders(list(group), 1, float(2 / scale)) for group in GROUPS]
    for at, law in enumerate(laws):
        found = np.bincount(chosen[:, at], minlength=len(law))
        assert len(law) == 1 or chisquare(found, law * n).pvalue > LEVEL
    pairs = np.bincount(chosen[:, 0] * 3 + chosen[:, 3], minlength=15)
    assert chisquare(pairs, np.outer(laws[0], laws[3]).ravel() * n).pvalue > LEVEL


def test_one_group_for_another_is_found_out():
    """The twin that must fail: all candidates taken for one group, and of its choices those that fall in the second."""
    n, (first, second) = 20_000, ([8], [0, 4])
    scores, starts = np.array([*first, *second] * n), 3 * np.arange(n + 1)
    chosen = permute_and_flip_each(Stream.fixed(b"one group"), scores, starts, 1, Fraction(1, 2))
    found = np.bincount(chosen[chosen >= 1] - 1, minlength=2)
    assert chisquare(found, by_all_orders(second, 1, 0.5) * found.sum()).pvalue < LEVEL


def test_more_candidates_than_are_taken_at_a_time_are_chosen_from(monkeypatch):
    monkeypatch.setattr("hazemap.privacy.samplers.private_selection._CHUNK", 5)
    scores = np.array([0, 900, 0, 0, 0, 0, 0, 900, 900, 0, 1, 900])
    chosen = permute_and_flip_each(Stream.fixed(b"chunks"), scores, np.array([0, 2, 8, 9, 12]), 1, Fraction(1))
    assert chosen.tolist() == [1, 5, 0, 2]


def test_numbers_below_a_bound_are_uniform():
    """Chi-square at 1e-6; words that are reduced and not rejected are found out."""
    for bound in (1, 2, 3, 5, 64, 100):
        drawn = below_each(Stream.fixed(b"below"), np.full(20_000, bound))
        assert chisquare(np.bincount(drawn, minlength=bound)).pvalue > LEVEL if bound > 1 else not drawn.any()
    reduced = Stream.fixed(b"below").words(20_000) % np.uint64(8) % np.uint64(5)
    assert chisquare(np.bincount(reduced.astype(int), minlength=5)).pvalue < LEVEL
    assert below_each(Stream.fixed(b"wide"), np.full(1_000, 1 << 52)).max() > 1 << 51


@pytest.mark.parametrize("starts", [[0], [0, 0, 3], [1, 3], [0, 2]])
def test_groups_that_are_not_all_candidates_are_refused(starts):
    with pytest.raises(InputError, match="groups"):
        permute_and_flip_each(Stream.from_os(), np.zeros(3, np.int64), np.array(starts), 1, Fraction(1))


@pytest.mark.parametrize("bounds", [[0], [1, (1 << 52) + 1]])
def test_bounds_without_numbers_are_refused(bounds):
    with pytest.raises(InputError, match="bounds"):
        below_each(Stream.from_os(), np.array(bounds))
