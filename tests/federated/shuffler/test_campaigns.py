"""Campaigns through a shuffler over HTTP: sixty devices, a coordinator and a shuffler, in processes that are killed."""

import sqlite3
import time
from contextlib import closing
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.server.fleet import crowd
from tests.federated.server.processes import Child, Crowd, Parent, Server
from tests.federated.server.test_kill import FEW, METHOD, ROUNDS, TREE
from tests.ports import free_port

from hazemap.algorithms import Flat
from hazemap.codec import dumps
from hazemap.encoders.encoder import total
from hazemap.engines.memory import MemoryTable
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.server.privacy_statement import prices
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.report_carriers import ByShuffler
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.releases import Release

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PEOPLE, LEAST, EPSILON = 60, 45, 500


class Mixed:
    """A coordinator, a shuffler, and everybody's devices."""

    def __init__(self, parent: Parent, folder: Path):
        self.parent, self.folder, self.port = parent, folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.shuffler: Child | None = None
        self.start_shuffler()
        token = (folder / "shuffler" / "analyser.token").read_text().strip()
        peers = folder / "peers.toml"
        peers.write_text(f'[[server]]\nurl = "{self.url}"\ntoken = "{token}"\n')
        self.server = Server(parent, folder / "server", free_port(), peers)
        policy = folder / "policy.toml"
        pin = sha256(bytes.fromhex(self.key)).hexdigest()
        rules = FEW.replace("campaign = 2\nperiod = 1000", "campaign = 500\nperiod = 9000\ndelta = 0.001")
        policy.write_text(f'{rules}[servers]\nshufflers = ["{self.url}#{pin}"]\n')
        devices = crowd(PEOPLE)
        self.rows = {"lon": [each.lon for each in devices], "lat": [each.lat for each in devices]}
        table = folder / "people.parquet"
        pq.write_table(pa.table({"person": np.arange(PEOPLE), **self.rows}), table)
        self.crowd = Crowd(parent, folder, "devices", self.server, PEOPLE, table, policy)

    def start_shuffler(self):
        words = ("--data", str(self.folder / "shuffler"), "--port", str(self.port), "--least", "40")
        self.shuffler = self.parent.fork(self.folder / "shuffler.log", "hazemap", "shuffler", *words)
        until = time.monotonic() + 600
        while True:
            try:
                self.key = httpx.get(f"{self.url}v1/shuffler", trust_env=False).json()["key"]
                return
            except httpx.HTTPError:
                assert time.monotonic() < until, (self.folder / "shuffler.log").read_text()
                time.sleep(0.02)

    def start(self):
        self.server.start()
        self.crowd.start()
        until = time.monotonic() + 600
        while self.server.answered("/v1/campaigns").json()["devices"]["recent"] < PEOPLE:
            assert time.monotonic() < until, "the devices do not come"
            time.sleep(0.02)

    def campaign(self, name, method=METHOD):
        cohort = Cohort(PEOPLE, PEOPLE, Fraction(1, 4), Fraction(1, 10), Sampling.ONE)
        by = ByShuffler(self.url, LEAST, self.key)
        options = {"deadlines": Deadlines.all(600), "wait": 600, "carrier": by}
        return Campaign(name, "a test", f"town {name}", method, PureDP(EPSILON), cohort, **options)

    def reports(self, name):
        """A campaign whose reports the analyser sees."""
        cohort = Cohort(PEOPLE, PEOPLE, Fraction(1, 4), Fraction(1, 10), Sampling.ONE)
        by = ByShuffler(self.url, LEAST, self.key, Fraction(8))
        options = {"deadlines": Deadlines.all(600), "wait": 600, "carrier": by}
        return Campaign(name, "a test", f"town {name}", Flat(TREE, 2), ApproxDP(4, "1e-6"), cohort, **options)

    def order(self, campaign):
        answer = self.server.answered("/v1/campaigns", dumps(campaign).encode())
        assert answer is not None and answer.status_code in (201, 409), answer.text

    def state(self, campaign):
        return self.server.answered(f"/v1/campaigns/{campaign.name}").json()

    def wait(self, campaign, seconds=600):
        until = time.monotonic() + seconds
        while (found := self.state(campaign))["state"] == "running":
            assert time.monotonic() < until, found
            time.sleep(0.05)
        assert found["state"] == "done", found
        return Release.open(self.server.folder / "releases" / f"{campaign.name}.parquet")

    def close(self):
        for child in (self.shuffler, self.server.child, self.crowd.child):
            if child is not None:
                child.kill()

    def truth(self, encoder):
        return total(encoder, MemoryTable(np.arange(PEOPLE), {name: np.array(own) for name, own in self.rows.items()}))

    def check(self, release, campaign):
        """The sums are those of everybody who is in them, with the stated noise; each device paid once a round."""
        priced = prices(release.statement)
        for exchange in release.transcript:
            exact, said = self.truth(exchange.question.encoder), exchange.answer
            assert said.people == PEOPLE
            assert np.array_equal(said.sums, exact), "noise at this price is 0 but for a chance of 1e-9"
            at_least = priced.stddev(exchange.question.encoder, exchange.question.share)
            assert said.stddev.min() == pytest.approx(at_least * (PEOPLE / LEAST) ** 0.5)
        rounds = len(release.transcript)
        with EncryptedStore.opened(self.crowd.store) as store:
            for device in enrolment.devices(store):
                own = [each for each in PrivacyAccount(store, device).charges() if each.campaign == campaign.name]
                assert sorted(each.round for each in own) == list(range(1, rounds + 1)), "paid twice, or not at all"
                assert sum(each.epsilon for each in own) == EPSILON

    def left(self):
        """What the shuffler has on its disk."""
        with closing(sqlite3.connect(self.folder / "shuffler" / "shuffler.sqlite")) as db:
            kept = [db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("submissions", "permuted")]
            return kept, db.execute("SELECT state, count(*) FROM batches GROUP BY state").fetchall()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    with Parent() as parent:
        made = Mixed(parent, tmp_path_factory.mktemp("mixed"))
        made.start()
        yield made
        made.close()


