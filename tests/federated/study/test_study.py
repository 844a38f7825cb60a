"""A study over people in this process: tables with intervals, budgets, searches, and refusals in words."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.recipes.asking import typing
from tests.federated.server.asking_studies import POLICY, recipe

import hazemap
from hazemap.errors import BudgetExceeded, InputError, NotOpened, Unanswerable
from hazemap.federated.study.searches import FrequentSequences
from hazemap.privacy.budget import ApproxDP
from hazemap.spatial.quadtree import Quadtree

PEOPLE = [["hello world"]] * 1_500 + [["hello"]] * 1_000 + [["world"]] * 400 + [[]] * 100


def study(analysis="keyboard", people=PEOPLE):
    return hazemap.Study(typing(people, length=2), analysis, policy=POLICY)


def test_an_answer_is_a_table_of_labels_counts_and_intervals_and_is_paid_once():
    own, asked = study(), recipe(tokens=("hello", "world"), minimum_cohort=2_000)
    frame = own.ask(asked)
    truth = {"hello": 2_500, "world": 400}
    assert list(frame.columns) == ["word", "count", "standard_error", "low", "high"]
    assert len(frame) == asked.bins
    assert frame.attrs["people"] == 3_000
    found = frame.set_index("word")
    assert set(truth) <= set(found.index), found.index
    for word, count in truth.items():  # 6 standard errors: wrong with a probability below 1e-8
        assert abs(found.at[word, "count"] - count) < 6 * found.at[word, "standard_error"]
        half = (found.at[word, "high"] - found.at[word, "low"]) / 2
        assert half / found.at[word, "standard_error"] == pytest.approx(1.96, abs=0.08), "of whole people"
    assert (frame["low"] >= frame["count"].clip(upper=0)).all(), "below nobody only where the number itself is"
    promise = " ".join(frame.attrs["promise"])
    assert f"ε = {float(asked.epsilon):g}" in promise and f"ε₀ = {float(asked.local_epsilon):g}" in promise
    assert "every event" in promise, "a population in this process is protected from nobody who holds it"
    none = frame.attrs["none"]
    assert abs(none["count"] - 100) < 6 * none["standard_error"]
    left = own.left
    assert (left.epsilon, left.reports) == (16, 4)
    assert own.ask(asked).equals(frame), "a recipe that was asked is read again"
    assert own.left == left


def test_a_search_runs_over_rounds_and_pays_each():
    own = study()
    words = recipe(tokens=("a",), minimum_cohort=2_000)
    search = FrequentSequences.evenly(words, ("hello", "world", "nobody", "says", "this"), 2)
    found = own.run(search)
    assert "hello world" in found.of_round(2).items
    assert set(found.of_round(1).items) >= {"hello", "world"}
    assert (own.left.epsilon, own.left.reports) == (16, 3)
    own.run(search)
    assert own.left.reports == 3


def test_what_cannot_be_asked_is_said_and_costs_nothing():
    own = study()
    for words, error, asked in (
        ("read keyboard.secret", InputError, recipe(sql="SELECT secret FROM keyboard")),
        ("of typos", InputError, recipe(analysis="typos")),
        ("another purpose", InputError, replace(recipe(), purpose="to know who you are")),
        ("left", BudgetExceeded, recipe(delta=Fraction(1, 10**4))),
    ):
        with pytest.raises(error, match=words):
            own.ask(asked)
    assert own.left.reports == 5
    with pytest.raises(NotOpened, match=r"4,000 people or more, but 3,000 answered"):
        own.ask(recipe(minimum_cohort=4_000))
    assert own.left.reports == 4, "who was asked has paid"
    with pytest.raises(InputError, match="knows no analysis gossip"):
        study("gossip").ask(recipe(analysis="gossip"))
    with pytest.raises(Unanswerable, match="asks for Counts"):
        own.run(hazemap.Flat(Quadtree.world(depth=2), 1))


def test_a_study_needs_a_token_or_a_policy():
    with pytest.raises(InputError, match="needs a token"):
        hazemap.Study("http://127.0.0.1:1", "spring")
    with pytest.raises(InputError, match="needs the policy"):
        hazemap.Study(typing(PEOPLE), "keyboard")


def test_a_feature_may_not_be_called_as_a_column_is():
    from hazemap.federated.recipes.features import Feature, PrefixTree

    with pytest.raises(InputError, match="rename it"):
        study().ask(replace(recipe(), features=(Feature("count", PrefixTree(("",), ("hello",))),)))


def test_answers_are_released_with_the_price_of_all_rounds_that_were_asked(tmp_path):
    own = study()
    with pytest.raises(InputError, match="no such answer"):
        own.release(tmp_path / "none.parquet")
    frame = own.ask(recipe("one", minimum_cohort=2_000))
    with pytest.raises(NotOpened):
        own.ask(recipe("few", minimum_cohort=4_000))
    own.ask(recipe("two", minimum_cohort=2_000))
    own.release(tmp_path / "all.parquet")
    one = own.release(tmp_path / "one.parquet", recipe("one", minimum_cohort=2_000), confidence=0.9)
    found = hazemap.open(tmp_path / "all.parquet")
    assert [each.round for each in found.rounds] == [1, 3] and [each.round for each in one.rounds] == [1]
    assert found.statement.budget == one.statement.budget == ApproxDP(12, Fraction(3, 10**6))
    assert "every event" in found.statement.text()
    lines = found.to_dataframe()
    own_lines = lines[(lines["round"] == 1) & ~lines["none"]].reset_index(drop=True)
    assert own_lines[list(frame.columns)].equals(frame.reset_index(drop=True))


def test_a_study_that_is_stopped_asks_nothing_and_has_nothing_left():
    own = study()
    own.ask(recipe(minimum_cohort=2_000))
    own.stop()
    assert (own.left.epsilon, own.left.reports) == (0, 0)
    own.ask(recipe(minimum_cohort=2_000))
    with pytest.raises(InputError, match="was stopped"):
        own.ask(recipe("other", minimum_cohort=2_000))
