"""A run that pays in two charges: no answer costs more than what was charged before it, wherever it stops."""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import BudgetExceeded, CapExceeded, TranscriptMismatch
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP, make_up
from hazemap.queries.algorithm_disclosure import counted
from hazemap.queries.algorithm_session import Session
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows

TREE = Quadtree.world(depth=1)
QUARTERS = tuple(Leaves(TREE, TREE.children(TREE.root)[[each]]) for each in range(2))
LOOK = Fraction(1, 10)
SHARES = tuple(Fraction(each, 100) for each in (3, 7, 10, 45, 93))


@dataclass(frozen=True)
class Asks:
    """Asks these, whatever is answered."""

    questions: tuple[Query, ...]
    disclosure: ClassVar = counted()

    def rounds(self, prices: Any) -> Generator[Query, Answer, int]:
        for question in self.questions:
            _ = yield question
        return len(self.questions)


class Bank:
    """Keeps what was charged; after `most` charges nothing is left."""

    def __init__(self, most: int = 2) -> None:
        self.paid: list[Budget] = []
        self.most = most

    def charge(self, price: Budget) -> None:
        if len(self.paid) == self.most:
            raise CapExceeded("nothing is left")
        self.paid.append(price)


def answer(question: Query) -> Answer:
    return Answer(np.zeros(question.size, dtype=np.int64), np.ones(1))


def lost(asked: list[Query]) -> Fraction:
    """What the person loses who loses most, tried over everybody: by the quarter they are in and their cohort."""
    everybody = product(range(2), (0, 1))
    return max(
        sum(
            (each.share for each in asked if each.cohort in (None, cohort) and each.encoder.cells == QUARTERS[at]),
            Fraction(0),
        )
        for at, cohort in everybody
    )


@pytest.mark.parametrize("rounds", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_no_answer_costs_more_than_what_was_charged_before_it_wherever_a_run_stops(rounds):
    """All methods of so many rounds over shares, places and cohorts, each stopped after the look and not."""
    kinds = [
        Query(Counts(QUARTERS[at], AtMostRows(1)), share, cohort)
        for share in SHARES
        for at, cohort in ((0, None), (1, None), (0, 0), (0, 1))
    ]
    ends = {"full": 0, "stopped": 0, "refused": 0}
    for questions in product(kinds, repeat=rounds):
        if questions[0].share > LOOK:
            continue
        bank, asked = Bank(), list[Query]()
        try:
            session = Session(Asks(questions), None, PureDP(1), bank, lambda _: True, look=LOOK)
            while session.question is not None:
                asked.append(session.question)
                assert lost(asked) <= sum(each.epsilon for each in bank.paid) == LOOK
                session.receive(answer(session.question))
            assert session.looked
            ends["stopped"] += 1
            session.go_on()
            while session.question is not None:
                asked.append(session.question)
                assert lost(asked) <= 1 == sum(each.epsilon for each in bank.paid)
                session.receive(answer(session.question))
            assert session.result is not None and not session.looked
            ends["full"] += 1
        except BudgetExceeded:
            ends["refused"] += 1
            assert lost(asked) <= sum(each.epsilon for each in bank.paid)
        assert asked == list(questions[: len(asked)])
    assert min(ends.values()) > 5


@pytest.mark.parametrize("budget", [PureDP("0.7"), ZCDP(Fraction(1, 3)), ApproxDP(1, "1e-6")])
def test_the_two_charges_make_up_the_price_exactly_and_nothing_else_does(budget):
    bank = Bank()
    questions = tuple(Query(Counts(QUARTERS[0], AtMostRows(1)), share) for share in (LOOK, 1 - LOOK))
    session = Session(Asks(questions), None, budget, bank, lambda _: True, look=LOOK)
    session.receive(answer(session.question))
    session.go_on()
    assert make_up(bank.paid, budget)
    assert not make_up([bank.paid[0]], budget) and not make_up([*bank.paid, bank.paid[0]], budget)
    assert session.price == budget.part(1 - LOOK)
    with pytest.raises(TranscriptMismatch, match="paid once"):
        session.go_on()


def test_nothing_is_seen_or_published_where_the_rest_cannot_be_paid():
    bank = Bank(most=1)
    questions = tuple(Query(Counts(QUARTERS[0], AtMostRows(1)), share) for share in (LOOK, Fraction(1, 2)))
    for asks in (questions, questions[:1]):
        session = Session(Asks(asks), None, PureDP(1), bank := Bank(most=1), lambda _: True, look=LOOK)
        session.receive(answer(session.question))
        with pytest.raises(CapExceeded):
            session.go_on()
        assert session.looked and session.question is None and len(bank.paid) == 1
