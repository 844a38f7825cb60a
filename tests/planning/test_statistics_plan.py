"""Plans of statistics: public numbers alone, and those that a run then has."""

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.errors import InputError
from hazemap.planning.statistics_plan import PEOPLE, plan_stats
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.values.value_encoding import READ

ASKED = {"low": 0, "high": 60, "box": "13.2,52.4,13.6,52.6", "cells": "h3:5"}


def town(people: int = 1000) -> pa.Table:
    """Everybody is in one place, a third of them at each end of the bounds and in the middle."""
    value = np.resize([0.0, 30.0, 60.0], people)
    place = {"lon": np.full(people, 13.4), "lat": np.full(people, 52.5)}
    return pa.table({"user": np.arange(people), **place, "v": value})


@pytest.mark.parametrize(
    "more",
    [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6", "variance": True}, {"rho": "0.01", "quantiles": (0.5,)}],
    ids=str,
)
def test_a_plan_promises_what_a_run_then_has(more, tmp_path):
    made = plan_stats(**ASKED, **more)
    run = hazemap.stats(
        town(), value="v", **ASKED, **more, ledger=Ledger(tmp_path / "ledger"), stream=Stream.fixed(b"plan")
    )
    found = run.measurements
    assert made.places == found.tree.places
    assert made.asked.threshold == pytest.approx(found.threshold)
    assert made.asked.stddev == pytest.approx(found.people_stddev / np.sqrt(found.tree.value_encoding.degree + 1))
    mean = found.means()
    at = int(np.nanargmax(found.people))
    width = made.asked.widths[PEOPLE.index(1000)]
    assert (mean.high[at] - mean.low[at]) / 2 == pytest.approx(width, rel=0.15)
    bins = found.tree.value_encoding.bins
    assert (made.bin_width, len(made.asked.medians)) == ((60 / bins, len(PEOPLE)) if bins else (None, 0))


def test_a_plan_says_how_sure_a_median_is_of_values_that_are_spread_evenly(tmp_path):
    asked = {**ASKED, "epsilon": 2, "quantiles": (0.5,)}
    reach = plan_stats(**asked).asked
    told = [each for each in reach.medians if each is not None]
    assert told == sorted(told, reverse=True) and len(told) >= 3
    rows = town(3000).set_column(3, "v", pa.array(np.linspace(0, 60, 3000)))
    book = Ledger(tmp_path / "ledger")
    run = hazemap.stats(rows, value="v", **asked, ledger=book, stream=Stream.fixed(b"a median"))
    found = run.measurements.quantiles(0.5)
    at = int(np.nanargmax(run.measurements.people))
    half = (found.high[at] - found.low[at]) / 2
    assert half == pytest.approx(reach.medians[PEOPLE.index(3000)], rel=0.5)


def test_half_the_cap_halves_the_noise_in_pure_epsilon_and_its_root_otherwise():
    half, asked, twice = plan_stats(**ASKED, epsilon=1).reaches
    assert [reach.max_cells_per_person for reach in (half, asked, twice)] == [4, 8, 16]
    assert half.threshold * 2 == pytest.approx(asked.threshold, rel=0.01)
    assert twice.threshold == pytest.approx(2 * asked.threshold, rel=0.01)
    half, asked, twice = plan_stats(**ASKED, rho="0.01").reaches
    assert half.threshold * 2**0.5 == pytest.approx(asked.threshold, rel=0.01)


def test_intervals_get_narrower_with_people_and_too_few_are_told_nothing():
    widths = plan_stats(**ASKED, epsilon="0.1").asked.widths
    told = [width for width in widths if width is not None]
    assert widths[0] is None and told == sorted(told, reverse=True)
    assert len(told) >= 2


def test_what_has_to_be_found_is_paid_from_the_budget_and_bounds_are_parts_of_one():
    plain, found = plan_stats(**ASKED, epsilon=1), plan_stats(**(ASKED | {"high": None}), bounds="private", epsilon=1)
    assert (float(plain.share), float(found.share)) == (1, 0.9)
    assert found.bounds is None and plain.bounds == (0, 60)
    noise = plain.asked.widths[-1] / 60 - READ
    assert found.asked.widths[-1] == pytest.approx(noise / 0.9 + READ, rel=0.01)
    nowhere = plan_stats(low=0, high=1, epsilon=1, select=True)
    assert nowhere.places is None and float(nowhere.share) == pytest.approx(0.96 * 0.9)


def test_a_country_of_fine_hexagons_can_be_planned_with_a_selection():
    made = plan_stats(low=0, high=1, epsilon=1, box="5,47,15,55", cells="h3:9", select=True)
    assert 4e6 < made.places < 1e8
    with pytest.raises(InputError, match="hexagons at once"):
        plan_stats(low=0, high=1, epsilon=1, box="5,47,15,55", cells="h3:9")


def test_a_cap_of_one_place_has_no_half():
    assert [reach.max_cells_per_person for reach in plan_stats(**ASKED, epsilon=1, max_cells_per_person=1).reaches] == [
        1,
        2,
    ]
