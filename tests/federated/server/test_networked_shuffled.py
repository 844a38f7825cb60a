"""A coordinator behind a shuffler: what it opens, what it gives up, and how long it waits for one that is away."""

import asyncio
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from tests.federated.shuffler.test_shuffler_route import (
    ANALYSER,
    CARRIED,
    MIX,
    REPORTED,
    ROWS,
    SERVER,
    TASK,
    line,
    reporting,
    told,
)

from hazemap.algorithms import Flat
from hazemap.errors import NotOpened, Refused, Unreachable
from hazemap.federated.protocols.secure_aggregation.key_agreement import DeviceCoins
from hazemap.federated.protocols.shuffle.submission import read_submission
from hazemap.federated.server import networked_shuffled
from hazemap.federated.server.announced_rounds import Announcement, stored_announcement
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.networked_shuffled import NetworkedShuffled, _answered, patiently
from hazemap.federated.service.store import Write
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.shuffled import ShuffledReportPrices, ShufflePrices, batch_terms
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree

COHORT = Cohort(60, 60, Fraction(1, 4), Fraction(1, 10))
ORDERED = Campaign(
    "homes", "a map", "town", Flat(Quadtree.world(depth=2), 1), PureDP(1), COHORT, carrier=CARRIED.carrier
)


def batch(carried, people=45):
    """What a shuffler would hand on of so many devices."""
    terms, every = batch_terms(carried, SERVER.public, ANALYSER.public), []
    for person in range(people):
        parcel, _, _ = line(carried, told(carried, person=b"%d" % person)).parcel(
            lambda: ROWS, 0, partial(DeviceCoins.from_os(), bytes(32))
        )
        found = read_submission(terms, MIX, parcel[32:]).messages
        every += [found[start : start + terms.message_bytes] for start in range(0, len(found), terms.message_bytes)]
    return every


def test_a_batch_of_parts_is_answered_with_the_noise_that_is_really_in_it():
    exact = replace(CARRIED, task=replace(TASK, price=PureDP(1_000), budget=PureDP(1_000)))
    answer = _answered(exact, ANALYSER, batch(exact, 46))
    assert sorted(answer.sums.tolist()) == [0, 0, 0, 46] and answer.people == 46
    wider = ShufflePrices(PureDP(1), NetworkedShuffled(ORDERED, None).prices(PureDP(1)).batch)
    assert wider.batch.honest == 39
    with pytest.raises(Refused, match="does not open"):
        _answered(CARRIED, ANALYSER, [b"x" * len(each) for each in batch(CARRIED)])


def test_a_batch_of_reports_is_answered_without_bias_and_with_their_law():
    carried = reporting()
    answer = _answered(carried, ANALYSER, batch(carried, 50))
    assert answer.people == 50 and answer.chances == carried.task.randomiser.chances
    assert np.abs(np.sort(answer.sums) - [0, 0, 0, 50]).max() < 8 * answer.stddev.max() + 1


def test_reports_that_are_too_few_to_hide_each_other_are_not_published():
    """A shuffler that puts rubbish in place of all reports but one had that one published, or stopped a campaign."""
    carried = reporting()
    real, honest = batch(carried, 45), 45 - 6
    rubbish = [b"x" * len(real[0])] * 45
    assert _answered(carried, ANALYSER, real[:honest] + rubbish[honest:]).people == honest
    for known in (0, 1, honest - 1):
        with pytest.raises(Refused, match="have to hide each other"):
            _answered(carried, ANALYSER, real[:known] + rubbish[known:])


