"""`kill -9` of coordinator, leader, helper and devices in turn, while a study is asked over two servers."""

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import count
from pathlib import Path
from random import Random

import pytest
from tests.federated.server.asking_studies import KEY, recipe
from tests.federated.server.left_behind import rows
from tests.federated.server.processes import Crowd, Parent, Server
from tests.federated.server.test_study_kill import PEOPLE, StudyScene, generous
from tests.federated.server.test_study_kill import RULES as OF_STUDIES
from tests.federated.server.two_server_scene import Aggregator
from tests.ports import free_port

from hazemap.codec import dumps
from hazemap.federated.device import enrolment
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.answer_records import ReportRecords
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import store_events
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.federated.trust.report_carriers import ByTwoServers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RULES = OF_STUDIES + '[servers]\naggregators = ["{leader}", "{helper}"]\n'


@dataclass
class TwoServerStudy(StudyScene):
    """A coordinator with a study, two aggregators, and the devices of everybody in one process."""

    def __enter__(self) -> "TwoServerStudy":
        self.leader, self.helper = (Aggregator(self.parent, self.folder, role) for role in ("leader", "helper"))
        peers, rules = self.folder / "peers.toml", self.folder / "rules.toml"
        each = self.leader, self.helper
        peers.write_text("".join(f'[[server]]\nurl = "{one.url}"\ntoken = "{one.token}"\n' for one in each))
        rules.write_text(RULES.format(leader=self.leader.url, helper=self.helper.url))
        shipped = generous()
        two = tuple(replace(one, carriers=(Carrier.TWO_SERVERS,)) for one in shipped.analyses)
        self.signed = SignedPolicy.sign(replace(shipped, analyses=two), KEY)
        self.server = Server(self.parent, self.folder / "server", free_port(), peers)
        self.crowd = Crowd(self.parent, self.folder, "devices", self.server, PEOPLE, None, rules)
        self.parties = {"leader": self.leader, "helper": self.helper, "server": self.server, "devices": self.crowd}
        with EncryptedStore.opened(self.crowd.store, create=True) as store:
            ShippedPolicies(store).accept(self.signed, KEY.public, datetime.now(UTC))
            own = enrolment.add(store, PEOPLE)
            events = {one: [("hello" if one % 3 else "world", "never read")] for one in own}
            store_events(store, self.signed.policy.stream("keyboard"), events, time.time())
        return self

    def __exit__(self, *_: object) -> None:
        for party in reversed(self.parties.values()):
            if party.child:
                party.child.kill()

    def begin(self) -> None:
        for party in self.parties.values():
            party.start()
        self.leader.wait(), self.helper.wait()
        carrier = ByTwoServers(self.leader.url, self.helper.url, PEOPLE)
        cohort = Cohort(PEOPLE, PEOPLE, Fraction(1, 4), Fraction(0))
        spec = StudySpec(
            name="spring",
            analysis="keyboard",
            epsilon=Fraction(900),
            delta=Fraction(1, 1000),
            reports=100,
            cohort=cohort,
            deadlines=Deadlines.all(600),
            wait=600,
            carrier=carrier,
        )
        assert self.server.answered("/v1/policies", self.signed.to_json().encode()).status_code == 201
        begun = self.server.answered("/v1/studies", dumps(spec).encode())
        assert begun.status_code == 201, begun.text
        self.gathered()

    def is_sum(self, asked, answer, reports) -> bool:
        """Whether it is what these reports and some of nobody say: of those 94 more than 16 set a bit with 10^-11."""
        law, blank = randomiser_of(asked), 2 * (PEOPLE - 1)
        least, most = (law.unbiased(reports + more, PEOPLE + blank) for more in (0, 16))
        assert answer.blank == blank
        return ((least - 1 < answer.sums) & (answer.sums < most + 1)).all()

    def was_opened_once(self, database: Path, rounds: int) -> None:
        """Each round was announced to everybody once, and nothing is left that it could be opened with."""
        found = rows(database, "SELECT round, secret IS NULL FROM announcements ORDER BY round")
        assert found == [(number, 1) for number in range(1, rounds + 1)]
        assert rows(database, "SELECT state, count(*) FROM announced_people GROUP BY state") == [
            ("sent", PEOPLE * rounds)
        ]

    def nothing_is_kept(self, store: EncryptedStore, device: int, paid: int) -> None:
        """One report was made for each round, and its bytes are deleted: it had arrived before the round was done."""
        assert store.read("SELECT count(*) FROM reports WHERE device = ?", device) == [(paid,)]
        assert ReportRecords(store, device).forsaken(datetime.max.replace(tzinfo=UTC)) == []


def test_a_round_is_charged_once_and_is_the_sum_of_what_was_paid_whoever_is_killed(tmp_path):
    chance = Random(14)
    with Parent() as parent, TwoServerStudy(parent, tmp_path) as scene:
        scene.begin()
        names = list(scene.parties)
        for number in count(1):  # a round may be over before everybody was killed in it
            killed = []
            scene.ask(asked := recipe(f"r{number}", carrier=Carrier.TWO_SERVERS))
            while scene.state(number) != "done" and len(killed) < 8:
                time.sleep(chance.uniform(0.05, 0.4))
                name = names[len(killed) % len(names)]
                scene.parties[name].kill()
                scene.parties[name].start()
                killed.append(name)
            scene.ends(asked, number)
            if len(killed) >= len(names):
                break
    scene.is_right()
