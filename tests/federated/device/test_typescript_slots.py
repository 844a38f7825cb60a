"""A map of every quarter of the day from fifty of our devices and one in TypeScript, each at its own hour."""

import json
import time
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.device.test_typescript_device import ELSEWHERE, HERE, OURS, POLICY, TREE, _built, _order, _started
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.algorithms import AdaptiveSlots
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.releases import TimedRelease, open_release
from hazemap.spatial.bounding_box import Box
from hazemap.temporal.time_slots import Clock

MORNING, NOON = 1_772_352_000, 1_772_366_400  # 2026-03-01, 08:00 and 12:00 UTC: 9 and 13 in Berlin
QUARTERS = Clock("Europe/Berlin", (0, 6 * 3600, 12 * 3600, 18 * 3600))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_typescript_device_is_counted_where_and_when_it_was(tmp_path):
    program = _built()
    port = free_port()
    (tmp_path / "policy.toml").write_text(POLICY)
    lon, lat = (np.full(OURS, at) for at in ELSEWHERE)
    when = pa.array(np.full(OURS, NOON), pa.timestamp("s", "UTC"))
    table = pa.table({"person": np.arange(OURS), "lon": lon, "lat": lat, "time": when})
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "rows.json").write_text(json.dumps([{"lon": HERE[0], "lat": HERE[1], "time": MORNING}]))
    (tmp_path / "policy.json").write_text('{"people": 40, "survivors": 40, "campaign": 2000, "period": 9000}')
    # At ε = 1000 the noise of each round is next to none: counts are compared with the truth.
    method = AdaptiveSlots(TREE, QUARTERS, most_numbers=5_000)
    cohort = Cohort(OURS + 1, OURS + 1, Fraction(1, 10), Fraction(1, 10), Sampling.ONE, Mode.MALICIOUS)
    ordered = Campaign(
        "hours", "a test", "town", method, PureDP(1_000), cohort=cohort, deadlines=Deadlines.all(600), wait=600
    )
    with Parent() as parent:
        server = Server(parent, tmp_path / "server", port)
        ours = Crowd(parent, tmp_path, "ours", server, OURS, tmp_path / "people.parquet", tmp_path / "policy.toml")
        server.start()
        assert server.answered("/v1/campaigns") is not None
        code = (server.folder / "enrolment.token").read_text().strip()
        files = {"--rows": "rows.json", "--policy": "policy.json", "--file": "device.json"}
        options = {name: tmp_path / file for name, file in files.items()}
        theirs = _started(program, {"--server": server.url, "--code": code, **options})
        try:
            ours.start()
            until = time.monotonic() + 600
            while server.answered("/v1/campaigns").json()["devices"]["recent"] < OURS + 1:
                assert time.monotonic() < until, "the devices do not come"
                time.sleep(0.05)
            _order(server, ordered)
            until = time.monotonic() + 600
            while (status := server.answered("/v1/campaigns/hours").json())["state"] == "running":
                assert time.monotonic() < until, status
                time.sleep(0.1)
        finally:
            theirs.kill()
            _, said = theirs.communicate()
            for process in (ours, server):
                if process.child:
                    process.kill()
    assert status["state"] == "done", (status, said)
    made = open_release(server.folder / "releases" / "hours.parquet")
    assert isinstance(made, TimedRelease) and made.slots == QUARTERS.names
    here, elsewhere = (Box(lon - 0.06, lat - 0.03, lon + 0.06, lat + 0.03) for lon, lat in (HERE, ELSEWHERE))
    assert [round(made.during(slot).total().unbiased) for slot in range(4)] == [0, 1, OURS, 0]
    assert round(made.count(here).unbiased) == 1 and round(made.count(elsewhere).unbiased) == OURS
    assert "counted by when they were where: 4 parts of the day, as clocks of Europe/Berlin show it" in said
    charges = json.loads((tmp_path / "device.json").read_text())["charges"]
    assert len(charges) == len(status["rounds"]) and all(charge["timed"] for charge in charges)
