"""Rounds that are announced: who is shown them, what is kept of what they say, and when a round is over."""

import asyncio
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
from tests.issuing import ISSUER, SECRET

from hazemap.errors import NotOpened, Refused
from hazemap.protocols.secure_aggregation.signing_identities import Identity
from hazemap.server.announced_rounds import ASKED, Announcement, Turnout, check_counted, stored_announcement
from hazemap.server.campaign_status import announced
from hazemap.server.task_provisioning import issuing
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
    issue = issuing(ISSUER, SECRET, [SimpleNamespace(id=bytes(32))])
    turnout = town.coordinator.announcing.turnout(announcement, enough, seconds, quiet, issue=issue)
    task = asyncio.create_task(turnout)
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


async def said(town, device, refusal=None, head=None, **options):
    path = (PLACE if refusal is None else f"{PLACE}/refusal") + (f"?head={head}" if head else "")
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


def key(number):
    return Identity.from_bytes(bytes([number]) * 32).public


async def credited(town, device, keys):
    answer = await town.http.post(f"{PLACE}/credentials", headers=device.headers, content=keys)
    return answer.status_code, answer.content if answer.status_code == 200 else answer.json()["error"]


def test_the_first_keys_of_a_device_are_bound_and_whoever_shows_its_ticket_gets_nothing_for_others(tmp_path):
    async def story():
        devices = crowd(3)
        async with Town(tmp_path / "town", devices) as town:
            round_ = await opened(town, devices)
            code, why = await credited(town, devices[0], b"\x01" + bytes(31))
            assert code == 422 and "anybody could sign with it" in why
            assert town.store.read("SELECT * FROM credited_people") == []
            there, slow = town.coordinator.announcing.running[BATCH], threading.Event()
            issue = there.issue
            there.issue = lambda device, keys: (slow.wait(60) if keys == key(9) else None, issue(device, keys))[1]
            late = asyncio.create_task(credited(town, devices[2], key(9)))
            assert (await credited(town, devices[2], key(8)))[0] == 200
            slow.set()
            assert (await late)[0] == 422, "it was signed before the other keys were bound, and given out after"
            several = await asyncio.gather(*(credited(town, devices[0], key(each % 3)) for each in range(9)))
            given = Counter(several)
            [bound] = {each % 3 for each in range(9) if several[each][0] == 200}
            assert sorted(given.values()) == [3, 6]
            assert town.store.read("SELECT count(*) FROM credited_people") == [(2,)]
            for _ in range(2):  # the second time nothing is remembered but what is on the disk
                for each in range(3):
                    code, what = await credited(town, devices[0], key(each))
                    assert (code, what) == several[each]
                    assert (code == 200) is (each == bound) and (code == 200 or "for other keys" in what)
                round_.cancel()
                await asyncio.gather(round_, return_exceptions=True)
                await town.restart()
                round_ = await opened(town, devices)
            assert (await credited(town, devices[1], key(7)))[0] == 200
            round_.cancel()

    asyncio.run(story())


def test_a_device_that_declined_gets_no_credential_and_one_that_has_it_counts_though_it_declines(tmp_path):
    async def story():
        devices = crowd(3)
        async with Town(tmp_path / "town", devices) as town:
            round_ = await opened(town, devices)
            there = town.coordinator.announcing.running[BATCH]
            assert await said(town, devices[0], "no") == 204
            assert (await credited(town, devices[0], key(0)))[0] == 409
            for name in there.states:
                there.states[name] = ASKED, ""  # as where it declines at this moment
            assert (await credited(town, devices[0], key(0)))[0] == 409
            assert town.store.read("SELECT * FROM credited_people") == []
            assert (await credited(town, devices[1], key(1)))[0] == 200
            assert await said(town, devices[1], "no") == 204
            assert (await credited(town, devices[1], key(1)))[0] == 409
            (code, _), _ = await asyncio.gather(credited(town, devices[2], key(2)), said(town, devices[2], "no"))
            [(people,)] = town.store.read("SELECT count(*) FROM credited_people")
            assert people == 1 + (code == 200)
            check_counted(town.store, there.announcement, people)
            with pytest.raises(Refused, match="were given a credential"):
                check_counted(town.store, there.announcement, people + 1)
            round_.cancel()

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
