"""Rounds of studies that failed: they go on for the charge that was made, or another one is made for all to see."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from tests.federated.server.asking_studies import StudyTown, recipe, study, typists
from tests.federated.server.fleet import AS_OPERATOR
from tests.federated.server.test_studies import charges

from hazemap.codec import loads
from hazemap.federated.server import failed_round


def played(folder, play, people=12):
    async def whole():
        async with StudyTown(folder / "town", typists(people), hasty=True) as town:
            assert (await town.policy()).status_code == 201
            return await play(town)

    return asyncio.run(whole())


async def left(town):
    return (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).json()["left"]["reports"]


def reports(town, round_=1):
    """How many reports each device has made for a round."""
    return Counter(len([one for one in device.contributed if one[1] == round_]) for device in town.devices)


async def asked(town, name="words"):
    reply = await town.ask(recipe(name))
    assert reply.status_code == 201, reply.text
    return reply.json()["round"], await town.answered(reply.json()["round"])


def test_a_round_that_ended_before_reports_were_asked_for_goes_on_for_nothing(tmp_path):
    async def play(town):
        await town.study(study())
        for device in town.devices[:4]:
            device.declines = "not now"
        first = await asked(town)
        for device in town.devices:
            device.declines = ""
        return first, await asked(town), charges(town), await left(town), reports(town)

    (one, failed), (two, done), paid, reports_left, made = played(tmp_path, play)
    assert (one, failed["state"], two, done["state"]) == (1, "failed", 1, "done")
    assert (paid, reports_left, made) == (1, 3, {1: 12})
    assert "for nothing" in failed["reason"]


@pytest.mark.parametrize("silent", [pytest.param(4, marks=pytest.mark.slow), 6])
def test_a_round_whose_devices_fell_silent_goes_on_in_the_same_sessions(tmp_path, silent):
    async def play(town):
        await town.study(study())
        for device in town.devices[:7]:
            device.silent = silent
        first = await asked(town)
        sessions = {session for device in town.devices for session, _ in device.answered}
        await town.kill()
        await town._start()
        for device in town.devices:
            device.silent = 99
        second = await asked(town)
        after = {session for device in town.devices for session, _ in device.answered}
        kept = town.store.read("SELECT count(*) FROM events")
        return first, second, charges(town), await left(town), reports(town), sessions == after, kept

    (one, failed), (two, done), paid, reports_left, made, same, kept = played(tmp_path, play)
    assert (one, failed["state"], two, done["state"]) == (1, "failed", 1, "done")
    assert (paid, reports_left, made, same, kept) == (1, 3, {1: 12}, True, [(0,)])
    assert loads(done["answer"]).people == 12


@pytest.mark.parametrize(("silent", "people"), [pytest.param(3, 4, marks=pytest.mark.slow), (6, 7)])
def test_a_session_waits_once_more_for_silent_devices_before_its_round_fails(tmp_path, silent, people):
    async def play(town):
        await town.study(study())
        for device in town.devices[:people]:
            device.silent = silent
        run, runs = town.coordinator.seating.run, []

        async def counted(plan, *rest):
            runs.append(plan.terms.session)
            for device in town.devices:
                device.silent = 99 if len(runs) > 1 else device.silent
            return await run(plan, *rest)

        town.coordinator.seating.run = counted
        return await asked(town), runs, charges(town), reports(town)

    (number, found), runs, paid, made = played(tmp_path, play)
    assert (number, found["state"], len(runs), len({*runs}), paid, made) == (1, "done", 2, 1, 1, {1: 12})


@pytest.mark.slow
def test_nobody_is_asked_for_two_reports_for_one_charge(tmp_path, monkeypatch):
    """Sessions that nobody can go on with: others are asked while there are enough, then a round is charged anew."""

    async def play(town):
        await town.study(study(attempts=1))
        found = []
        monkeypatch.setattr(failed_round, "RESUMABLE", timedelta(0))
        for spoilt in (True, True, False):
            for device in town.devices:
                device.silent = 6 if spoilt else 99
            found.append(((await asked(town))[0], charges(town), reports(town)[2], reports(town)[1]))
        return found, reports(town, 2), await left(town), (await town.round(2))["state"]

    found, second, reports_left, state = played(tmp_path, play, people=26)
    assert [each[:3] for each in found] == [(1, 1, 0), (1, 1, 0), (2, 2, 0)]
    assert [each[3] for each in found] == [12, 24, 24]
    assert (sum(second.values()) - second[0], reports_left, state) == (12, 2, "done")


@pytest.mark.slow
def test_messages_of_a_round_that_failed_are_forgotten_when_something_else_is_asked(tmp_path):
    async def play(town):
        await town.study(study())
        for device in town.devices:
            device.silent = 6
        await asked(town)
        kept = town.store.read("SELECT count(*) FROM events")[0][0]
        for device in town.devices:
            device.silent = 99
        await asked(town, "others")
        return kept, town.store.read("SELECT count(*) FROM events")[0][0]

    kept, after = played(tmp_path, play)
    assert kept > 0 and after == 0
