"""Counting the people outside a map changes nothing on the map (fault 9: they were dropped in silence)."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.every_method import LEVELLED, WHOLE

from hazemap.cells import NOWHERE
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import cells
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator

from .conftest import BOX, people


@dataclass(frozen=True)
class Exactly(Curator):
    """A curator who says how much noise there is and adds none, so that two runs can be compared to the last digit.

    Choices are made with the same noise for the same question, whatever was asked before.
    """

    def answer(self, question: Question, price: Budget) -> Answer:
        answer = Curator(self.table, Stream.fixed(b"the same")).answer(question, price)
        return replace(answer, sums=question.encoder.total(self.table)) if isinstance(question, Query) else answer


LEVELS = [f"{name}:5" for name in LEVELLED if name != "singular"]


ONE = AtMostRows(1)
LONG = ("htf", "htf-published", "kd-tree", "kd-tree-uniform", "kd-hybrid")
THROWN = "sketch"  # throws the outside into the same buckets as cells, so its noise is another
CASES = [("auto", OneVote(64)), *((name, ONE) for name in (*WHOLE, *LEVELS, "pyramid:20", "top:5") if name != THROWN)]


@pytest.mark.parametrize(
    ("method", "rule"),
    [pytest.param(*case, marks=pytest.mark.slow if case[0] in LONG else ()) for case in CASES],
)
def test_the_map_is_the_same_to_the_last_digit_whether_people_outside_are_counted_or_dropped(method, rule):
    table = people(nowhere=5_000)
    dropped, counted = (
        run(
            method_from_name(method, cells("quadtree:8"), BOX, replace(rule, outside=outside), PureDP(1)),
            Exactly(table),
            PureDP(1),
            Unrecorded(),
        ).value
        for outside in (Outside.DROP, Outside.PEOPLE)
    )
    inside = counted.cells.cells != NOWHERE
    assert np.array_equal(counted.cells.cells[inside], dropped.cells.cells)
    for name in ("values", "unbiased", "stddev"):
        assert np.allclose(getattr(counted, name)[inside], getattr(dropped, name), rtol=1e-12, atol=1e-9), name
    assert counted.unbiased[~inside].tolist() == [5_000]
