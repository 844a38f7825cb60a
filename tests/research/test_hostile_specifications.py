"""Odd orders fail before their charge, or are had; a fuzzer that is told of a fault finds it."""

import random

import pytest

from hazemap.errors import InputError
from hazemap.releases import Statistics
from research import hostile_specifications
from research.hostile_orders import specification
from research.hostile_specifications import fuzzed, tried, walked


@pytest.mark.slow
def test_no_order_is_paid_for_and_lost_and_none_ends_in_an_error_that_is_not_ours():
    found = fuzzed(300, seed=6)
    assert not found.faults
    assert set(found.outcomes) <= {"refused", "released", "stopped"} and sum(found.outcomes.values()) == 300


def test_orders_are_odd_in_every_option_and_most_of_them_can_be_had():
    orders = [specification(random.Random(seed)) for seed in range(2000)]
    for verb, options in (
        ("release", "box bounding cells dataset delta epsilon goal mark method outside output overwrite person plane"),
        ("stats", "bins bounds cell_column cells chop_user estimator high length low max_cells_per_person mean_of"),
        ("release", "prior prior_is_public rho since slots time time_zone until value"),
        ("stats", "max_records_per_cell model quantiles select slots time_zone variance"),
    ):
        named = {name for each, order in orders for name in order if each == verb}
        assert named >= set(options.split())


def test_what_fails_after_its_charge_and_what_is_not_finite_is_called_a_fault(tmp_path, monkeypatch):
    order = {"value": "weight", "low": 0, "high": 10, "epsilon": 1, "box": "13.2,52.4,13.6,52.6", "cells": "quadtree:3"}
    source = hostile_specifications.table(random.Random(3), tmp_path)
    assert tried("stats", order, source, tmp_path)[1] == ""
    with monkeypatch.context() as patched:
        patched.setattr(Statistics, "save", lambda *_: (_ for _ in ()).throw(InputError("no")))
        goal = {"output": str(tmp_path / "goal.parquet"), "dataset": "lost"}
        what, fault = tried("stats", order | goal, source, tmp_path)
        assert (what, "has paid" in fault) == ("paid and lost", True)


def test_a_method_that_refuses_an_answer_is_found(monkeypatch):
    from hazemap.algorithms.private_value_bounds import PrivateValueBounds

    order = {"value": "v", "bounds": "private", "epsilon": 1, "box": "13.2,52.4,13.6,52.6", "cells": "quadtree:3"}
    assert walked("stats", order, None, random.Random(1)) == ""

    def picky(self, answer):
        if answer.sums.any():
            raise InputError("not these")
        return honest(self, answer)

    honest = PrivateValueBounds._people
    monkeypatch.setattr(PrivateValueBounds, "_people", picky)
    assert any("not these" in walked("stats", order, None, random.Random(seed)) for seed in range(9))
