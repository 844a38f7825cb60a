"""What an order can tell at best is said, and an order that can tell nothing is refused before it is paid."""

import pytest

from hazemap.errors import InputError
from hazemap.planning.statistics_plan import OrderForecast
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec

BOX = "13.2,52.4,13.6,52.6"
SPEED = {"value": "speed", "low": 0, "high": 65, "box": BOX, "cells": "h3:7"}


def test_statistics_in_many_cells_and_slots_of_few_people_are_refused_beforehand_and_coarser_ones_are_not():
    more = {"slots": "hour-of-day", "quantiles": [0.1, 0.5, 0.9]}
    fine = OrderForecast.of(StatisticsSpec.of("rides.csv", epsilon=1, **SPEED, **more), 1_800)
    assert "1,800 people, each in 24 of them at most" in fine.known and "in a slot to be told of" in fine.sentence
    assert fine.sentence.endswith("; an interval of a quantile ends at edges of bins, 0.254 wide")
    coarse = OrderForecast.of(StatisticsSpec.of("rides.csv", epsilon=1, **SPEED | {"cells": "h3:5"}), 1_800)
    assert coarse.known is None and "a cell needs about" in coarse.sentence


def test_a_map_of_fewer_people_than_noise_is_refused_beforehand():
    spec = ReleaseSpec.of("visits.csv", epsilon="0.01", box=BOX)
    assert "could not be told from nobody" in OrderForecast.of(spec, 100).known
    for people in (None, 1_000):
        assert OrderForecast.of(spec, people).known is None
    with pytest.raises(InputError, match="1 or more"):
        OrderForecast.of(spec, 0)
