"""Campaigns over two servers, from the order to the map: processes, HTTP, and `kill -9` of everybody in turn."""

import time
from collections import Counter
from fractions import Fraction
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
from hazemap.federated.trust.report_carriers import ByTwoServers
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PEOPLE = 60
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)
METHOD = Adaptive(
    TREE,
    first_cells=16,
    deciding=(Fraction(1, 10), Fraction(1, 5)),
    fullness=(1, 1),
    coarser=((1, Fraction(1, 10)),),
    smooth=None,
    sizing=None,
    even=None,
)
ROUNDS = 4
EXACT = PureDP(10_000)
"""Noise that is never anything but nothing: so sums show a report that is lost, or that counts twice."""


def ordered(scene, **changes):
    carrier = ByTwoServers(scene.leader.url, scene.helper.url, PEOPLE)
    cohort = Cohort(PEOPLE, PEOPLE, sampling=Sampling.ONE, mode=Mode.SEMI_HONEST)
    options = {"cohort": cohort, "deadlines": Deadlines.all(600), "wait": 600, "carrier": carrier}
    return Campaign("berlin", "a test", "town", METHOD, EXACT, **{**options, **changes})


def check(scene, tmp_path):
    """The map is that of everybody, once; and everybody has paid once for each round."""
    file = tmp_path / "map.parquet"
    file.write_bytes(scene.server.answered("/v1/campaigns/berlin/release").content)
    made = Release.open(file)
    places = {name: np.array([getattr(each, name) for each in scene.devices]) for name in ("lon", "lat")}
    base = TREE.cell_at(places, TREE.depth)
    for question, answer in made.transcript:
        cells = question.encoder.cells
        truth = Counter(cells.locate(base).tolist())
        assert answer.sums.tolist() == [truth[place] for place in range(cells.size)]
        assert answer.people == PEOPLE
    assert len(made.transcript) == ROUNDS
    store = EncryptedStore.opened(scene.crowd.store)
    for device in devices_of(store):
        charges = PrivacyAccount(store, device).charges()
        assert sorted(charge.round for charge in charges) == list(range(1, ROUNDS + 1))
        assert sum(charge.epsilon for charge in charges) == EXACT.epsilon
    return made


def test_everybody_is_in_the_map_once_whoever_is_killed(tmp_path):
    chance = Random(14)
    with Parent() as parent, Scene(parent, tmp_path, PEOPLE) as scene:
        begun = scene.server.answered("/v1/campaigns", dumps(ordered(scene)).encode())
        assert begun.status_code == 201, begun.text
        names, killed = list(scene.parties), 0
        while scene.status("berlin")["state"] == "running" and killed < 16:
            time.sleep(chance.uniform(0.05, 0.5))
            scene.again(names[killed % len(names)])
            killed += 1
        status = scene.ended("berlin")
        assert status["state"] == "done", status["reason"]
        assert killed >= 4
        made = check(scene, tmp_path)
    said = made.statement
    assert scene.leader.url in " ".join(said.assumptions)
    assert said.circumstances.cohort.trust == "two-servers"


def test_a_batch_below_its_minimum_is_not_opened_and_may_be_later(tmp_path):
    with Parent() as parent, Scene(parent, tmp_path, PEOPLE) as scene:
        campaign = ordered(scene, deadlines=Deadlines.all(25))
        assert scene.server.answered("/v1/campaigns", dumps(campaign).encode()).status_code == 201
        until = time.monotonic() + 120
        while not any(each["survivors"] for each in scene.status("berlin")["rounds"]):
            assert time.monotonic() < until, "nobody reports"
        scene.crowd.kill()  # the round is announced and some have reported, and then nobody is there
        status = scene.ended("berlin")
        [first] = status["rounds"]
        assert 0 < first["survivors"] < PEOPLE and not first["answered"]
        assert status["state"] == "failed" and f"{first['survivors']} of 60 people have reported" in status["reason"]
        scene.crowd.start()
        for _ in range(30):
            assert scene.server.answered("/v1/campaigns/berlin/resume", b"").status_code == 204
            status = scene.ended("berlin")
            if status["state"] == "done":
                break
        assert status["state"] == "done", status["reason"]
        check(scene, tmp_path)
