"""A rehearsal of a run, before it is paid: the method asks its questions of a table of nobody, without noise.

Whatever follows from options alone is the same for this table as for any other: how many numbers a question asks for,
whether anybody can answer it, whether the shares suffice. So it is found out here, for every method alike, and no
method has to say what it might ask. It is the one check that cannot be forgotten where a method is added or changed.

What a rehearsal cannot see hangs on answers, and they are paid when they are there: so a method never refuses an
answer. Where answers ask for too much it asks for less (fewer cells, coarser ones, the widest bounds);
`research.hostile_specifications` tries that with answers of all kinds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hazemap.encoders import EvenSplitScores, MedianSplitScores
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import noise_for
from hazemap.queries.algorithm_session import Session, Unrecorded
from hazemap.queries.noisy_queries import Algorithm, Answer, Choice, Growth, Measure, Question
from hazemap.trust.curator import Curator


def rehearsed(algorithm: Algorithm[Any], trust: Curator, budget: Budget) -> Iterator[Question]:
    """Rehearse a run over nobody; an error says in words what is wrong with the order.

    It ends with a question that has the whole budget, or else with the method, whose estimates are tried, too.
    """
    session = _Rehearsal(algorithm, trust.prices(budget), budget, Unrecorded(), trust.answers)
    while session.question:
        yield session.question
        if session.question.share == 1:
            return
        session.receive(of_nobody(session.question, session.price))


class _Rehearsal(Session[Any]):
    """A session that keeps no transcript."""

    def receive(self, answer: Answer) -> None:
        """Move on to the next question."""
        self._advance(answer)


def of_nobody(question: Question, price: Budget) -> Answer:
    """A curator's answer over nobody and without noise: zeros, the first candidates, an uncut tree.

    >>> from hazemap.encoders import Counts
    >>> from hazemap.cells import Leaves
    >>> from hazemap.queries.noisy_queries import Query
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> of_nobody(Query(Counts(Leaves.at_level(Quadtree.world(depth=1), 1)), 1), PureDP(1)).sums
    array([0, 0, 0, 0])
    """
    if isinstance(question, Growth):
        return Answer(question.tree.root.astype(np.int64), np.array([0.0]))
    if isinstance(question, Choice):
        scores = question.scores
        if isinstance(scores, MedianSplitScores | EvenSplitScores):
            lines, starts = scores.candidates
            return Answer(lines[starts[:-1]], np.array([0.0]))
        return Answer(np.zeros(question.size, dtype=np.int64), np.array([0.0]))
    asked = question.scores if isinstance(question, Measure) else question.encoder
    noise = noise_for(price, asked.sensitivity)
    return Answer(np.zeros(asked.size, dtype=np.int64), np.array([noise.stddev]), noise.kurtosis)
