"""`kill -9` at random instants: of a server, whose campaigns end as if nothing had been, and of devices.

Real processes over a loopback port; what is checked is what they leave on their disks. All laws are tested with an
error probability below 1e-6 in all.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import ndtri
from scipy.stats import chi2, chisquare, norm
from tests.federated.server.fleet import crowd
from tests.federated.server.left_behind import STAGES, LeftBehind, instant, rank, sessions
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.algorithms import Adaptive
from hazemap.codec import dumps
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

PEOPLE, SHARD = 60, 20
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)
FEW = """[budget]
campaign = 2
period = 1000
[cohort]
people = 15
survivors = 10
modes = ["semi-honest"]
[question]
finest = 0
"""
METHOD = Adaptive(
    TREE,
    first_cells=16,
    deciding=(Fraction(1, 10), Fraction(1, 5)),
    fullness=(1, 1),
    coarser=((1, Fraction(1, 10)),),
    smooth=None,
    sizing=None,
    even=None,
)
ROUNDS = 4
QUARTER = Cohort(PEOPLE, SHARD, dropout=Fraction(1, 4), sampling=Sampling.ONE, mode=Mode.SEMI_HONEST)
TWO = {"steady": slice(0, 45), "mortal": slice(45, PEOPLE)}
"""Two processes of devices."""
ERROR = 1e-7
"""of one test of a law; there are nine"""


def campaign(name: str, **changes) -> Campaign:
    options = {"cohort": QUARTER, "deadlines": Deadlines.all(600), "wait": 600}
    return Campaign(name, "a test", f"town {name}", METHOD, PureDP(2), **{**options, **changes})


def people() -> tuple[np.ndarray, np.ndarray]:
    devices = crowd(PEOPLE)
    return np.array([device.lon for device in devices]), np.array([device.lat for device in devices])


@dataclass
class Scene:
    """A server and the devices of everybody, dealt out to as many processes as there are `names`."""

    parent: Parent
    folder: Path
    names: dict[str, slice] = field(default_factory=lambda: {"devices": slice(None)})

    def __enter__(self) -> "Scene":
        port = free_port()
        self.server = Server(self.parent, self.folder / "server", port)
        self.ledger = Ledger(self.folder / "server" / "ledger.sqlite")
        policy = self.folder / "policy.toml"
        policy.write_text(FEW)
        lon, lat = people()
        self.crowds = {}
        for name, part in self.names.items():
            who, table = np.arange(PEOPLE)[part], self.folder / f"{name}.parquet"
            pq.write_table(pa.table({"person": who, "lon": lon[part], "lat": lat[part]}), table)
            self.crowds[name] = Crowd(self.parent, self.folder, name, self.server, len(who), table, policy)
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.crowds.values(), self.server):
            if process.child:
                process.child.kill()

    def rise(self, chance: Random | None = None) -> None:
        """Start everything and wait until everybody has come: with `chance`, under fire."""
        for _ in range(10 if chance else 0):  # before there is anything but a folder
            self.server.start()
            time.sleep(chance.uniform(0, 0.3))
            self.server.kill()
        self.server.start()
        for devices in self.crowds.values():
            devices.start()
        for _ in range(3 if chance else 0):  # while devices enrol
            time.sleep(chance.uniform(0.2, 0.8))
            self.server.kill()
            self.server.start()
        until = time.monotonic() + 600
        while self.server.answered("/v1/campaigns").json()["devices"]["recent"] < PEOPLE:
            assert time.monotonic() < until, "the devices do not come"
            time.sleep(0.02)

    def order(self, ordered: Campaign) -> None:
        """Order a campaign; a server that was killed may have heard of it already."""
        answer = self.server.answered("/v1/campaigns", dumps(ordered).encode())
        assert answer is not None and answer.status_code in (201, 409), answer

    def status(self, name: str) -> dict:
        return self.server.answered(f"/v1/campaigns/{name}").json()

    def end(self, ordered: Campaign) -> LeftBehind:
        """Wait for the end of a campaign, and see what it left behind."""
        until = time.monotonic() + 600
        while (how_far := self.how_far(ordered.name, 10)) != "done":
            assert time.monotonic() < until, f"the campaign does not get on: {how_far}"
        return LeftBehind.read(ordered, self.server.folder, [each.store for each in self.crowds.values()])

    def how_far(self, name: str, seconds: float) -> str:
        """How far a campaign has come after so many seconds, or sooner where nothing is left to ask.

        It must neither fail nor be forgotten.
        """
        until = time.monotonic() + seconds
        while (status := self.status(name)).get("state") == "running":
            if sum(each["answered"] for each in status["rounds"]) == ROUNDS:
                return "answered"
            if time.monotonic() >= until:
                return "running"
            time.sleep(min(0.02, max(0.0, until - time.monotonic())))
        assert status.get("state") == "done", status
        return "done"


def killed_servers(scene: Scene, ordered: Campaign, chance: Random, seconds: float, most: int) -> list[tuple[int, str]]:
    """Run a campaign that takes so many `seconds` when it is left alone, under fire: where each kill met it.

    The first one comes when the campaign is ordered, two when everything is answered. Of the others each fourth comes
    while the server starts and reads its store; before the rest it has some time to get on, and
    more of it the more kills there were: the machine may have more to do by then.
    """

    def kill() -> None:
        scene.server.kill()
        met.append(instant(scene.server.folder / "server.sqlite", scene.ledger, ordered))
        scene.server.start()

    met: list[tuple[int, str]] = []
    ordering = threading.Thread(target=scene.order, args=(ordered,))
    ordering.start()
    time.sleep(chance.uniform(0, 0.1))
    kill()
    ordering.join()
    last = 2
    while len(met) < most and last:
        if chance.random() < 0.25:
            time.sleep(chance.uniform(0, seconds / 10))
        else:
            longest = seconds / 2 * (1 + len(met) / 10)
            if (how_far := scene.how_far(ordered.name, chance.uniform(0, longest))) == "done":
                break
            if how_far == "answered":
                time.sleep(chance.uniform(0, 0.04))
                last -= 1
        kill()
        assert len(met) < 60, f"the campaign does not get on: {met}"
    return [each for each in met if each != (0, "done")]


def named(met: list[tuple[int, str]]) -> Counter:
    """Kills by where they met a campaign."""
    return Counter("release" if (answered, stage) == (ROUNDS, "between") else stage for answered, stage in met)


def fits(ranks: np.ndarray) -> bool:
    """Whether numbers are uniform: their histogram, and the mean and the square of their normal scores."""
    scores = ndtri(np.clip(ranks, 1e-15, 1 - 1e-15))
    energy, mean = (scores**2).sum(), scores.sum() / len(scores) ** 0.5
    ways = (
        chisquare(np.histogram(ranks, min(40, len(ranks) // 8), (0, 1))[0]).pvalue,
        2 * min(chi2.cdf(energy, len(ranks)), chi2.sf(energy, len(ranks))),
        2 * norm.sf(abs(mean)),
    )
    return min(ways) > ERROR


@pytest.fixture(scope="module")
def parent():
    with Parent() as started:
        yield started


def test_a_server_that_is_killed_a_hundred_times_ends_its_campaigns_as_if_nothing_had_been(parent, tmp_path, capsys):
    chance, kills, met, ends = Random(11), 100, Counter(), {"killed": [], "unkilled": []}
    with Scene(parent, tmp_path) as scene:
        scene.rise(chance)
        begun = time.monotonic()
        for number in range(3):
            scene.order(ordered := campaign(f"unkilled{number}"))
            ends["unkilled"].append(scene.end(ordered))
        alone, begun = (time.monotonic() - begun) / 3, time.monotonic()
        while met.total() < kills or not set(STAGES) <= set(met):  # each stage is met, sooner or later
            ordered = campaign(f"killed{len(ends['killed'])}")
            met += named(killed_servers(scene, ordered, chance, alone, max(kills - met.total(), 10)))
            ends["killed"].append(scene.end(ordered))
        seconds = time.monotonic() - begun
    ranks = {}
    for kind, campaigns in ends.items():
        for each in campaigns:
            each.is_right()
            each.is_as_if_nothing_had_been()
        ranks[kind] = np.concatenate([each.ranks(*people(), np.random.default_rng(1)) for each in campaigns])
    with capsys.disabled():
        print(f"\n{met.total()} kills of a server in {seconds:.0f} s (a campaign takes {alone:.1f} s): {dict(met)}")
        print(", ".join(f"{len(ranks[kind])} errors of {len(ends[kind])} {kind} campaigns" for kind in ends))
    assert all(fits(each) for each in ranks.values())


def killed_devices(
    scene: Scene, ordered: Campaign, chance: Random, seconds: float, quiet: float
) -> tuple[int, Counter]:
    """Kill the mortal ones again and again: how often, and what became of the sessions that met.

    They come back at once, or when nobody waits for them any more.
    """
    mortal, kills, met = scene.crowds["mortal"], 0, {}
    old = sessions(mortal.store).answered
    scene.order(ordered)
    while scene.how_far(ordered.name, chance.uniform(0, seconds / 3)) != "done":
        mortal.kill()
        kills += 1
        now = sessions(mortal.store)
        going = (each for each in now.open if each not in old and now.answered[each] < len(STAGES))
        met = {each: now.answered[each] for each in going} | met
        time.sleep(chance.choice((0.0, chance.uniform(1, 3) * quiet)))
        mortal.start()
    last = sessions(mortal.store).answered
    return kills, Counter("went on" if last[each] > answered else "dropped out" for each, answered in met.items())


def test_devices_that_are_killed_go_on_or_count_as_dropouts_and_pay_once(parent, tmp_path, capsys):
    chance, kills, lost, met, ends = Random(12), 0, 0, Counter(), []
    with Scene(parent, tmp_path, TWO) as scene:
        scene.rise()
        cohort, begun = replace(QUARTER, shard=PEOPLE // 2, dropout=Fraction(1, 2)), time.monotonic()
        scene.order(ordered := campaign("alone", cohort=cohort))
        scene.end(ordered).is_as_if_nothing_had_been()
        alone = time.monotonic() - begun
        quiet = max(2.0, alone / 5)
        while kills < 25 or min(met["went on"], met["dropped out"], lost) == 0:  # sooner or later
            ordered = campaign(f"killed{len(ends)}", cohort=cohort, deadlines=Deadlines.all(600, quiet))
            times, became = killed_devices(scene, ordered, chance, alone, quiet)
            kills, met = kills + times, met + became
            ends.append(scene.end(ordered))
            lost += sum(shard.terms.clients - shard.people for shard in ends[-1].opened)
        seconds = time.monotonic() - begun
    for each in ends:
        each.is_right()
    ranks = np.concatenate([each.ranks(*people(), np.random.default_rng(1)) for each in ends])
    with capsys.disabled():
        print(f"\n{kills} kills of 15 of 60 devices in {seconds:.0f} s, {len(ends)} campaigns; sessions: {dict(met)}")
        print(f"{lost} of {4 * PEOPLE * len(ends)} answers are missing; {len(ranks)} errors")
    assert fits(ranks)


HASTY = """
import threading, time
from hazemap.federated.server.campaign_store import CampaignStore
commit, lock, held = CampaignStore._committed, threading.Lock(), []

