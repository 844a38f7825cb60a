"""Stores of an older server are brought up to date; what is deleted is gone."""

import sqlite3

import pytest
from tests.federated.server.postgres import cluster

from hazemap.errors import StoreError
from hazemap.federated.server.campaign_store import TABLES, CampaignStore
from hazemap.federated.service import store as stores
from hazemap.federated.service.databases import Sqlite
from hazemap.federated.service.store import Schema, Store, Write

TOWNS = "CREATE TABLE towns (name TEXT PRIMARY KEY, seal BLOB)"
PEOPLE = "ALTER TABLE towns ADD COLUMN people BIGINT"
NEWER = Schema("version", 3, (*TABLES, TOWNS), {1: (TOWNS,), 2: (PEOPLE,)})


def older(place):
    """A store of today's version, with a campaign."""
    store = CampaignStore(place)
    store.write_now(Write("INSERT INTO campaigns VALUES ('berlin', '1f', '{}', 'done', '', '2026', NULL)"))
    store.close()


def brought_up(place):
    """Open it twice by the next version: what is in it."""
    older(place)
    for _ in range(2):
        store = Store(place, NEWER)
        try:
            assert store.read("SELECT value FROM facts WHERE name = ?", "version") == [("3",)]
            assert store.read("SELECT name FROM campaigns") == [("berlin",)]
            assert store.read("SELECT people FROM towns") == []
        finally:
            store.close()


def test_a_store_of_version_1_is_brought_up_to_date_with_its_devices(tmp_path):
    brought_up(tmp_path / "server.sqlite")
    with pytest.raises(StoreError, match="has version '3'; this hazemap reads versions 1 to 1"):
        CampaignStore(tmp_path / "server.sqlite")


@pytest.mark.slow
def test_a_postgresql_store_of_version_1_is_brought_up_to_date():
    with cluster() as url:
        brought_up(url)


def test_an_older_store_that_cannot_be_brought_up_is_left_as_it_was(tmp_path):
    path = tmp_path / "server.sqlite"
    older(path)
    with pytest.raises(StoreError):
        Store(path, Schema("version", 3, TABLES, {1: (TOWNS,), 2: (TOWNS,)}))
    store = CampaignStore(path)
    assert store.read("SELECT name FROM campaigns") == [("berlin",)]
    with pytest.raises(StoreError):
        store.read("SELECT * FROM towns")
    store.close()


def test_what_is_deleted_is_gone_from_the_file_and_the_journal(tmp_path, monkeypatch):
    """SQLite keeps deleted bytes in free pages and in the write-ahead log, unless it is told not to."""
    secret, path = b"a masked vector that nobody needs" * 64, tmp_path / "server.sqlite"

    def found():
        return {file.name for file in tmp_path.iterdir() if secret[:33] in file.read_bytes()}

    monkeypatch.setattr(stores, "EMPTIED", 0.05)
    store = CampaignStore(path)
    for number in range(20):
        store.write_now(Write("INSERT INTO events VALUES (?, ?, 1, ?)", (b"session", number, secret)))
    assert found()
    store.write_now(Write("DELETE FROM events"))
    store._queue.put(stores._Job([], lambda _: None, None))
    deadline = stores.monotonic() + 600
    while found() and stores.monotonic() < deadline:
        pass
    assert found() == set()
    assert (tmp_path / "server.sqlite-wal").stat().st_size == 0
    store.close()


def test_secure_delete_is_what_does_it(tmp_path, monkeypatch):
    """The twin that must fail: without the setting the bytes stay in free pages, where SQLite was built so."""
    db = Sqlite(tmp_path / "server.sqlite").connect()
    assert db.execute("PRAGMA secure_delete").fetchall() == [(1,)]
    for setting, stays in ((0, True), (1, False)):
        path = tmp_path / f"{setting}.sqlite"
        other = sqlite3.connect(path, isolation_level=None)
        other.execute(f"PRAGMA secure_delete = {setting}")
        other.execute("CREATE TABLE t (b BLOB)")
        other.execute("INSERT INTO t VALUES (?)", (b"0123456789abcdef" * 999,))
        other.execute("DELETE FROM t")
        other.close()
        assert (b"0123456789abcdef" * 9 in path.read_bytes()) is stays
