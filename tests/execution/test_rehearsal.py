"""What follows from options alone is found out before anything is paid."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from tests.every_method import LEVELLED, WHOLE

import hazemap
from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.private_bounding_box import PrivateBoundingBox
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.execution.run import answer_of_nobody, rehearse
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.queries.algorithm_session import Session, Unrecorded
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.bounding_box import Box
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator

BOX = "13.2,52.4,13.6,52.6"
NOBODY = MemoryTable(
    np.empty(0, np.int64), {name: np.empty(0) for name in ("lon", "lat", "weight", "value", "time")}, 0
)


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"user": np.arange(50), "lon": np.full(50, 13.3), "lat": np.full(50, 52.5), "v": np.full(50, 5.0)})


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"low": -1e200, "high": 1e200, "variance": True}, "-1e15 and 1e15"),
        ({"low": -1e308, "high": 1e308}, "-1e15 and 1e15"),
        ({"low": 0, "high": 5e-324}, "choose another unit"),
        ({"low": 1e12, "high": 1e12 + 1e-3}, "less an offset"),
        (
            {"bounds": "private", "cells": "quadtree:9", "quantiles": (0.5,), "slots": "hour-of-day"},
            "choose coarser cells or fewer slots",
        ),
        ({"low": 0, "high": 9, "quantiles": (1 - 1e-12,)}, "one of a billion"),
        ({"low": 0, "high": 9, "quantiles": (0.1, 5e-324)}, "one of a billion"),
        ({"low": 0, "high": 9, "since": "2026-03-08", "until": "2026-03-01"}, "exchange them"),
        ({"low": 0, "high": 9, "since": "2026-03-01", "until": "2026-03-01T00:00:00Z"}, "no time lies from"),
        ({"low": 0, "high": 9, "slots": "times:2025-01-01,2025-01-02", "since": "2026-03-01"}, "no slot has a time"),
        ({"low": 0, "high": 9, "slots": "times:2025-01-01,2025-01-02", "until": "2024-03-01"}, "no slot has a time"),
        ({"low": 0, "high": 9, "since": "0001-01-01", "time_zone": "Pacific/Apia"}, "between the years 2 and 9998"),
    ],
)
def test_statistics_that_nobody_could_have_cost_nothing(asked, words, table, ledger):
    if {"since", "until", "slots"} & asked.keys():
        table = table.append_column("time", pa.array(["2026-03-01T08:00:00"] * 50))
    with pytest.raises(InputError, match=words):
        hazemap.stats(table, **{"value": "v", "epsilon": 1, "box": BOX, "cells": "h3:7", "ledger": ledger, **asked})
    assert not ledger.history()


def test_quantiles_of_any_ranks_are_had_by_their_whole_names(table, ledger, tmp_path):
    """Six digits are not enough to tell 0.99999995 from 1, or two ranks from each other."""
    ranks, goal = (0.5, 1 / 3, 0.99999995, 0.1, 0.10000001), tmp_path / "a.parquet"
    options = {"low": 0, "high": 9, "epsilon": 1, "box": BOX, "ledger": ledger, "output": goal}
    hazemap.stats(table, value="v", cells="quadtree:2", quantiles=ranks, **options)
    assert hazemap.Statistics.open(goal).statistics == ("mean", *(f"q{rank!r}" for rank in ranks))


def test_a_map_of_no_time_costs_nothing(table, ledger):
    table = table.append_column("time", pa.array(["2026-03-01T08:00:00"] * 50))
    with pytest.raises(InputError, match="exchange them"):
        hazemap.release(table, epsilon=1, box=BOX, ledger=ledger, since="2026-03-08", until="2026-03-01")
    assert not ledger.history()


def test_a_method_that_fails_after_its_first_answer_costs_nothing(table, ledger, monkeypatch):
    honest = CellStatistics.rounds

    def hasty(self, prices):
        yield Query(next(honest(self, prices)).encoder, Fraction(1, 2))
        raise InputError("there are too many of them")

    monkeypatch.setattr(CellStatistics, "rounds", hasty)
    with pytest.raises(InputError, match="too many of them"):
        hazemap.stats(table, value="v", low=0, high=9, epsilon=1, box=BOX, ledger=ledger)
    assert not ledger.history()


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(1)])
@pytest.mark.parametrize("method", [*WHOLE, *(f"{name}:3" for name in LEVELLED)])
def test_a_rehearsal_asks_what_may_be_asked_and_answers_what_a_curator_may_answer(method, budget):
    """The first questions are those of a run, and answers have the shape, the error bars and the law of a curator's."""
    if "published" in method and isinstance(budget, ZCDP):
        pytest.skip("amounts of pure ε")
    name = "pyramid:64" if method == "pyramid" else method
    made = method_from_name(name, QuadtreeCells(None), Box.parse(BOX), AtMostRows(1), budget)
    curator = Curator(NOBODY)
    questions = list(rehearse(made, curator, budget))
    session = Session(made, curator.prices(budget), budget, Unrecorded(), curator.answers)
    assert session.question == questions[0]
    for question in questions:
        price = budget.part(question.share)
        ours, theirs = answer_of_nobody(question, price), curator.answer(question, price)
        assert (ours.sums.dtype, ours.kurtosis) == (theirs.sums.dtype, theirs.kurtosis)
        if question.size is not None:
            assert ours.sums.shape == theirs.sums.shape == (question.size,)
            assert np.array_equal(np.broadcast_to(ours.stddev, 1), theirs.stddev[:1]) or not ours.stddev.any()
    assert sum(question.share for question in questions) <= 1 or len(questions) > 1


def test_a_rehearsal_finds_no_box_and_takes_the_widest():
    made = method_from_name("auto", QuadtreeCells(None), None, AtMostRows(1))
    questions = list(rehearse(made, Curator(NOBODY), PureDP(1)))
    assert isinstance(made, PrivateBoundingBox) and not made.found_in([(each, None) for each in questions])
    assert len(questions) > 2