def in_a_moment(store, jobs):
    if not held:
        held.append([])
        threading.Thread(target=now_and_then, args=(store,), daemon=True).start()
    with lock:
        events = all("INTO events" in write.sql for job in jobs for write in job.writes)
        held[0] += jobs
        if not events:
            every, held[0] = held[0], []
            return commit(store, every)[-len(jobs):] if jobs else []
        return [None] * len(jobs)

def now_and_then(store):
    while True:
        time.sleep(0.5)
        with lock:
            commit(store, held[0])
            held[0] = []

CampaignStore._committed = in_a_moment
"""

FORGETFUL = """
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.federated.server.campaign_worker import CampaignCharge
CampaignCharge.charge = lambda account, price: account.ledger.charge(account.dataset, price, account.what, DEVICE)
"""

CARELESS = """
import asyncio
from hazemap.federated.device.store.encrypted_store import CommitQueue
write = CommitQueue.write

async def pay_later(commits, writes):
    charges = [each for each in writes if "INTO charges" in each.sql]
    await write(commits, [each for each in writes if each not in charges])
    if charges:
        asyncio.get_running_loop().call_later(0.3, lambda: asyncio.ensure_future(write(commits, charges)))

CommitQueue.write = pay_later
"""


@pytest.mark.parametrize(
    ("sabotage", "words"),
    [(HASTY, "not every shard|was lost|was begun again|'failed'"), (FORGETFUL, "the ledger has .* charges")],
    ids=["acknowledges what is not on the disk", "pays whenever it starts"],
)
def test_a_server_that_keeps_less_is_found_out(tmp_path, sabotage, words):
    def fire(scene: Scene, chance: Random) -> None:
        for number in count():
            ordered = campaign(f"killed{number}")
            killed_servers(scene, ordered, chance, 4, 10)
            end = scene.end(ordered)
            end.is_right()
            end.is_as_if_nothing_had_been()

    with Parent(sabotage) as parent, Scene(parent, tmp_path) as scene:
        scene.rise()
        with pytest.raises(AssertionError, match=words):
            fire(scene, Random(13))


def test_devices_that_pay_a_moment_later_are_found_out(tmp_path):
    def fire(scene: Scene, chance: Random) -> None:
        for number in count():
            killed_devices(scene, campaign(f"killed{number}"), chance, 4, 0)

    with Parent(CARELESS) as parent, Scene(parent, tmp_path, TWO) as scene:
        scene.rise()
        with pytest.raises(AssertionError, match="without its charge"):
            fire(scene, Random(14))


def test_errors_of_another_law_are_found_out():
    """A twin of the law above, on as many errors: noise of the guaranteed survivors alone, or half as much again."""
    chance = np.random.default_rng(5)
    shape, scale = 3 * Fraction(20, 13), Fraction(5)
    for wrong, other in ((3, 1.0), (4.6, 1.5), (4.6, 1.0)):
        one, two = (chance.negative_binomial(wrong, 1 - np.exp(-1 / (5 * other)), 1_200) for _ in range(2))
        assert fits(rank(one - two, shape, scale, chance)) == ((wrong, other) == (4.6, 1.0))
