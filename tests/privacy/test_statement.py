import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.errors import CodecError, InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PrivacyAmount, PureDP, log_delta
from hazemap.privacy.privacy_unit import Unit
from hazemap.privacy.statement import (
    A_PERSON,
    A_ROW,
    Statement,
    bounding_from_json,
    bounding_to_json,
    budget_from_json,
    budget_to_json,
    implied_epsilon,
)
from hazemap.privacy.statement_facts import CohortFacts, Randomness, StatementFacts
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, OwnMeans, RowIsPerson

NYC = Statement(
    dataset="nyc",
    unit=A_PERSON,
    neighbours="tables that differ by one person, added or removed",
    budget=PureDP(1),
    bounding=AtMostRows(1),
    trust="curator",
    assumptions=("the curator sees the table and publishes nothing else",),
    noise="discrete Laplace",
    public=("the box", "ε", "the method"),
    charged=("the counts",),
    method="adaptive tree",
    created="2026-01-02",
    version="0.1.0",
)

PLAIN = """{
 "statement": 3,
 "dataset": "nyc",
 "unit": "a person: all rows of one id",
 "neighbours": "tables that differ by one person, added or removed",
 "budget": {"kind": "ZCDP", "rho": "1/2"},
 "bounding": {"kind": "AtMostRows", "most": 1, "nowhere": false},
 "trust": "curator",
 "assumptions": ["the curator sees the table and publishes nothing else"],
 "noise": "discrete Laplace",
 "public": ["the box", "ε", "the method"],
 "charged": ["the counts"],
 "method": "adaptive tree",
 "created": "2026-01-02",
 "version": "0.1.0",
 "implies": [{"epsilon": "2611/500", "delta": "1/1000000"}, {"epsilon": "259/40", "delta": "1/1000000000"}]
}"""
GOLDEN = json.dumps(
    json.loads(PLAIN)
    | {
        "circumstances": {
            "unit": {
                "kind": "person",
                "model": "full",
                "id_column": "user",
                "read_as": "whole numbers",
                "guessed": True,
            },
            "randomness": "system",
            "cohort": {
                "people": 1000,
                "shard": 500,
                "dropout": "1/10",
                "corrupt": "1/20",
                "sampling": "ONE",
                "mode": "MALICIOUS",
            },
        },
        "learned": ["box", "numbers"],
        "paid": {"measure": "ρ", "value": "7/10"},
    }
)
KNOWN = StatementFacts(
    Unit.person("user", "whole numbers", guessed=True),
    Randomness.SYSTEM,
    CohortFacts(1000, 500, Fraction(1, 10), Fraction(1, 20), "ONE", "MALICIOUS"),
)

positive = st.fractions(min_value=Fraction(1, 10**6), max_value=10**4, max_denominator=10**6)
deltas = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(1, 2), max_denominator=10**12)
budgets: st.SearchStrategy[Budget] = st.one_of(
    positive.map(PureDP), positive.map(ZCDP), st.builds(ApproxDP, positive, deltas)
)
boundings = st.one_of(
    st.builds(AtMostRows, st.integers(1, 1000), st.sampled_from(Outside)),
    st.builds(AtMostCells, st.integers(1, 1000), st.sampled_from(Outside)),
    st.builds(OneVote, st.integers(1, 1 << 16), st.sampled_from(Outside)),
    st.builds(RowIsPerson, st.sampled_from(Outside)),
    st.builds(OwnMeans, st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 1 << 28)),
)
lines = st.lists(st.text(max_size=20), max_size=3).map(tuple)


def test_a_line_says_who_is_protected_how_well_and_by_whom() -> None:
    assert NYC.line() == (
        "Differentially private per person: ε = 1 (pure), one row a person, "
        "discrete Laplace noise by a curator; hazemap 0.1.0."
    )


def test_a_line_about_rows_does_not_promise_to_protect_people() -> None:
    line = replace(NYC, unit=A_ROW, bounding=RowIsPerson()).line()
    assert line.startswith("Differentially private per row: ε = 1 (pure), each row is a person of its own,")


