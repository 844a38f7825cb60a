"""The store: what was acknowledged is there, whatever happens."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from functools import partial

import pytest

from hazemap.errors import InputError, StoreError
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.databases import Postgres, Sqlite, database
from hazemap.federated.service.store import Contradiction, Schema, Store, Write

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


SCHEMA = Schema("version", 1, ("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",))
LONG = "x" * 100_000


@pytest.fixture(params=["locked", "full"])
def stuck(request, tmp_path, monkeypatch):
    """Makes a database that another program has locked, or whose room is used up, and what puts it right."""
    monkeypatch.setattr("hazemap.federated.service.databases.BUSY", 0.01)
    monkeypatch.setattr("hazemap.federated.service.store.AGAIN", 0.001)

    def made(kind, patience):
        monkeypatch.setattr("hazemap.federated.service.store.PATIENCE", patience)
        store = kind(tmp_path / "server.sqlite")
        if request.param == "full":
            [(pages,)] = store._writer.execute("PRAGMA page_count").fetchall()
            store._writer.execute(f"PRAGMA max_page_count = {pages + 4}")
            return store, lambda: store._writer.execute("PRAGMA max_page_count = 1000000").fetchall()
        other = sqlite3.connect(tmp_path / "server.sqlite", isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        return store, other.close

    return made


def awaited(condition):
    """Wait until it holds, sooner or later."""
    for _ in range(600_000):
        if condition():
            return
        threading.Event().wait(0.001)
    pytest.fail("it never came")


def test_a_write_waits_for_a_database_that_is_locked_or_full_and_is_done_when_it_is_not(stuck):
    store, put_right = stuck(CampaignStore, 600)
    written = threading.Thread(target=store.write_now, args=(Write(FACT, ("a", LONG)),))
    written.start()
    awaited(lambda: store.trouble)
    assert facts(store) == {} and "has room and that nobody locks it" in str(store.trouble)
    put_right()
    written.join()
    assert store.trouble is None and facts(store) == {"a": LONG}
    store.close()


def test_a_write_that_is_refused_is_not_there_and_the_store_writes_again_once_it_can(stuck):
    """One whose database had been locked for a while, or full for a moment, refused every write until it was ended."""
    store, put_right = stuck(partial(Store, schema=SCHEMA), 0)
    for _ in range(2):
        with pytest.raises(StoreError, match="has room"):
            store.write_now(Write(FACT, ("a", LONG)))
    assert store.trouble is not None and store.broken is None and facts(store) == {}
    put_right()
    awaited(lambda: store.trouble is None)  # though nobody writes
    assert facts(store) == {}
    store.write_now(Write(FACT, ("a", LONG)))
    store.close()


def test_a_store_whose_server_remembers_more_than_is_written_ends_with_a_write_that_is_refused(stuck):
    store, put_right = stuck(CampaignStore, 0)
    ended = threading.Event()
    store.ended = ended.set
    with pytest.raises(StoreError, match="start the server again"):
        store.write_now(Write(FACT, ("a", LONG)))
    assert ended.is_set()
    put_right()
    with pytest.raises(StoreError, match="start the server again"):
        store.write_now(Write(FACT, ("b", "1")))
    assert store.trouble is store.broken is not None and facts(store) == {}
    store.close()


FULL = """
import os, sys, time
from hazemap.federated.service import store
from hazemap.federated.service.store import Schema, Store, StoreError, Write

store.AGAIN, store.PATIENCE = 0.01, 0
made = Store(sys.argv[1] + "/s.sqlite", Schema("version", 1, (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",)))
written = 0
try:
    while True:
        made.write_now(Write("INSERT INTO facts VALUES (?, ?)", (str(written), "x" * 50_000)))
        written += 1
except StoreError:
    assert made.trouble and not made.broken and written > 5
found = made.read("SELECT count(*) FROM facts WHERE name <> 'version'")
assert found == [(written,)], (found, written)
os.remove(sys.argv[1] + "/ballast")
while made.trouble:
    time.sleep(0.01)
made.write_now(Write("INSERT INTO facts VALUES ('more', ?)", ("x" * 50_000,)))
made.close()
print("written")
"""


@pytest.mark.slow
def test_a_disk_that_was_full_and_is_freed_is_written_to_again(tmp_path):
    """On a file system of 2 MB, of which other files take a half."""
    place = tmp_path / "small"
    place.mkdir()
    (tmp_path / "full.py").write_text(FULL)
    made = f"mount -t tmpfs -o size=2m none {place} && head -c 1000000 /dev/zero > {place}/ballast"
    if subprocess.run(["unshare", "-rm", "sh", "-c", made], check=False).returncode:
        pytest.skip("this system lets nobody make a small file system")
    whole = f"{made} && exec {sys.executable} {tmp_path}/full.py {place}"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", whole], capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode, done.stdout) == (0, "written\n"), done.stderr


def test_a_broken_disk_ends_the_store(store, monkeypatch):
    def full(_):
        raise sqlite3.OperationalError("disk I/O error")

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
