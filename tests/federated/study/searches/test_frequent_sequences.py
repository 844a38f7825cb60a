"""Which sequences are frequent: exact where there is no noise to speak of, and no rare one ever grows longer."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from tests.federated.recipes.asking import recipe, typing

from hazemap.codec import dumps, loads
from hazemap.errors import InputError, TranscriptMismatch
from hazemap.federated.recipes.features import MOST_BINS, PrefixTree
from hazemap.federated.recipes.recipe import NoMatch
from hazemap.federated.recipes.recipe_bins import KNOWN
from hazemap.federated.study.searches import FrequentSequences, ItemCounts, ListedSequences
from hazemap.federated.study.searches.frequent_items import _room
from hazemap.federated.study.searches.item_counts import frequent_bins
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.randomised_reports import debiased
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Answer
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.trust.curator import Curator

FIRST = recipe(PrefixTree(("",), ("a",)))
TOKENS = ("to", "be", "or", "not", "a", "cat")
NO_NOISE = PureDP(10_000)
TYPED = [["to be or not"]] * 6 + [["to be a cat"]] * 3 + [["a dog"], ["cat"], [], ["mouse"]]
SEARCH = FrequentSequences.evenly(FIRST, TOKENS, 4)


def asked(search, people, budget=NO_NOISE, seed=b"words"):
    return run(search, Curator(typing(people), Stream.fixed(seed)), budget, Unrecorded())


def table(found: ItemCounts) -> dict[str, float]:
    return dict(zip(found.items, found.count.tolist(), strict=True))


def test_without_noise_every_sequence_is_found_with_its_number_of_people():
    """Everybody has one text, so nothing is drawn: the numbers are those of people."""
    found = asked(SEARCH, TYPED).value
    assert table(found) == {
        "to": 9, "a": 1, "cat": 1, "to be": 9,
        "to be or": 6, "to be a": 3, "to be or not": 6, "to be a cat": 3,
    } and found.items[:3] == ("to", "a", "cat")  # fmt: skip
    assert found.round.tolist() == [len(item.split()) for item in found.items] and not found.complete.any()
    low, high = found.interval(0.99)
    assert (found.stddev < 1e-9).all() and (low <= found.count).all() and (found.count <= high).all()


def test_a_person_answers_with_a_text_that_begins_with_a_frequent_sequence():
    """Their other texts, however many, cost them nothing from the second round on."""
    people = [["to be", *["cat"] * 9]] * 40 + [["to be"]] * 60
    search = replace(FrequentSequences.evenly(FIRST, TOKENS, 2), most=1)
    found = asked(search, people).value
    assert found.items == ("to", "to be") and 60 <= found.count[0] < 80 and found.count[1] == 100


def test_an_infrequent_sequence_is_never_extended():
    """With noise: each round asks only for prefixes that its forerunner's answer lifts above its threshold."""
    rng = np.random.default_rng(4)
    people = [[" ".join(rng.choice(TOKENS, 4, p=(0.5, 0.3, 0.1, 0.05, 0.03, 0.02)))] for _ in range(2_000)]
    exchanges = asked(SEARCH, people, PureDP(2)).transcript
    assert len(exchanges) == 4
    for (question, answer), (later, _) in pairwise(exchanges):
        rule = question.encoder.recipe.features[0].rule
        stands_out = answer.sums > 3 * answer.stddev[0] if rule.size > 100 else answer.sums > 0
        frequent = {rule.labels()[place] for place in np.flatnonzero(stands_out[: rule.size])}
        assert set(later.encoder.recipe.features[0].rule.prefixes) <= frequent
    assert all(len(question.encoder.recipe.features[0].rule.prefixes) < 6**3 for question, _ in exchanges)


def test_no_more_sequences_grow_than_are_allowed_or_a_recipe_has_bins_for():
    people = [[f"{first} {second} x"] for first in TOKENS for second in TOKENS]
    found = asked(replace(SEARCH, most=4), people)
    sizes = [len(question.encoder.recipe.features[0].rule.prefixes) for question, _ in found.transcript]
    assert sizes == [1, 4, 4] and (np.bincount(found.value.round) <= 4).all()  # nothing known follows the second token
    many = tuple(f"w{place}" for place in range(2_000))
    wide = FrequentSequences.evenly(FIRST, many, 2)
    queries = asked(replace(wide, most=2_000), [[token] for token in many]).transcript
    assert queries[1].question.size <= MOST_BINS and queries[1].question.size > 0.99 * MOST_BINS


