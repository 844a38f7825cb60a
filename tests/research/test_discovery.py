"""What the measurements of interactive discovery rest on."""

from fractions import Fraction

import numpy as np
from tests.federated.recipes.asking import recipe, typing

from hazemap.federated.recipes.features import PrefixTree
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import SumRound, exact_sum
from hazemap.privacy.budget import PureDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.queries.noisy_queries import Query
from research.benchmarks.discovery import BY_NOISE, TOP, OneHotReports, Static, interactive, local_epsilon, scores
from research.benchmarks.discovery_corpora import Corpus
from research.benchmarks.discovery_hashed import BINS, HashedStatic
from research.benchmarks.discovery_page import compared, page, summary

TINY = Corpus(
    "tiny",
    ("to", "be", "or"),
    [[np.array([0, 1, 2]), np.array([0, 1])], [np.array([0, -1, 1])], [np.array([1, 2])], []],
)


def test_sequences_of_a_corpus_are_counted_by_people_and_by_expected_reports():
    pairs = TINY.sequences(2)
    assert pairs.texts == ("to be", "be or") and np.diff(pairs.table.start).tolist() == [3, 0, 1, 0]
    of = np.array([0, 0, 2, 3])
    assert pairs.people(of).tolist() == [2, 3]
    assert np.allclose(pairs.reports(of), [4 / 3, 1 + 2 / 3])
    assert TINY.sequences(3).texts == ("to be or",)


def test_scores_are_parts_of_the_true_top_and_of_its_weight():
    texts = tuple(f"w{place}" for place in range(600))
    truth = np.arange(600, 0, -1.0)
    best = scores(list(texts[:500]), truth, texts)
    assert best == {"recall": [1.0] * len(TOP), "weighted error": [0.0] * len(TOP)}
    half = scores([*texts[:10], *["noise"] * 10], truth, texts)
    assert half["recall"][0] == 0.5 and half["weighted error"][0] == 1 - truth[:10].sum() / truth[:20].sum()
    assert scores([], truth, texts)["weighted error"] == [1.0] * len(TOP)


def test_rounds_cost_what_is_said_and_hardly_less():
    for rounds in (1, 3):
        local = local_epsilon(10_000, rounds)
        price, more = (
            exact_sum([SumRound(BitFlipLaw.asymmetric(each), 10_000, rounds)], Fraction(1, 10**6))
            for each in (local, local + Fraction(1, 50))
        )
        assert 0.98 < price <= 1 < more


def test_sums_are_unbiased_and_vary_as_those_of_single_reports():
    """A bin of 300 of 1,000 people and 4,002 of nobody: within 5.5 standard errors (4e-8); the twin has another ε₀."""
    asked = recipe(PrefixTree(("",), ("a", *(f"b{place}" for place in range(4_000)))))
    people = typing([["a"]] * 300 + [["b7"]] * 700)
    law, price = Asymmetric(Fraction(3)), PureDP(3)
    trust = OneHotReports(people, 1_000, np.random.default_rng(3))
    answer = trust.answer(Query(RecipeBins(asked), Fraction(1)), price)
    empty = np.delete(answer.sums, [3, 3 + 1 + 7])
    low, high = (each.variance(1_000, np.zeros(1))[0] for each in (law, Asymmetric(Fraction(5, 2))))
    assert len(empty) == 4_003 and abs(empty.mean()) < 5.5 * np.sqrt(low / 4_003)
    error = 5.5 * np.sqrt(2 / 4_003)
    assert abs(empty.var() / low - 1) < error
    assert abs(answer.sums[3] - 300) < 5.5 * np.sqrt(low + 300) and abs(answer.stddev[0] ** 2 / low - 1) < 1
    assert abs(empty.var() / high - 1) > error


def test_both_systems_find_what_nearly_everybody_says():
    of = np.zeros(20_000, dtype=np.int64)
    asked = TINY.sequences(2)
    found = Static.over(asked, 2).found(of, 1)
    assert found["static"][0] == found["static, told which occur"][0] == "to be"
    assert interactive(asked, TINY.dictionary, of, 1, 2)[:2] == ["to be", "be or"]


def test_empty_bins_reach_the_threshold_as_often_as_is_said():
    """Of 10⁶ bins 11.4 are expected above it (not 20: reports are whole), in ten runs 114.

    Poisson: 60 or fewer have a probability of 2e-8, 200 or more one below 1e-12. The twin is one run alone.
    """
    static = Static.over(TINY.sequences(2), 2)
    drawn = [static._empty(10_000, local_epsilon(10_000, 1), np.random.default_rng(seed)) for seed in range(10)]
    reached = [len(numbers) for _, numbers in drawn]
    assert 60 < sum(reached) < 200 and reached[0] <= 60 and float(BY_NOISE) == 20
    assert all((numbers >= least).all() for least, numbers in drawn)


def test_a_person_reports_one_of_their_sequences_by_how_often_they_say_it():
    """Of 8,000 people who say "to be" twice and "be or" once, within 5.5 standard errors (4e-8); others say nothing."""
    drawn = TINY.sequences(2).drawn(np.array([0] * 8_000 + [1, 2, 3]), np.random.default_rng(2))
    assert len(drawn) == 8_001 and drawn[-1] == 1, "of the last three people one has a pair of known words"
    assert abs((drawn[:-1] == 0).mean() - 2 / 3) < 5.5 * np.sqrt(2 / 9 / 8_000)


def test_hashed_sequences_are_found_and_those_of_nobody_as_seldom_as_is_said():
    of, local = np.zeros(20_000, dtype=np.int64), local_epsilon(20_000, 2)
    static = HashedStatic(TINY.sequences(2), 1_000**2, 2, BY_NOISE)
    assert static.found(of, 1, local, 500)[:2] == ["to be", "be or"]
    found = [len(static.found(np.full(20_000, 3), seed, local, 10**6)) for seed in range(2)]
    assert 0 < sum(found) <= 80, "nobody says anything: 20 a run are expected at most (Poisson, beyond 80: 1e-8)"


def test_a_threshold_lets_chance_alone_pass_as_often_as_is_said():
    static = HashedStatic(TINY.sequences(2), 10**9, 3, BY_NOISE)
    numbers = np.random.default_rng(4).normal(size=(3, BINS)).round(3)
    least = static._least(numbers)
    passed = [1e9 * np.prod([(each >= bound).mean() for each in numbers]) for bound in (least, least - 0.001)]
    assert passed[0] <= 20 < passed[1]


def test_a_page_says_in_how_many_cases_rounds_are_ahead():
    rows = [
        {"corpus": corpus, "length": 3, "people": 10, "run": run, "system": system, "truth": truth,
         "recall": [recall] * 5, "weighted error": [1 - recall] * 5}
        for corpus in ("irc_ubuntu_text_to_2013", "shakespeare_by_character")
        for run in range(2)
        for truth in ("people", "reports")
        for system, recall in (
            *(("interactive", 0.5), ("static", 0.2), ("static, hashed", 0.3), ("static, told which occur", 0.6)),
        )
    ]  # fmt: skip
    found = {"top": list(TOP), "summary": summary(rows), "CPU s": 1, "local": [], "figure 1": []}
    ahead = {"cases": 10, "ahead": 10, "hashed_cases": 10, "hashed_ahead": 10, "told_cases": 10, "told_ahead": 0}
    assert compared(found, "people") == ahead
    numbers = "0.50 (0.50–0.50) | 0.20 (0.20–0.20) | 0.30 (0.30–0.30) | 0.60 (0.60–0.60) |"
    assert f"| IRC | 3 | 10 | {numbers}" in page(found)
