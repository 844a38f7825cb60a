"""The same store on PostgreSQL."""

import asyncio

import pytest
from tests.federated.server.fleet import Town, crowd
from tests.federated.server.postgres import cluster
from tests.federated.server.test_campaign_spec import campaign, counts, truth

from hazemap.errors import StoreError
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.databases import Postgres
from hazemap.federated.service.store import Write
from hazemap.releases import Release

FACT = "INSERT INTO facts VALUES (?, ?)"


@pytest.fixture(scope="module")
def url():
    with cluster() as found:
        yield found


@pytest.mark.slow
def test_the_same_sql_keeps_the_same_things(url):
    store = CampaignStore(url)
    with pytest.raises(StoreError, match="another server"):
        CampaignStore(Postgres(url, patience=0.3))
    times = ("2026-01-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00")
    enrol = "INSERT INTO devices (device, identity, ticket, enrolled, expires) VALUES (?, ?, ?, ?, ?)"
    store.write_now(Write(enrol, ("a", bytes(range(256)), b"\0", *times)))
    with pytest.raises(StoreError, match="contradicts"):
        store.write_now(Write(enrol, ("b", bytes(range(256)), b"", *times)))

    async def many():
        await asyncio.gather(*(store.write(Write(FACT, (f"{number}", "x"))) for number in range(2_000)))

    asyncio.run(many())
    store.close()
    again = CampaignStore(url)
    [(identity,)] = again.read("SELECT identity FROM devices WHERE device = ?", "a")
    assert bytes(identity) == bytes(range(256))
    assert again.read("SELECT count(*) FROM facts WHERE value = ?", "x") == [(2_000,)]
    again.close()


@pytest.mark.slow
def test_a_lost_connection_ends_the_store(url):
    store = CampaignStore(url)
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(StoreError, match="nothing more is acknowledged"):
        store.write_now(Write(FACT, ("lost", "x")))
    store.close()


@pytest.mark.slow
def test_a_campaign_runs_on_it_and_survives_restarts(url, tmp_path):
    devices = crowd(12)

    async def play():
        async with Town(tmp_path, devices, database=url) as town:
            assert (await town.begin(campaign())).status_code == 201
            while not (await town.status("berlin"))["running"]:
                await asyncio.gather(*(device.step(town.http) for device in devices))
                await asyncio.sleep(0.05)
            for _ in range(3):
                for device in devices[:6]:
                    await device.step(town.http)
                await town.restart()
                await asyncio.sleep(0.1)
            return await town.live("berlin")

    status = asyncio.run(play())
    assert status["state"] == "done", status
    assert counts(Release.open(tmp_path / "releases" / "berlin.parquet")) == truth(devices)