def test_only_tokens_that_were_frequent_once_are_asked_for_again_where_that_is_wanted():
    people = [[text] for text in ("to be or", "be or to", "or to be")] * 3
    for wanted, tokens in ((False, TOKENS), (True, ("to", "be", "or"))):
        found = asked(replace(SEARCH, frequent_tokens=wanted), people)
        rules = [question.encoder.recipe.features[0].rule for question, _ in found.transcript]
        assert [rule.tokens for rule in rules] == [TOKENS, *[tokens] * 3] and len(found.value) == 9


@pytest.mark.parametrize("tokens", [1, 14, 1_022, 1_023, 65_536])
def test_as_many_prefixes_are_asked_for_as_a_recipe_has_bins_for(tokens):
    """One bin for other texts and one for none; one prefix more would be too many."""
    room = _room(tokens)
    assert 2 + room * (2 + tokens) <= MOST_BINS < 2 + (room + 1) * (2 + tokens)


def test_what_stands_out_is_judged_by_the_noise_of_an_empty_bin():
    """In reports that keep a 1 by chance, full bins have more noise than empty ones; twins of one noise beside it."""
    sums, bins = np.array([90, 0, 5]), np.arange(3)
    for stddev, found in (([30.0, 1.0, 1.0], [0, 2]), ([30.0] * 3, [0]), ([1.0] * 3, [0, 2])):
        assert frequent_bins(Answer(sums, np.array(stddev)), bins, 9, Fraction(1, 10)).tolist() == found


def test_where_nothing_is_frequent_the_search_ends():
    found = asked(SEARCH, [["mouse"], [], ["dog to"]])
    assert len(found.value) == 0 and len(found.transcript) == 1


def test_the_rounds_together_cost_the_budget_and_each_recipe_says_its_part():
    found = asked(SEARCH, TYPED)
    recipes = [question.encoder.recipe for question, _ in found.transcript]
    assert sum(question.share for question, _ in found.transcript) == 1
    assert sum(each.epsilon for each in recipes) == FIRST.epsilon and sum(each.delta for each in recipes) == FIRST.delta
    assert len({each.id for each in recipes}) == len(recipes) == 4


def test_a_replay_gives_the_same_and_another_search_does_not_replay():
    found = asked(SEARCH, TYPED, PureDP(1))
    prices = Curator(typing(TYPED)).prices(PureDP(1))
    assert replay(SEARCH, prices, PureDP(1), found.transcript).value == found.value
    with pytest.raises(TranscriptMismatch):
        replay(replace(SEARCH, tokens=TOKENS[:3]), prices, PureDP(1), found.transcript)


def test_reports_that_people_randomise_themselves_find_the_same():
    """Nearly without noise each of the 13 people's reports is as it was; then with noise that is stated."""
    people = typing(TYPED)
    exact = run(SEARCH, LocalReports(people, 13, Symmetric, Stream.fixed(b"reports")), PureDP(400), Unrecorded())
    assert table(exact.value) == table(asked(SEARCH, TYPED).value)
    many = typing(TYPED[:9] * 300)
    found = run(SEARCH, LocalReports(many, 2_700, Symmetric, Stream.fixed(b"many")), PureDP(16), Unrecorded()).value
    counts = table(found)
    assert abs(counts["to be or not"] - 1_800) < 6 * found.stddev.max() < 200


@pytest.mark.parametrize("local", [None, Fraction(12)], ids=["shares of noise", "reports"])
def test_a_secure_sum_of_a_sample_of_which_some_drop_out_finds_the_same(local):
    """2,000 of 2,700 are asked, a tenth drop out: 1,200 of 1,800 who answer say the longest, within 6 errors (2e-9)."""
    cohort = Cohort(people=2_000, shard=1_000, dropout=Fraction(1, 4))
    people = typing(TYPED[:9] * 300)
    trust = SimulatedSecureAggregation(people, cohort, Stream.fixed(b"cohort"), Fraction(1, 10), local)
    found = run(SEARCH, trust, PureDP(24) if local is None else ApproxDP(4, "1e-6"), Unrecorded()).value
    answered = [turnout.people for turnout in trust.turnouts]
    assert all(1_700 < each < 1_900 for each in answered) and len(answered) == 4
    row = found.items.index("to be or not")
    error = np.hypot(found.stddev[row], np.sqrt(answered[3] * 2 / 9))
    assert abs(found.count[row] - answered[3] * 2 / 3) < 6 * error < 300


