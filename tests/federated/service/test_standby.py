"""A server that waits until another one has ended."""

import sqlite3
import threading
from functools import partial

import pytest

from hazemap.errors import StoreError
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.databases import DatabaseInUse, Unusable, database
from hazemap.federated.service.state_folder import Replaceable, StateFolder, when_free
from hazemap.federated.service.store import Schema, Store, Write

SCHEMA = Schema("version", 1, ("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",))


def opened(folder, patience: float) -> CampaignStore:
    return CampaignStore(database(folder / "server.sqlite", patience))


def test_it_gets_ready_waits_for_the_lock_and_then_finds_what_was_written(tmp_path):
    first, ready, found = opened(tmp_path, 0), threading.Event(), []
    waiting = threading.Thread(target=lambda: found.append(when_free(partial(opened, tmp_path), ready.set)))
    waiting.start()
    assert ready.wait(30)
    waiting.join(0.1)
    assert waiting.is_alive() and not found
    with pytest.raises(DatabaseInUse):
        opened(tmp_path, 0.1)
    first.close()
    waiting.join(600)
    assert found[0].read("SELECT name FROM facts") == [("version",)]
    found[0].close()


def test_one_that_need_not_wait_does_not_get_ready(tmp_path):
    when_free(partial(opened, tmp_path), ready=lambda: pytest.fail("it was free")).close()


def test_a_database_that_cannot_be_opened_is_not_waited_for(tmp_path):
    (tmp_path / "server.sqlite").write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        when_free(partial(opened, tmp_path), ready=lambda: None)


def test_one_that_lost_its_database_notices_without_being_asked(tmp_path, monkeypatch):
    store, lost = CampaignStore(tmp_path / "server.sqlite"), threading.Event()
    store.ended = lost.set
    with Replaceable(store, beat=0.01):
        assert not lost.wait(0.1)
        monkeypatch.setattr(store, "_transaction", lambda _: (_ for _ in ()).throw(OSError("gone")))
        assert lost.wait(600)
    assert store.broken
    store.close()


def standing_by(*errors):
    """A server that stands by a database in use, and meets these errors one after the other."""
    met = iter([DatabaseInUse("the database"), *errors])

    def opened(_patience: float) -> str:
        error = next(met, None)
        if error is None:
            return "mine"
        raise error

    return lambda: when_free(opened, lambda: None, again=0)


def test_it_says_what_it_waits_for_once_for_each_reason(caplog):
    away, starting = StoreError("cannot be reached"), StoreError("cannot be reached")
    starting.__cause__ = OSError("FATAL: the system\n is starting up\x1b[2J" + "!" * 1_000)
    assert standing_by(away, away, away, starting, starting, away)() == "mine"
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [each.partition("reached")[2][:31] for each in said] == ["", " (FATAL: the system is starting", ""]
    assert all(len(each) < 500 and each.isprintable() for each in said)


def test_it_gives_up_on_what_no_wait_mends(tmp_path):
    with pytest.raises(Unusable, match="another program"):
        standing_by(StoreError("away"), Unusable("it is another program's"))()
    opened(tmp_path, 0).close()
    with sqlite3.connect(tmp_path / "server.sqlite") as db:
        db.execute("UPDATE facts SET value = '999' WHERE name = 'version'")
    with pytest.raises(Unusable, match="version '999'"):
        opened(tmp_path, 0)
    (tmp_path / "server.sqlite").write_bytes(b"no database at all, but long enough to be taken for one" * 100)
    with pytest.raises(Unusable, match="cannot be opened"):
        opened(tmp_path, 0)


def test_any_server_on_standby_takes_the_place_of_one_that_ends_and_without_it_is_refused(tmp_path):
    kind = partial(Store, schema=SCHEMA)
    first, waits, ready = StateFolder(tmp_path), StateFolder(tmp_path, standby=True), threading.Event()
    inside = threading.Event()

    def take_over():
        with waits.opened("a.sqlite", kind, ready.set) as store:
            store.write_now(Write("INSERT INTO facts VALUES ('who', 'the second')"))
            inside.set()

    with first.opened("a.sqlite", kind) as store:
        with pytest.raises(DatabaseInUse), first.opened("a.sqlite", kind):
            pass
        (second := threading.Thread(target=take_over)).start()
        assert ready.wait(60) and not inside.is_set()
        store.write_now(Write("INSERT INTO facts VALUES ('before', 'the first')"))
    second.join(60)
    with first.opened("a.sqlite", kind) as store:
        assert {value for _, value in store.read("SELECT name, value FROM facts")} >= {"the first", "the second"}