def test_sixty_devices_make_a_map_through_a_shuffler_that_keeps_nothing(mixed):
    campaign = mixed.campaign("plain", Flat(TREE, 2))
    mixed.order(campaign)
    release = mixed.wait(campaign)
    mixed.check(release, campaign)
    assert mixed.left() == ([0, 0], [("forgotten", 1)])
    said = release.statement.text()
    for words in ("a shuffler", mixed.url, "the shuffler and the analyser do not work together", "those of 39 honest"):
        assert words in said, words


def test_sixty_devices_send_randomised_reports_that_the_analyser_sees_without_their_senders(mixed):
    campaign = mixed.reports("reports")
    mixed.order(campaign)
    release = mixed.wait(campaign)
    [exchange] = release.transcript
    law = prices(release.statement).law(Fraction(1))
    exact, said = mixed.truth(exchange.question.encoder), exchange.answer
    assert said.people == PEOPLE and said.chances == law.chances
    assert np.abs(said.sums - exact).max() < 7.5 * said.stddev.max() + 12, "16 sums of 60 bits: a chance of 1e-9"
    with EncryptedStore.opened(mixed.crowd.store) as store:
        for device in enrolment.devices(store):
            [own] = [each for each in PrivacyAccount(store, device).charges() if each.campaign == campaign.name]
            assert (own.epsilon, own.delta) == (4, Fraction(1, 1_000_000))
    said = release.statement.text()
    for words in ("sees every report without its sender", "bits flipped by each person"):
        assert words in said, words


def test_a_campaign_whose_every_process_is_killed_ends_as_if_nothing_had_been(mixed):
    campaign, chance = mixed.campaign("killed"), Random(14)
    mixed.order(campaign)
    for number in range(9):
        time.sleep(chance.uniform(0.0, 0.4))
        if number % 3 == 0:
            mixed.shuffler.kill()
            mixed.start_shuffler()
        elif number % 3 == 1:
            mixed.server.kill()
            mixed.server.start()
        else:
            mixed.crowd.kill()
            mixed.crowd.start()
    release = mixed.wait(campaign)
    assert len(release.transcript) == ROUNDS
    mixed.check(release, campaign)
