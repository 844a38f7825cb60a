"""What the server answers over HTTP, to devices, operators and strangers."""

import asyncio
import base64
import gzip
import json
import logging
import os
from dataclasses import replace

import pytest
from tests.federated.server.fleet import AS_OPERATOR, OPERATOR, TOKEN, FakeDevice, Town, crowd
from tests.federated.server.test_campaign_spec import campaign

from hazemap.codec import dumps
from hazemap.errors import CodecError, StoreError
from hazemap.federated.server import device_endpoints
from hazemap.federated.server.device_endpoints import said, written
from hazemap.federated.server.device_enrolment import SeatTask
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.privacy.budget import PureDP
from hazemap.privacy.privacy_unit import FULL
from hazemap.privacy.signing_identities import Identity


def told(folder, devices, play):
    """What a scene in a town gives."""

    async def scene():
        async with Town(folder, devices) as town:
            return await play(town)

    return asyncio.run(scene())


async def seated(town):
    """Let a campaign begin, until every device has a seat."""
    assert (await town.begin(campaign())).status_code == 201
    while True:
        found = [await town.http.get("/v1/tasks", headers=device.headers) for device in town.devices]
        if all(each.status_code == 200 for each in found):
            return [each.json() for each in found]
        await asyncio.sleep(0.05)


def test_a_device_that_asks_for_its_long_work_without_end_waits_and_others_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(device_endpoints, "READ", 100)

    async def play():
        limits = HttpLimits.here(reads=30)
        async with Town(tmp_path / "town", crowd(12), limits=limits) as town:
            await seated(town)
            greedy, other = town.devices[:2]
            ask = lambda device: town.http.get("/v1/tasks", headers=device.headers)  # noqa: E731
            answers = [await ask(greedy) for _ in range(8)]
            size = len(answers[0].content) // 100
            assert size >= 8 and answers[0].status_code == 200
            assert sum(each.status_code == 200 for each in answers) <= 30 // size + 1
            assert answers[-1].status_code == 429 and 0 < int(answers[-1].headers["retry-after"]) <= 2 * 60 * size / 30
            assert (await ask(other)).status_code == 200
            assert town.coordinator.metrics.rejected["reads"] > 0

    asyncio.run(play())


def test_a_device_is_enrolled_once_and_given_a_new_ticket_each_time(tmp_path):
    async def play(town):
        [device] = town.devices
        first, name = device.ticket, device.name
        again = await device.enrol(town.http)
        old = await town.http.get("/v1/tasks", headers={"Authorization": f"Bearer {first}"})
        new = await town.http.get("/v1/tasks", headers=device.headers)
        await town.restart()
        later = await town.http.get("/v1/tasks", headers=device.headers)
        return name, again, old, new, later, len(town.coordinator.enrolled)

    name, again, old, new, later, number = told(tmp_path, [FakeDevice(13.3, 52.5)], play)
    assert (again.status_code, again.json()["device"]) == (201, name)
    assert (old.status_code, new.status_code, later.status_code, number) == (401, 204, 204, 1)


def test_no_ticket_is_in_the_database(tmp_path):
    devices = crowd(3)
    told(tmp_path, devices, lambda _: asyncio.sleep(0))
    content = (tmp_path / "server.sqlite").read_bytes()
    assert not any(device.ticket.encode() in content for device in devices)


HOSTILE = {
    "16,000 brackets": b"[" * 16_000,
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "no UTF-8": b"\xff\xfe",
    "a name twice": b'{"token": "a", "token": "b", "identity": "00", "signature": "00"}',
    "half a pair": b'{"token": "\\ud800", "identity": "00", "signature": "00"}',
    "a number of digits": b'{"token": "a", "identity": 1' + b"0" * 9_000 + b', "signature": "00"}',
    "not a number": b'{"token": "a", "identity": NaN, "signature": "00"}',
    "other fields": b'{"token": ["a"], "identity": {}, "signature": null}',
}


