"""Studies whose reports two servers sum: what is refused before it costs anything, what is paid, and what goes on."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.server.asking_studies import KEY, POLICY, StudyTown, recipe, study, typists
from tests.federated.server.fleet import AS_OPERATOR
from tests.issuing import signed_keys

from hazemap.codec import dumps, loads
from hazemap.errors import InputError, Refused, TranscriptMismatch
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.collector import AggregateResult
from hazemap.federated.protocols.dap.report_credentials import HeldCredential, report_key
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.server import announced_rounds, networked_two_servers
from hazemap.federated.server.announced_rounds import stored_announcement
from hazemap.federated.server.campaign_house import PeerServers
from hazemap.federated.server.campaign_spec import TrustOptions
from hazemap.federated.server.networked_two_servers import _answered
from hazemap.federated.server.study_spec import KNOWN, study_from
from hazemap.federated.server.study_statement import assumed, study_statement
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.recipe_terms import price_of_recipe, price_of_sum
from hazemap.federated.trust.report_carriers import CARRIED, ByOneReport, ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import PRECISION, recipe_batch, recipe_report, round_tasks
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.local_randomisers import UnaryEncoding
from hazemap.privacy.random_stream import Stream

ONE, TWO = "http://127.0.0.1:1/", "http://127.0.0.1:2/"
LEAST = 10
BOTH = ByTwoServers(ONE, TWO, LEAST)
SIGNED = SignedPolicy.sign(
    replace(POLICY, analyses=tuple(replace(each, carriers=(Carrier.TWO_SERVERS,)) for each in POLICY.analyses)), KEY
)


def order(**changes):
    return study(**{"carrier": BOTH, **changes})


def by_two(name="words", **changes):
    return recipe(name, **{"carrier": Carrier.TWO_SERVERS, **changes})


def carried(asked=None, carrier=BOTH, people=12):
    task = order(people=people, carrier=carrier).task(asked or by_two(), 1)
    return CarriedTask(task, carrier, "ab" * 32, 1_800_000_000)


class TwoServerTown(StudyTown):
    """A town that knows two servers, which are not there: what they would sum is told by the test."""

    async def _start(self):
        await super()._start()
        peers = PeerServers({ONE: "token of the leader", TWO: "token of the helper"})
        object.__setattr__(self.coordinator.house, "peers", peers)

    credited = True
    """whether devices ask for their credentials before they say that they have reported"""

    async def report(self, devices, declines=None):
        """Everybody asks for work, and these devices answer what is announced to them: the batches they saw."""
        seen = []
        for device in self.devices:
            headers = {"Authorization": f"Bearer {device.ticket}"}
            reply = await self.http.get("/v1/tasks", headers=headers)
            if reply.status_code != 200 or device not in devices:
                continue
            work = reply.json()
            seen.append(work["session"])
            assert work["stage"] == 0 and loads(work["task"], CARRIED, CarriedTask).carrier == BOTH
            path, content = f"/v1/tasks/{work['session']}", None
            if self.credited and not declines:
                await self.credit(device, path, headers)
            if declines:
                path, content = f"{path}/refusal", {"reason": declines}
            assert (await self.http.post(path, headers=headers, json=content)).status_code == 204
        return seen

    async def credit(self, device, path, headers):
        """Ask for the round's one credential: twice, as an answer may be lost."""
        [task] = round_tasks(self.announced(), issuer := self.coordinator.house.identity.public)
        key = report_key(device.identity.to_bytes(), task.id)
        content = signed_keys(device.identity, issuer, bytes.fromhex(path.split("/")[3]), key.public)
        asked = [await self.http.post(f"{path}/credentials", headers=headers, content=content) for _ in range(2)]
        assert [each.status_code for each in asked] == [200, 200] and asked[0].content == asked[1].content
        HeldCredential.received(asked[0].content, key, issuer, task.id)
        for wrong in (b"", key.public, content + b"0", key.public + content, content[:-1] + bytes([content[-1] ^ 1])):
            assert (await self.http.post(f"{path}/credentials", headers=headers, content=wrong)).status_code == 422

    def announced(self):
        """The round that is announced now."""
        [there] = self.coordinator.announcing.running.values()
        return loads(there.announcement.task, CARRIED, CarriedTask)

    async def seen(self, devices):
        """The batches that these devices report to, once they are announced."""
        async with asyncio.timeout(600):
            while not (found := await self.report(devices)):
                await asyncio.sleep(0.02)
        return found

    async def over(self, patch):
        """Let the time of a round be over, once it is announced."""
        running = self.coordinator.announcing.running
        while not running:
            await asyncio.sleep(0.01)
        patch.setattr(Later, "ahead", Later.ahead + timedelta(days=1))
        for there in running.values():
            there.changed.set()

    async def until(self, number, state, devices=()):
        async with asyncio.timeout(600):
            while (found := await self.round(number))["state"] != state:
                await self.report(devices)
                await asyncio.sleep(0.02)
        return found


