"""The device in TypeScript reports to two servers beside forty of ours, is killed as it pays, and counts once."""

import json
import subprocess
import time
from collections import Counter
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.device import report_vectors
from tests.federated.device.test_typescript_device import _built
from tests.federated.server.processes import Parent
from tests.federated.server.two_server_scene import Scene

from hazemap.algorithms import Flat
from hazemap.codec import dumps
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.report_carriers import ByTwoServers
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

PEOPLE = 40
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)
HERE = (13.25, 52.42)


def _is_up(device, lock):
    """Wait until its file is locked by it, from when on it ends well when it is told to, or until it has ended."""
    while device.poll() is None:
        with suppress(FileNotFoundError):
            if lock.read_text() == str(device.pid):
                return
        time.sleep(0.01)


def test_the_vectors_of_reports_are_what_the_code_says_today():
    assert report_vectors.FILE.read_text(encoding="utf-8") == report_vectors.text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_typescript_device_reports_to_two_servers_and_counts_once_after_it_was_killed(tmp_path):
    program = _built()
    with Parent() as parent, Scene(parent, tmp_path, PEOPLE) as scene:
        (tmp_path / "rows.json").write_text(json.dumps([{"lon": HERE[0], "lat": HERE[1]}]))
        rules = {"people": 40, "survivors": 40, "campaign": 20_000, "period": 20_000}
        rules["aggregators"] = [scene.leader.url, scene.helper.url]
        (tmp_path / "policy.json").write_text(json.dumps(rules))
        options = {
            "--server": scene.server.url,
            "--code": (scene.server.folder / "enrolment.token").read_text().strip(),
            "--rows": tmp_path / "rows.json",
            "--policy": tmp_path / "policy.json",
            "--file": tmp_path / "device.json",
        }
        words = ["node", program, *(str(word) for option in options.items() for word in option)]
        cohort = Cohort(PEOPLE + 1, PEOPLE + 1, Fraction(1, 10), Fraction(1, 10), Sampling.ONE, Mode.SEMI_HONEST)
        carrier = ByTwoServers(scene.leader.url, scene.helper.url, PEOPLE + 1)
        # At ε = 10,000 noise is nothing but for a chance of e^−10,000 a cell: counts are compared with the truth.
        ordered = Campaign(
            name="berlin",
            purpose="a test",
            dataset="town",
            algorithm=Flat(TREE, 3),
            budget=PureDP(10_000),
            cohort=cohort,
            deadlines=Deadlines.all(600),
            wait=600,
            carrier=carrier,
        )
        assert scene.server.answered("/v1/campaigns", dumps(ordered).encode()).status_code == 201
        first = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        try:
            before = []
            for line in first.stderr:
                before.append(line)
                if line.startswith("pays"):
                    break
        finally:
            first.kill()
            first.communicate()
        last = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        try:
            status = scene.ended("berlin")
            _is_up(last, tmp_path / "device.json.lock")
        finally:
            last.terminate()  # it may have ended itself, unless it was killed when all was done
            said, after = last.communicate(timeout=600)[1], last.returncode
        assert after == 0, said
        made = Release.open(scene.server.folder / "releases" / "berlin.parquet")
    places = [(each.lon, each.lat) for each in scene.devices] + [HERE]
    lon, lat = np.array(places).T
    truth = Counter(TREE.cell_at({"lon": lon, "lat": lat}, 3).tolist())
    counts = zip(made.map.cells.cells.tolist(), made.map.unbiased.round().tolist(), strict=True)
    assert Counter({cell: count for cell, count in counts if count}) == truth, status
    assert "pays ε = 10000 for round 1: its report has" in before[-1]
    kept = json.loads((tmp_path / "device.json").read_text())
    assert [charge["epsilon"] for charge in kept["charges"]] == ["10000"]
    assert [each["report"] for _, each in kept["reports"]] == [None], "its bytes are gone once they are there"
