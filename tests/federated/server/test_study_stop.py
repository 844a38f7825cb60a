"""Studies that are stopped: nothing more is asked, what was paid stays paid, and everybody is told."""

import asyncio
import json
from fractions import Fraction

from tests.federated.server.asking_studies import recipe, study
from tests.federated.server.fleet import AS_OPERATOR
from tests.federated.server.test_studies import begun, charges, played

from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT


async def token(town, name, role="analyst", **limits):
    order = {"name": name, "role": role, "days": 9, **limits}
    made = await town.http.post("/v1/tokens", headers=AS_OPERATOR, json=order)
    return {"Authorization": f"Bearer {made.json()['token']}"}


async def halfway(town):
    """Let devices answer until some have sent a masked vector."""
    for _ in range(500):
        for device in town.devices:
            await device.step(town.http)
        if any(stage >= 4 for device in town.devices for _, stage in device.answered[-1:]):
            return
        await asyncio.sleep(0.005)
    raise AssertionError("no device came so far")


def test_a_study_is_stopped_by_whoever_began_it_and_asks_nothing_more(tmp_path):
    async def play(town):
        assert (await town.policy()).status_code == 201
        anna, bert = [await token(town, name, epsilon="20") for name in ("anna", "bert")]
        carl = await token(town, "carl", "auditor")
        assert (await town.study(study(epsilon=Fraction(12)), anna)).status_code == 201
        await town.ask(recipe("one"), as_=anna)
        assert (await town.answered(1))["state"] == "done"
        for device in town.devices:
            device.answered.clear()
        await town.ask(recipe("two"), as_=anna)
        await halfway(town)
        where = "/v1/studies/spring/stop"
        refused = [await town.http.post(where, headers=as_) for as_ in ({}, carl, bert)]
        before = (await town.round(2))["state"]
        stopped = await town.http.post(where, headers=anna)
        again = await town.http.post(where, headers=anna)
        session, _ = town.devices[0].answered[-1]
        device = town.devices[0].headers
        late = await town.http.post(f"/v1/tasks/{session}", headers=device, content=b"12")
        polled = (await town.http.get("/v1/tasks", headers=device)).status_code
        await town.restart()
        asked = [await town.ask(recipe(name), as_=anna) for name in ("three", "two", "one")]
        other = await town.study(study(name="autumn", epsilon=Fraction(12)), anna)
        status = (await town.http.get("/v1/studies/spring", headers=carl)).json()
        log = (await town.http.get("/v1/recipes")).text.splitlines()
        audit = (await town.http.get("/v1/audit", headers=carl)).text
        kept = town.store.read("SELECT count(*) FROM events")[0][0] + sum(
            sums is not None for (sums,) in town.store.read("SELECT sums FROM shards")
        )
        found = await town.round(2), await town.round(1)
        return (
            refused,
            before,
            stopped,
            again,
            late,
            polled,
            asked,
            other,
            status,
            log,
            audit,
            kept,
            found,
            charges(town),
        )

    refused, before, stopped, again, late, polled, asked, other, status, log, audit, kept, found, paid = played(
        tmp_path, play
    )
    assert [each.status_code for each in refused] == [401, 403, 422]
    assert (before, stopped.status_code, again.status_code) == ("running", 204, 409)
    assert (late.status_code, "stopped by anna" in late.json()["error"], polled) == (410, True, 204)
    assert [each.status_code for each in asked] == [409, 409, 201], "an answer that is there is read for nothing"
    assert "stopped by anna" in asked[0].json()["error"]
    assert (found[0]["state"], found[0]["answer"], found[1]["state"], paid) == ("stopped", None, "done", 2)
    assert (status["state"], status["left"]) == ("stopped", {"epsilon": "0", "delta": "0", "reports": 0})
    assert kept == 0, "neither messages nor sums of a round that was stopped are kept"
    assert other.status_code == 201, "what the study has not spent is anna's again"
    last = json.loads(log[-1])
    assert (last["kind"], last["study"], last["round"], RECIPE_LOG_FORMAT.checked(log).entries) == (
        "stop",
        "spring",
        2,
        4,
    )
    acts = [
        (each["who"], each["outcome"]) for each in map(json.loads, audit.splitlines()) if each["act"] == "study stop"
    ]
    assert acts == [
        ("bert", "asked"),
        ("bert", "refused: InputError"),
        *(("anna", outcome) for outcome in ("asked", "done", "asked", "refused: StudyTaken")),
    ]


def test_a_study_that_is_stopped_at_any_moment_is_paid_at_most_once_a_round(tmp_path):
    """Among them: while the ledger is being charged, and when it is over. Three people stop it at once."""

    async def play(town):
        await begun(town)
        found = []
        for number in range(4):
            name = f"s{number}"
            assert (await town.study(study(name=name, reports=1, epsilon=Fraction(4)))).status_code == 201
            await town.ask(recipe(), name)
            if number == 3:
                await town.answered(1, name)
            for _ in range(number * 9):
                for device in town.devices:
                    await device.step(town.http)
                await asyncio.sleep(0.002)
            codes = await asyncio.gather(
                *(town.http.post(f"/v1/studies/{name}/stop", headers=AS_OPERATOR) for _ in range(3))
            )
            ended = await town.round(1, name)
            found.append((sorted(each.status_code for each in codes), ended["state"], ended["answer"] is not None))
        return found, charges(town), len(town.coordinator.studies._running)

    found, paid, running = played(tmp_path, play)
    assert all(codes == [204, 409, 409] for codes, _, _ in found), found
    assert {(state, answered) for _, state, answered in found} == {("stopped", False), ("done", True)}, found
    assert paid <= 4 and running == 0