def test_a_search_travels():
    known = (*KNOWN, FrequentSequences, ListedSequences)
    for search in (SEARCH, ListedSequences(FIRST, ("to be",))):
        assert loads(dumps(search), known) == search


def test_a_static_question_counts_listed_sequences_of_one_length():
    people = [["to be"]] * 4 + [["or not"]] * 2 + [["cat a"], []]
    found = asked(ListedSequences(FIRST, ("to be", "or not", "not to")), people)
    assert table(found.value) == {"to be": 4, "or not": 2} and len(found.transcript) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"shares": ()}, "shares"),
        ({"shares": (Fraction(2, 3), Fraction(2, 3))}, "shares"),
        ({"shares": (Fraction(0),)}, "shares"),
        ({"tokens": ()}, "prefix tree"),
        ({"most": 0}, "items in a round"),
        ({"most": 1 << 17}, "items in a round"),
        ({"by_noise": Fraction(0)}, "above 0"),
        ({"shares": (Fraction(1, 18),) * 18}, "17 tokens"),
        ({"tokens": ("a" * 400, "b")}, "1,203 bytes"),
        ({"shares": (Fraction(1, 10**19),)}, "19 digits"),
        ({"recipe": replace(FIRST, id="a" * 99)}, "the id of a recipe"),
        ({"recipe": recipe(PrefixTree(("",), ("a",)), no_match=NoMatch.RANDOM)}, "random bin"),
        ({"recipe": recipe(PrefixTree(("",), ("a",)), PrefixTree(("",), ("a",)))}, "one feature"),
    ],
)
def test_searches_that_could_not_be_read_are_refused(change, why):
    with pytest.raises(InputError, match=why):
        replace(SEARCH, **change)


@pytest.mark.parametrize("budget", [PureDP("0.5"), PureDP(8)])
def test_noise_alone_lifts_about_as_many_bins_as_is_said(budget):
    """Of 20,000 empty bins about 4: 20 or more have a probability below 1e-7 (Poisson of mean 4, Chernoff).

    The twin asks for 60, of which fewer than 20 have one below 1e-9.
    """
    noise = noise_for(budget, Sensitivity(1, 1))
    draws = noise.draw(Stream.fixed(b"threshold"), 20_000)
    answer, bins = Answer(draws, np.array([noise.stddev]), noise.kurtosis), np.arange(20_000)
    assert len(frequent_bins(answer, bins, 1_000, Fraction(4))) < 20
    if noise.stddev > 1:
        assert len(frequent_bins(answer, bins, 1_000, Fraction(60))) >= 20


def test_intervals_hold_the_reports_of_a_round_as_often_as_they_say():
    """Of 400 tokens that stand far out 95 % hold, ± 5.5 standard errors (4e-8); the twin is half as wide."""
    tokens = tuple(f"w{place}" for place in range(400))
    people = [[token] for token in tokens for _ in range(60)]
    found = asked(FrequentSequences.evenly(FIRST, tokens, 1), people, PureDP("0.4")).value
    assert len(found) == 400
    low, high = found.interval(0.95)
    held = ((low <= 60) & (high >= 60)).mean()
    half = ((found.count - 60) ** 2 <= ((high - low) / 4) ** 2).mean()
    error = np.sqrt(0.95 * 0.05 / 400)
    assert abs(held - 0.95) < 5.5 * error < 0.95 - half


def test_noise_of_reports_lifts_as_many_empty_bins_as_is_said_and_a_symmetric_guess_lets_more_pass():
    """1,800 empty bins, 1,500 people at ε₀ = 6, drawn 200 times: more than 280 for 200 has probability below 1e-6."""
    law, bins, people = Asymmetric(Fraction(6)), np.arange(1_800), 1_500
    rng = np.random.default_rng(11)
    reports = rng.binomial(people, 1 / (exp(6) + 1), (200, len(bins)))
    found = {True: 0, False: 0}
    for sums in reports:
        answer = debiased(law, sums, people, Stream.fixed(b"reports"))
        for known in found:
            seen = answer if known else replace(answer, skewness=None, chances=None)
            found[known] += len(frequent_bins(seen, bins, 1_800, Fraction(1)))
    assert 20 < found[True] < 280 < found[False]
