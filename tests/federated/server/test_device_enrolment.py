"""Who becomes a device of a server, for how long, and how it is shut out."""

import asyncio
import hmac
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from tests.federated.server.fleet import AS_OPERATOR, FakeDevice, Town, crowd
from tests.federated.server.postgres import cluster
from tests.federated.server.test_campaign_spec import campaign
from tests.federated.server.test_http_routes import seated, told

from hazemap.errors import Refused
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import Challenge
from hazemap.federated.server import device_enrolment
from hazemap.federated.server.device_enrolment import Admission, Challenges, OtherServer, Stale, attest
from hazemap.federated.server.roles import checked
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.privacy.signing_identities import Identity

CODES = Admission()
AT = "https://maps.example"


def played(folder, play, devices=(), **settings):
    async def scene():
        async with Town(folder, list(devices), **settings) as town:
            return await play(town)

    return asyncio.run(scene())


async def codes(town, number, days=1):
    made = await town.http.post("/v1/codes", json={"number": number, "days": days}, headers=AS_OPERATOR)
    assert made.status_code == 201, made.text
    return made.json()["codes"]


def test_a_code_lets_one_device_in_and_only_its_hash_is_stored(tmp_path, monkeypatch):
    async def play(town):
        first, other, late = (FakeDevice(13.3, 52.5) for _ in range(3))
        [code, unused] = await codes(town, 2)
        done = [
            await first.enrol(town.http, code.lower().replace("-", " ")),
            await first.enrol(town.http, "no code at all"),  # it is known: it proves its identity, and needs none
            await other.enrol(town.http, code),
            await other.enrol(town.http, "00000-00000-00000-00000"),
        ]
        monkeypatch.setattr("hazemap.federated.server.device_enrolment.instant", lambda *_: "2999-01-01T00:00:00Z")
        done.append(await late.enrol(town.http, unused))
        await town.restart()
        done.append(await other.enrol(town.http, code))
        return done, code, len(town.coordinator.enrolled)

    done, code, number = played(tmp_path, play, admission=CODES)
    assert [each.status_code for each in done] == [201, 201, 403, 403, 403, 403]
    said = [each.json().get("error", "") for each in done]
    assert ("used before" in said[2], "does not know" in said[3], "ended on" in said[4]) == (True, True, True)
    assert number == 1
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("server.sqlite*"))
    assert code.encode() not in stored and kept(code) in stored


def test_two_devices_that_use_one_code_at_once_are_not_both_let_in(tmp_path):
    """Nor are forty."""

    async def play(town):
        [code] = await codes(town, 1)
        many = [FakeDevice(13.3, 52.5) for _ in range(40)]
        done = await asyncio.gather(*(device.enrol(town.http, code) for device in many))
        uses = town.store.read("SELECT count(*) FROM code_uses")
        return sorted(each.status_code for each in done), uses, len(town.coordinator.enrolled)

    found, uses, number = played(tmp_path, play, admission=CODES)
    assert (found.count(201), uses, number) == (1, [(1,)], 1)
    assert set(found[1:]) <= {403, 409}


def test_the_database_itself_takes_each_code_once(tmp_path):
    async def play(town):
        [code] = await codes(town, 1)
        enrolled = town.coordinator.enrolled.codes
        await enrolled.use(code, "one")
        enrolled._store.read = lambda *_: [("2999-01-01T00:00:00Z", None)]  # as if two had looked before either wrote
        with pytest.raises(Exception, match="contradicts"):
            await enrolled.use(code, "other")

    played(tmp_path, play, admission=CODES)


def test_the_shared_token_is_nothing_where_codes_are_asked_for(tmp_path):
    async def play(town):
        return await FakeDevice(13.3, 52.5).enrol(town.http)

    assert played(tmp_path, play, admission=CODES).status_code == 403


def test_an_operators_function_says_who_may_enrol(tmp_path):
    key = b"the key of an app's own server"

    def checked(token, identity, nonce):
        return hmac.compare_digest(token, hmac.new(key, identity, "sha256").hexdigest())

    async def play(town):
        good, bad = FakeDevice(13.3, 52.5), FakeDevice(13.3, 52.5)
        token = hmac.new(key, good.identity.public, "sha256").hexdigest()
        return await good.enrol(town.http, token), await bad.enrol(town.http, token)

    good, bad = played(tmp_path, play, admission=Admission(attestation=checked))
    assert (good.status_code, bad.status_code) == (201, 403)
    assert "does not accept this attestation" in bad.json()["error"]


@pytest.mark.parametrize("check", [lambda *_: 1 / 0, lambda *_: "yes", lambda *_: None])
def test_an_attestation_that_fails_or_says_anything_but_true_lets_nobody_in(check):
    with pytest.raises(Refused):
        asyncio.run(attest(check, "token", bytes(32), b""))