def test_a_line_in_rho_says_the_epsilon_and_delta_it_implies() -> None:
    line = replace(NYC, budget=ZCDP("0.5"), noise="discrete Gaussian").line()
    assert "ρ = 0.5 (zero-concentrated; ε = 5.222 at δ = 1e-06)" in line


def test_a_line_in_epsilon_and_delta_says_both() -> None:
    assert ": (ε, δ) = (1, 1e-06), one row a person," in replace(NYC, budget=ApproxDP(1, 1e-6)).line()


def test_trust_of_several_words_is_said_as_it_is() -> None:
    assert "noise by two servers;" in replace(NYC, trust="two servers").line()


def test_the_text_says_everything() -> None:
    text = replace(NYC, charged=(), bounding=AtMostRows(3, outside=Outside.COUNT)).text()
    for part in (
        "nyc",
        A_PERSON,
        NYC.neighbours,
        "ε = 1: pure",
        "at most 3 rows a person (sensitivity: L1 = 3, L2² = 9 votes)",
        "rows outside every cell are weighed",
        "discrete Laplace, by a curator",
        *NYC.assumptions,
        *NYC.public,
        "Charged     nothing",
        "adaptive tree",
        "2026-01-02, by hazemap 0.1.0",
    ):
        assert part in text


def test_the_text_of_rho_lists_what_it_implies() -> None:
    text = replace(NYC, budget=ZCDP("0.5")).text()
    assert "implies ε = 5.222 at δ = 1e-06" in text
    assert "implies ε = 6.475 at δ = 1e-09" in text


def test_the_text_of_epsilon_and_delta_says_as_which_rho_they_are_spent() -> None:
    assert "spent as ρ = 0.024356" in replace(NYC, budget=ApproxDP(1, 1e-6)).text()


def test_a_statement_cannot_promise_people_where_rows_are_bounded() -> None:
    with pytest.raises(InputError, match="its unit is 'a row'"):
        replace(NYC, bounding=RowIsPerson())


@pytest.mark.parametrize("created", ["", "yesterday", "20260102", "2026-01-02T03:04:05Z", "2026-02-30"])
def test_a_statement_is_dated_by_its_day(created: str) -> None:
    with pytest.raises(InputError, match="by its day in UTC"):
        replace(NYC, created=created)


def test_the_golden_statement_is_read_and_written_as_ever() -> None:
    paid = PrivacyAmount("ρ", Fraction(7, 10))
    statement = replace(NYC, budget=ZCDP("0.5"), circumstances=KNOWN, learned=("box", "numbers"), paid=paid)
    assert statement.to_json() == json.loads(GOLDEN)
    assert Statement.from_json(json.loads(GOLDEN)) == statement


def test_a_statement_says_what_was_paid_in_all_beside_its_own_price_and_what_much_means() -> None:
    statement = replace(NYC, paid=PrivacyAmount("ε", Fraction(5, 2)))
    assert "ε = 1 (pure) of ε = 2.5 paid in all, one row" in statement.line()
    assert "in all the data set has paid ε = 2.5, this release included\n" in statement.text()
    assert "in all is much" not in statement.text()
    much = replace(NYC, paid=PrivacyAmount("ε", Fraction(13, 2)))
    assert "ε = 6.5 in all is much: whoever has all its releases may be up to 665 times as sure" in much.text()
    assert Statement.from_json(json.loads(json.dumps(much.to_json()))) == much
    for wrong in ({"measure": "δ", "value": "1"}, {"measure": "ε"}, {"measure": "ε", "value": 1}, "ε = 1"):
        with pytest.raises(CodecError):
            Statement.from_json(NYC.to_json() | {"paid": wrong})


def test_the_text_names_the_id_column_and_says_that_it_was_guessed() -> None:
    """Both were missing: whoever took a column of trips for one of people could not see it in what was published."""
    text = replace(NYC, circumstances=KNOWN).text()
    assert "told apart by the column 'user', read as whole numbers, guessed by its name" in text
    named = replace(KNOWN, unit=Unit.person("trip", "text, letter by letter"))
    assert "the column 'trip', read as text, letter by letter\n" in replace(NYC, circumstances=named).text()


