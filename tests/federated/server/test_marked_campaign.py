"""A campaign that counts marks: devices carry the column, the release says the share."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.server.fleet import crowd
from tests.federated.server.test_campaign_spec import QUARTER, TREE, campaign, played

from hazemap.algorithms.proportion import Proportion, Significant
from hazemap.codec import dumps
from hazemap.errors import InputError
from hazemap.federated.server.campaign_spec import Campaign, campaign_from
from hazemap.privacy.budget import PureDP
from hazemap.releases import MarkedRelease
from hazemap.specs.release_spec import ReleaseSpec

MARKS = ("ill", "status=2")


def marked(**changes):
    return campaign(algorithm=Proportion(TREE, goal=Significant(), first_cells=4, marks=MARKS), **changes)


@pytest.mark.slow
def test_devices_count_their_marks(tmp_path):
    devices = crowd(12)
    for number, device in enumerate(devices):
        device.mark = number % 4
    _, status, release = played(tmp_path, devices, marked())
    assert status["state"] == "done", status
    assert isinstance(release, MarkedRelease) and release.marks == MARKS
    found = release.share()
    assert [round(share.value, 3) for share in found.shares] == [0.5, 0.5]
    assert all(share.high - share.low < 0.01 for share in found.shares)  # of next to no noise
    cells = TREE.cell_at({name: np.array([getattr(d, name) for d in devices]) for name in ("lon", "lat")}, TREE.depth)
    where = Counter(release.cells.locate(cells).tolist())
    assert {at: int(n) for at, n in enumerate(np.rint(release.map.unbiased)) if n} == where
    assert "the marks that are counted: ill, status=2" in release.statement.public


def test_people_are_told_what_is_counted_and_orders_travel():
    spec = ReleaseSpec.of(None, epsilon=1, mark=list(MARKS), box="13.2,52.4,13.6,52.6", dataset="town")
    made = Campaign.of(spec, most_numbers=1_000, name="berlin", purpose="a map", cohort=QUARTER)
    assert made.purpose == "a map (also counts who carries the mark: ill, status=2)"
    assert campaign_from(dumps(made)) == made and made.marks.texts == MARKS


def test_reports_that_people_randomise_count_no_marks():
    with pytest.raises(InputError, match="leave the local epsilon out"):
        marked(budget=PureDP(1), local_epsilon=Fraction(1))
