"""Stores of an older server are brought up to date; what is deleted is gone."""

import sqlite3

import pytest

from hazemap.errors import StoreError
from hazemap.server.campaign_store import CampaignStore
from hazemap.server.device_enrolment import Admission, Enrolled
from hazemap.server.schema import MIGRATIONS, VERSION
from hazemap.service import store as stores
from hazemap.service.access_tokens import kept
from hazemap.service.databases import Sqlite
from hazemap.service.store import Write

from .postgres import cluster

OLDER = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE devices (
    device TEXT PRIMARY KEY, identity BLOB NOT NULL UNIQUE, ticket BLOB NOT NULL, enrolled TEXT NOT NULL
);
CREATE TABLE campaigns (
    name TEXT PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
    created TEXT NOT NULL, ended TEXT
);
CREATE TABLE exchanges (
    campaign TEXT NOT NULL REFERENCES campaigns (name), round BIGINT NOT NULL, question TEXT NOT NULL,
    answer TEXT NOT NULL, PRIMARY KEY (campaign, round)
);
CREATE TABLE rounds (
    campaign TEXT NOT NULL REFERENCES campaigns (name), round BIGINT NOT NULL, task TEXT NOT NULL,
    PRIMARY KEY (campaign, round)
);
CREATE TABLE shards (
    session BLOB PRIMARY KEY, campaign TEXT NOT NULL REFERENCES campaigns (name), round BIGINT NOT NULL,
    number BIGINT NOT NULL, attempt BIGINT NOT NULL, terms BLOB NOT NULL, seed BLOB NOT NULL, roster BLOB NOT NULL,
    state TEXT NOT NULL, sums BLOB, people BIGINT, summary TEXT, UNIQUE (campaign, round, number, attempt)
);
CREATE TABLE events (
    session BLOB NOT NULL, seq BIGINT NOT NULL, position BIGINT NOT NULL, message BLOB NOT NULL,
    PRIMARY KEY (session, seq)
);
INSERT INTO facts VALUES ('version', '1');
INSERT INTO campaigns VALUES ('berlin', '1f', '{}', 'done', '', '2026-01-01T00:00:00Z', NULL);
"""
"""The store of version 1, word for word, with a campaign."""
DEVICE = "INSERT INTO devices (device, identity, ticket, enrolled) VALUES (?, ?, ?, ?)"


def brought_up(place):
    """Open it twice: what is in it."""
    for _ in range(2):
        store = CampaignStore(place)
        try:
            enrolled = Enrolled(store, Admission())
            found = store.read("SELECT value FROM facts WHERE name = ?", "version"), len(enrolled)
            held = enrolled.holder("a ticket of version 1")
            tables = [store.read(f"SELECT count(*) FROM {name}") for name in ("tokens", "codes", "audit_log")]
            campaigns = store.read("SELECT name FROM campaigns")
        finally:
            store.close()
        assert found == ([(str(VERSION),)], 1)
        assert (held.name, tables, campaigns) == ("d", [[(0,)]] * 3, [("berlin",)])


def test_a_store_of_version_1_is_brought_up_to_date_with_its_devices(tmp_path):
    path = tmp_path / "server.sqlite"
    older = sqlite3.connect(path)
    older.execute(f"PRAGMA application_id = {0x48415A53}")
    older.executescript(OLDER)
    older.execute(DEVICE, ("d", bytes(32), kept("a ticket of version 1"), "2026-01-01T00:00:00Z"))
    older.commit()
    older.close()
    brought_up(path)


@pytest.mark.slow
def test_a_postgresql_store_of_version_1_is_brought_up_to_date():
    import psycopg

    with cluster() as url:
        with psycopg.connect(url, autocommit=True) as older:
            older.execute(OLDER.replace(" BLOB", " BYTEA"))
            row = ("d", bytes(32), kept("a ticket of version 1"), "2026-01-01T00:00:00Z")
            older.execute(DEVICE.replace("?", "%s"), row)
        brought_up(url)


def test_an_older_store_that_cannot_be_brought_up_is_left_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "server.sqlite"
    older = sqlite3.connect(path)
    older.execute(f"PRAGMA application_id = {0x48415A53}")
    older.executescript(OLDER)
    older.close()
    monkeypatch.setitem(MIGRATIONS, 1, ("CREATE TABLE codes (code BLOB)", "CREATE TABLE codes (code BLOB)"))
    with pytest.raises(StoreError):
        CampaignStore(path)
    monkeypatch.undo()
    store = CampaignStore(path)
    assert store.read("SELECT count(*) FROM audit_log") == [(0,)]
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