def test_a_challenge_is_answered_once_in_time_and_by_the_device_it_was_given_to():
    now = [1_000.0]
    maps, device, other = (Identity.create() for _ in range(3))
    given = Challenges(maps, (AT,), clock=lambda: now[0])

    def answered(asked, who=device, at=AT):
        return given.take(at, who.public, asked.nonce, "code", asked.answered(who, at, "code"))

    asked = given.given(AT, device.public)
    with pytest.raises(Stale):
        answered(asked, other)
    assert answered(asked)
    with pytest.raises(Stale, match="answered before"):
        answered(asked)
    asked = given.given(AT, device.public)
    now[0] += device_enrolment.LIFE + 1.1
    with pytest.raises(Stale, match="older"):
        answered(asked)
    with pytest.raises(Stale):  # of another server, or of this one before it was started again
        given.take(AT, device.public, Challenges(maps, (AT,)).given(AT, device.public).nonce, "code", bytes(64))
    with pytest.raises(OtherServer, match="--url"):
        given.given("https://evil.example", device.public)
    for _ in range(3):
        assert answered(given.given(AT, device.public))
    now[0] += 1_000
    assert answered(given.given(AT, device.public))
    assert len(given._used) == 1, "what has ended is forgotten"


def test_a_proof_that_was_made_for_one_server_is_worth_nothing_at_another():
    """Version 1 signed neither a challenge nor a server: a proof for one was good at all others, for ever."""
    device, evil = Identity.create(), Identity.create()
    maps = Challenges(Identity.create(), (AT,))
    asked = maps.given(AT, device.public)
    relayed = Challenge.signed(evil, "https://evil.example", device.public, asked.nonce)
    for proof in (
        relayed.answered(device, "https://evil.example", "code"),
        relayed.answered(device, AT, "code"),
        Challenge(maps.server.public, asked.nonce, b"").answered(device, "https://evil.example", "code"),
    ):
        assert not maps.take(AT, device.public, asked.nonce, "code", proof)
    assert not Challenge(maps.server.public, asked.nonce, asked.signature).genuine(
        "https://evil.example", device.public
    )
    assert maps.take(AT, device.public, asked.nonce, "code", asked.answered(device, AT, "code"))


def test_a_ticket_ends_by_the_servers_clock_and_is_renewed_by_the_same_identity(tmp_path, monkeypatch):
    async def play(town):
        [device] = town.devices
        first, name, clock = device.ticket, device.name, device_enrolment._now
        found = [(await town.http.get("/v1/tasks", headers=device.headers)).status_code]
        monkeypatch.setattr(device_enrolment, "_now", lambda: clock() + 90 * 86_400)
        found.append((await town.http.get("/v1/tasks", headers=device.headers)).status_code)
        await town.restart()
        found.append((await town.http.get("/v1/tasks", headers=device.headers)).status_code)
        found.append((await device.enrol(town.http, "")).status_code)
        found.append((await town.http.get("/v1/tasks", headers=device.headers)).status_code)
        return found, device.name == name, device.ticket != first

    found, *same = told(tmp_path, [FakeDevice(13.3, 52.5)], play)
    assert (found, same) == ([204, 401, 401, 201, 204], [True, True])


def test_tickets_do_not_all_end_at_once(tmp_path):
    async def play(town):
        return [device["expires"] for device in await town.coordinator.enrolled.all()]

    ends = [datetime.fromisoformat(each) for each in told(tmp_path, crowd(12), play)]
    days = [(end - datetime.now(UTC)).total_seconds() / 86_400 for end in ends]
    # twelve draws from nine days all within one: below 12 · (1/9)^11 < 1e-9
    assert 80 < min(days) < max(days) <= 90 and max(days) - min(days) > 1


@pytest.mark.slow
def test_a_revoked_device_is_out_at_once_for_good_and_nobody_waits_for_it(tmp_path):
    async def play(town):
        town.hasty = True
        assert (await town.begin(campaign())).status_code == 201
        gone = town.devices[0]
        while not gone.answered:
            await asyncio.gather(*(device.step(town.http) for device in town.devices))
            await asyncio.sleep(0.02)
        found = [await town.http.post(f"/v1/devices/{gone.name}/revoke", headers=AS_OPERATOR)]
        found.append(await town.http.get("/v1/tasks", headers=gone.headers))
        found.append(await gone.enrol(town.http))
        found.append(await town.http.post("/v1/devices/nobody/revoke", headers=AS_OPERATOR))
        town.devices = town.devices[1:]
        status = await town.live("berlin")
        listed = (await town.http.get("/v1/devices", headers=AS_OPERATOR)).json()["devices"]
        await town.restart()
        found.append(await gone.enrol(town.http))
        return found, status, listed, gone.name, len(town.coordinator.enrolled)

    found, status, listed, name, number = told(tmp_path, crowd(12), play)
    assert [each.status_code for each in found] == [204, 401, 403, 422, 403]
    assert "revoked" in found[2].json()["error"]
    assert (status["state"], status["rounds"][0]["people"], number) == ("done", 11, 11)
    assert [row["device"] for row in listed if row["revoked"]] == [name]


