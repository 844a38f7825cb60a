"""Whole campaigns among devices as people have them, against the real server: HTTP, protocol, stores, ledger."""

import asyncio
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import httpx
import numpy as np
import pytest

from hazemap.algorithms import AdaptiveHierarchicalHistogram, Flat
from hazemap.codec import dumps
from hazemap.federated.device import agent as agents
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.device_process import DeviceProcess
from hazemap.federated.device.http_client import HttpClient
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.row_store import DeviceRows
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.announced_rounds import Pace
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.server.campaign_store import CampaignStore as ServerStore
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Admission
from hazemap.federated.server.http_routes import Application
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

PEOPLE = 30
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)
SERVER = "http://127.0.0.1:8470"
TOKEN = "token of the tests"
POLICY = Policy(campaign=Fraction(2_000), period=Fraction(2_000), people=20, survivors=14, finest=0)
OPEN = "SELECT count(*) FROM sessions WHERE sealed IS NOT NULL"
QUICK = Pace(busy=100_000, idle=100_000, least=0.1, most=0.3, calm=0.1)


def campaign(**changes):
    options = {
        "name": "berlin",
        "purpose": "a map of a town that does not exist",
        "dataset": "town",
        "algorithm": Flat(TREE, 2),
        "budget": PureDP(1_000),  # noise that is nearly always nothing: sums can be compared with the truth
        "cohort": Cohort(PEOPLE, PEOPLE, dropout=Fraction(1, 4), corrupt=Fraction(1, 10), sampling=Sampling.ONE),
        "deadlines": Deadlines.all(600),
        "wait": 600,
    }
    return Campaign(**{**options, **changes})


def spots():
    rng = np.random.default_rng(3)
    return np.column_stack([rng.uniform(13.2, 13.6, PEOPLE), rng.uniform(52.4, 52.6, PEOPLE)])


def truth(level):
    lon, lat = spots().T
    return Counter(TREE.cell_at({"lon": lon, "lat": lat}, level).tolist())


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        devices = enrolment.add(store, PEOPLE)
        rows.added(store, {d: DeviceRows.of([x], [y], 0.0) for d, (x, y) in zip(devices, spots(), strict=True)}, None)
        yield store


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(agents, "AGAIN", 0.05)


def http_transport(application):
    transport = httpx.ASGITransport(application)
    return HttpClient(httpx.AsyncClient(transport=transport, base_url=SERVER), asyncio.Semaphore(8))


def played(folder, store, ordered, running=None, seconds=600):
    """Run a campaign among the devices of a store: its last status, the release, what the devices did."""

    async def play():
        (folder / "server").mkdir(exist_ok=True)
        ledger = Ledger(folder / "ledger.sqlite")
        server = ServerStore(folder / "server.sqlite")
        coordinator = Coordinator(server, folder / "server", ledger, Admission(TOKEN), QUICK)
        application = Application(coordinator, "operator")
        await coordinator.start()
        crowd = running or DeviceProcess(store, POLICY)
        try:
            async with http_transport(application) as carried:
                await crowd.enrol(SERVER, TOKEN, carried)
                work = asyncio.create_task(crowd.run(carried))
                order = dumps(ordered).encode()
                begun = await carried.send("POST", "/v1/campaigns", "operator", order, "application/json")
                assert begun.status == 201, begun.content
                async with asyncio.timeout(seconds):
                    while coordinator.status(ordered.name)["state"] == "running":
                        await asyncio.sleep(0.05)
                    while running is None and store.read(OPEN) != [(0,)]:  # until devices have noted the end
                        await asyncio.sleep(0.05)
                status = coordinator.status(ordered.name)
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        finally:
            await coordinator.stop()
            server.close()
        file = folder / "server" / "releases" / f"{ordered.name}.parquet"
        return status, Release.open(file) if file.exists() else None

    return asyncio.run(play())


@pytest.mark.slow
def test_a_campaign_of_one_round_counts_everybody_once(tmp_path, store):
    status, release = played(tmp_path, store, campaign())
    assert status["state"] == "done", status["reason"]
    counts = dict(
        zip(release.map.cells.cells.tolist(), np.rint(release.map.unbiased).astype(int).tolist(), strict=True)
    )
    assert {cell: count for cell, count in counts.items() if count} == dict(truth(2))
    for device in enrolment.devices(store):
        [charge] = PrivacyAccount(store, device).charges()
        assert (charge.campaign, charge.round, charge.epsilon) == ("berlin", 1, 1_000)
        [line] = ActivityLog(store, device).lines()
        assert line.outcome == "answered to the end"
        assert "your rows touch 1 of the 16 numbers" in line.question


@pytest.mark.slow
def test_every_round_is_charged_to_those_who_answered_it(tmp_path, store):
    status, release = played(tmp_path, store, campaign(algorithm=AdaptiveHierarchicalHistogram(TREE, most_rounds=2)))
    assert status["state"] == "done", status["reason"]
    rounds = len(status["rounds"])
    assert rounds >= 2
    for device in enrolment.devices(store):
        charges = PrivacyAccount(store, device).charges()
        assert [charge.round for charge in charges] == list(range(1, rounds + 1))
        assert sum(charge.epsilon for charge in charges) <= 1_000
    assert release is not None


@pytest.mark.slow
def test_devices_that_fall_silent_do_not_stop_the_others(tmp_path, store):
    running = DeviceProcess(store, replace(POLICY, modes=("semi-honest",)), drop=Fraction(1, 10))
    cohort = replace(campaign().cohort, dropout=Fraction(13, 30), mode=Mode.SEMI_HONEST)  # malicious: more people
    ordered = campaign(deadlines=Deadlines.all(600, quiet=15), cohort=cohort)
    # More than 13 of 30 fall silent with probability below 1e-6
    status, release = played(tmp_path, store, ordered, running)
    assert status["state"] == "done", status["reason"]
    assert sum(release.map.unbiased) <= PEOPLE + 1


def test_devices_whose_policy_says_no_tell_why_and_pay_nothing(tmp_path, store):
    running = DeviceProcess(store, replace(POLICY, no_campaigns=("berlin",)))
    status, release = played(tmp_path, store, campaign(wait=1, attempts=1), running)
    assert status["state"] != "done" and release is None
    assert "does not answer the campaign" in str(status)
    for device in enrolment.devices(store):
        assert PrivacyAccount(store, device).charges() == []
        assert "refused: this device does not answer" in ActivityLog(store, device).lines()[0].outcome
