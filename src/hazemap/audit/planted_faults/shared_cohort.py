"""Every round is charged to a cohort of its own, and all cohorts are everybody: people lose ε in every round."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.privacy.budget import Budget
from hazemap.queries import Answer, Query, Question
from hazemap.session import Session
from hazemap.trust.curator import Curator


@contextmanager
def planted() -> Iterator[None]:
    """Each question gets the whole budget of another cohort; the curator asks everyone."""
    spend, answer = Session._spend, Curator.answer

    def spending(self: "Session[Any]", question: Question) -> None:
        if isinstance(question, Query):
            object.__setattr__(question, "share", Fraction(1))
            object.__setattr__(question, "cohort", len(self._transcript))
        spend(self, question)

    def answering(self: Curator, question: Question, price: Budget) -> Answer:
        return answer(self, replace(question, cohort=None), price)

    with replaced(Session, "_spend", spending), replaced(Curator, "answer", answering):
        yield