def test_enrolments_and_guesses_from_one_address_are_counted(tmp_path):
    async def play(town):
        many = [await FakeDevice(13.3, 52.5).enrol(town.http) for _ in range(7)]
        wrong = [await town.http.get("/v1/campaigns", headers={"Authorization": "Bearer guess"}) for _ in range(6)]
        right = await town.http.get("/v1/campaigns", headers=AS_OPERATOR)
        return many, wrong, right, dict(town.coordinator.metrics.rejected)

    many, wrong, right, rejected = played(tmp_path, play, limits=HttpLimits(enrolments=5, guesses=4))
    assert [each.status_code for each in many] == [201] * 5 + [429] * 2
    assert 1 <= int(many[-1].headers["retry-after"]) <= 12
    assert [each.status_code for each in wrong] == [401] * 4 + [429] * 2
    assert (right.status_code, rejected) == (200, {"enrolments": 2, "guesses": 2})


def test_no_device_enrols_with_a_key_with_which_anybody_can_sign(tmp_path):
    async def play(town):
        device = FakeDevice(13.3, 52.5)
        device.identity = SimpleNamespace(public=b"\x01" + bytes(31), sign=lambda _: b"\x01" + bytes(63))
        return (await device.enrol(town.http)).status_code, len(town.coordinator.enrolled)

    code, number = played(tmp_path, play)
    assert (400 <= code < 500, number) == (True, 0)


def test_what_is_published_is_read_from_one_address_so_often_and_a_long_answer_counts_as_several(tmp_path):
    async def play(town):
        async def read(times, place="/v1/recipes"):
            return [(await town.http.get(place)).status_code for _ in range(times)]

        town.coordinator.studies.log.lines = lambda _: ["0" * 4_096] * 1_000
        long = await read(2)
        other = await read(1, "/v1/recipes/0")
        again = await town.http.get("/v1/recipes")
        return long, other, again, dict(town.coordinator.metrics.rejected)

    long, other, again, rejected = played(tmp_path, play, limits=HttpLimits(reads=20))
    assert (long, other, again.status_code, rejected) == ([200, 429], [429], 429, {"reads": 3})
    assert int(again.headers["retry-after"]) > 60, "125 more reads are owed, of 20 a minute"
    free = played(tmp_path / "alone", play, limits=HttpLimits.here())
    assert free[0] == [200, 200] and free[3] == {}


def test_codes_that_are_guessed_in_parallel_are_cut_off(tmp_path):
    async def play(town):
        guesses = [f"{number:05}-00000-00000-00000" for number in range(60)]
        devices = [FakeDevice(13.3, 52.5) for _ in guesses]
        found = await asyncio.gather(*(d.enrol(town.http, g) for d, g in zip(devices, guesses, strict=True)))
        return [each.status_code for each in found]

    found = played(tmp_path, play, admission=CODES, limits=HttpLimits(enrolments=20, guesses=10))
    assert set(found) == {403, 429} and found.count(403) <= 20


def test_a_code_that_is_right_is_taken_however_many_wrong_ones_came_from_its_address(tmp_path):
    async def play(town):
        [code] = await codes(town, 1)
        wrong = [await FakeDevice(13.3, 52.5).enrol(town.http, "00000-00000-00000-00000") for _ in range(4)]
        return [each.status_code for each in (*wrong, await FakeDevice(13.3, 52.5).enrol(town.http, code))]

    found = played(tmp_path, play, admission=CODES, limits=HttpLimits.here(guesses=2))
    assert found == [403, 403, 429, 429, 201]


@pytest.mark.slow
def test_nobody_is_seated_twice_by_enrolling_again_in_the_middle_of_a_sum(tmp_path):
    async def play(town):
        await seated(town)
        for device in town.devices:
            assert (await device.enrol(town.http)).status_code == 201
        return await town.live("berlin")

    status = told(tmp_path, crowd(12), play)
    assert (status["state"], status["rounds"][0]["people"]) == ("done", 12)


@pytest.mark.slow
def test_codes_tokens_and_the_log_are_kept_in_postgresql_too(tmp_path):
    async def play(town):
        [code] = await codes(town, 1)
        many = [FakeDevice(13.3, 52.5) for _ in range(10)]
        done = await asyncio.gather(*(device.enrol(town.http, code) for device in many))
        asked = {"name": "anna", "role": "analyst", "days": 1, "epsilon": "1"}
        for _ in range(2):
            made = await town.http.post("/v1/tokens", json=asked, headers=AS_OPERATOR)
        anna = {"Authorization": f"Bearer {made.json()['token']}"}
        [device] = [device for device in many if device.ticket]
        revoked = await town.http.post(f"/v1/devices/{device.name}/revoke", headers=AS_OPERATOR)
        await town.restart()
        found = [
            await town.http.get("/v1/campaigns", headers=anna),
            await town.http.get("/v1/tasks", headers=device.headers),
            await device.enrol(town.http, code),
        ]
        log = (await town.http.get("/v1/audit", headers=AS_OPERATOR)).text.splitlines()
        return [each.status_code for each in done], revoked.status_code, [each.status_code for each in found], log

    with cluster() as url:
        done, revoked, found, log = played(tmp_path, play, admission=CODES, database=url)
    assert (done.count(201), revoked, found) == (1, 204, [200, 401, 403])
    assert checked(log).entries == 8
