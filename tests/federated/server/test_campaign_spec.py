"""Whole campaigns among made-up devices, in one process: HTTP, the protocol, the store and the ledger are real."""

import asyncio
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.server.fleet import Town, crowd

from hazemap.algorithms import Adaptive, FittedLevel, Flat, PrivateBoundingBox
from hazemap.codec import dumps
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines, campaign_from
from hazemap.federated.server.privacy_statement import prices as statement_prices
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling, SecureSumPrices
from hazemap.federated.trust.randomised_reports import ReportPrices
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BERLIN, 5)
PATIENT = Deadlines.all(600)
QUARTER = Cohort(12, 12, dropout=Fraction(1, 4), corrupt=Fraction(0))


def campaign(**changes):
    options = {
        "name": "berlin",
        "purpose": "a map of a town that does not exist",
        "dataset": "town",
        "algorithm": Flat(TREE, 2),
        "budget": PureDP(1_000),  # noise that is nearly always nothing: sums can be compared with the truth
        "cohort": QUARTER,
        "deadlines": PATIENT,
        "wait": 600,
    }
    return Campaign(**{**options, **changes})


def truth(devices, level=2):
    cells = TREE.cell_at({"lon": np.array([d.lon for d in devices]), "lat": np.array([d.lat for d in devices])}, level)
    return Counter(cells.tolist())


def counts(release):
    numbers = np.rint(release.map.unbiased).astype(int)
    cells = zip(release.map.cells.cells.tolist(), numbers.tolist(), strict=True)
    return {cell: number for cell, number in cells if number}


def played(folder, devices, ordered, hasty=False):
    """Run a campaign to its end: the town, the last status, and the release if there is one."""

    async def play():
        async with Town(folder, devices, hasty=hasty) as town:
            begun = await town.begin(ordered)
            assert begun.status_code == 201, begun.text
            status = await town.live(ordered.name)
            file = folder / "releases" / f"{ordered.name}.parquet"
            return town, status, Release.open(file) if status["state"] == "done" else None

    return asyncio.run(play())


def test_a_campaign_of_one_shard_counts_everybody_once(tmp_path):
    devices = crowd(12)
    town, status, release = played(tmp_path, devices, campaign())
    assert status["state"] == "done", status
    assert counts(release) == truth(devices)
    [record] = town.ledger.history("town")
    assert (record.released, record.charge.price) == (True, PureDP(1_000))
    assert [device.contributed for device in devices] == [[("berlin", 1)]] * 12
    [each] = status["rounds"]
    assert (each["people"], each["survivors"], each["shards"], each["dropped"]) == (12, 12, {"opened": 1}, {})
    assert status["spent"] == 1
    assert each["bytes"]["up_per_device"] > 1_000


@pytest.mark.slow
def test_the_release_is_what_its_own_answers_give(tmp_path):
    ordered = campaign(algorithm=Adaptive(TREE, first_cells=4), budget=PureDP(20))
    _, status, release = played(tmp_path, crowd(12), ordered)
    again = release.replay(SecureSumPrices(ordered.budget, ordered.cohort)).map
    assert np.array_equal(again.unbiased, release.map.unbiased)
    assert len(status["rounds"]) == len(release.transcript) >= 4
    said = release.statement.text()
    assert "secure aggregation" in said
    assert "the noise of 5 of them is enough" in said, "of 9, but a server that breaks the rules may fool 4"
    assert "each round asks people drawn anew" in said


def test_a_campaign_of_reports_says_what_one_alone_and_all_sums_cost(tmp_path):
    """Twelve people at a (16, 10^−3): the crowd's square is the largest but for a chance below 10^−6."""
    devices = crowd(12)
    budget, local = ApproxDP(16, "0.001"), Fraction(16)
    ordered = campaign(algorithm=Flat(TREE, 1), budget=budget, local_epsilon=local)
    town, status, release = played(tmp_path, devices, ordered)
    assert status["state"] == "done", status
    [record] = town.ledger.history("town")
    assert record.charge.price == budget
    [exchange] = release.transcript
    law = ReportPrices(budget, ordered.cohort, local).law(exchange.question.share, exchange.question.size)
    where = truth(devices, 1)
    noise = [int(n) - where[int(cell)] for cell, n in zip(TREE.children(TREE.root), exchange.answer.sums, strict=True)]
    assert np.abs(noise).max() < 6 * float(np.sqrt(law.variance(12, np.array([12.0])))[0]) + 1
    assert release.statement.noise == "bits flipped by each person"
    said = release.statement.text()
    for words in ("ε₀ = 16", "(16, 0.001)", "Rényi divergences", "among 5 honest", "costs twice"):
        assert words in said, said
    prices = statement_prices(release.statement)
    assert prices == ReportPrices(budget, ordered.cohort, local)
    assert np.array_equal(release.replay(prices).map.unbiased, release.map.unbiased)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": ApproxDP(1, "1e-6")}, "spends pure ε"),
        ({"local_epsilon": Fraction(100)}, "most local epsilon"),
        ({"local_epsilon": 4}, "most local epsilon"),
        ({"local_epsilon": Fraction(4), "budget": ZCDP(1)}, "pure ε or"),
        ({"local_epsilon": Fraction(4), "algorithm": Flat(TREE, 2, AtMostRows(2))}, "a report of one row"),
        ({"local_epsilon": Fraction(4), "budget": ApproxDP(1, "1e-13")}, "delta is 10"),
    ],
    ids=str,
)
def test_a_campaign_whose_reports_could_not_be_made_is_refused(changes, words):
    with pytest.raises(InputError, match=words):
        campaign(**changes)


