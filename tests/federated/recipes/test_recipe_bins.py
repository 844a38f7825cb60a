"""One report a person: what moves the sums, who reports none, and which row is drawn."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.federated.recipes.asking import PersonRows, recipe, typing

from hazemap.algorithms import Flat
from hazemap.codec import MESSAGE, dumps, loads
from hazemap.encoders import total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import TableError
from hazemap.federated.recipes.features import NumericEdges, PrefixTree
from hazemap.federated.recipes.recipe import NoMatch
from hazemap.federated.recipes.recipe_bins import KNOWN, PersonDraws, RecipeBins
from hazemap.federated.trust.checked_contribution import bounded, contribution
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.trust.curator import Curator

TREE = PrefixTree(("a", "b a"), ("a", "b"))
TEXTS = ("a", "a b", "b a a", "b b", "c", "")


def test_no_person_moves_the_sums_by_more_than_one_report():
    """All people with up to 3 of 6 texts: each adds a single 1, so adding or removing one moves L1 and L2² by 1."""
    rows = [list(own) for many in range(4) for own in product(TEXTS, repeat=many)]
    for rule in (TREE, PrefixTree(("",), ("a",))):
        bins = RecipeBins(recipe(rule))
        assert bins.sensitivity == (1, 1)
        entries = bins.encode(typing(rows))
        assert entries.person.tolist() == list(range(len(rows))) and set(entries.value.tolist()) == {1}
        assert entries.position.min() >= 0 and entries.position.max() < bins.size
        assert (bins.total(typing(rows)) == total(bins, typing(rows))).all()
        assert bounded(bins, typing([["a b"]])).sum() == 1


def test_a_person_with_no_match_reports_none():
    asked = recipe(TREE)
    for rows in ((), (("c",),), (("b b",), (None,))):
        assert PersonRows(rows).recipe_bins(asked).tolist() == [asked.none_bin]
    assert typing([[], ["c"], ["a b"]]).recipe_bins(asked).tolist()[:2] == [asked.none_bin] * 2


def test_a_row_in_another_interval_is_an_answer_but_one_that_begins_with_no_prefix_is_none():
    asked = recipe(NumericEdges((0, 1)), PrefixTree(("a",), ("b",)))
    assert asked.label(PersonRows(((7, "a b"),)).recipe_bins(asked)[0]) == ("(other)", "a b")
    assert PersonRows(((0, "b"),)).recipe_bins(asked).tolist() == [asked.none_bin]


def test_who_must_report_a_random_bin_reports_each_equally_often():
    """4,000 people without a match over 9 bins: each within 5.5 standard errors, 4e-8 each; the twin has 10 bins."""
    asked = recipe(TREE, no_match=NoMatch.RANDOM)
    people = 4_000
    counts = np.bincount(typing([[]] * people).recipe_bins(asked), minlength=asked.size)

    def uniform(bins: int) -> bool:
        expected, error = people / bins, np.sqrt(people / bins * (1 - 1 / bins))
        return bool((np.abs(np.pad(counts, (0, bins - len(counts))) - expected) <= 5.5 * error).all())

    assert asked.size == asked.bins == 9
    assert uniform(9) and not uniform(10)


def test_each_matching_row_is_drawn_equally_often_and_the_others_never():
    """6,000 people with rows that match 1 : 2: within 5.5 standard errors, 4e-8; the twin weighs all rows."""
    asked = recipe(TREE)
    found = Counter(typing([["a b", "c", "a a", "c", "a a"]] * 6_000).recipe_bins(asked).tolist())
    assert {asked.label(place)[0] for place in found} == {"a a", "a b"}
    few = min(found.values())
    error = np.sqrt(6_000 * 2 / 9)
    assert abs(few - 2_000) < 5.5 * error < abs(few - 6_000 / 5)


def test_another_question_draws_afresh_and_the_same_one_draws_the_same():
    """Two questions agree for about half of 2,000 people with two rows: within 5.5 standard errors (4e-8)."""
    people = typing([["a a", "a b"]] * 2_000)
    first, second = recipe(TREE), recipe(TREE, name="words.2")
    same = (people.recipe_bins(first) == people.recipe_bins(second)).sum()
    assert abs(same - 1_000) < 5.5 * np.sqrt(500)
    assert (people.recipe_bins(first) == people.recipe_bins(first)).all()
    other_key = people.resampled(np.arange(2_000), b"another").recipe_bins(first)
    assert abs((people.recipe_bins(first) == other_key).sum() - 1_000) < 5.5 * np.sqrt(500)


def test_a_key_that_is_a_number_draws_as_its_digits_do():
    """Streams of a simulated population are numbered; a device's key is bytes."""
    for number in (0, 1, 2, 70):
        drawn, same = (
            PersonDraws(recipe(TREE), key, np.arange(50)).places(np.full(50, 1 << 31)).tolist()
            for key in (number, str(number).encode())
        )
        assert drawn == same
        for other in (b"%d", b"", str(number).encode() * 2):
            assert drawn != PersonDraws(recipe(TREE), other, np.arange(50)).places(np.full(50, 1 << 31)).tolist()


def test_draws_reach_the_first_and_the_last_place():
    draws = PersonDraws(recipe(TREE), b"key", np.arange(200))
    assert set(draws.places(np.full(200, 3)).tolist()) == {0, 1, 2}
    assert set(draws.places(np.ones(200, dtype=np.int64)).tolist()) == {0}


def test_a_question_with_a_recipe_travels():
    query = Query(RecipeBins(recipe(TREE)), Fraction(1, 4))
    assert loads(dumps(query), KNOWN, Query, MESSAGE) == query


def test_tables_of_votes_and_of_rows_are_not_taken_for_each_other():
    votes = MemoryTable(np.array([1]), {"lon": np.array([0.0]), "lat": np.array([0.0])})
    with pytest.raises(TableError, match="rows of a query"):
        RecipeBins(recipe(TREE)).total(votes)
    with pytest.raises(TableError, match="answer recipes"):
        run(Flat(Quadtree.world(depth=2), 1), Curator(typing([["a"]])), PureDP(1), Unrecorded())


def test_a_device_whose_rows_are_of_another_width_answers_zeros():
    answer = contribution(RecipeBins(recipe(TREE)), lambda: PersonRows((("a", "b"),)))  # type: ignore[arg-type, return-value]
    assert not answer.sums.any() and answer.trouble == "InputError"