def test_whatever_is_sent_to_be_enrolled_is_answered_with_words_and_no_traceback(tmp_path, caplog):
    """16,000 brackets gave 500 and a traceback."""

    async def play(town):
        return [await town.http.post("/v1/enrol", content=content) for content in HOSTILE.values()]

    for answer in told(tmp_path, [], play):
        assert (answer.status_code, "JSON of version 2" in answer.json()["error"]) == (422, True)
    assert "Traceback" not in caplog.text


def test_a_request_that_nobody_thought_of_is_answered_and_logged(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("hazemap.federated.server.http_routes._fields", lambda *_: 1 / 0)

    async def play(town):
        return await town.http.post("/v1/enrol", content=b"{}")

    answer = told(tmp_path, [], play)
    assert (answer.status_code, answer.json()) == (
        500,
        {"error": "the server could not deal with this request; its log says why"},
    )
    assert "ZeroDivisionError" in caplog.text


def test_campaigns_and_refusals_are_read_within_bounds(tmp_path):
    async def play(town):
        order = dumps(campaign())
        bodies = (
            "[" * 200_000,
            order.replace('"attempts":3', '"attempts":3.0'),
            order.replace('"attempts":3', '"attempts":true'),
            '{"PureDP":{"epsilon":{"fraction":"1"}}}',
            order.replace('"people":', '"people":9e99,"people":'),
        )
        assert all(each != order for each in bodies)
        return [await town.http.post("/v1/campaigns", content=each, headers=AS_OPERATOR) for each in bodies]

    for answer in told(tmp_path, [], play):
        assert answer.status_code == 422, answer.text
    for reason in (b"[" * 4_000, b'{"reason": 1}', b'{"reason": "a", "reason": "b"}', b"[]"):
        with pytest.raises(CodecError):
            said(reason)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"token": "another"}, 403, "does not prove"),
        ({"signature": "00" * 64}, 403, "does not prove"),
        ({"identity": "00" * 32}, 409, "not the server's"),
        ({"challenge": "00" * 56}, 409, "not the server's"),
        ({"identity": "00" * 31}, 422, "JSON of version 2"),
        ({"identity": "no hex"}, 422, "JSON of version 2"),
        ({"token": 7}, 422, "JSON of version 2"),
        ({"origin": "http://other"}, 421, "this server is http://town, not http://other"),
        ({"origin": "http://town/"}, 422, "an origin is written as http://town"),
    ],
)
def test_an_enrolment_without_token_or_proof_is_refused(tmp_path, change, code, words):
    async def play(town):
        body = await FakeDevice(13.3, 52.5).enrolment(town.http)
        found = await town.http.post("/v1/enrol", json={**body, **change})
        other = await FakeDevice(13.3, 52.5).enrol(town.http, "another")
        return found, other, len(town.coordinator.enrolled)

    found, other, number = told(tmp_path, [], play)
    assert (found.status_code, number) == (code, 0)
    assert words in found.json()["error"]
    assert (other.status_code, "no enrolment code or token" in other.json()["error"]) == (403, True)


def test_a_stranger_is_told_to_enrol_and_nothing_else(tmp_path):
    async def play(town):
        tickets = ["", "nonsense", OPERATOR, TOKEN]
        headers = [{"Authorization": f"Bearer {each}"} for each in tickets] + [{}]
        return [await town.http.get("/v1/tasks", headers=each) for each in headers]

    assert {found.status_code for found in told(tmp_path, [], play)} == {401}


def test_devices_and_strangers_cannot_give_orders(tmp_path):
    async def play(town):
        [device] = town.devices
        places = ["/v1/campaigns", "/v1/campaigns/berlin", "/v1/campaigns/berlin/map", "/v1/campaigns/berlin/release"]
        found = [await town.http.get(place, headers=device.headers) for place in places]
        found.append(await town.http.post("/v1/campaigns", headers=device.headers, content=dumps(campaign())))
        found.append(await town.http.post("/v1/campaigns/berlin/stop", headers=device.headers))
        return [each.status_code for each in found], await town.http.get("/v1/status")

    codes, status = told(tmp_path, crowd(1), play)
    assert codes == [401] * 6
    assert status.json()["devices"] == 1