def test_a_fixed_test_stream_is_no_randomness_of_the_system() -> None:
    line = replace(NYC, circumstances=StatementFacts(randomness=Randomness.TEST_STREAM)).line()
    assert line.startswith("A test that protects nobody")


@pytest.mark.parametrize(
    "circumstances",
    [
        None,
        {},
        {"unit": None, "randomness": "dice", "cohort": None},
        {"unit": None, "randomness": 1, "cohort": None},
        {"unit": {"kind": "person"}, "randomness": None, "cohort": None},
        {"unit": None, "randomness": None, "cohort": {"people": 1}},
        {"unit": None, "randomness": None, "cohort": json.loads(GOLDEN)["circumstances"]["cohort"] | {"people": True}},
        {"unit": None, "randomness": None, "cohort": json.loads(GOLDEN)["circumstances"]["cohort"] | {"shard": 0}},
        {
            "unit": None,
            "randomness": None,
            "cohort": json.loads(GOLDEN)["circumstances"]["cohort"] | {"dropout": "1e-999999999"},
        },
    ],
)
def test_circumstances_that_cannot_be_are_refused(circumstances) -> None:
    with pytest.raises(CodecError):
        Statement.from_json(json.loads(GOLDEN) | {"circumstances": circumstances})


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(budgets, boundings, lines, lines, lines, st.text(max_size=30))
def test_a_statement_survives_its_json(budget, bounding, assumptions, public, charged, method) -> None:
    unit = A_ROW if isinstance(bounding, RowIsPerson) else A_PERSON
    statement = replace(
        NYC,
        unit=unit,
        budget=budget,
        bounding=bounding,
        assumptions=assumptions,
        public=public,
        charged=charged,
        method=method,
    )
    assert Statement.from_json(json.loads(json.dumps(statement.to_json()))) == statement


@pytest.mark.parametrize("field", json.loads(GOLDEN))
def test_a_missing_field_is_refused_by_name(field: str) -> None:
    data = json.loads(GOLDEN)
    del data[field]
    with pytest.raises(CodecError, match=field):
        Statement.from_json(data)


@pytest.mark.parametrize("field", json.loads(GOLDEN))
@pytest.mark.parametrize("wrong", [None, 3, True, [3], {"kind": 3}, {"kind": "More"}, {}])
def test_a_field_of_another_type_is_refused(field: str, wrong: object) -> None:
    if (field, wrong) in [("paid", None), ("statement", 3)]:
        return
    with pytest.raises(CodecError):
        Statement.from_json(json.loads(GOLDEN) | {field: wrong})


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(CodecError, match="unknown: mood"):
        Statement.from_json(json.loads(GOLDEN) | {"mood": "good"})


@pytest.mark.parametrize("data", [None, [], "statement", {}, {"dataset": "nyc"}])
def test_what_is_no_statement_is_said_to_be_none(data: object) -> None:
    with pytest.raises(CodecError, match="not a privacy statement"):
        Statement.from_json(data)


@pytest.mark.parametrize("version", [0, 1, 2, 4, "3", 3.0, True])
def test_a_statement_of_another_version_is_refused(version: object) -> None:
    with pytest.raises(CodecError, match="this hazemap reads version 3"):
        Statement.from_json(json.loads(GOLDEN) | {"statement": version})


def test_a_statement_that_claims_a_smaller_epsilon_than_its_rho_implies_is_refused() -> None:
    with pytest.raises(CodecError, match=r"ρ = 0.5 does not imply it"):
        Statement.from_json(json.loads(GOLDEN) | {"implies": [{"epsilon": "5", "delta": "1/1000000"}]})


def test_a_statement_that_claims_a_larger_epsilon_is_true_and_read() -> None:
    statement = replace(NYC, budget=ZCDP("0.5"))
    data = statement.to_json() | {"implies": [{"epsilon": "6", "delta": "1/1000000"}]}
    assert Statement.from_json(data) == statement


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, 1e-6)])
def test_a_statement_that_names_its_epsilon_claims_no_other(budget: Budget) -> None:
    data = replace(NYC, budget=budget).to_json()
    with pytest.raises(CodecError, match="beside the one its budget names"):
        Statement.from_json(data | {"implies": [{"epsilon": "1/2", "delta": "1/1000000"}]})


