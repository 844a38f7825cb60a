"""What a map would look like, on a city that does not exist."""

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.planning.release_plan import simulated
from hazemap.specs.release_spec import ReleaseSpec

BOX = "2.2,48.8,2.5,48.95"


def spec(**asked):
    return ReleaseSpec.of(**{"box": BOX, "epsilon": 1, "cells": "quadtree:7", **asked})


def test_the_dearer_a_map_the_more_it_is_like_the_city_and_the_city_stays_the_same():
    cheap, dear, again = (simulated(spec(epsilon=price), 20_000) for price in ("0.02", "2", "0.02"))
    assert np.array_equal(cheap.truth, dear.truth, equal_nan=True) and cheap.scale == dear.scale
    assert np.array_equal(cheap.shown, again.shown, equal_nan=True)
    assert cheap.cells < dear.cells
    wrong = [np.nansum(np.abs(made.shown - made.truth)) for made in (cheap, dear)]
    assert wrong[1] < 0.8 * wrong[0]
    assert np.nansum(dear.shown) == pytest.approx(np.nansum(dear.truth), rel=0.05)
    assert (np.isnan(dear.shown) == np.isnan(dear.truth)).all()


@pytest.mark.parametrize("asked", [{"cells": "h3:6-8"}, {"method": "flat:5"}, {"bounding": "rows:3"}])
def test_other_cells_methods_and_rules_have_a_picture_of_as_many_people(asked):
    made = simulated(spec(**asked), 20_000)
    assert np.nansum(made.shown) == pytest.approx(np.nansum(made.truth), rel=0.1)


def test_what_has_no_plan_has_no_picture():
    for asked, people in (({"box": None}, 1_000), ({}, 99), ({"method": "htf"}, 1_000)):
        with pytest.raises(InputError):
            simulated(spec(**asked), people)
