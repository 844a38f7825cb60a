"""Rounds that are announced: who is shown them, what is kept of what they say, and when a round is over."""

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest
from tests.federated.server.fleet import Town, crowd
from tests.issuing import ISSUER, SECRET, signed_keys

from hazemap.errors import NotOpened, Refused
from hazemap.federated.server.announced_rounds import ASKED, Announcement, Turnout, check_counted, stored_announcement
from hazemap.federated.server.campaign_status import announced
from hazemap.federated.server.networked_two_servers import issuing
from hazemap.federated.trust.report_carriers import ANNOUNCED
from hazemap.privacy.signing_identities import Identity

BATCH = bytes(range(32))
PLACE = f"/v1/tasks/{BATCH.hex()}"


async def opened(town, people, seconds=30.0, quiet=None, enough=3):
    """A round among the first people of a town, stored and shown; its task."""
    await town.store.write(*campaign())
    announcement = Announcement(BATCH, "berlin", 1, '{"a": "task"}', b"secret")
    devices = [town.coordinator.enrolled.device(each.identity.public) for each in people]
    if stored_announcement(town.store, "berlin", 1) is None:
        await town.store.write(*announcement.begun(devices))
    issue = issuing(ISSUER, SECRET, BATCH, [SimpleNamespace(id=bytes(32))])
    turnout = town.coordinator.announcing.turnout(announcement, enough, seconds, quiet, issue=issue)
    task = asyncio.create_task(turnout)
    while BATCH not in town.coordinator.announcing.running:
        await asyncio.sleep(0.01)
    return task


def campaign():
    from hazemap.federated.service.store import Write

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


async def credited(town, device, keys, thief=None, batch=BATCH, issuer=ISSUER):
    content = signed_keys((thief or device).identity, issuer.public, batch, keys)
    answer = await town.http.post(f"{PLACE}/credentials", headers=device.headers, content=content)
    return answer.status_code, answer.content if answer.status_code == 200 else answer.json()["error"]


def test_whoever_shows_the_ticket_of_a_device_gets_no_credential_without_the_key_of_its_identity(tmp_path):
    """Not even one who asks first; and a signature is for one device, issuer, round and list of keys."""

    async def story():
        devices = crowd(3)
        own, other, absent = devices
        async with Town(tmp_path / "town", devices) as town:
            round_ = await opened(town, devices[:2])
            code, why = await credited(town, own, b"\x01" + bytes(31))
            assert code == 422 and "anybody could sign with it" in why
            assert (await credited(town, absent, key(1)))[0] == 409
            wrong = {"thief": other}, {"batch": bytes(32)}, {"issuer": Identity.from_bytes(bytes(32))}
            for each in wrong:
                code, why = await credited(town, own, key(9), **each)
                assert code == 422 and "not signed by the device" in why
            signed = signed_keys(own.identity, ISSUER.public, BATCH, key(1))
            for content in (key(9) + signed[32:], signed[:32], signed + b"0", key(1) + signed, b""):
                reply = await town.http.post(f"{PLACE}/credentials", headers=own.headers, content=content)
                assert reply.status_code == 422
            assert town.store.read("SELECT * FROM credited_people") == []
            given = Counter(await asyncio.gather(*(credited(town, own, key(each % 3)) for each in range(9))))
            assert sorted(given.values()) == [3, 3, 3] and {code for code, _ in given} == {200}
            assert len({what[:32] for _, what in given}) == 1, "one person has one serial, whatever the keys"
            assert town.store.read("SELECT count(*) FROM credited_people") == [(1,)]
            round_.cancel()
            await asyncio.gather(round_, return_exceptions=True)
            await town.restart()
            round_ = await opened(town, devices[:2])
            assert await credited(town, own, key(1)) in given
            assert (await credited(town, other, key(7)))[0] == 200
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