def test_an_older_campaign_is_read_and_one_without_reports_is_written_as_it_was():
    plain, local = campaign(), campaign(local_epsilon=Fraction(4), budget=ApproxDP(1, "1e-6"))
    assert "local_epsilon" not in dumps(plain)
    assert [campaign_from(dumps(each)) for each in (plain, local)] == [plain, local]


@pytest.mark.slow
def test_a_fresh_sample_is_drawn_each_round_and_one_sample_is_kept(tmp_path):
    asked = {}
    for sampling in Sampling:
        devices = crowd(24)
        cohort = Cohort(12, 6, dropout=Fraction(1, 6), corrupt=Fraction(0), sampling=sampling)
        ordered = campaign(algorithm=FittedLevel(TREE), cohort=cohort, budget=PureDP(25))
        _, status, _ = played(tmp_path / sampling.name.lower(), devices, ordered)
        assert status["state"] == "done", status
        assert all(each["shards"] == {"opened": 2} for each in status["rounds"])
        rounds = len(status["rounds"])
        asked[sampling] = [
            frozenset(device.name for device in devices if ("berlin", number + 1) in device.contributed)
            for number in range(rounds)
        ]
        assert all(len(each) == 12 for each in asked[sampling])
    assert len(set(asked[Sampling.ONE])) == 1
    assert len(set(asked[Sampling.FRESH])) > 1  # equal once in C(24, 12) runs: 4 · 10⁻⁷


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "counted"), [(1, False), (3, False), (4, False), (5, True), (6, True)])
def test_who_is_gone_before_the_vector_is_not_counted_and_who_is_gone_after_it_is(tmp_path, stage, counted):
    devices = crowd(12)
    for device in devices[:2]:
        device.silent = stage
    _, status, release = played(tmp_path, devices, campaign(), hasty=True)
    assert status["state"] == "done", status
    assert counts(release) == truth(devices if counted else devices[2:])
    [each] = status["rounds"]
    assert sum(each["dropped"].values()) == 2
    assert each["people"] == (12 if counted else 10)


def test_a_stage_ends_early_where_enough_came_and_then_nobody(tmp_path):
    devices = crowd(12)
    for device in devices[:2]:
        device.silent = 3
    _, status, release = played(tmp_path, devices, campaign(deadlines=Deadlines.all(600, quiet=300)), hasty=True)
    assert status["state"] == "done", status
    assert counts(release) == truth(devices[2:])


def test_malicious_mode_runs_over_http_as_well(tmp_path):
    devices = crowd(12)
    cohort = Cohort(12, 12, dropout=Fraction(0), corrupt=Fraction(0), mode=Mode.MALICIOUS)
    _, status, release = played(tmp_path, devices, campaign(cohort=cohort))
    assert status["state"] == "done", status
    assert counts(release) == truth(devices)
    assert {stage for _, stage in devices[0].answered} == {1, 2, 3, 4, 5, 6}


def test_a_device_that_declines_is_waited_for_by_nobody_and_its_reason_is_shown(tmp_path):
    devices = crowd(12)
    devices[0].declines = "my budget\nis spent \x07"
    _, status, release = played(tmp_path, devices, campaign())
    assert counts(release) == truth(devices[1:])
    [each] = status["rounds"]
    assert each["refusals"] == {"my budget is spent": 1}


