"""Who is asked: shards, survivors, and whose noise is certain."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.graph_degree import together
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling

parts = st.fractions(0, Fraction(2, 5), max_denominator=50)


@given(st.integers(1, 5_000), st.integers(20, 700), parts, parts)
def test_shards_hold_everybody_and_are_as_equal_as_can_be(people, shard, dropout, corrupt):
    cohort = Cohort(people, shard, dropout, corrupt, mode=Mode.SEMI_HONEST)
    assert sum(cohort.shards) == people
    assert max(cohort.shards) - min(cohort.shards) <= 1
    assert max(cohort.shards) <= shard
    assert (len(cohort.shards) - 1) * shard < people


@given(st.integers(10, 5_000), parts, parts)
def test_whose_noise_is_certain_survived_and_is_honest(size, dropout, corrupt):
    cohort = Cohort(size, size, dropout, corrupt, mode=Mode.SEMI_HONEST)
    missing, strangers = size - cohort.survivors(size), cohort.survivors(size) - cohort.honest(size)
    assert missing <= dropout * size < missing + 1
    assert strangers <= corrupt * size < strangers + 1


def test_a_shard_larger_than_a_session_may_be_is_refused_before_its_parameters_are_sought():
    for people, shard in ((10_001, 10_001), (3_000_000, 1_000_000)):
        with pytest.raises(InputError, match="a shard has at most 10,000 people"):
            Cohort(people, shard)
    assert max(Cohort(10_001, 10_000).shards) == 5_001
    assert Cohort(9_999, 1_000_000).shards == (9_999,)


def test_where_nobodys_noise_is_certain_there_is_no_cohort():
    with pytest.raises(InputError, match="nobody's noise"):
        Cohort(10, 10, dropout=Fraction(1, 2), corrupt=Fraction(1, 2))


def test_a_server_that_breaks_the_rules_costs_more_noise():
    trusted = Cohort(1_000, 1_000, Fraction(1, 20), Fraction(1, 20), mode=Mode.SEMI_HONEST)
    doubted = Cohort(1_000, 1_000, Fraction(1, 20), Fraction(1, 20))
    assert doubted.mode is Mode.MALICIOUS, "unless somebody says that the server is trusted"
    degree, threshold = doubted.degree_and_threshold(1_000)
    proved = together(1_000, degree, threshold, Fraction(1, 20), Fraction(1, 20))
    assert doubted.honest(1_000) == min(trusted.honest(1_000), proved) < trusted.honest(1_000)


@pytest.mark.parametrize(
    "wrong",
    [
        {"people": 0},
        {"people": 10.0},
        {"people": True},
        {"shard": 0},
        {"dropout": 0.1},
        {"dropout": Fraction(-1, 9)},
        {"corrupt": Fraction(1)},
        {"sampling": "ONE"},
        {"mode": 1},
    ],
    ids=str,
)
def test_what_is_no_cohort_is_refused(wrong):
    good = {"people": 100, "shard": 50, "dropout": Fraction(1, 10), "corrupt": Fraction(1, 10)}
    Cohort(**good)
    with pytest.raises(InputError):
        Cohort(**(good | wrong))


def test_a_statement_is_told_what_is_assumed_and_what_samples_cost():
    one, fresh = (Cohort(25_000, 10_000, sampling=sampling).assumed("noise") for sampling in Sampling)
    assert one[:-1] == fresh[:-1]
    assert "pays for all rounds" in one[-1]
    assert "every round pays the whole" in fresh[-1]
    assert "a shard of 8,333 people is opened only if 7,500 of them answered" in one[1]
