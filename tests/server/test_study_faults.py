"""Studies where something gives way: several who ask at once, a full disk at every write, texts that cannot be read."""

import asyncio
import sqlite3
from collections import Counter
from fractions import Fraction

import pytest
from tests.server.asking_studies import recipe, study
from tests.server.fleet import AS_OPERATOR
from tests.server.test_failed_rounds import reports
from tests.server.test_studies import begun, charges, played
from tests.server.test_study_stop import token

from hazemap.errors import LedgerError
from hazemap.recipes.recipe_log_format import checked
from hazemap.server.audit_log import FORMAT
from hazemap.service.store import Write


def test_of_many_who_ask_a_study_at_once_one_is_answered(tmp_path):
    async def play(town):
        assert (await town.policy()).status_code == 201
        anna, bert = [await token(town, name, epsilon="20") for name in ("anna", "bert")]
        assert (await town.study(as_=anna)).status_code == 201
        who = [anna] * 6 + [AS_OPERATOR] * 4 + [bert] * 3
        replies = await asyncio.gather(*(town.ask(recipe(f"r{at}"), as_=as_) for at, as_ in enumerate(who)))
        await town.answered(1)
        same = await asyncio.gather(*(town.ask(recipe("same"), as_=as_) for as_ in (anna, AS_OPERATOR, anna)))
        found = await town.answered(2)
        log = (await town.http.get("/v1/recipes")).text.splitlines()
        return Counter(reply.status_code for reply in replies), same, found, charges(town), checked(log).entries

    codes, same, found, paid, entries = played(tmp_path, play)
    assert codes == {201: 1, 409: 9, 422: 3}
    assert [(reply.status_code, reply.json()["round"]) for reply in same] == [(201, 2)] * 3
    assert (found["state"], paid, entries) == ("done", 2, 3)


def test_studies_that_ask_at_once_stay_within_the_budget_of_their_analysis(tmp_path):
    async def play(town):
        assert (await town.policy()).status_code == 201
        names = [f"s{number}" for number in range(6)]
        for name in names:
            assert (await town.study(study(name=name, epsilon=Fraction(20)))).status_code == 201
        dear = recipe(local_epsilon=Fraction(8), epsilon=Fraction(8))
        replies = await asyncio.gather(*(town.ask(dear, name) for name in names))
        return Counter(reply.status_code for reply in replies)

    assert played(tmp_path, play) == {201: 2, 402: 4}, "ε = 8 is paid twice of 20"


async def disturbed(town, full):
    """Ask while the disk is full from the write number `full` on: how many writes there were."""
    store, writes, statuses = town.store, [0], []
    commit = store._transaction

    def transaction(job):
        writes[0] += 1
        if writes[0] >= full:
            raise sqlite3.OperationalError("database or disk is full")
        return commit(job)

    store._transaction = transaction
    reply = await town.ask(recipe())
    statuses.append(reply.status_code)
    for _ in range(60):
        for device in town.devices:
            await device.step(town.http)
            statuses += device.statuses[-1:]
        await asyncio.sleep(0.005)
    looked = (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).status_code
    assert {*statuses, looked} <= {200, 201, 204, 409, 503}, statuses
    return writes[0]


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_write_loses_no_round_and_charges_none_twice(tmp_path):
    async def play(town, full):
        await begun(town)
        writes = await disturbed(town, full)
        await town.kill()
        await town._start()
        assert (await town.ask(recipe())).json()["round"] == 1
        found = await town.answered(1)
        log = (await town.http.get("/v1/recipes")).text.splitlines()
        audit = (await town.http.get("/v1/audit", headers=AS_OPERATOR)).text.splitlines()
        assert FORMAT.checked(audit).entries == len(audit)
        return writes, found["state"], charges(town), checked(log).entries, reports(town)

    full, last = 1, 0
    while full <= 60:
        (tmp_path / str(full)).mkdir()
        writes, state, paid, entries, made = played(tmp_path / str(full), lambda town, full=full: play(town, full))
        assert (state, paid, entries, made) == ("done", 1, 2, {1: 12}), full
        if writes < full:
            break
        last, full = full, full + (1 if full < 8 else 5)
    assert last >= 8, "the disk was full at the order, at the charge, and at messages of devices"


def test_a_ledger_that_cannot_be_written_stops_the_round_and_says_so(tmp_path, monkeypatch):
    async def play(town):
        await begun(town)

        def full(*_, **__):
            raise LedgerError("the ledger cannot be written: its disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(type(town.ledger), "charge", full)
            await town.ask(recipe())
            for _ in range(100):
                await asyncio.sleep(0.01)
                if (stuck := await town.round(1))["reason"]:
                    break
        again = await town.ask(recipe("other"))
        await town.kill()
        await town._start()
        return stuck, again, await town.answered(1), charges(town), reports(town)

    stuck, again, found, paid, made = played(tmp_path, play)
    assert (stuck["state"], "disk is full" in stuck["reason"]) == ("running", True)
    assert (again.status_code, "disk is full" in again.json()["error"]) == (409, True)
    assert (found["state"], paid, made) == ("done", 1, {1: 12})


def test_a_round_that_cannot_be_read_does_not_keep_the_server_from_starting(tmp_path):
    async def play(town):
        await begun(town)
        await town.study(study(name="autumn"))
        await town.ask(recipe("one"))
        await town.ask(recipe("two"), "autumn")
        town.store.write_now(Write("UPDATE recipes SET text = '{}' WHERE digest = ?", (recipe("one").digest,)))
        await town.kill()
        await town._start()
        spoilt = (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).json()["rounds"][0]
        return spoilt, await town.answered(1, "autumn")

    spoilt, other = played(tmp_path, play)
    assert (spoilt["state"], "cannot go on" in spoilt["reason"]) == ("failed", True)
    assert other["state"] == "done"
