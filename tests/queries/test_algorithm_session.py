"""The conversation: what is charged, refused, kept and replayed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from hazemap.algorithms import Adaptive, AdaptiveHierarchicalHistogram, FittedLevel, Flat
from hazemap.cells import Leaves
from hazemap.encoders import Counts, QuantileScores
from hazemap.errors import BudgetExceeded, CapExceeded, InputError, TranscriptMismatch, Unanswerable
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_disclosure import counted
from hazemap.queries.algorithm_session import Exchange, Session, Unrecorded, replay, run, run_async
from hazemap.queries.noisy_queries import Answer, Choice, Query
from hazemap.spatial.quadtree import Quadtree

TREE = Quadtree.world(depth=6)
QUARTERS = Counts(Leaves(TREE, TREE.children(TREE.root)))


class FixedPrices:
    """One unit of noise for the whole budget."""

    def stddev(self, encoder, share):
        return 1 / float(share)

    def share(self, encoder, stddev):
        return Fraction(1) if stddev <= 1 else Fraction(str(round(1 / stddev, 6)))


@dataclass
class Fixed:
    """A trust model that answers with a ramp: more people in later cells."""

    sees: Callable = lambda _: True
    asked: list = field(default_factory=list)

    def prices(self, budget):
        return FixedPrices()

    def answers(self, question):
        return self.sees(question)

    def answer(self, question, price):
        self.asked.append((question, price))
        return Answer(np.arange(question.encoder.size) * 1000, np.array([1 / float(question.share)]), 3.0)


@dataclass
class FixedAsync(Fixed):
    async def answer(self, question, price):
        await asyncio.sleep(0)
        return super().answer(question, price)


@dataclass
class Asks:
    """An algorithm that asks the queries it is given."""

    queries: tuple
    disclosure: ClassVar = counted()

    def rounds(self, prices):
        answers = []
        for query in self.queries:
            answers.append((yield query))
        return answers


class Purse:
    def __init__(self):
        self.charges = []

    def charge(self, price):
        self.charges.append(price)


METHODS = [Flat(TREE, 2), FittedLevel(TREE), Adaptive(TREE), AdaptiveHierarchicalHistogram(TREE, people=10**6)]


def same(one, other):
    return np.array_equal(one.values, other.values) and one.cells == other.cells


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_sync_async_and_replay_give_one_result(method):
    done = run(method, Fixed(), PureDP(1), Unrecorded())
    assert same(done.value, asyncio.run(run_async(method, FixedAsync(), PureDP(1), Unrecorded())).value)
    assert same(done.value, replay(method, FixedPrices(), PureDP(1), done.transcript).value)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_session_resumes_from_its_answers(method):
    done = run(method, Fixed(), PureDP(1), Unrecorded())
    half = Session(method, FixedPrices(), PureDP(1), Unrecorded(), lambda _: True, done.transcript[:-1])
    assert half.question is not None
    half.receive(done.transcript[-1].answer)
    assert half.result and same(half.result.value, done.value)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_method_spends_its_budget_to_the_last_fraction(method):
    trust = Fixed()
    run(method, trust, PureDP(1), Unrecorded())
    assert sum(price.epsilon for _, price in trust.asked) == 1


def test_the_whole_budget_is_charged_once_before_anything_is_asked():
    purse, order = Purse(), []

    class Watching(Asks):
        def rounds(self, prices):
            order.append(("asking", list(purse.charges)))
            return (yield from super().rounds(prices))

    run(Watching((Query(QUARTERS, Fraction(1, 2)), Query(QUARTERS, Fraction(1, 2)))), Fixed(), PureDP(2), purse)
    assert purse.charges == [PureDP(2)]
    assert order == [("asking", [PureDP(2)])]


def test_nothing_is_asked_when_the_charge_is_refused():
    class Empty:
        def charge(self, price):
            raise CapExceeded("nothing left")

    trust = Fixed()
    with pytest.raises(CapExceeded):
        run(Asks((Query(QUARTERS, 1),)), trust, PureDP(1), Empty())
    assert not trust.asked


def test_overspending_is_refused_before_anyone_is_asked():
    trust = Fixed()
    with pytest.raises(BudgetExceeded, match=r"0.8 of the run's budget, of which 0.2 is left"):
        run(Asks((Query(QUARTERS, Fraction(4, 5)), Query(QUARTERS, Fraction(4, 5)))), trust, PureDP(1), Unrecorded())
    assert len(trust.asked) == 1


def test_ten_tenths_are_one():
    trust = Fixed()
    run(Asks((Query(QUARTERS, Fraction(1, 10)),) * 10), trust, PureDP(1), Unrecorded())
    assert len(trust.asked) == 10


def test_fresh_cohorts_do_not_pay_for_each_other_and_everyone_pays_for_a_query_to_all():
    session = Session(
        Asks((*(Query(QUARTERS, 1, cohort=i) for i in range(3)), Query(QUARTERS, Fraction(1, 10)))),
        FixedPrices(),
        PureDP(1),
        Unrecorded(),
        lambda _: True,
    )
    for _ in range(2):
        session.receive(Answer(np.zeros(4, dtype=np.int64), np.ones(1)))
    with pytest.raises(BudgetExceeded):
        session.receive(Answer(np.zeros(4, dtype=np.int64), np.ones(1)))


def test_a_query_only_a_curator_can_answer_is_refused_by_others_with_the_reason():
    median = Choice(QuantileScores(QUARTERS.cells, (Fraction(1, 2),)), 1)
    with pytest.raises(Unanswerable, match=r"Asks asks for a Choice.*only a curator"):
        run(Asks((median,)), Fixed(sees=lambda question: question is Query), PureDP(1), Unrecorded())


def test_a_transcript_of_another_method_does_not_fit():
    done = run(Flat(TREE, 2), Fixed(), PureDP(1), Unrecorded())
    with pytest.raises(TranscriptMismatch, match="round 1 Flat asks another query"):
        replay(Flat(TREE, 3), FixedPrices(), PureDP(1), done.transcript)


def test_a_transcript_too_short_or_too_long_does_not_fit():
    done = run(Adaptive(TREE), Fixed(), PureDP(1), Unrecorded())
    with pytest.raises(TranscriptMismatch, match="ends before"):
        replay(Adaptive(TREE), FixedPrices(), PureDP(1), done.transcript[:-1])
    with pytest.raises(TranscriptMismatch, match="goes on"):
        replay(Adaptive(TREE), FixedPrices(), PureDP(1), (*done.transcript, done.transcript[-1]))


def test_an_answer_of_the_wrong_length_is_refused():
    session = Session(Flat(TREE, 1), FixedPrices(), PureDP(1), Unrecorded(), lambda _: True)
    with pytest.raises(TranscriptMismatch, match="asks for 4 sums"):
        session.receive(Answer(np.zeros(5, dtype=np.int64), np.ones(1)))


def test_an_answer_that_nobody_asked_for_is_refused():
    session = Session(
        Flat(TREE, 1),
        FixedPrices(),
        PureDP(1),
        Unrecorded(),
        lambda _: True,
        [Exchange(Query(Counts(Leaves.at_level(TREE, 1)), 1), Answer(np.arange(4), np.ones(1)))],
    )
    with pytest.raises(TranscriptMismatch, match="no query is open"):
        session.receive(Answer(np.arange(4), np.ones(1)))


@pytest.mark.parametrize("share", [0, -1, Fraction(3, 2), "1/2", 0.5, 1.0, True, np.int64(1), None])
def test_a_share_that_is_no_exact_part_of_one_is_refused(share):
    with pytest.raises(InputError, match="a Fraction above 0 and at most 1"):
        Query(QUARTERS, share)


@pytest.mark.parametrize("disclosure", [None, "everything", property(lambda _: None)])
def test_a_method_that_does_not_say_what_it_learns_is_refused_before_it_is_paid(disclosure):
    class Silent(Asks):
        pass

    Silent.disclosure, purse, trust = disclosure, Purse(), Fixed()
    with pytest.raises(InputError, match="Silent does not say what it learns"):
        run(Silent((Query(QUARTERS, 1),)), trust, PureDP(1), purse)
    assert not purse.charges and not trust.asked


def test_a_method_cannot_change_an_answer_that_it_was_given():
    class Writes(Asks):
        def rounds(self, prices):
            answer = yield self.queries[0]
            with pytest.raises(ValueError, match="read-only"):
                answer.sums[:] = 0
            with pytest.raises(ValueError, match="read-only"):
                answer.stddev += 1
            with pytest.raises(ValueError, match="WRITEABLE"):
                answer.sums.flags.writeable = True
            return answer

    done = run(Writes((Query(QUARTERS, 1),)), Fixed(), PureDP(1), Unrecorded())
    kept = (own := np.arange(4), Answer(own, np.ones(1)))
    own += 1
    assert kept[1].sums.tolist() == [0, 1, 2, 3], "nor a trust model that uses its array again"
    assert done.transcript[0].answer.sums.tolist() == [0, 1000, 2000, 3000]
    assert done.transcript[0].answer.stddev.tolist() == [1.0]


def test_the_last_exchange_of_a_transcript_is_looked_at_as_the_first():
    done = run(Adaptive(TREE), Fixed(), PureDP(1), Unrecorded())
    last = len(done.transcript)
    other = Query(QUARTERS, done.transcript[-1].question.share / 2)
    with pytest.raises(TranscriptMismatch, match=f"round {last} Adaptive asks another query"):
        replay(
            Adaptive(TREE),
            FixedPrices(),
            PureDP(1),
            (*done.transcript[:-1], Exchange(other, done.transcript[-1].answer)),
        )


def test_the_last_query_that_the_budget_does_not_cover_is_refused_as_the_first():
    """Of one, two and three queries, whichever comes last is one millionth too dear."""
    for number in (1, 2, 3):
        shares = [Fraction(1, number)] * number
        run(Asks(tuple(Query(QUARTERS, share) for share in shares)), Fixed(), PureDP(1), Unrecorded())
        trust, last = Fixed(), Query(QUARTERS, Fraction(1, 1_000_000))
        asked = (*(Query(QUARTERS, share) for share in shares), last)
        with pytest.raises(BudgetExceeded):
            run(Asks(asked), trust, PureDP(1), Unrecorded())
        assert len(trust.asked) == number
