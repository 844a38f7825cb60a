"""The server is killed, again and again, at every instant that matters; nothing that it acknowledged is lost."""

import asyncio
import threading
from fractions import Fraction

import pytest
from tests.federated.server.fleet import Town, crowd
from tests.federated.server.test_campaign_spec import TREE, campaign, counts, truth

from hazemap.algorithms import Adaptive
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

LIFE = 300
"""Seconds after which a server that does nothing has hung."""
SIX = Cohort(6, 6, dropout=Fraction(1, 6), corrupt=Fraction(0))


class Mortal(CampaignStore):
    """A store whose process dies at its n-th commit: just before it, or after it and before anybody is told."""

    def __init__(self, place, last, before):
        self.last, self.before, self.commits, self.dead = last, before, 0, threading.Event()
        super().__init__(place)

    def _committed(self, jobs):
        if not jobs:
            return []
        self.commits += 1
        if self.commits >= self.last and self.before:
            self._die()
        outcomes = super()._committed(jobs)
        if self.commits >= self.last:
            self._die()
        return outcomes

    def _die(self):
        self.dead.set()
        raise SystemExit


class Doomed(Town):
    """A town whose server dies."""

    last, before = 10**9, False

    def make_store(self):
        return Mortal(self.folder / "server.sqlite", self.last, self.before)


async def life(town, name, last, before):
    """Start the server, live until it dies or the campaign is over; whether it is over."""
    town.last, town.before = last, before
    await town._start()
    living = asyncio.create_task(town.live(name, LIFE))
    while not living.done() and not town.store.dead.is_set():
        await asyncio.sleep(0.001)
    over = living.done() and not living.exception()
    living.cancel()
    await asyncio.gather(living, return_exceptions=True)
    await town.kill()
    return over


def killed_throughout(folder, devices, ordered):
    """Let each life of the server make one commit more, or none: it is killed at every commit, on either side."""

    async def play():
        town = Doomed(folder, devices)
        async with town:
            assert (await town.begin(ordered)).status_code == 201
        lives = 0
        while not await life(town, ordered.name, last=1, before=lives % 2 == 0):
            lives += 1
            assert lives < 1_000
        return town, lives

    return asyncio.run(play())


@pytest.mark.slow
def test_killed_before_and_after_every_commit_the_campaign_ends_as_if_nothing_had_been(tmp_path):
    devices = crowd(6)
    town, lives = killed_throughout(tmp_path, devices, campaign(cohort=SIX))
    release = Release.open(tmp_path / "releases" / "berlin.parquet")
    assert lives > 40
    assert counts(release) == truth(devices)
    [record] = town.ledger.history("town")
    assert (record.released, record.charge.price) == (True, PureDP(1_000))
    for device in devices:
        assert device.contributed == [("berlin", 1)]
        assert len(device.clients) == 1


@pytest.mark.slow
def test_a_campaign_of_many_rounds_survives_as_well(tmp_path):
    devices = crowd(6)
    ordered = campaign(algorithm=Adaptive(TREE, first_cells=4), cohort=SIX)
    town, lives = killed_throughout(tmp_path, devices, ordered)
    release = Release.open(tmp_path / "releases" / "berlin.parquet")
    assert lives > 150
    assert round(float(release.map.unbiased.sum())) == 6
    [record] = town.ledger.history("town")
    assert record.released
    rounds = len(release.transcript)
    for device in devices:
        assert device.contributed == [("berlin", number + 1) for number in range(rounds)]


def test_a_server_that_is_started_again_after_each_step_serves_the_same_sessions(tmp_path):
    devices = crowd(12)

    async def play():
        async with Town(tmp_path, devices) as town:
            await town.begin(campaign())
            while not (await town.status("berlin"))["running"]:
                await asyncio.gather(*(device.step(town.http) for device in devices))
                await asyncio.sleep(0.05)
            for _ in range(50):
                for device in devices[:3]:
                    await device.step(town.http)
                await town.restart()
                await asyncio.sleep(0.05)  # it reads its store, and lays the tables
                for device in devices[3:]:
                    await device.step(town.http)
                if (await town.status("berlin"))["state"] == "done":
                    break
            return await town.status("berlin")

    status = asyncio.run(play())
    assert status["state"] == "done", status
    assert all(len({session for session, _ in device.answered}) == 1 for device in devices)
