"""Frequent strings, a few characters longer in each round."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from tests.federated.recipes.asking import recipe, starts

from hazemap.codec import dumps, loads
from hazemap.errors import InputError
from hazemap.federated.recipes.features import MOST_BINS, StringPrefixes
from hazemap.federated.recipes.population_table import PopulationTable
from hazemap.federated.recipes.recipe_bins import KNOWN
from hazemap.federated.study.searches import HeavyHitters
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.trust.curator import Curator

FIRST = recipe(StringPrefixes(("",), "ab", 1))
NO_NOISE = PureDP(10_000)


def evenly(alphabet: str, step: int, rounds: int) -> HeavyHitters:
    return HeavyHitters(FIRST, alphabet, step, (Fraction(1, rounds),) * rounds)


def having(strings: list[str]) -> PopulationTable:
    """Each person has one string."""
    return PopulationTable(starts([[text] for text in strings]), (tuple(strings),))


def asked(search: HeavyHitters, strings: list[str], budget=NO_NOISE):
    return run(search, Curator(having(strings), Stream.fixed(b"strings")), budget, Unrecorded())


@pytest.mark.parametrize(("step", "rounds"), [(1, 5), (2, 3), (4, 2)])
def test_without_noise_all_strings_are_found_whole_with_their_numbers(step, rounds):
    strings = ["".join(letters) for many in range(5) for letters in product("ab", repeat=many) for _ in range(many + 1)]
    found = asked(evenly("ab", step, rounds), [*strings, "abc", "é"]).value
    counts = dict(zip(found.items, found.count.tolist(), strict=True))
    assert {item for item, whole in zip(found.items, found.complete, strict=True) if whole} == set(strings)
    assert {item: counts[item] for item in strings} == Counter(strings)


def test_strings_that_go_on_after_the_last_round_are_given_as_beginnings():
    found = asked(evenly("ab", 2, 2), ["ababab", "ababba", "ba"]).value
    assert found.items == ("abab", "ba") and found.count.tolist() == [2, 1] and found.complete.tolist() == [False, True]
    assert evenly("ab", 2, 2).longest == 3


def test_bits_of_numbers_are_found_a_byte_at_a_time():
    numbers = [0xBEEF] * 300 + [0xCAFE] * 200 + [place * 40503 % 65536 for place in range(2_000)]
    found = asked(evenly("01", 8, 2), [f"{number:016b}" for number in numbers], PureDP(2)).value
    assert [int(item, 2) for item in found.top(2).items] == [0xBEEF, 0xCAFE]
    assert (np.abs(found.top(2).count - [300, 200]) < 60).all()


def test_no_more_beginnings_are_asked_for_than_a_recipe_has_bins_for():
    """1,024 pairs of letters are frequent; each would need 1,058 buckets."""
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    search = replace(evenly(letters, 2, 2), most=2_000)
    sizes = [
        question.size
        for question, _ in asked(search, ["".join(pair) for pair in product(letters, repeat=2)]).transcript
    ]
    assert sizes[0] == 2 + 1_058 and 0.99 * MOST_BINS < sizes[1] <= MOST_BINS


def test_an_infrequent_beginning_is_never_extended_and_a_replay_gives_the_same():
    rng = np.random.default_rng(2)
    search, strings = (
        evenly("abc", 1, 4),
        ["".join(rng.choice(list("abc"), 4, p=(0.8, 0.15, 0.05))) for _ in range(900)],
    )
    found = asked(search, strings, PureDP(1))
    for (question, answer), (later, _) in pairwise(found.transcript):
        rule = question.encoder.recipe.features[0].rule
        lifted = {rule.labels()[place] for place in np.flatnonzero(answer.sums[: rule.size] > answer.stddev[0])}
        assert set(later.encoder.recipe.features[0].rule.prefixes) <= lifted
    assert replay(search, Curator(having([])).prices(PureDP(1)), PureDP(1), found.transcript).value == found.value
    assert sum(question.share for question, _ in found.transcript) == 1
    assert loads(dumps(search), (*KNOWN, HeavyHitters)) == search


@pytest.mark.parametrize(
    "change",
    [
        {"alphabet": ""},
        {"step": 0},
        {"most": 0},
        {"shares": ()},
        {"by_noise": Fraction(-1)},
        {"most": 1 << 17},
        {"shares": (Fraction(1, 2_000),) * 900, "step": 2},
    ],
)
def test_searches_that_could_not_be_asked_are_refused(change):
    with pytest.raises(InputError):
        replace(evenly("ab", 1, 2), **change)
