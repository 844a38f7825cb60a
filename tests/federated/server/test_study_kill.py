"""`kill -9` of a server at random instants of a study over HTTP: every round is resumed, and charged once.

Real processes over a loopback port. A device's log keeps each report as it was randomised, so what a sum must be is
known exactly: nothing here is a matter of chance but the instants of the kills.
"""

import os
import sqlite3
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.federated.server.asking_studies import KEY, POLICY, recipe
from tests.federated.server.left_behind import rows
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.codec import dumps, loads
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog, RecipeLogEntry
from hazemap.federated.device.account.charges import recipe_charges
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import store_events
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT, Recipe
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.server.roles import checked as audited
from hazemap.federated.server.secure_sum_plan import Summary, identities
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.signing_identities import Identity

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("STUDY_KILLS", "10"))
"""Of the test below; a hundred take some minutes: `STUDY_KILLS=100 pytest -m slow` this file."""
PEOPLE, SHARD = 48, 16
STAGES = ("keys", "picks", "shares", "masked", "assent", "unmask", "opening")
"""Of a session in the malicious mode, in order."""
COHORT = Cohort(PEOPLE, SHARD, dropout=Fraction(1, 4), corrupt=Fraction(0))
RULES = """[budget]
campaign = 4000
period = 4000
[cohort]
people = 12
survivors = 8
corrupt = 0
"""


def generous() -> ShippedPolicy:
    """The tests' policy, with room for a hundred rounds."""
    much = {"epsilon": Fraction(900), "delta": Fraction(1, 1000), "reports": 100}
    [analysis] = [replace(each, **much) for each in POLICY.analyses if each.name == "keyboard"]
    fields = tuple(replace(each, **much) for each in POLICY.fields)
    limits = tuple(replace(each, **much) for each in POLICY.limits)
    return replace(POLICY, analyses=(analysis,), fields=fields, limits=limits)