@pytest.mark.parametrize(
    "budget",
    [
        {"kind": "PureDP"},
        {"kind": "PureDP", "epsilon": "1", "delta": "1/2"},
        {"kind": "PureDP", "epsilon": 1},
        {"kind": "PureDP", "epsilon": "0.1"},
        {"kind": "PureDP", "epsilon": " 1"},
        {"kind": "PureDP", "epsilon": "1/0"},
        {"kind": "PureDP", "epsilon": "0"},
        {"kind": "PureDP", "epsilon": "-1"},
        {"kind": "PureDP", "epsilon": "1e5"},
        {"kind": "PureDP", "epsilon": "9" * 5000},
        {"kind": "ApproxDP", "epsilon": "1", "delta": "1"},
        {"kind": "GaussDP", "mu": "1"},
        {"kind": []},
        "PureDP",
        None,
    ],
)
def test_an_impossible_budget_is_refused(budget: object) -> None:
    with pytest.raises(CodecError):
        budget_from_json(budget)


@pytest.mark.parametrize(
    "bounding",
    [
        {"kind": "AtMostRows", "most": 0, "nowhere": False},
        {"kind": "AtMostRows", "most": "1", "nowhere": False},
        {"kind": "AtMostRows", "most": True, "nowhere": False},
        {"kind": "AtMostRows", "most": 1, "nowhere": 0},
        {"kind": "AtMostRows", "most": 1, "nowhere": "count"},
        {"kind": "OwnMeans", "cells": 1, "records": 1, "scale": 4, "nowhere": "people"},
        {"kind": "AtMostRows", "most": 1},
        {"kind": "AtMostCells", "scale": 1, "nowhere": False},
        {"kind": "OneVote", "scale": 1 << 17, "nowhere": False},
        {"kind": "RowIsPerson", "most": 1, "nowhere": False},
        {"kind": "Everything", "nowhere": False},
        [],
    ],
)
def test_an_impossible_bounding_rule_is_refused(bounding: object) -> None:
    with pytest.raises(CodecError):
        bounding_from_json(bounding)


@settings(deadline=None)
@given(budgets)
def test_a_budget_survives_its_json_exactly(budget: Budget) -> None:
    assert budget_from_json(json.loads(json.dumps(budget_to_json(budget)))) == budget


@given(boundings)
def test_a_bounding_rule_survives_its_json(bounding) -> None:
    assert bounding_from_json(json.loads(json.dumps(bounding_to_json(bounding)))) == bounding


@pytest.mark.parametrize("epsilon", [Fraction(10**150), Fraction(1, 10**5000)])
def test_a_budget_of_absurdly_many_digits_is_not_written(epsilon: Fraction) -> None:
    with pytest.raises(InputError, match="at most 150 digits"):
        budget_to_json(PureDP(epsilon))


@settings(max_examples=40, deadline=None)
@given(positive, deltas)
def test_the_implied_epsilon_is_true_and_the_least_to_four_digits(rho: Fraction, delta: Fraction) -> None:
    epsilon, goal = float(implied_epsilon(rho, delta)), math.log(delta)
    assert log_delta(float(rho), epsilon) <= goal
    every_epsilon_will_do = log_delta(float(rho), 0.0) <= goal
    assert every_epsilon_will_do or log_delta(float(rho), epsilon * (1 - 1.1e-3)) > goal - 1e-6


@settings(max_examples=40, deadline=None)
@given(st.fractions(min_value=Fraction(1, 10**4), max_value=50, max_denominator=10**4), deltas)
def test_the_implied_epsilon_holds_for_gaussian_noise_whose_epsilon_is_known(rho: Fraction, delta: Fraction) -> None:
    epsilon, mu = float(implied_epsilon(rho, delta)), math.sqrt(2 * rho)  # Balle and Wang 2018, theorem 8

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    exact = phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)
    assert exact <= float(delta)
