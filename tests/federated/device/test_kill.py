"""`kill -9` at any instant: devices go on where they were, and nobody is charged twice for one answer."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.device.serving import AS_OPERATOR, TOKEN, serving

from hazemap.algorithms import AdaptiveHierarchicalHistogram
from hazemap.codec import dumps
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.server.announced_rounds import Pace
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

PEOPLE, KILLS = 40, 12
POLICY = "[budget]\ncampaign = 10\nperiod = 10\n[cohort]\npeople = 20\nsurvivors = 15\n[question]\nfinest = 0\n"
BRISK = Pace(least=0.2, most=1.0, calm=0.3)


@pytest.mark.slow
def test_devices_that_are_killed_at_random_instants_go_on_and_are_charged_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HAZEMAP_HOME", str(tmp_path / "home"))
    chance = random.Random(5)
    lon, lat = ([chance.uniform(*edges) for _ in range(PEOPLE)] for edges in ((13.2, 13.6), (52.4, 52.6)))
    pq.write_table(pa.table({"user": range(PEOPLE), "lon": lon, "lat": lat}), tmp_path / "people.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    tree = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 4)
    cohort = Cohort(PEOPLE, PEOPLE, dropout=Fraction(1, 4), sampling=Sampling.ONE)
    campaign = Campaign(
        "berlin",
        "a test",
        "town",
        AdaptiveHierarchicalHistogram(tree, most_rounds=3),
        PureDP(5),
        cohort,
        Deadlines.all(600),
        wait=600,
    )
    with serving(tmp_path / "server", BRISK) as url:
        begun = httpx.post(f"{url}/v1/campaigns", content=dumps(campaign), headers=AS_OPERATOR)
        assert begun.status_code == 201, begun.text
        program = "from hazemap.cli.main import run; run()"
        command = [sys.executable, "-c", program, "device", "--many", str(PEOPLE), "--token", TOKEN]
        command += ["--table", "people.parquet", "--server", url, "--store", "many.sqlite", "--policy", "policy.toml"]
        for _ in range(KILLS):
            process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.5, 4))
            process.send_signal(signal.SIGKILL)
            process.wait()
        command += ["--until-idle", "20"]
        until, status = time.monotonic() + 1200, {"state": "running"}
        while status["state"] == "running":  # a slow server may have no work for so long
            assert time.monotonic() < until, status
            done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=1200)
            assert done.returncode == 0, done.stderr
            status = httpx.get(f"{url}/v1/campaigns/berlin", headers=AS_OPERATOR).json()
    assert status["state"] == "done", status["reason"]
    with EncryptedStore.opened(tmp_path / "many.sqlite") as store:
        devices = enrolment.devices(store)
        assert len(devices) == PEOPLE
        for device in devices:
            charges = PrivacyAccount(store, device).charges()
            assert max(Counter(charge.session for charge in charges).values(), default=0) <= 1
            assert max(Counter(charge.round for charge in charges).values(), default=0) <= 1
            lines = ActivityLog(store, device).lines()
            assert sum(line.epsilon for line in lines) == sum(charge.epsilon for charge in charges)
            assert len(lines) == len({(line.campaign, line.round) for line in lines})
        rounds = Counter(charge.round for device in devices for charge in PrivacyAccount(store, device).charges())
    # Nobody fell silent for good, so everybody answered every round
    assert set(rounds.values()) == {PEOPLE}
    assert len(rounds) == len(status["rounds"])
