"""The store: what was acknowledged is there, whatever happens."""

import asyncio
import sqlite3
import threading

import pytest

from hazemap.errors import InputError, StoreError
from hazemap.server.campaign_store import CampaignStore
from hazemap.service.databases import Postgres, Sqlite, database
from hazemap.service.store import Contradiction, Write

FACT = "INSERT INTO facts VALUES (?, ?)"


@pytest.fixture
def store(tmp_path):
    made = CampaignStore(tmp_path / "server.sqlite")
    yield made
    made.close()


def facts(store):
    return dict(store.read("SELECT name, value FROM facts WHERE name <> 'version'"))


def test_what_was_written_is_there_when_the_store_is_opened_again(tmp_path):
    first = CampaignStore(tmp_path / "server.sqlite")
    first.write_now(Write(FACT, ("a", "1")), Write(FACT, ("b", "2")))
    first.close()
    again = CampaignStore(tmp_path / "server.sqlite")
    assert facts(again) == {"a": "1", "b": "2"}
    again.close()


def test_thousands_of_writes_share_commits_and_are_told_in_order(store, monkeypatch):
    commits, told = [], []
    whole = store._transaction
    monkeypatch.setattr(store, "_transaction", lambda writes: (commits.append(len(writes)), whole(writes)))

    async def many():
        async def one(number):
            await store.write(Write(FACT, (f"{number:05}", "x")))
            told.append(number)

        await asyncio.gather(*(one(number) for number in range(3_000)))

    asyncio.run(many())
    assert told == list(range(3_000))
    assert sum(commits) == 3_000
    assert len(commits) <= 100
    assert len(facts(store)) == 3_000


def test_nobody_is_told_before_the_disk_has_it(store, tmp_path):
    async def one():
        await store.write(Write(FACT, ("a", "1")))
        other = sqlite3.connect(tmp_path / "server.sqlite")
        found = other.execute("SELECT value FROM facts WHERE name = 'a'").fetchall()
        other.close()
        return found

    assert asyncio.run(one()) == [("1",)]


def test_writes_of_one_job_are_kept_together_or_not_at_all(store):
    with pytest.raises(StoreError, match="contradicts"):
        store.write_now(Write(FACT, ("a", "1")), Write(FACT, ("a", "2")))
    assert facts(store) == {}


def test_a_contradiction_harms_nobody_else(store):
    outcomes, finished = {}, threading.Event()
    gate = threading.Event()
    store.submit([], lambda _: gate.wait())  # the writer waits, so that the others meet in one commit
    for name in ("a", "b", "a", "c"):
        number = len(outcomes)
        outcomes[number] = None
        store.submit(
            [Write(FACT, (name, str(number)))],
            lambda error, at=number: (outcomes.__setitem__(at, error), at == 3 and finished.set()),
        )
    gate.set()
    assert finished.wait(600)
    assert [error is None for error in outcomes.values()] == [True, True, False, True]
    assert facts(store) == {"a": "0", "b": "1", "c": "3"}


def test_a_broken_disk_ends_the_store(store, monkeypatch):
    def full(_):
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(store, "_transaction", full)
    with pytest.raises(StoreError, match="nothing more is acknowledged"):
        store.write_now(Write(FACT, ("a", "1")))
    monkeypatch.undo()
    with pytest.raises(StoreError, match="start the server again"):
        store.write_now(Write(FACT, ("b", "1")))
    assert facts(store) == {}


def test_a_database_belongs_to_one_server(store, tmp_path):
    with pytest.raises(StoreError, match="another server"):
        CampaignStore(tmp_path / "server.sqlite")


def test_a_closed_store_can_be_opened_by_the_next_server(tmp_path):
    for number in range(3):
        store = CampaignStore(tmp_path / "server.sqlite")
        assert len(facts(store)) == number
        store.write_now(Write(FACT, (str(number), "")))
        store.close()


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.sqlite"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE notes (text)")
    other.commit()
    other.close()
    with pytest.raises(StoreError, match="no hazemap server's"):
        CampaignStore(path)
    path.write_bytes(b"these are my notes" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        CampaignStore(path)
    assert path.read_bytes() == b"these are my notes" * 100


def test_a_store_of_another_version_is_refused(tmp_path):
    store = CampaignStore(tmp_path / "server.sqlite")
    store.write_now(Write("UPDATE facts SET value = '99' WHERE name = 'version'"))
    store.close()
    with pytest.raises(StoreError, match="version '99'"):
        CampaignStore(tmp_path / "server.sqlite")


def test_a_place_is_a_path_or_a_postgresql_url(tmp_path):
    assert isinstance(database(tmp_path / "a.sqlite"), Sqlite)
    assert isinstance(database("postgresql://localhost/maps"), Postgres)
    with pytest.raises(InputError, match="postgresql://"):
        database("mysql://localhost/maps")


def test_a_write_that_changes_other_rows_than_it_must_is_refused_with_its_whole_job(store):
    store.write_now(Write(FACT, ("a", "1")))
    update = "UPDATE facts SET value = ? WHERE name = ? AND value = ?"
    with pytest.raises(Contradiction, match="contradicts"):
        store.write_now(Write(FACT, ("b", "2")), Write(update, ("3", "a", "2"), rows=1))
    assert facts(store) == {"a": "1"}
    store.write_now(Write(update, ("3", "a", "1"), rows=1))
    assert facts(store) == {"a": "3"}