@pytest.mark.parametrize("state", ["open", "permuted"])
def test_nobody_is_asked_to_pay_for_a_batch_that_was_permuted_before_the_coordinator_died(monkeypatch, state):
    every, waited, done = batch(CARRIED), [], []

    class Shuffler:
        def __init__(self, *_):
            pass

        async def key(self):
            return MIX.public

        async def announce(self, terms):
            assert terms == batch_terms(CARRIED, SERVER.public, ANALYSER.public)

        async def state(self, _):
            return SimpleNamespace(state=state)

        async def collected(self, _):
            return every

        async def forget(self, digest):
            done.append(digest)

    class Model(NetworkedShuffled):
        def task(self, *_):
            return TASK

        async def announced(self, _):
            return Announcement(b"b" * 32, "homes", 1, "{}", b"a" * 32 + bytes(32)), CARRIED

        async def reported(self, announcement, _):
            waited.append(announcement.round)

        async def stored(self, _, answer):
            return answer

    monkeypatch.setattr(networked_shuffled, "AnalyserClient", Shuffler)
    peers = SimpleNamespace(trusting=lambda: True, token=lambda _: "a token")
    model = Model(ORDERED, SimpleNamespace(identity=SERVER, peers=peers))
    answer = asyncio.run(model.answer(TASK.question, PureDP(1)))
    assert answer.people == 45 and len(done) == 1 and waited == ([1] if state == "open" else [])


def test_prices_and_laws_are_those_of_the_carrier():
    model = NetworkedShuffled(ORDERED, None)
    question = Query(TASK.question.encoder, Fraction(1, 2))
    assert model.task(question, PureDP("1/2")).randomiser is None
    seen = NetworkedShuffled(replace(ORDERED, carrier=REPORTED, budget=ApproxDP(2, "1e-6")), None)
    prices = seen.prices(ApproxDP(2, "1e-6"))
    assert isinstance(prices, ShuffledReportPrices)
    task = seen.task(question, ApproxDP(2, "1e-6").part(Fraction(1, 2)))
    assert task.randomiser == prices.law(Fraction(1, 2))


@pytest.mark.parametrize("fails", [None, Refused("another token"), NotOpened("no"), Unreachable("gone")])
def test_a_spoiled_batch_is_given_up_so_that_asking_again_is_another_one(tmp_path, monkeypatch, caplog, fails):
    """Whether the shuffler forgets it at once or not: its failure was raised in place of what happened."""
    forgotten = []
    monkeypatch.setattr(networked_shuffled, "PATIENCE", -1)

    class Shuffler:
        async def forget(self, digest):
            forgotten.append(digest)
            if fails:
                raise fails

    store = CampaignStore(tmp_path / "server.sqlite")
    store.write_now(Write("INSERT INTO campaigns VALUES ('homes', 'id', '', 'running', '', 'now', NULL)"))
    made = Announcement(b"b" * 32, "homes", 1, "{}", bytes(64))
    store.write_now(*made.begun([SimpleNamespace(name="ann"), SimpleNamespace(name="ben")]))
    assert stored_announcement(store, "homes", 1) == made
    model = NetworkedShuffled(ORDERED, SimpleNamespace(store=store))
    terms = batch_terms(CARRIED, SERVER.public, ANALYSER.public)
    error = asyncio.run(model._spoiled(made, Shuffler(), terms, Refused("a message does not open")))
    assert isinstance(error, NotOpened) and "who pay again" in str(error) and "does not open" in str(error)
    assert stored_announcement(store, "homes", 1) is None and forgotten == [terms.digest]
    assert store.read("SELECT * FROM announced_people") == []
    assert ("not forgotten yet" in caplog.text) is (fails is not None)
    store.close()


def test_a_shuffler_that_is_away_is_waited_for_and_not_for_ever(monkeypatch):
    asked, slept = [], []

    async def sleep(seconds):
        slept.append(seconds)

    async def away():
        asked.append(1)
        if len(asked) < 4:
            raise Unreachable("not now")
        return "there"

    async def gone():
        raise Unreachable("not now")

    monkeypatch.setattr(networked_shuffled.asyncio, "sleep", sleep)
    assert asyncio.run(patiently(away)) == "there" and slept == [0.1, 0.2, 0.4]
    monkeypatch.setattr(networked_shuffled, "PATIENCE", -1)
    with pytest.raises(Unreachable):
        asyncio.run(patiently(gone))
