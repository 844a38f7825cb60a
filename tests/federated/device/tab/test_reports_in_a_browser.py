"""A tab of Debian's Chromium reports to two servers beside forty of our devices."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.federated.device.serving import listening
from tests.federated.device.tab.test_in_a_browser import BUILT, MODULES, THEIRS, need, visitors
from tests.federated.server.processes import Parent
from tests.federated.server.two_server_scene import Scene

from hazemap.algorithms import Flat
from hazemap.codec import dumps
from hazemap.federated.device.tab.device_page import DevicePage
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.report_carriers import ByTwoServers
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

OURS = 40
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_tab_reports_to_two_servers_that_its_rules_name_and_is_counted_once(tmp_path):
    need(Path("/usr/bin/chromium"), MODULES / "playwright-core", BUILT)
    people = OURS + 1
    with (
        listening(DevicePage.built().application()) as tab,
        Parent() as parent,
        Scene(parent, tmp_path, OURS, (tab,)) as scene,
    ):
        code = scene.server.answered("/v1/codes", b'{"number": 1, "days": 1}').json()["codes"][0]
        rules = {"people": "40", "survivors": "40", "campaign": "2000", "period": "9000"}
        rules["aggregators"] = f"{scene.leader.url} {scene.helper.url}"
        cohort = Cohort(people, people, Fraction(1, 10), Fraction(1, 10), Sampling.ONE, Mode.SEMI_HONEST)
        carrier = ByTwoServers(scene.leader.url, scene.helper.url, people)
        # At ε = 1000 noise is nothing but for a chance of e^−1000 a cell: counts are compared with the truth.
        ordered = Campaign(
            name="berlin",
            purpose="a test",
            dataset="town",
            algorithm=Flat(TREE, 2),
            budget=PureDP(1_000),
            cohort=cohort,
            deadlines=Deadlines.all(600),
            wait=600,
            carrier=carrier,
        )
        with visitors(tmp_path, [f"{tab}/#server={scene.server.url}&code={code}"], rules, closed=None) as tabs:
            assert scene.server.answered("/v1/campaigns", dumps(ordered).encode()).status_code == 201
            status = scene.ended("berlin")
            said, wrong = tabs.communicate("done\n", timeout=600)
        made = Release.open(scene.server.folder / "releases" / "berlin.parquet")
    assert said, wrong
    found = json.loads(said)
    places = [(each.lon, each.lat) for each in scene.devices] + THEIRS[0][:1]
    lon, lat = np.array(places).T
    truth = Counter(TREE.cell_at({"lon": lon, "lat": lat}, 2).tolist())
    counts = zip(made.map.cells.cells.tolist(), made.map.unbiased.round().tolist(), strict=True)
    assert Counter({cell: count for cell, count in counts if count}) == truth, status
    assert found["requests"] == [] and found["errors"] == [] and found["violations"] == []
    [log] = [[line[20:] for line in lines] for lines in found["logs"]]
    assert len([line for line in log if line.startswith("pays ε = 1000 for round 1: its report has")]) == 1
    assert log.index("the servers have the report") < log.index("said that it has reported (HTTP 204)")
    assert found["facts"]["bound"] == "TypeError", "no other server can be reached"
