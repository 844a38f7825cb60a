"""Rounds that are announced: who is shown them, what is kept of what they say, and when a round is over."""

import asyncio
from collections import Counter

import pytest

from hazemap.errors import NotOpened
from hazemap.server.announced_rounds import Announcement, Turnout, stored_announcement
from hazemap.server.campaign_status import announced
from hazemap.trust.carried_tasks import ANNOUNCED

from .fleet import Town, crowd

BATCH = bytes(range(32))
PLACE = f"/v1/tasks/{BATCH.hex()}"


async def opened(town, people, seconds=30.0, quiet=None, enough=3):
    """A round among the first people of a town, stored and shown; its task."""
    await town.store.write(*campaign())
    announcement = Announcement(BATCH, "berlin", 1, '{"a": "task"}', b"secret")
    devices = [town.coordinator.enrolled.device(each.identity.public) for each in people]
    if stored_announcement(town.store, "berlin", 1) is None:
        await town.store.write(*announcement.begun(devices))
    task = asyncio.create_task(town.coordinator.announcing.turnout(announcement, enough, seconds, quiet))
    while BATCH not in town.coordinator.announcing.running:
        await asyncio.sleep(0.01)
    return task


def campaign():
    from hazemap.service.store import Write

    sql = "INSERT INTO campaigns (name, id, text, state, reason, created) VALUES (?, '1', '{}', 'done', '', '2026')"
    return (Write(f"{sql} ON CONFLICT DO NOTHING", ("berlin",)),)


async def asked(town, device):
    found = await town.http.get("/v1/tasks", headers=device.headers)
    return found.json() if found.status_code == 200 else None


async def said(town, device, refusal=None, **options):
    path = PLACE if refusal is None else f"{PLACE}/refusal"
    content = {"json": {"reason": refusal}} if refusal is not None else options
    return (await town.http.post(path, headers=device.headers, **content)).status_code


def test_a_device_is_asked_until_it_answers_and_its_word_is_kept(tmp_path):
    async def story():
        devices = crowd(5)
        async with Town(tmp_path / "town", devices) as town:
            round_ = await opened(town, devices[:4])
            work = await asked(town, devices[0])
            assert work["session"] == BATCH.hex() and work["stage"] == ANNOUNCED and work["task"] == '{"a": "task"}'
            assert (work["message"], await asked(town, devices[4])) == ("", None)
            assert await said(town, devices[0]) == 204
            assert await said(town, devices[0]) == 204  # an answer that was lost is no fault
            assert await asked(town, devices[0]) is None
            assert await said(town, devices[1], "no\x00thing\nleft") == 204
            assert await said(town, devices[1]) == 204  # too late to think again: nothing changes
            assert await said(town, devices[4]) == 409
            assert await said(town, devices[2], content=b"a body") == 413
            round_.cancel()
            await asyncio.gather(round_, return_exceptions=True)
            assert await said(town, devices[2]) == 409
            await town.restart()
            round_ = await opened(town, devices[:4])
            assert await asked(town, devices[0]) is None and await asked(town, devices[2])
            for each in devices[2:4]:
                assert await said(town, each) == 204
            assert await asyncio.wait_for(round_, 600) == Turnout(3, Counter({"no thing left": 1}), 0)
            told = announced(town.store, "berlin")[1]
            assert (told["survivors"], told["refusals"]) == (3, {"no thing left": 1})

    asyncio.run(story())


def test_a_round_is_over_when_enough_have_reported_and_nobody_more_does(tmp_path):
    async def story():
        devices = crowd(4)
        async with Town(tmp_path / "town", devices) as town:
            round_ = await opened(town, devices, quiet=0.2)
            for each in devices[:3]:
                await said(town, each)
            assert await asyncio.wait_for(round_, 600) == Turnout(3, Counter(), 1)

    asyncio.run(story())


def test_a_round_in_which_too_few_report_says_why():
    turnout = Turnout(2, Counter({"too dear": 3, "no rows": 1}), 5)
    turnout.check(1, 2)
    with pytest.raises(NotOpened, match=r"2 of 11 people have reported, and 3 had to; 5 did not .* too dear.*resume"):
        turnout.check(1, 3)
