"""Reports to recipes that two servers sum: what a device refuses, what it pays, and that it pays once."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from time import monotonic, time

import numpy as np
import pytest
from tests.federated.device.recipe_room import OPEN, POLICY, STREAMS, STUDY, TINY, recipe, typing
from tests.federated.device.room import entry_of
from tests.federated.device.test_report_sender import ONE, THREE, TWO, Server, announcement
from tests.issuing import ISSUER, given

from hazemap.codec import dumps
from hazemap.errors import InputError, Unreachable
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.device_account import DeviceAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.recipes import recipe_answer
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog, SeenRecipeLog
from hazemap.federated.device.reports.dap_report_upload import ReportConnections
from hazemap.federated.device.reports.report_routes import RoundReportRoute
from hazemap.federated.device.reports.report_sender import CHANGED, LEFT, ReportSender
from hazemap.federated.device.store.encrypted_store import CommitQueue, EncryptedStore
from hazemap.federated.device.store.event_store import ApprovedStreams, EventStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import ByOneReport, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import round_tasks
from hazemap.privacy.local_randomisers import Asymmetric

BOTH = replace(POLICY, analyses=tuple(replace(each, carriers=(Carrier.TWO_SERVERS,)) for each in POLICY.analyses))
RULES = replace(OPEN, aggregators=(ONE, TWO))
PINNED = ISSUER.public.hex()
LEAST = 18


def by_two(**changes):
    return recipe(**{"carrier": Carrier.TWO_SERVERS, **changes})


def carried(asked=None, number=1, people=20, carrier=None, batch="ab", corrupt=Fraction(1, 10), **changes):
    cohort = Cohort(people, people, corrupt=corrupt, mode=Mode.SEMI_HONEST)
    task = Task.asking(asked or by_two(), "study", number, cohort, **{"budget": STUDY, **changes})
    now = int(datetime.now(UTC).timestamp())
    return CarriedTask(task, carrier or ByTwoServers(ONE, TWO, LEAST), batch * 32, now)


class Room:
    """One device with events, servers by address, and the public log of its server."""

    def __init__(self, folder, words=("so", "be"), rules=RULES, policy=BOTH):
        self.store = EncryptedStore.opened(folder / "device.sqlite", create=True)
        [self.device] = typing(self.store, [[]], policy=policy)
        EventStore(self.store, self.device).donate(STREAMS[0], [(word,) for word in words], time() - 30)
        self.servers = {url: Server() for url in (ONE, TWO, THREE)}
        self.rules, self.log, self.held = rules, PublicRecipeLog(), []

    def answers(self, **changes):
        known = replace(
            enrolment.read(self.store, self.device), server="https://maps.example", pinned=ISSUER.public.hex()
        )

        async def line(url):
            return self.servers[url]

        account = DeviceAccount(self.store, self.device, known, self.rules, self.log)
        return ReportSender(account, ReportConnections(line), CommitQueue(self.store), **{"ask": given, **changes})

    def publish(self, asked):
        """The server logs a round."""
        task = asked.task
        if self.log.refusal(task, self.answers().account.seen()) is not None:
            self.log.take([entry_of(task, self.log.head)])

    def answered(self, asked, publish=True, now=None, **changes):
        if publish and not isinstance(asked, str):
            self.publish(asked)

        async def held(begun):
            self.held.append((begun, len(self.bodies)))

        work = announcement(asked, **changes)
        return asyncio.run(self.answers().answered(work, now or datetime.now(UTC), None, held))

    @property
    def bodies(self):
        return [body for server in self.servers.values() for body in server.bodies]

    @property
    def charges(self):
        return RecipeAccount(self.store, self.device).charges()

    @property
    def lines(self):
        return ActivityLog(self.store, self.device).entries()


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


@pytest.fixture
def unread(monkeypatch):
    """No event may be read."""

    def never(*_):
        raise AssertionError("an event was read")

    monkeypatch.setattr(ApprovedStreams, "events", never)
    monkeypatch.setattr(ApprovedStreams, "latest", never)


def test_a_report_is_charged_at_the_recipes_price_kept_held_and_sent_once_in_the_same_bytes(room):
    asked, leader = carried(), room.servers[ONE]
    begun, send = monotonic(), leader.send

    async def lost(method, path, ticket="", content=b"", kind=""):
        reply = await send(method, path, ticket, content, kind)
        if method == "POST":
            raise Unreachable("the answer is lost")
        return reply

    leader.send = lost
    for _ in range(2):
        with pytest.raises(Unreachable):
            room.answered(asked)
    leader.send = send
    assert room.answered(asked) is None and room.answered(asked) is None
    assert len(leader.bodies) == 3 and len(set(leader.bodies)) == 1 and not room.servers[TWO].bodies
    [(since, bodies)] = room.held
    assert since >= begun and not bodies, "held before it was sent, and once"
    [charge] = room.charges
    assert (charge.price.epsilon, charge.price.delta, charge.local_epsilon) == (4, TINY, 4)
    assert (charge.study, charge.analysis, sorted(map(str, charge.fields))) == ("study", "words", ["keyboard.word"])
    [line] = room.lines
    assert line.verdict == "answered" and line.epsilon == 4 and line.recipe == by_two().digest
    assert f"{ONE} and {TWO} have a half each" in line.outcome and "18 reports" in line.outcome
    assert len(line.report) == 1 and len(line.shares) == 1 and line.sent > 500


def test_what_is_sent_is_the_randomised_report_of_one_bin(room, monkeypatch):
    seen, sealed = [], RoundReportRoute.sealed

    def watched(line, measured, *rest):
        seen.append(measured)
        return sealed(line, measured, *rest)

    monkeypatch.setattr(Asymmetric, "report", lambda *given: np.eye(given[3], dtype=np.uint8)[given[2]])
    monkeypatch.setattr(RoundReportRoute, "sealed", watched)
    assert room.answered(carried()) is None
    [[bits]] = seen
    assert sum(bits) == 1 and bits.index(True) in (1, 2)  # so, be


def test_a_report_with_too_many_ones_is_thrown_again_and_not_sent(room, monkeypatch):
    [task] = round_tasks(carried(), ISSUER.public)
    most, thrown = task.measured.max_weight, iter([5, 4, 1])
    monkeypatch.setattr(
        Asymmetric, "report", lambda *_: np.array([1] * (n := next(thrown)) + [0] * (5 - n), dtype=np.uint8)
    )
    monkeypatch.setattr(
        "hazemap.federated.device.reports.report_sender.recipe_report", lambda *_: replace(task.measured, max_weight=1)
    )
    assert most == 5, "five bits, and 2^-40: all of them"
    assert room.answered(carried()) is None
    assert np.unpackbits(np.frombuffer(room.lines[0].report, np.uint8), count=5).sum() == 1
    assert next(thrown, None) is None


def test_another_batch_is_another_report_and_another_charge_within_the_policy(room):
    for number in range(3):
        assert room.answered(carried(batch=f"{number:02x}")) is None
    assert len(room.charges) == 3 == len({*room.bodies})
    told = room.answered(carried(batch="ee"))
    assert told == "this device has nothing left to spend on this round" and len(room.charges) == 3
    assert "the analysis words may cost ε = 12 in 30 days" in room.lines[-1].verdict
    assert room.answered(carried(batch="ee")) == LEFT


OTHER = ByTwoServers(ONE, THREE, LEAST)
SIX = by_two(local_epsilon=Fraction(6), epsilon=Fraction(6))
REFUSED = {
    "a server that its rules do not name": (lambda: carried(carrier=OTHER), {}, "none of them"),
    "a lower minimum than the policy's": (
        lambda: carried(by_two(minimum_cohort=1), carrier=ByTwoServers(ONE, TWO, 17)),
        {},
        "at least 18 people; this one would be opened with 17",
    ),
    "a lower minimum than its owner's": (
        carried,
        {"survivors": 19},
        "sums of 18 reports would be opened, but 19 must be",
    ),
    "a lower minimum than the recipe's": (
        lambda: carried(by_two(minimum_cohort=20)),
        {},
        "20 people or more, but this sum is opened with 18",
    ),
    "fewer people than its owner wants": (carried, {"people": 21}, "only 20 people are asked"),
    "a price that only more people could keep": (
        lambda: carried(by_two(epsilon=Fraction(3, 2))),
        {},
        "16 honest people's reports are certain tells ε = ",
    ),
    "nobody who is certain to be honest": (
        lambda: carried(corrupt=Fraction(1, 2), carrier=ByTwoServers(ONE, TWO, 10)),
        {},
        "none would be certain to be an honest person's",
    ),
    "fewer corrupt people than its owner assumes": (
        carried,
        {"corrupt": Fraction(1, 3)},
        "assumes 33.3 %",
    ),
    "an ε₀ above the field's": (lambda: carried(SIX), {}, "may have ε₀ = 4 at most"),
    "an ε₀ above its owner's": (carried, {"local": Fraction(3)}, "may have ε₀ = 3 at most"),
    "a carrier that its owner does not trust": (
        carried,
        {"carriers": ("secure sums",)},
        "does not report to two servers",
    ),
    "another purpose": (lambda: carried(by_two(purpose="advertising")), {}, "approved for another purpose"),
    "another analysis": (lambda: carried(by_two(analysis="pictures")), {}, "knows no analysis pictures"),
    "more numbers than its owner sends": (carried, {"longest": 4}, "at most 4 are allowed"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_within_the_rules_is_refused_before_an_event_is_read_and_costs_nothing(tmp_path, unread, what):
    asked, own, why = REFUSED[what]
    room = Room(tmp_path, rules=replace(RULES, **own))
    assert why in room.answered(asked())
    assert not room.charges and not room.bodies and not room.held
    [line] = room.lines
    assert why in line.verdict and not line.epsilon


def test_a_policy_that_knows_secure_sums_alone_lets_no_servers_have_it(tmp_path, unread):
    room = Room(tmp_path, policy=POLICY)
    assert "carried by secure sums, not by two servers" in room.answered(carried())
    assert not room.charges and not room.bodies


GONE = object()


def altered(path, value):
    """The announcement with another value somewhere inside, as a server could write it."""
    data = json.loads(dumps(carried()))
    at = data
    for name in path[:-1]:
        at = at[name]
    assert path[-1] in at
    at[path[-1]] = value
    if value is GONE:
        del at[path[-1]]
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


TASK = ("CarriedTask", "task", "Task")
RECIPE = (*TASK, "question", "Query", "encoder", "RecipeBins", "recipe", "Recipe")
FORGED = {
    "a larger ε₀ than the recipe states": (
        (*TASK, "randomiser", "Asymmetric", "epsilon"),
        {"fraction": "5"},
        "local ε of 4 or less",
    ),
    "no randomiser": ((*TASK, "randomiser"), GONE, "local ε of 4 or less"),
    "another price than the recipe states": ((*TASK, "price", "ApproxDP", "epsilon"), {"fraction": "3"}, "states"),
    "a recipe that secure sums carry": ((*RECIPE, "carrier"), {"Carrier": "secure sums"}, "not by two servers"),
    "another ε₀ in the recipe": ((*RECIPE, "local_epsilon"), {"fraction": "8"}, "public log"),
    "another minimum in the recipe": ((*RECIPE, "minimum_cohort"), 1, "public log"),
    "a minimum of more than are asked": (("CarriedTask", "carrier", "ByTwoServers", "minimum"), 21, "more reports"),
    "a weight": (("CarriedTask", "carrier", "ByTwoServers", "minimum"), {"most": 9}, ""),
    "another batch": (("CarriedTask", "batch"), "cd" * 32, "another batch"),
    "a time that is over": (("CarriedTask", "begun"), 1, "take no reports of this round"),
}


@pytest.mark.parametrize("what", FORGED)
def test_announcements_that_do_not_follow_from_the_recipe_are_refused_and_cost_nothing(room, unread, what):
    path, value, why = FORGED[what]
    room.publish(carried())
    assert why in room.answered(altered(path, value))
    assert not room.charges and not room.bodies


def test_reports_of_a_whole_tree_or_shuffled_ones_answer_no_recipe(room, unread):
    data = json.loads(dumps(carried()))
    data["CarriedTask"]["carrier"] = json.loads(dumps(ByOneReport(ONE, TWO, LEAST, 4)))
    assert "by secure sums or by two servers, not by 'one-report'" in room.answered(
        json.dumps(data, sort_keys=True, separators=(",", ":"))
    )
    assert not room.charges


CHANGES = {
    "other servers": {"carrier": ByTwoServers(THREE, TWO, LEAST)},
    "a lower minimum": {"carrier": ByTwoServers(ONE, TWO, LEAST - 1)},
    "another length": {"asked": by_two(features=(Feature("word", Categories(("so", "be"))),))},
    "another ε₀": {"randomiser": Asymmetric(Fraction(1))},
    "another round": {"number": 2},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_report_that_is_kept_goes_nowhere_else_if_its_batch_is_announced_in_other_words(room, what):
    assert room.answered(carried()) is None
    del room.servers[ONE].bodies[:]
    assert room.answered(carried(**CHANGES[what])) == CHANGED
    assert not room.bodies and len(room.charges) == 1


def test_everything_that_servers_could_be_told_otherwise_is_in_the_task_that_a_report_is_bound_to():
    """Length, weight, minimum and ε₀ are the configuration's, or its digest's: shares open under the same bytes."""
    [mine] = round_tasks(carried(), ISSUER.public)
    assert (mine.measured.length, mine.min_batch_size, mine.privacy) == (by_two().size, LEAST, None)
    assert mine.measured.max_weight <= by_two().size
    for what, changes in CHANGES.items():
        [other] = round_tasks(carried(**{"asked": by_two(minimum_cohort=1), **changes}), ISSUER.public)
        assert other.configuration != mine.configuration, what


def test_a_study_cannot_change_who_carries_its_reports(tmp_path):
    room = Room(tmp_path, rules=replace(RULES, aggregators=(ONE, TWO, THREE)))
    assert room.answered(carried()) is None
    for number, other in enumerate((OTHER, ByTwoServers(ONE, TWO, 19)), 2):
        told = room.answered(carried(number=number, batch=f"c{number}", carrier=other))
        assert "the study 'study' has changed who carries its reports" in told
    assert len(room.charges) == 1 and len(room.bodies) == 1


def test_a_recipe_that_is_not_in_the_public_log_is_not_answered(room, unread):
    assert "is not in the server's public log" in room.answered(carried(), publish=False)
    assert not room.charges and not room.bodies


def test_a_log_that_was_cut_since_is_refused_also_where_servers_carry_reports(room):
    assert room.answered(carried()) is None
    assert SeenRecipeLog(room.store, room.device, "https://maps.example").seen() == room.log.head
    room.log = PublicRecipeLog()
    assert "was cut or written anew" in room.answered(carried(number=2, batch="cd"), publish=False)
    assert len(room.charges) == 1


def test_a_recipe_s_announcement_is_looked_up_in_the_log_until_it_is_answered(room):
    asked = carried()
    work = announcement(asked)
    assert room.answers().recipe_task(work) == asked.task
    assert room.answered(asked) is None
    assert room.answers().recipe_task(work) is None
    assert room.answers().recipe_task(announcement("{}")) is None


def test_nothing_is_charged_or_read_before_the_servers_keys_are_known(room, unread):
    room.servers[TWO].there = False
    with pytest.raises(Unreachable):
        room.answered(carried())
    assert not room.charges and not room.bodies


def test_events_that_cannot_be_read_are_an_answer_of_none_that_looks_like_any_other(room, monkeypatch):
    assert room.answered(carried()) is None
    monkeypatch.setattr(recipe_answer, "_matching", lambda *_: 1 / 0)
    assert room.answered(carried(batch="cd")) is None
    assert len(room.charges) == 2 and len({len(body) for body in room.bodies}) == 1
    assert len({(line.verdict, line.outcome, line.sent) for line in room.lines}) == 1


def test_a_device_whose_clock_left_the_batch_behind_pays_nothing(room, unread):
    later = datetime.now(UTC) + timedelta(days=30)
    told = room.answered(carried(), now=later, until=later.timestamp() + 600)
    assert "take no reports of this round by now" in told and not room.charges


def test_a_recipe_of_secure_sums_is_announced_to_nobody():
    with pytest.raises(InputError, match="carried by secure sums, not by two servers"):
        carried(recipe())
