"""`kill -9` of either aggregator at random instants: sums are those of an uninterrupted run, and noise has its law.

Real processes over loopback ports. Each batch is uploaded and collected while one of both is killed and started again.
Reports are known, so what is left of a result is noise: of 256 numbers a batch, each drawn by both servers once.
"""

import os
import threading
import time
from fractions import Fraction
from random import Random

import httpx
import numpy as np
import pytest
from tests.federated.aggregator.test_processes import Processes
from tests.privacy.polya_law import fit, laplace_law, polya_law

from hazemap.errors import Unreachable
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.upload_messages import UploadErrors

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("DAP_KILLS", "4"))
"""A hundred take some minutes: `DAP_KILLS=100 pytest -m slow tests/federated/aggregator/test_kill.py`."""
CELLS, PEOPLE, HOUR = 256, 12, 3_600
SCALE = Fraction(4)
CERTAIN = 1e-9


class Campaign:
    """Batches of two aggregators, one an hour, backwards from now."""

    def __init__(self, folder):
        asked = (f"histogram:{CELLS}", "--least", str(PEOPLE), "--seconds", str(HOUR), "--epsilon", "1/4")
        self.two = Processes(folder, *asked)
        self.two.wait()
        self.client = self.two.client()
        self.hour = int(time.time()) // HOUR
        self.file = TaskFile.read(folder / "tasks" / "collector.toml")
        assert self.file.task.privacy.noise.scale == SCALE
        self.seconds = 10.0

    def batch(self, number, kill=None):
        """What is left of a result without its reports. `kill` is a role, and when: a part of a batch's usual time."""
        begin, killer = time.monotonic(), None
        if kill is not None:
            killer = threading.Thread(target=self._killed, args=(kill[0], kill[1] * self.seconds))
            killer.start()
        try:
            hour = self.hour - number
            cells = [(7 * number + person) % CELLS for person in range(PEOPLE)]
            made = [self.client.report(c, HOUR * hour, os.urandom(self.client.randomness_bytes)) for c in cells]
            for some in (made[:5], made[3:8], made[8:]):  # some of them twice
                reply = self._uploaded(some)
                assert all(each.error.name == "REPORT_REPLAYED" for each in reply)
            found = self._collected(hour)
        finally:
            if killer is not None:
                killer.join()
        if kill is None:
            self.seconds = time.monotonic() - begin
        assert self._collected(hour) == found, "a batch has one result"
        assert found.count == PEOPLE
        return np.array(found.sums) - np.bincount(cells, minlength=CELLS)

    def _killed(self, role, after):
        time.sleep(after)
        self.two.kill(role)
        self.two.start(role)

    def _uploaded(self, some):
        reply = self.two.upload(*some)
        assert reply.status_code == 200
        return UploadErrors.from_bytes(reply.content).statuses if reply.content else ()

    def _collected(self, hour):
        until = time.monotonic() + 600
        while True:
            try:
                with httpx.Client(timeout=300) as http:
                    return CollectorClient(self.file, http).collect(TimeInterval(hour, 1), wait=600)
            except Unreachable:
                assert time.monotonic() < until, "the leader does not come back"
                time.sleep(0.1)


def test_sums_of_killed_servers_are_those_of_servers_that_live(tmp_path):
    """Chi-square at 1e-9, as this noise comes from the machine; the twin has the noise of one server alone."""
    random, campaign = Random(1), Campaign(tmp_path)
    try:
        noise = [campaign.batch(0)]
        for number in range(KILLS):
            role = random.choice(("leader", "helper"))
            noise.append(campaign.batch(len(noise), (role, random.random())))
            print(f"kill {number + 1} of {KILLS}: the {role}", flush=True)
        logs = "".join((tmp_path / f"{role}.log").read_text() for role in campaign.two.ports)
    finally:
        campaign.two.close()
    assert "Traceback" not in logs and "a bug in hazemap" not in logs
    drawn = np.concatenate(noise)
    assert fit(drawn, polya_law(Fraction(2), SCALE)) > CERTAIN
    assert fit(drawn, laplace_law(SCALE)) < CERTAIN
    assert len({each.tobytes() for each in noise}) == len(noise), "each batch has noise of its own"
