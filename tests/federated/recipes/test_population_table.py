"""A population answers as its people's devices do, whatever the buckets: by brute force over small cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.federated.recipes.asking import PersonRows, recipe, starts, typing

from hazemap.errors import TableError
from hazemap.federated.device.recipes.query_sandbox import QuerySandbox
from hazemap.federated.recipes.features import Categories, NumericEdges, PrefixTree, StringPrefixes
from hazemap.federated.recipes.population_table import PopulationTable, TokenSequences
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName, StreamSchema
from hazemap.federated.recipes.recipe import NoMatch
from hazemap.federated.recipes.sql_query import SqlQuery

TOKENS = ("a", "b", "é", "zebra")
TEXT = st.lists(st.sampled_from(TOKENS), max_size=3).map(" ".join)
PEOPLE = st.lists(st.lists(TEXT, max_size=5), min_size=1, max_size=6)
RULES = (
    PrefixTree(("",), ("a", "é")),
    PrefixTree(("a", "b a"), ("a", "b", "unseen")),
    PrefixTree(("unseen", "b"), ("a",)),
    PrefixTree(("a a a", "b b b"), ("a",)),
    Categories(("a", "a b", "b a é", "unseen")),
    Categories((7, 8)),
    StringPrefixes(("a", "b "), "ab é", 2),
)


@settings(max_examples=60)
@given(PEOPLE, st.sampled_from(RULES), st.sampled_from(NoMatch), st.binary(max_size=4))
def test_a_population_answers_as_its_devices_do(people, rule, no_match, key):
    asked = recipe(rule, no_match=no_match)
    expected = [
        int(PersonRows([(text,) for text in texts], key, number).recipe_bins(asked)[0])
        for number, texts in enumerate(people)
    ]
    assert typing(people, 3, key).recipe_bins(asked).tolist() == expected
    values = tuple(text for texts in people for text in texts)
    assert PopulationTable(starts(people), (values,), None, key).recipe_bins(asked).tolist() == expected


@given(st.lists(st.one_of(st.floats(-3, 9), st.just(float("nan")), st.integers(-2, 8).map(float))))
def test_numbers_and_two_features_fall_into_the_same_bins(numbers):
    edges = NumericEdges((-1, 0, 0.5, 7))
    texts = [TOKENS[place % 3] for place in range(len(numbers))]
    table = PopulationTable(
        np.arange(len(numbers) + 1), (np.array(numbers, dtype=np.float64), TokenSequences.of_texts(texts, 1))
    )
    for asked in (recipe(edges, PrefixTree(("",), ("a",))), recipe(edges, Categories(("b",)))):
        rows = list(zip(numbers, texts, strict=True))
        assert table.recipe_bins(asked).tolist() == asked.bins_of(rows).tolist()


def test_what_a_sandbox_gives_is_answered_as_in_the_population():
    """The events of each device, put through its sandbox: the same bins, person by person."""
    people = [["to be or", "be or not", "or not"], ["to do"], [], ["a cat"], ["to be", "a cat", "to do it"]]
    sandbox = QuerySandbox(
        (StreamSchema.of("keyboard", ngram="text"),), AnyQueryOverFields((StreamFieldName("keyboard", "ngram"),))
    )
    admitted = sandbox.admit(SqlQuery("SELECT ngram FROM keyboard"))
    for rule in (PrefixTree(("",), ("to", "be")), PrefixTree(("to", "or not"), ("be", "do"))):
        asked, found = recipe(rule), []
        for number, texts in enumerate(people):
            rows = sandbox.run(admitted, _Events([(text,) for text in texts])).rows
            found.append(int(PersonRows(rows, b"secret", number).recipe_bins(asked)[0]))
        assert typing(people, 3, b"secret").recipe_bins(asked).tolist() == found


class _Events:
    def __init__(self, rows):
        self.rows = rows

    def events(self, stream, fields):
        return self.rows


def test_people_who_are_resampled_have_the_rows_of_others_and_draws_of_their_own():
    few = typing([["a a", "a b"], ["b a"]])
    many = few.resampled(np.array([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 5)
    bins = many.recipe_bins(recipe(RULES[1])).tolist()
    assert many.people == 10 and few.people == 2
    assert bins[0] == PersonRows([("b a",)], 5, 0).recipe_bins(recipe(RULES[1]))[0]
    assert len(set(bins[1:])) == 2
    assert bins[3] == PersonRows([("a a",), ("a b",)], 5, 3).recipe_bins(recipe(RULES[1]))[0]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda texts: PopulationTable(np.array([0, 2]), (texts,)), "order of their people"),
        (lambda texts: PopulationTable(np.array([0, 2, 1, 3]), (texts,)), "order of their people"),
        (lambda texts: PopulationTable(np.array([0, 3]), (texts,), np.array([1])), "holders 0 to 0"),
        (lambda _: PopulationTable(np.array([0, 1 << 32]), (range(1 << 32),)), "less than 2"),
        (lambda texts: PopulationTable.of_people(np.array([1, 2, 1]), (texts,)), "sort them"),
        (lambda texts: PopulationTable(np.array([0, 3]), (texts, texts)).recipe_bins(recipe(RULES[0])), "1 columns"),
        (lambda _: TokenSequences(np.zeros((2, 2)), ()), "vocabulary"),
        (lambda _: TokenSequences(np.array([[-1, 0]]), ("a",)), "does not go on"),
        (lambda _: TokenSequences(np.zeros(3), ("a",)), "matrix"),
    ],
)
def test_tables_that_would_mislead_are_refused(make, why):
    with pytest.raises(TableError, match=why):
        make(TokenSequences.of_texts(["a", "b", "a b"], 2))


def test_a_text_that_ends_is_not_taken_for_one_that_goes_on():
    """Where it has ended stands −1, which as a token would be the last one of the vocabulary after another text."""
    rule, texts = Categories(("a", "b", "a z")), ["a", "b", "a z"]
    assert TokenSequences.of_texts(texts, 2).buckets(rule).tolist() == rule.buckets([texts]).tolist() == [1, 2, 3]


def test_nobody_at_all_answers_nothing():
    table = PopulationTable.of_people(np.empty(0, dtype=np.int64), (TokenSequences.of_texts([], 2),))
    assert table.people == 0 and len(table.recipe_bins(recipe(RULES[0]))) == 0
