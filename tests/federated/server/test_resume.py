"""Campaigns that fail: nothing that was paid for is out of reach. They go on, or what was answered is released."""

import asyncio
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.server.fleet import AS_OPERATOR, Town, crowd
from tests.federated.server.test_campaign_spec import TREE, campaign, counts, truth
from tests.federated.server.test_restarts import Doomed, life

from hazemap.algorithms import Adaptive, FittedLevel
from hazemap.errors import InputError
from hazemap.federated.server.coordinator import Taken
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")

ONE = Cohort(12, 12, dropout=Fraction(1, 4), corrupt=Fraction(0), sampling=Sampling.ONE)


async def killed(*_writes):
    raise SystemExit


def declining_from(devices, round_):
    """Nobody goes on with a question of this round or a later one."""
    for device in devices:
        make = device._client

        def client(task, device=device, make=make):
            if task.round >= round_:
                device.declines = "not now"
            return make(task)

        device._client = client


def test_a_campaign_that_failed_is_resumed_and_charged_once(tmp_path):
    devices = crowd(12)

    async def play():
        async with Town(tmp_path, devices) as town:
            for device in devices:
                device.declines = "not now"
            await town.begin(campaign())
            assert (await town.live("berlin"))["state"] == "failed"
            for device in devices:
                device.declines = ""
            assert (await town.http.post("/v1/campaigns/berlin/resume")).status_code == 401
            assert (await town.http.post("/v1/campaigns/berlin/resume", headers=AS_OPERATOR)).status_code == 204
            with pytest.raises(Taken, match="only one that failed can be resumed"):
                await town.coordinator.resume("berlin")
            return town, await town.live("berlin")

    town, status = asyncio.run(play())
    assert (status["state"], status["reason"]) == ("done", "")
    [record] = town.ledger.history("town")
    assert (record.released, record.charge.price) == (True, PureDP(1_000))
    assert counts(Release.open(tmp_path / "releases" / "berlin.parquet")) == truth(devices)


def test_what_was_answered_before_a_campaign_failed_is_released_and_says_so(tmp_path):
    devices = crowd(12)
    declining_from(devices, 2)
    ordered = campaign(algorithm=FittedLevel(TREE), cohort=ONE, budget=PureDP(200))

    async def play():
        async with Town(tmp_path, devices) as town:
            await town.begin(ordered)
            status = await town.live("berlin")
            assert (status["state"], [each["answered"] for each in status["rounds"]]) == ("failed", [True, False])
            town.store.write, write = killed, town.store.write
            with pytest.raises(SystemExit):
                await town.coordinator.release_in_part("berlin")
            town.store.write = write  # it was killed before the state was written, and is started again
            with pytest.raises(Taken, match="finish that with release-partial"):
                await town.coordinator.resume("berlin")
            done = await town.http.post("/v1/campaigns/berlin/partial", headers=AS_OPERATOR)
            assert done.status_code == 204
            with pytest.raises(Taken, match="is partial"):
                await town.coordinator.release_in_part("berlin")
            return town, await town.status("berlin"), town.coordinator.release("berlin")

    town, status, file = asyncio.run(play())
    assert status["state"] == "partial" and "after 1 answered rounds" in status["reason"]
    release = Release.open(file)
    assert len(release.transcript) == 1 and np.isfinite(release.map.unbiased).all()
    said = release.statement.text()
    assert (
        "released in part: the campaign ended after 1 answered rounds" in said and "in part" in release.statement.method
    )
    assert "hazemap campaign resume" not in said
    [record] = town.ledger.history("town")
    assert (record.released, record.charge.price) == (True, PureDP(200)), "the price is that of all"


def test_a_campaign_without_an_answer_has_nothing_to_release(tmp_path):
    async def play():
        async with Town(tmp_path, crowd(3)) as town:
            await town.begin(campaign(wait=0.1))
            assert (await town.live("berlin"))["state"] == "failed"
            with pytest.raises(InputError, match="no answered round"):
                await town.coordinator.release_in_part("berlin")

    asyncio.run(play())


def test_others_take_the_places_of_those_who_are_gone(tmp_path):
    devices = crowd(24)

    async def play():
        async with Town(tmp_path, devices) as town:
            await town.begin(campaign())
            while not any(device.clients for device in devices):
                await asyncio.gather(*(device.step(town.http) for device in devices))
            asked = [device for device in devices if device.clients]
            for device in asked[:6]:
                device.declines = "not now"
            return await town.live("berlin")

    status = asyncio.run(play())
    assert status["state"] == "done", status
    [each] = status["rounds"]
    assert (each["attempts"], each["people"]) == (2, 12), "a shard that had lost half of its people is whole again"


@pytest.mark.slow
def test_a_campaign_that_is_resumed_survives_every_kill_and_is_charged_once(tmp_path):
    devices = crowd(6)
    cohort = Cohort(6, 6, dropout=Fraction(1, 6), corrupt=Fraction(0))
    ordered = campaign(algorithm=Adaptive(TREE, first_cells=4), cohort=cohort)

    async def play():
        town = Doomed(tmp_path, devices, hasty=True)
        async with town:
            for device in devices:
                device.silent = 1
            await town.begin(ordered)
            assert (await town.live("berlin"))["state"] == "failed"
            for device in devices:
                device.silent = 99
        lives, town.hasty = 0, False
        while True:
            town.last, town.before = 10**9, False
            await town._start()
            state = (await town.status("berlin"))["state"]
            if state == "failed":
                town.store.last, town.store.before = town.store.commits + 1, lives % 2 == 0
                resuming = asyncio.create_task(town.coordinator.resume("berlin"))
                await asyncio.wait([resuming], timeout=1)
                resuming.cancel()
                await asyncio.gather(resuming, return_exceptions=True)
            await town.kill()
            lives += 1
            if state != "failed" and await life(town, "berlin", last=1, before=lives % 2 == 0):
                return town, lives
            assert lives < 1_000

    town, lives = asyncio.run(play())
    assert lives > 100
    [record] = town.ledger.history("town")
    assert (record.released, record.charge.price) == (True, PureDP(1_000))
    release = Release.open(tmp_path / "releases" / "berlin.parquet")
    assert round(float(release.map.unbiased.sum())) == 6
    for device in devices:
        assert device.contributed == [("berlin", number + 1) for number in range(len(release.transcript))]