def test_the_same_reply_again_is_no_fault_and_another_is_refused(tmp_path):
    async def play(town):
        work = await seated(town)
        device, session = town.devices[0], work[0]["session"]
        assert await device.step(town.http)
        client = device.clients[session]
        again = await town.http.post(f"/v1/tasks/{session}", headers=device.headers, content=client.reply)
        other = client.reply[:-1] + bytes([client.reply[-1] ^ 1])
        changed = await town.http.post(f"/v1/tasks/{session}", headers=device.headers, content=other)
        nothing = await town.http.get("/v1/tasks", headers=device.headers)
        status = await town.live("berlin")
        after = await town.http.post(f"/v1/tasks/{session}", headers=device.headers, content=client.reply)
        return again, changed, nothing, status, after

    again, changed, nothing, status, after = told(tmp_path, crowd(12), play)
    assert [each.status_code for each in (again, changed, nothing, after)] == [204, 422, 204, 409]
    assert status["state"] == "done"
    assert not status["rounds"][0]["culprits"]


def test_an_answer_to_a_stage_that_is_over_is_late_and_harms_nobody(tmp_path):
    async def play(town):
        ordered = campaign()
        await town.begin(ordered)
        slow = town.devices[0]
        while not slow.clients:
            for device in town.devices:
                await device.step(town.http)
            await asyncio.sleep(0.02)
        [(session, client)] = slow.clients.items()
        first = client.reply
        while client.stage < 3:
            await asyncio.gather(*(device.step(town.http) for device in town.devices))
        other = Identity.create().sign(b"other")
        late = await town.http.post(f"/v1/tasks/{session}", headers=slow.headers, content=first[:-64] + other)
        return late, await town.live("berlin")

    late, status = told(tmp_path, crowd(12), play)
    assert late.status_code == 409
    assert (status["state"], status["rounds"][0]["people"]) == ("done", 12)


def test_nonsense_from_a_device_names_it_and_the_others_go_on(tmp_path):
    async def play(town):
        work = await seated(town)
        device, session = town.devices[0], work[0]["session"]
        done = await town.http.post(f"/v1/tasks/{session}", headers=device.headers, content=b"\x01\x02nonsense")
        device.silent = 0
        return done, await town.live("berlin"), device.name

    done, status, name = told(tmp_path, crowd(12), play)
    assert done.status_code == 422
    assert list(status["rounds"][0]["culprits"]) == [name]
    assert status["rounds"][0]["people"] == 11


def test_places_that_are_not_there_and_bodies_that_are_too_long_are_said(tmp_path):
    async def play(town):
        work = await seated(town)
        device, session = town.devices[0], work[0]["session"]
        other = "00" * 32

        async def post(place, content=b""):
            return (await town.http.post(place, headers=device.headers, content=content)).status_code

        return [
            await post(f"/v1/tasks/{session}", bytes(1 << 20)),
            await post(f"/v1/tasks/{session}", b""),
            await post(f"/v1/tasks/{other}", b"x"),
            await post("/v1/tasks/short", b"x"),
            await post("/v1/tasksers", b"x"),
            await post("/v1/tasks", b"x"),
            await post(f"/v1/tasks/{session}/refusal", b"not JSON"),
            await post(f"/v1/tasks/{session}/refusal", b'{"reason": 7}'),
            await post(f"/v1/tasks/{session}/refusal", b'{"reason": "' + b"x" * 5_000 + b'"}'),
            (await town.http.get("/v1/nowhere")).status_code,
        ]

    assert told(tmp_path, crowd(12), play) == [413, 409, 409, 404, 404, 405, 422, 422, 413, 404]