@dataclass
class StudyScene:
    """A server with a study, and the devices of everybody in one process."""

    parent: Parent
    folder: Path
    deadlines: Deadlines = field(default_factory=lambda: Deadlines.all(600))
    answered: list[Recipe] = field(default_factory=list)

    def __enter__(self) -> "StudyScene":
        port = free_port()
        self.server = Server(self.parent, self.folder / "server", port)
        (self.folder / "rules.toml").write_text(RULES)
        self.signed = SignedPolicy.sign(generous(), KEY)
        self.crowd = Crowd(self.parent, self.folder, "devices", self.server, PEOPLE, None, self.folder / "rules.toml")
        with EncryptedStore.opened(self.crowd.store, create=True) as store:
            ShippedPolicies(store).accept(self.signed, KEY.public, datetime.now(UTC))
            own = enrolment.add(store, PEOPLE)
            events = {one: [("hello" if one % 3 else "world", "never read")] for one in own}
            store_events(store, self.signed.policy.stream("keyboard"), events, time.time())
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self.crowd, self.server):
            if process.child:
                process.child.kill()

    def begin(self) -> None:
        self.server.start()
        self.crowd.start()
        spec = StudySpec("spring", "keyboard", Fraction(900), Fraction(1, 1000), 100, COHORT, self.deadlines, wait=600)
        assert self.server.answered("/v1/policies", self.signed.to_json().encode()).status_code == 201
        assert self.server.answered("/v1/studies", dumps(spec).encode()).status_code == 201
        self.gathered()

    def gathered(self) -> None:
        """Wait until the server has heard of everybody lately."""
        until = time.monotonic() + 600
        while self.server.answered("/v1/campaigns").json()["devices"]["recent"] < PEOPLE:
            assert time.monotonic() < until, "the devices do not come"
            time.sleep(0.05)

    def ask(self, asked: Recipe) -> None:
        """As a notebook does that runs its cell again whenever the server fails it."""
        until = time.monotonic() + 600
        while True:
            reply = self.server.answered("/v1/studies/spring/rounds", dumps(asked).encode())
            if reply is not None and reply.status_code == 201:
                return
            assert reply is None or reply.status_code in (409, 503), reply.text
            assert time.monotonic() < until, "the recipe cannot be asked"

    def state(self, number: int) -> str:
        reply = self.server.answered(f"/v1/studies/spring/rounds/{number}")
        return "unknown" if reply is None or reply.status_code == 404 else reply.json()["state"]

    def ended(self, number: int) -> str:
        """Wait until the round is over; how it ended."""
        until = time.monotonic() + 600
        while (state := self.state(number)) in ("running", "unknown"):
            assert time.monotonic() < until, f"round {number} does not get on"
            time.sleep(0.02)
        return state

    def ends(self, asked: Recipe, number: int) -> None:
        """Wait until the round is answered."""
        state = self.ended(number)
        assert state == "done", self.server.answered(f"/v1/studies/spring/rounds/{number}").json()
        self.answered.append(asked)

    def instant(self, number: int) -> str:
        """Where a killed server was, by what is on its disk."""
        database = self.server.folder / "server.sqlite"
        sql = "SELECT state FROM study_rounds WHERE study = 'spring' AND round = ?"
        try:
            states = rows(database, sql, number)
        except sqlite3.OperationalError:
            states = []
        if not states:
            return "order"
        if states != [("running",)]:
            return "over"
        what = f"round {number}"
        ledger = Ledger(self.server.folder / "ledger.sqlite")
        paid = [each for each in ledger.history() if each.charge.what.endswith(what)]
        if not paid:
            return "unpaid"
        if rows(database, "SELECT 1 FROM exchanges WHERE campaign = 'spring' AND round = ?", number):
            return "answered"
        ends = rows(
            database,
            "SELECT state, count(events.seq) FROM shards LEFT JOIN events ON events.session = shards.session AND "
            "position = -1 WHERE campaign = 'spring' AND round = ? GROUP BY shards.session, state",
            number,
        )
        if not ends:
            return "paid"
        return STAGES[min((count for state, count in ends if state == "open"), default=len(STAGES) - 1)]

    def is_right(self) -> None:
        """Every round was charged once, by the ledger, by the study and by each device, and its answer is the sum."""
        server, rounds = self.server.folder, len(self.answered)
        ledger = Counter(each.charge.what.split()[-1] for each in Ledger(server / "ledger.sqlite").history("keyboard"))
        assert ledger == Counter(str(number) for number in range(1, rounds + 1)), ledger
        database = server / "server.sqlite"
        told = rows(database, "SELECT round, recipe, state FROM study_rounds ORDER BY round")
        wanted = [(number, asked.digest, "done") for number, asked in enumerate(self.answered, 1)]
        assert told == wanted
        for table, check in (("recipe_log", RECIPE_LOG_FORMAT.checked), ("audit_log", audited)):
            lines = rows(database, f"SELECT entry, digest FROM {table} ORDER BY seq")
            assert check(f'{text[:-1]},"digest":"{digest.hex()}"}}' for text, digest in lines).entries == len(lines)
        sent = rows(database, "SELECT entry FROM recipe_log")
        assert sum('"kind":"recipe"' in entry for (entry,) in sent) == rounds
        self.was_opened_once(database, rounds)
        answers = dict(rows(database, "SELECT round, answer FROM exchanges"))
        reports = self.reports()
        for number, asked in enumerate(self.answered, 1):
            answer = loads(answers[number])
            assert answer.people == PEOPLE - len(self.left_out(number))
            assert self.is_sum(asked, answer, reports[asked.digest]), "an answer is not the sum of what was paid"

    def is_sum(self, asked, answer, reports) -> bool:
        """Whether an answer is what these reports say, but for its rounding."""
        return (np.abs(answer.sums - randomiser_of(asked).unbiased(reports, answer.people)) < 1).all()

    def left_out(self, number: int) -> set[bytes]:
        """The identities of those who were asked in a round and are not in its sum: nobody, where all have the time."""
        return set()

    def was_opened_once(self, database: Path, rounds: int) -> None:
        """No shard of a round was begun again."""
        shards = rows(database, "SELECT round, number, attempt, state, people, roster FROM shards")
        places = {(round_, number) for round_ in range(1, rounds + 1) for number in range(1, PEOPLE // SHARD + 1)}
        assert Counter((round_, number) for round_, number, *_ in shards) == Counter(places), "a shard was begun again"
        assert {attempt for _, _, attempt, *_ in shards} == {1}
        for round_, _, _, state, people, roster in shards:
            there = set(identities(roster)) - self.left_out(round_)
            assert (state, people) == ("opened", len(there)) or (state == "lost" and not there)

    def reports(self) -> dict[str, np.ndarray]:
        """The sums of what the devices' own logs say they reported; each has charged each recipe once.

        Who is left out of a round may have been killed before the charge, or between the charge and the sending.
        """
        sums = {asked.digest: np.zeros(asked.size, dtype=np.int64) for asked in self.answered}
        left_out = {asked.digest: self.left_out(number) for number, asked in enumerate(self.answered, 1)}
        with EncryptedStore.opened(self.crowd.store) as store:
            for device in enrolment.devices(store):
                who = Identity.from_bytes(enrolment.read(store, device).identity).public
                paid = Counter(each.recipe for each in recipe_charges(store, device))
                owed = {each for each, others in left_out.items() if who not in others}
                assert owed <= paid.keys() <= sums.keys(), "a device did not pay for every round"
                assert paid == Counter(paid.keys()), "a device paid twice for a round"
                self.nothing_is_kept(store, device, len(paid))
                lines = [each for each in ActivityLog(store, device).entries() if isinstance(each, RecipeLogEntry)]
                said = [each for each in lines if each.report]
                assert Counter(each.recipe for each in said) == paid, "a reply was made twice"
                for line in said:
                    if line.recipe in owed:
                        bits = np.unpackbits(np.frombuffer(line.report, np.uint8))
                        sums[line.recipe] += bits[: sums[line.recipe].size]
        return sums

    def nothing_is_kept(self, store: EncryptedStore, device: int, paid: int) -> None:
        """No report to other servers was ever made: those of secure sums are in their sessions."""
        assert store.read("SELECT count(*) FROM reports WHERE device = ?", device) == [(0,)]


def killed(scene: StudyScene, asked: Recipe, number: int, chance: Random, seconds: float, most: int) -> list[str]:
    """Ask a recipe in a round that takes so many `seconds` when left alone, under fire: where each kill met it."""

    def kill() -> None:
        scene.server.kill()
        met.append(scene.instant(number))
        scene.server.start()

    met: list[str] = []
    asking = threading.Thread(target=scene.ask, args=(asked,))
    asking.start()
    if chance.random() < 0.8:  # while it is ordered, and charged
        time.sleep(chance.uniform(0, 0.04))
        kill()
    asking.join()
    while len(met) < most:
        most_seconds = seconds / chance.choice((10, 4, 2, 2)) * (1 + met[-5:].count(met[-1]) / 5 if met else 1)
        time.sleep(chance.uniform(0, most_seconds))
        if scene.state(number) == "done":
            break
        kill()
        assert len(met) < 60, f"the round does not get on: {met}"
    scene.ends(asked, number)
    return met


@pytest.fixture(scope="module")
def parent():
    with Parent() as started:
        yield started


def test_a_server_that_is_killed_again_and_again_ends_every_round_of_a_study_and_charges_it_once(
    parent, tmp_path, capsys
):
    chance, met = Random(21), list[str]()
    with StudyScene(parent, tmp_path) as scene:
        scene.begin()
        begun = time.monotonic()
        scene.ask(recipe("alone"))
        scene.ends(recipe("alone"), 1)
        alone, begun = time.monotonic() - begun, time.monotonic()
        while len(met) < KILLS:
            number = len(scene.answered) + 1
            met += killed(scene, recipe(f"r{number}"), number, chance, alone, KILLS - len(met))
        seconds = time.monotonic() - begun
    scene.is_right()
    with capsys.disabled():
        print(
            f"\n{len(met)} kills in {seconds:.0f} s and {len(scene.answered)} rounds of {alone:.1f} s: {Counter(met)}"
        )


FORGETFUL = """
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.federated.server.campaign_worker import CampaignCharge
CampaignCharge.charge = lambda account, price: account.ledger.charge(account.dataset, price, account.what, DEVICE)
"""


def test_a_server_that_charges_whenever_it_starts_is_found_out(tmp_path):
    """The twin of the test above."""
    with Parent(FORGETFUL) as parent, StudyScene(parent, tmp_path) as scene:
        scene.begin()
        for number in count(1):  # a round may be answered before its server is killed
            scene.ask(asked := recipe(f"r{number}"))
            until = time.monotonic() + 600
            while scene.instant(number) in ("order", "unpaid"):
                assert time.monotonic() < until
            scene.server.kill()
            in_time = scene.instant(number) not in ("answered", "over")
            scene.server.start()
            scene.ends(asked, number)
            if in_time:
                break
        with pytest.raises(AssertionError, match="Counter"):
            scene.is_right()


WATCHED = """
import os
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.server.secure_sum_plan import RecordedSum
happens = RecordedSum.happens

def watched(recorded, event):
    vector, error = recorded.stage is Stage.MASKED and event.position >= 0, happens(recorded, event)
    if vector and error is None:
        os.write(1, f"added {recorded.plan.round} {recorded.plan.roster[event.position].hex()}\\n".encode())
    return error

RecordedSum.happens = watched
"""
"""A server whose output says whose vectors it has added up: its store forgets that once a shard is opened."""


class MortalStudy(StudyScene):
    """A study under a `WATCHED` parent whose devices are dead for longer than its deadlines: who is late is left out.

    A shard is opened without those whose vectors had not come when time was up, if enough people are left.
    """

    def left_out(self, number: int) -> set[bytes]:
        shards = rows(self.server.folder / "server.sqlite", "SELECT state, roster FROM shards WHERE round = ?", number)
        opened = {each for state, roster in shards if state == "opened" for each in identities(roster)}
        asked = {each for _, roster in shards for each in identities(roster)}
        words = [line.split() for line in self.server.log.read_text().splitlines()]
        added = {bytes.fromhex(line[2]) for line in words if line[:2] == ["added", str(number)] and len(line) == 3}
        return asked - (opened & added)


def test_devices_that_are_killed_until_a_round_fails_come_back_and_pay_once(tmp_path):
    """Real devices, in the sessions that failed: the same bytes again, or their first; one charge for each of them."""
    deadlines = replace(Deadlines.all(600), masked=20, assent=20, unmask=20)
    with Parent(WATCHED) as parent, MortalStudy(parent, tmp_path, deadlines=deadlines) as scene:
        database = scene.server.folder / "server.sqlite"
        scene.begin()
        for number in count(1):
            scene.ask(asked := recipe(f"r{number}"))
            until = time.monotonic() + 600
            while scene.instant(number) in ("order", "unpaid", "paid", "keys", "picks", "shares"):
                assert time.monotonic() < until
            scene.crowd.kill()
            failed = scene.ended(number) == "failed"  # or enough was said before everybody was killed
            sessions = rows(database, "SELECT session FROM shards ORDER BY session")
            scene.crowd.start()
            scene.gathered()
            while scene.ended(number) == "failed":  # again where a slow machine's devices are late
                assert time.monotonic() < until + 600
                scene.ask(asked)
            scene.ends(asked, number)
            if failed:
                break
        assert rows(database, "SELECT session FROM shards ORDER BY session") == sessions
    scene.is_right()
    for state, people, terms, summary in rows(
        database, "SELECT state, people, terms, summary FROM shards WHERE round = ?", number
    ):
        late, least = Summary.parse(summary), SessionParameters.from_bytes(terms).survivors
        assert state == "opened" and people >= least, "its devices came back"
        assert people + late.dropped.get("masked", 0) == SHARD and not late.out, "somebody was left out who was in time"
