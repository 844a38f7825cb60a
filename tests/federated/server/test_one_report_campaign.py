"""Campaigns to which people report once, from the order to the map: processes, HTTP, and `kill -9` of everybody."""

import time
from collections import Counter
from random import Random

import numpy as np
import pytest
from tests.federated.server.processes import Parent
from tests.federated.server.two_server_scene import Scene

from hazemap.algorithms import Adaptive
from hazemap.codec import dumps
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.enrolment import devices as devices_of
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.report_carriers import ByOneReport
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PEOPLE = 60
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 6)
EXACT = PureDP(10_000)
"""Noise that is never anything but nothing: so sums show a report that is lost, or that counts twice."""


def test_everybody_is_in_the_map_once_and_pays_once_whoever_is_killed(tmp_path):
    chance = Random(15)
    with Parent() as parent, Scene(parent, tmp_path, PEOPLE) as scene:
        carrier = ByOneReport(scene.leader.url, scene.helper.url, PEOPLE, levels=6)
        cohort = Cohort(PEOPLE, PEOPLE, sampling=Sampling.ONE, mode=Mode.SEMI_HONEST)
        order = Campaign(
            name="berlin",
            purpose="a test",
            dataset="town",
            algorithm=Adaptive.for_one_report(TREE),
            budget=EXACT,
            cohort=cohort,
            deadlines=Deadlines.all(600),
            wait=600,
            carrier=carrier,
        )
        begun = scene.server.answered("/v1/campaigns", dumps(order).encode())
        assert begun.status_code == 201, begun.text
        names, killed = list(scene.parties), 0
        while scene.status("berlin")["state"] == "running" and killed < 12:
            time.sleep(chance.uniform(0.1, 0.6))
            scene.again(names[killed % len(names)])
            killed += 1
        status = scene.ended("berlin")
        assert status["state"] == "done", status["reason"]
        assert killed >= 3
        file = tmp_path / "map.parquet"
        file.write_bytes(scene.server.answered("/v1/campaigns/berlin/release").content)
        store = EncryptedStore.opened(scene.crowd.store)
        for device in devices_of(store):
            [charge] = PrivacyAccount(store, device).charges()
            assert charge.epsilon == EXACT.epsilon
    made = Release.open(file)
    places = {name: np.array([getattr(each, name) for each in scene.devices]) for name in ("lon", "lat")}
    base = TREE.cell_at(places, TREE.depth)
    for question, answer in made.transcript:
        truth = Counter(question.encoder.cells.locate(base).tolist())
        assert answer.sums.tolist() == [truth[place] for place in range(question.size)]
        assert answer.people == PEOPLE
    assert len(made.transcript) > 3
    assert made.statement.circumstances.cohort.trust == "one-report"
    assert "6 levels" in " ".join(made.statement.assumptions)