def test_orders_that_cannot_be_carried_out_are_refused_before_anything_is_paid(tmp_path):
    async def play(town):
        town.ledger.cap("town", PureDP(1))
        good = json.loads(dumps(campaign(budget=PureDP(1))))

        async def order(change):
            text = json.dumps(change(json.loads(json.dumps(good))))
            done = await town.http.post("/v1/campaigns", headers=AS_OPERATOR, content=text)
            return done.status_code, done.json().get("error", "")

        def put(*path):
            def change(data):
                place = data["Campaign"]
                for name in path[:-2]:
                    place = place[name]
                place[path[-2]] = path[-1]
                return data

            return change

        found = {
            "price": await order(put("budget", "PureDP", "epsilon", {"fraction": "2"})),
            "name": await order(put("name", "../../etc")),
            "purpose": await order(put("purpose", "")),
            "kind": await order(lambda data: data["Campaign"]["cohort"]),
            "unknown": await order(put("algorithm", {"Locate": {}})),
            "rows": await order(put("algorithm", "Flat", "bounding", {"RowIsPerson": {"nowhere": False}})),
            "people": await order(put("cohort", "Cohort", "people", 1)),
            "deadline": await order(put("deadlines", "Deadlines", "keys", -1)),
            "no JSON": await order(lambda data: data["Campaign"]["name"]),
        }
        paid = town.ledger.history("town")
        first, second = await order(lambda data: data), await order(lambda data: data)
        return found, paid, first, second

    found, paid, first, second = told(tmp_path, crowd(12), play)
    assert paid == []
    assert found.pop("price")[0] == 402
    assert {name: code for name, (code, _) in found.items()} == dict.fromkeys(found, 422)
    assert all(words for _, words in found.values())
    assert (first[0], second[0]) == (201, 409)


@pytest.mark.usefixtures("usual_cap")
def test_the_first_campaign_of_a_data_set_sets_the_usual_cap_and_a_dear_one_is_refused(tmp_path, caplog):
    async def play(town):
        async def order(name, price):
            text = dumps(replace(campaign(budget=PureDP(price)), name=name))
            done = await town.http.post("/v1/campaigns", headers=AS_OPERATOR, content=text)
            return done.status_code, done.json().get("error", "")

        first = await order("first", 1)
        while town.ledger.status("town", FULL) is None:
            await asyncio.sleep(0.01)
        return first, await order("second", "2.1"), town.ledger.status("town", FULL)

    first, second, status = told(tmp_path, crowd(12), play)
    assert first[0] == 201 and "gets a cap: all its releases together may cost ε = 3, ever" in caplog.text
    assert "--no-cap" not in caplog.text
    assert second[0] == 402 and "ε = 2 left of its cap ε = 3" in second[1]
    assert (status.cap, status.charges) == (PureDP(3), 1)


def test_a_campaign_can_be_stopped_and_its_devices_are_free(tmp_path):
    async def play(town):
        work = await seated(town)
        stop = await town.http.post("/v1/campaigns/berlin/stop", headers=AS_OPERATOR)
        after = await town.http.get("/v1/tasks", headers=town.devices[0].headers)
        again = await town.http.post("/v1/campaigns/berlin/stop", headers=AS_OPERATOR)
        status = await town.status("berlin")
        release = await town.http.get("/v1/campaigns/berlin/release", headers=AS_OPERATOR)
        events = town.store.read("SELECT count(*) FROM events")
        await town.restart()
        return work, stop, after, again, status, release, events, await town.status("berlin")

    _, stop, after, again, status, release, events, later = told(tmp_path, crowd(12), play)
    assert [each.status_code for each in (stop, after, again, release)] == [204, 204, 409, 409]
    assert status["state"] == later["state"] == "stopped"
    assert events == [(0,)]


def test_campaigns_that_nobody_ordered_are_unknown(tmp_path):
    async def play(town):
        places = ["", "/map", "/release"]
        found = [await town.http.get(f"/v1/campaigns/nobody{place}", headers=AS_OPERATOR) for place in places]
        found.append(await town.http.post("/v1/campaigns/nobody/stop", headers=AS_OPERATOR))
        return {each.status_code for each in found}

    assert told(tmp_path, [], play) == {404}


