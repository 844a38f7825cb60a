"""The same store on PostgreSQL."""

import asyncio

import pytest

from hazemap.errors import StoreError
from hazemap.server.store import Store, Write

from .postgres import cluster

FACT = "INSERT INTO facts VALUES (?, ?)"


@pytest.fixture(scope="module")
def url():
    with cluster() as found:
        yield found


@pytest.mark.slow
def test_the_same_sql_keeps_the_same_things(url):
    store = Store(url)
    with pytest.raises(StoreError, match="another server"):
        Store(url)
    store.write_now(Write("INSERT INTO devices VALUES (?, ?, ?, ?)", ("a", bytes(range(256)), b"\0", "now")))
    with pytest.raises(StoreError, match="contradicts"):
        store.write_now(Write("INSERT INTO devices VALUES (?, ?, ?, ?)", ("b", bytes(range(256)), b"", "now")))

    async def many():
        await asyncio.gather(*(store.write(Write(FACT, (f"{number}", "x"))) for number in range(2_000)))

    asyncio.run(many())
    store.close()
    again = Store(url)
    [(identity,)] = again.read("SELECT identity FROM devices WHERE device = ?", "a")
    assert bytes(identity) == bytes(range(256))
    assert again.read("SELECT count(*) FROM facts WHERE value = ?", "x") == [(2_000,)]
    again.close()


@pytest.mark.slow
def test_a_lost_connection_ends_the_store(url):
    store = Store(url)
    import psycopg

    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(StoreError, match="nothing more is acknowledged"):
        store.write_now(Write(FACT, ("lost", "x")))
    store.close()