class Later(datetime):
    """A clock that a test puts forward."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + cls.ahead


@pytest.fixture
def servers(monkeypatch):
    """What the two servers sum: nothing is sent to them."""
    given = []

    async def provision(_http, _peers, files):
        given.append([each["leader"].task.id for each in files])

    def collected(_rounds, asked, *_):
        interval = TimeInterval(asked.begun // PRECISION, 2)
        return [AggregateResult(12, interval, tuple([6] * asked.task.question.size))]

    monkeypatch.setattr(networked_two_servers, "provision", provision)
    monkeypatch.setattr(networked_two_servers, "_collected", collected)
    return given


def played(folder, play):
    async def whole():
        async with TwoServerTown(folder / "town", typists(12)) as town:
            assert (await town.policy(SIGNED)).status_code == 201
            return await play(town)

    return asyncio.run(whole())


def charges(town):
    return [each.charge.price for each in town.ledger.history("keyboard")]


def test_a_round_is_announced_charged_once_and_answered_with_the_law_of_its_reports(tmp_path, servers):
    async def play(town):
        assert (await town.study(order())).status_code == 201
        assert (await town.ask(by_two())).status_code == 201
        found = await town.until(1, "done", town.devices)
        again = await town.ask(by_two())
        status = (await town.http.get("/v1/studies/spring", headers=AS_OPERATOR)).json()
        secret = stored_announcement(town.coordinator.store, "spring", 1).secret
        return found, again.json()["round"], status, secret, charges(town)

    found, again, status, secret, paid = played(tmp_path, play)
    assert (again, len(servers), secret) == (1, 1, b"")
    answer = loads(found["answer"])
    law = by_two().law
    assert answer.people == 12 and answer.chances == law.chances
    assert answer.blank == 2 * (order().honest - 1) == 18
    assert np.abs(answer.sums - law.unbiased(np.full(6, 6), 12 + 18)).max() < 1
    assert (status["trust"], status["rounds"][0]["survivors"], status["left"]["reports"]) == ("two-servers", 12, 3)
    assert any(ONE in each and TWO in each for each in status["assumptions"])
    assert paid == [order().charge(by_two())]
    assert paid[0].rho == zcdp_of_sum(law.bit_flips, LEAST).rho > zcdp_of_sum(law.bit_flips, 12).rho


def test_more_reports_than_people_were_given_credentials_end_the_round_in_words(tmp_path, servers, monkeypatch):
    async def play(town):
        monkeypatch.setattr(town, "credited", False)
        assert (await town.study(order())).status_code == 201
        assert (await town.ask(by_two())).status_code == 201
        found = await town.until(1, "failed", town.devices)
        assert "the servers counted 12 reports, but only 0 people were given a credential" in found["reason"]
        assert town.coordinator.store.read("SELECT count(*) FROM exchanges") == [(0,)]

    played(tmp_path, play)


def test_a_server_that_is_killed_announces_the_same_batch_and_charges_once(tmp_path, servers):
    async def play(town):
        await town.study(order())
        await town.ask(by_two())
        first = await town.seen(town.devices[:5])
        await town.kill()
        await town._start()
        then = await town.seen(town.devices)
        found = await town.until(1, "done", town.devices)
        return first, then, found, charges(town)

    first, then, found, paid = played(tmp_path, play)
    assert set(first) == set(then) and len(then) == 7, "who has reported is not asked again"
    assert found["survivors"] == 12 and len(paid) == 1 and servers[0] == servers[-1]


def test_a_round_that_too_few_answered_goes_on_with_its_batch_for_nothing_while_servers_take_it(
    tmp_path, servers, monkeypatch
):
    async def play(town):
        monkeypatch.setattr(announced_rounds, "datetime", Later)
        await town.study(order(reports=4))
        await town.ask(by_two())
        first = await town.seen(town.devices[:4])
        await town.over(monkeypatch)
        failed = await town.until(1, "failed")
        again = (await town.ask(by_two())).json()["round"]
        then = await town.seen(town.devices)
        done = await town.until(1, "done", town.devices)
        await town.ask(by_two("late"))
        await town.over(monkeypatch)
        await town.until(2, "failed")
        with monkeypatch.context() as patch:
            patch.setattr(networked_two_servers, "time", lambda: 4_000_000_000)
            later = (await town.ask(by_two("late"))).json()["round"]
        return first, failed, again, then, done, later, charges(town)

    first, failed, again, then, done, later, paid = played(tmp_path, play)
    assert "4 of 12 people have reported, and 10 had to" in failed["reason"]
    assert "waits for the same people and batch, for nothing" in failed["reason"]
    assert (again, set(then), len(then)) == (1, set(first), 8) and done["state"] == "done"
    assert later == 3 and len(paid) >= 2


def test_a_study_that_is_stopped_forgets_what_its_rounds_are_opened_with_and_tells_devices(tmp_path, servers):
    async def play(town):
        await town.study(order())
        await town.ask(by_two())
        seen = await town.seen(town.devices[:3])
        assert (await town.http.post("/v1/studies/spring/stop", headers=AS_OPERATOR)).status_code == 204
        headers = {"Authorization": f"Bearer {town.devices[5].ticket}"}
        told = await town.http.post(f"/v1/tasks/{seen[0]}", headers=headers)
        return stored_announcement(town.coordinator.store, "spring", 1).secret, told, (await town.round(1))["state"]

    secret, told, state = played(tmp_path, play)
    assert (secret, told.status_code, state) == (b"", 410, "stopped")
    assert "stopped" in told.json()["error"]


def test_what_a_study_over_two_servers_may_not_ask_is_refused_in_words_before_anything_is_paid(tmp_path, servers):
    tries = {
        "is carried by secure sums, but the study spring by two servers": recipe(),
        "is summed over 11 people or more, but this sum is opened with 10": by_two(minimum_cohort=11),
        "in which 10 honest people's reports are certain tells": by_two(epsilon=Fraction(1, 10)),
    }

    async def play(town):
        await town.study(order())
        await town.study(study(name="sums"))
        found = {words: await town.ask(asked) for words, asked in tries.items()}
        found["carried by two servers, but the study sums by secure sums"] = await town.ask(by_two(), "sums")
        found["does not know"] = await town.study(
            order(name="far", carrier=replace(BOTH, helper="http://far.example/"))
        )
        return found, charges(town) if "keyboard" in {each.charge.dataset for each in town.ledger.history()} else []

    found, paid = played(tmp_path, play)
    for words, reply in found.items():
        assert reply.status_code == 422 and words in reply.json()["error"], reply.text
    assert not paid and not servers


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"carrier": ByOneReport(ONE, TWO, LEAST, 4)}, "not by 'one-report'"),
        ({"carrier": ByShuffler(ONE, LEAST, 64 * "a")}, "not by 'shuffled'"),
        ({"carrier": replace(BOTH, minimum=13)}, "only 12 people are asked"),
        (
            {"cohort": replace(study().cohort, corrupt=Fraction(1, 2)), "carrier": replace(BOTH, minimum=6)},
            "none would",
        ),
    ],
)
def test_a_study_that_two_servers_cannot_carry_is_no_study(changes, why):
    with pytest.raises(InputError, match=why):
        order(**changes)


def test_a_study_says_in_its_text_who_carries_its_reports_and_older_texts_stay_what_they_were():
    assert study_from(dumps(order())) == order() and order().trust == "two-servers"
    assert "carrier" not in dumps(study()) and study().trust == "secure-sum"
    assert loads(dumps(order()), KNOWN) == order()


def test_the_command_line_names_who_carries_reports_or_refuses_in_words():
    two = TrustOptions("two-servers", ONE, TWO)
    assert two.of_study(None, 90) == ByTwoServers(ONE, TWO, 90)
    assert two.of_study(80, 90).minimum == 80
    assert TrustOptions("secure-sum").of_study(None, 90) is None
    for wrong, least, why in (
        (TrustOptions("one-report", ONE, TWO), None, "secure-sum or two-servers"),
        (TrustOptions("local"), None, "secure-sum or two-servers"),
        (TrustOptions("secure-sum"), 5, "--least"),
        (TrustOptions("two-servers", ONE), None, "--helper"),
        (TrustOptions("nobody"), None, "--trust is one of"),
    ):
        with pytest.raises(InputError, match=why):
            wrong.of_study(least, 90)


def test_the_smallest_sum_is_that_of_the_minimum_less_those_who_may_work_with_others():
    cohort = Cohort(2_000, 1_000, Fraction(1, 5), Fraction(1, 10), Sampling.FRESH)
    spec = order(cohort=cohort, carrier=replace(BOTH, minimum=1_500))
    assert spec.honest == 1_500 - 200 == recipe_batch(spec.task(by_two(), 1), spec.carrier).honest
    priced = price_of_recipe(by_two(), by_two().law, spec.honest)
    plain = price_of_sum(by_two().law, spec.honest, by_two().delta)
    assert plain.epsilon <= priced.epsilon <= plain.epsilon * Fraction(1_001, 1_000) and priced.delta == by_two().delta
    dearer = price_of_recipe(by_two(delta=Fraction(1, 10**11)), by_two().law, spec.honest)
    assert dearer.epsilon == by_two().local_epsilon, "2^-40 is no δ of 10^-11: only ε₀ is left"


def test_sums_of_reports_are_unbiased_and_as_wide_as_is_said_and_sums_as_they_are_would_not_be():
    law, counts, stream = (
        UnaryEncoding(Fraction(3, 4), Fraction(1, 8)),
        np.array([800, 90, 100, 0, 10, 0]),
        Stream.fixed(b"14"),
    )
    asked = by_two(local_epsilon=Fraction(4), randomiser=law, minimum_cohort=900)
    round_ = carried(asked, replace(BOTH, minimum=900), 1_000)
    [task] = round_tasks(round_, bytes(32))
    found, raw, blank = [], [], task.blank
    for _ in range(200):
        sums = law.sums(stream, counts, 1_000) + sum(blank.draw(stream, 6) for _ in range(2))
        answer = _answered(round_, [AggregateResult(1_000, TimeInterval(0, 2), tuple(sums.tolist()))])
        found.append(answer.sums)
        raw.append(sums)
    assert answer.people == 1_000 and answer.chances == law.chances
    assert blank.law == law and answer.blank == 2 * blank.reports == 2 * (
        recipe_batch(round_.task, round_.carrier).honest - 1
    )
    spread = np.sqrt(law.variance(1_000 + answer.blank, counts) + 0.25)
    # Each of six means of 200: 7 standard errors, with probability below 10^-11
    assert (np.abs(np.mean(found, axis=0) - counts) < 7 * spread / np.sqrt(200)).all()
    assert (np.abs(np.mean(raw, axis=0) - counts) > 7 * spread / np.sqrt(200)).all()


@pytest.mark.parametrize(
    ("count", "sums", "why"),
    [
        (9, (5,) * 6, "10 reports or more"),
        (12, (31, *(5,) * 5), "numbers are 0 or 1"),
        (12, (-1, *(5,) * 5), "numbers are 0 or 1"),
        (12, ((1 << 127) - 1, *(5,) * 5), "numbers are 0 or 1"),
        (12, (5, 5, 5), "another question"),
    ],
)
def test_sums_that_cannot_be_of_reports_are_not_published(count, sums, why):
    with pytest.raises((Refused, TranscriptMismatch), match=why):
        _answered(carried(), [AggregateResult(count, TimeInterval(0, 2), sums)])


def test_a_statement_says_that_one_honest_servers_reports_of_nobody_hide_a_person():
    spec, asked = order(), by_two()
    said = study_statement(spec, [(asked.epsilon, asked.delta)], [(1, asked)], ())
    text = " ".join(said.assumptions)
    assert "each server adds the reports of 9 people who hold nothing, drawn once for a batch" in text
    assert "those of one honest server hide a report as the price says, whoever else has reported" in text
    assert "NOT proved: honest coins. A report by itself hides its person by ε₀ = 4 at most" in text
    assert "nothing below a batch of 10 reports is opened" in text and f"the leader is {ONE}" in text
    assert said.trust == "two servers" and said.method == "recipes by two servers"
    assert any("10 or more are opened together" in each for each in said.public)
    assert "its own ε₀" in " ".join(assumed(spec))
    assert study_statement(study(), [(asked.epsilon, asked.delta)], [(1, recipe())], ()).trust.startswith("secure")


def test_weights_grow_with_the_recipe_and_fit_its_length():
    small = recipe_report(carried().task, BOTH)
    assert (small.length, small.max_weight) == (6, 6)
    words = tuple(f"w{number}" for number in range(400))
    large = recipe_report(carried(by_two(tokens=words)).task, BOTH)
    assert large.length > 400 and 8 < large.max_weight < 60