def test_a_device_that_breaks_the_protocol_is_named_and_not_asked_again(tmp_path):
    devices = crowd(14)
    devices[0].broken = lambda stage, reply: reply[:-1] if stage == 4 else reply
    cohort = Cohort(12, 12, Fraction(1, 4), Fraction(0), Sampling.ONE)
    ordered = campaign(algorithm=FittedLevel(TREE), cohort=cohort, budget=PureDP(25))
    _, status, _ = played(tmp_path, devices, ordered)
    assert status["state"] == "done", status
    named = [each["culprits"] for each in status["rounds"]]
    if ("berlin", 1) in devices[0].contributed:  # 12 of 14 are drawn
        assert list(named[0]) == [devices[0].name]
        assert 422 in devices[0].statuses
        assert [each["people"] for each in status["rounds"]] == [11] * len(named)
    assert not any(named[1:])


def test_a_shard_that_failed_before_anything_was_told_is_begun_again_without_the_silent(tmp_path):
    devices = crowd(12)
    for device in devices[:4]:  # one more than may drop out
        device.silent = 3
    _, status, release = played(tmp_path, devices, campaign(), hasty=True)
    assert status["state"] == "done", status
    [each] = status["rounds"]
    assert (each["attempts"], each["shards"], each["people"]) == (2, {"opened": 1}, 8)
    assert counts(release) == truth(devices[4:])
    assert len({session for session, _ in devices[5].answered}) == 2


def test_a_round_that_fails_says_of_how_many_and_why(tmp_path):
    devices = crowd(12)
    for device in devices[:9]:
        device.silent = 6
    ordered = campaign(attempts=1)
    town, status, _ = played(tmp_path, devices, ordered, hasty=True)
    assert status["state"] == "failed"
    assert "round 1: none of 1 shards could be opened, at attempt 1. Of 12 people" in status["reason"]
    assert "9 did not answer in time; 3 were left, and 9 had to be" in status["reason"]
    [each] = status["rounds"]
    assert (each["attempts"], each["shards"], each["answered"]) == (1, {"lost": 1}, False)
    [record] = town.ledger.history("town")
    assert not record.released
    assert not list((tmp_path / "releases").iterdir())


def test_lost_shards_leave_a_map_of_the_others(tmp_path):
    devices = crowd(12)
    cohort = Cohort(12, 6, dropout=Fraction(0), corrupt=Fraction(0))
    devices[0].silent = 5
    _, status, release = played(tmp_path, devices, campaign(cohort=cohort, attempts=1), hasty=True)
    assert status["state"] == "done", status
    [each] = status["rounds"]
    assert (each["shards"], each["people"]) in [({"opened": 2}, 12), ({"opened": 1, "lost": 1}, 6)]
    assert sum(counts(release).values()) == each["people"]


def test_too_few_devices_are_waited_for_and_then_said(tmp_path):
    town, status, _ = played(tmp_path, crowd(5), campaign(wait=0.2))
    assert status["state"] == "failed"
    assert "only 5 devices were there" in status["reason"]
    assert not any(device.contributed for device in town.devices)


@pytest.mark.slow
def test_a_box_can_be_found_by_devices(tmp_path):
    devices = crowd(12)
    ordered = campaign(algorithm=PrivateBoundingBox(Flat(Quadtree.world(depth=0), 2)), budget=PureDP(100_000))
    _, status, release = played(tmp_path, devices, ordered)
    assert status["state"] == "done", status
    assert round(float(release.map.unbiased.sum())) == 12


def test_the_answers_carry_the_noise_that_is_really_in_them(tmp_path):
    devices = crowd(12)
    devices[0].declines = "no"
    ordered = campaign(budget=PureDP(1), cohort=Cohort(12, 6, Fraction(1, 3), Fraction(1, 6), mode=Mode.SEMI_HONEST))
    _, _, release = played(tmp_path, devices, ordered)
    [(question, answer)] = release.transcript
    parts = 11 / 3  # 6 and 5 people answered, with the shares of 6 − 2 − 1 = 3 each
    three = Cohort(3, 3, Fraction(0), Fraction(0), mode=Mode.SEMI_HONEST)
    one = SecureSumPrices(PureDP(1), three).stddev(question.encoder, Fraction(1))
    assert answer.stddev[0] == pytest.approx(one * parts**0.5)
    assert answer.people == 11


def test_a_shard_in_which_nearly_everybody_was_late_asks_them_all_once_more(tmp_path):
    devices = crowd(12)
    for device in devices[:8]:
        device.silent = 3

    async def play():
        async with Town(tmp_path, devices, hasty=True) as town:
            await town.begin(campaign())

            def recover():
                if sum(len(device.clients) > 1 for device in devices):
                    for device in devices:
                        device.silent = 99

            return await town.live("berlin", each=recover)

    status = asyncio.run(play())
    [each] = status["rounds"]
    assert (status["state"], each["attempts"], each["people"]) == ("done", 2, 12)
