"""Studies where something gives way: several who ask at once, a full disk at every write, texts that cannot be read."""

import asyncio
import sqlite3
from collections import Counter
from fractions import Fraction

import pytest
from tests.federated.server.asking_studies import recipe, study
from tests.federated.server.fleet import AS_OPERATOR
from tests.federated.server.test_failed_rounds import reports
from tests.federated.server.test_studies import begun, charges, played
from tests.federated.server.test_study_stop import token

from hazemap.errors import LedgerError
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT
from hazemap.federated.server.roles import FORMAT
from hazemap.federated.service.store import Write


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
        return (
            Counter(reply.status_code for reply in replies),
            same,
            found,
            charges(town),
            RECIPE_LOG_FORMAT.checked(log).entries,
        )

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


async def disturbed(town, act, full):
    """Act while the disk is full from the write number `full` on: how many writes there were."""
    store, writes, statuses = town.store, [0], []
    commit = store._transaction

    def transaction(job):
        writes[0] += 1
        if writes[0] >= full:
            raise sqlite3.OperationalError("database or disk is full")
        return commit(job)

    store._transaction = transaction
    statuses.append((await act()).status_code)
    for _ in range(60):
        for device in town.devices:
            await device.step(town.http)
            statuses += device.statuses[-1:]
        await asyncio.sleep(0.005)
    looked = (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).status_code
    assert {*statuses, looked} <= {200, 201, 204, 409, 410, 503}, statuses
    await town.kill()
    await town._start()
    return writes[0]


async def logged(town):
    """How many entries the public log has, once it and the audit log are known to be whole."""
    audit = (await town.http.get("/v1/audit", headers=AS_OPERATOR)).text.splitlines()
    assert FORMAT.checked(audit).entries == len(audit)
    return RECIPE_LOG_FORMAT.checked((await town.http.get("/v1/recipes")).text.splitlines()).entries


async def asks_and_asks_again(town, full):
    await begun(town)
    writes = await disturbed(town, lambda: town.ask(recipe()), full)
    assert (await town.ask(recipe())).json()["round"] == 1
    assert (await town.answered(1))["state"] == "done"
    assert (charges(town), await logged(town), reports(town)) == (1, 2, {1: 12})
    return writes


async def goes_on_with_a_round_that_failed(town, full):
    await begun(town)
    for device in town.devices[:4]:
        device.declines = "not now"
    await town.ask(recipe())
    assert (await town.answered(1))["state"] == "failed"
    for device in town.devices:
        device.declines = ""
    writes = await disturbed(town, lambda: town.ask(recipe()), full)
    assert (await town.ask(recipe())).json()["round"] == 1
    assert (await town.answered(1))["state"] == "done"
    assert (charges(town), await logged(town), reports(town)) == (1, 2, {1: 12})
    return writes


async def is_stopped(town, full):
    await begun(town)
    await town.ask(recipe())
    for _ in range(20):
        for device in town.devices:
            await device.step(town.http)
        await asyncio.sleep(0.002)
    where = "/v1/studies/spring/stop"
    writes = await disturbed(town, lambda: town.http.post(where, headers=AS_OPERATOR), full)
    again = await town.http.post(where, headers=AS_OPERATOR)
    assert again.status_code in (204, 409)
    assert (await town.ask(recipe("other"))).status_code == 409
    assert (await town.round(1))["state"] in ("stopped", "done")
    assert (charges(town), await logged(town)) == (1, 3)
    return writes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "least"), [(asks_and_asks_again, 8), (goes_on_with_a_round_that_failed, 5), (is_stopped, 3)]
)
def test_a_disk_that_is_full_at_any_write_loses_nothing_and_charges_nothing_twice(tmp_path, does, least):
    full, last = 1, 0
    while full <= 20:
        (tmp_path / str(full)).mkdir()
        writes = played(tmp_path / str(full), lambda town, full=full: does(town, full))
        if writes < full:
            break
        last, full = full, full + (1 if full < least else 6)
    assert last >= least, "the disk was full at the order, at the charge, and at messages of devices"


def test_a_ledger_that_cannot_be_written_stops_the_round_and_says_so(tmp_path, monkeypatch):
    async def play(town):
        await begun(town)

        def full(*_, **__):
            raise LedgerError("the ledger cannot be written: its disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(type(town.ledger), "charge", full)
            await town.ask(recipe())
            async with asyncio.timeout(600):
                while not (stuck := await town.round(1))["reason"]:
                    await asyncio.sleep(0.01)
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
        assert (await town.ask(recipe("one"))).status_code == 201
        assert (await town.ask(recipe("two"), "autumn")).status_code == 201
        town.store.write_now(Write("UPDATE recipes SET text = '{}' WHERE digest = ?", (recipe("one").digest,)))
        await town.kill()
        await town._start()
        spoilt = (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).json()["rounds"][0]
        return spoilt, await town.answered(1, "autumn")

    spoilt, other = played(tmp_path, play)
    assert (spoilt["state"], "cannot go on" in spoilt["reason"]) == ("failed", True)
    assert other["state"] == "done"