@pytest.mark.slow
def test_the_map_can_be_watched_as_numbers_and_as_a_picture(tmp_path):
    async def play(town):
        await seated(town)
        early = await town.http.get("/v1/campaigns/berlin/map", headers=AS_OPERATOR)
        await town.live("berlin")
        numbers = await town.http.get("/v1/campaigns/berlin/map", headers=AS_OPERATOR)
        picture = await town.http.get("/v1/campaigns/berlin/map?format=png", headers=AS_OPERATOR)
        return early, numbers.json(), picture

    early, numbers, picture = told(tmp_path, crowd(12), play)
    assert early.status_code == 422
    assert "no round" in early.json()["error"]
    assert sum(numbers["unbiased"]) == 12
    assert len(numbers["values"]) == len(numbers["stddev"]) == 16
    assert picture.content.startswith(b"\x89PNG")


def test_an_invitation_is_squeezed_for_those_who_understand(tmp_path):
    async def play(town):
        await seated(town)
        headers = town.devices[0].headers
        plain = await town.http.get("/v1/tasks", headers={**headers, "Accept-Encoding": "identity"})
        small = await town.http.get("/v1/tasks", headers=headers)
        return plain, small

    plain, small = told(tmp_path, crowd(12), play)
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"])
    assert small.json() == plain.json()


def test_nothing_that_is_secret_is_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    bodies = []

    async def play(town):
        town.devices[0].broken = lambda stage, reply: reply[:-1] if stage == 4 else (bodies.append(reply), reply)[1]
        town.devices[1].declines = "my budget is spent"
        for device in town.devices[2:]:
            device.broken = lambda _, reply: (bodies.append(reply), reply)[1]
        await town.http.get("/v1/campaigns", headers={"Authorization": f"Bearer {OPERATOR}x"})
        await FakeDevice(1.0, 2.0).enrol(town.http, token="a wrong token")
        await town.begin(campaign())
        await town.live("berlin")
        return [device.ticket for device in town.devices]

    devices = crowd(12)
    tickets = told(tmp_path, devices, play)
    text = "\n".join(record.getMessage() for record in caplog.records) + caplog.text
    secrets = [OPERATOR, TOKEN, *tickets, *(f"{d.lon:.4f}" for d in devices), *(f"{d.lat:.4f}" for d in devices)]
    secrets += [device.identity.to_bytes().hex() for device in devices]
    for body in bodies:
        secrets += [body[34:50].hex(), base64.b64encode(body[34:64]).decode(), repr(body[34:44])[2:-1]]
    assert "berlin" in text
    assert "my budget is spent" in text
    assert not [secret for secret in secrets if secret and secret in text]


def test_work_is_the_json_that_devices_expect():
    from datetime import UTC, datetime

    work = SeatTask(bytes(range(32)), 1, '{"Task": "é"}', os.urandom(99), datetime(2026, 1, 2, 3, 4, 5, 6_000, UTC))
    for squeezed in (True, False):
        content, _ = written(work, squeezed)
        data = json.loads(gzip.decompress(content) if squeezed else content)
        assert data["session"] == work.session.hex()
        assert (data["stage"], data["task"]) == (1, work.task)
        assert base64.b64decode(data["message"]) == work.message
        assert datetime.fromisoformat(data["until"]) == work.until
        assert data["head"] is None
    data = json.loads(written(work._replace(task=None), True, bytes(24))[0])
    assert data["task"] is None and data["head"] == "00" * 24


def test_a_reason_is_one_printable_line():
    assert said(b'{"reason": " a\\n\\u0007b "}') == "a b"
    assert said(b'{"reason": "\\u0000"}') == "no reason given"
    assert len(said(json.dumps({"reason": "x" * 300}).encode())) == 200


def test_the_status_says_that_nothing_can_be_written_while_nothing_can(tmp_path):
    async def play(town):
        well = await town.http.get("/v1/status")
        town.coordinator.store.failing = StoreError("the server's database cannot be written (OperationalError)")
        stuck = await town.http.get("/v1/status")
        town.coordinator.store.failing = None
        return well, stuck, await town.http.get("/v1/status")

    well, stuck, again = told(tmp_path, [], play)
    assert (well.status_code, stuck.status_code, again.status_code) == (200, 503, 200)
    assert "cannot be written" in stuck.json()["error"] and stuck.headers["retry-after"] == "30"
