"""Maps of every hour from devices: each reads its own times, and the release is the one that a curator would make."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.device.test_campaign import PEOPLE, TREE, campaign, played, quick, spots  # noqa: F401 - `quick` is a fixture

from hazemap.algorithms import AdaptiveSlots, PrivateBoundingBox
from hazemap.cells import Leaves, WholeDomain
from hazemap.codec import MESSAGE, dumps, loads
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.execution.release_assembly import released
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.privacy_account import fields_read
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.query_description import describe_query
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.row_store import DeviceRows, RowStore
from hazemap.federated.server.campaign_spec import Campaign, campaign_from, prices_of
from hazemap.federated.server.campaign_status import so_far
from hazemap.federated.server.privacy_statement import statement
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.device_tasks import KNOWN, Task
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.report_carriers import ByOneReport
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Query
from hazemap.releases import TimedRelease, open_release
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.temporal.time_slots import Clock, Spans
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

QUARTERS = Clock("Europe/Berlin", (0, 6 * 3600, 12 * 3600, 18 * 3600))
TIMED = TimedTree(TREE, QUARTERS)
HOURS_AWAY = np.array([0.0, 7.0, 30.0])
"""When each person's rows are, in hours after the first: other days, and never twice in a slot of another's."""


def places():
    """Three rows of each person, at other times in two places; PersonRows by number."""
    moments = 1_700_000_000 + 3600 * (np.arange(PEOPLE)[:, None] % 24 + HOURS_AWAY)
    return [
        DeviceRows(when, np.array([lon, lon, 13.4]), np.full(3, lat), np.ones(3), np.full(3, np.nan))
        for when, (lon, lat) in zip(moments, spots(), strict=True)
    ]


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        rows.added(store, dict(zip(enrolment.add(store, PEOPLE), places(), strict=True)), None)
        yield store


def timed(rule=None, **changes):
    return campaign(algorithm=AdaptiveSlots(TREE, QUARTERS, rule or AtMostRows(3), most_numbers=5_000), **changes)


def task(encoder, **changes):
    options = {"cohort": Cohort(1_000, 1_000), "price": PureDP(1), "budget": PureDP(1)}
    return Task("slots", "when people are where", 1, Query(encoder, Fraction(1)), **{**options, **changes})


EACH = Counts(EachSlot(TIMED, Leaves.at_level(TREE, 2)), AtMostRows(1))
ALL = Counts(AllSlots(TIMED, Leaves.at_level(TREE, 2)), AtMostRows(1))


@pytest.mark.slow
def test_devices_make_a_map_of_every_slot(tmp_path, store):
    """Next to no noise and three rows each, so sums are those of all rows: by cell and slot, over the real protocol."""
    status, made = played(tmp_path, store, timed(), seconds=600)
    assert status["state"] == "done", status
    assert isinstance(made, TimedRelease) and made.slots == QUARTERS.names
    everybody = places()
    columns = {name: np.concatenate([getattr(own, name) for own in everybody]) for name in ("time", "lon", "lat")}
    cells, slots = made.maps.cells.locate(TREE.cell_at(columns, TREE.depth)), QUARTERS.at(columns["time"])
    truth = np.zeros((len(made.slots), made.maps.cells.size))
    np.add.at(truth, (slots, cells), 1)
    assert made.maps.cells.size > 4
    assert np.allclose(made.maps.unbiased, truth, atol=0.6)
    assert made.during("06:00-12:00").total().unbiased == pytest.approx(truth[1].sum(), abs=0.6)
    assert made.total().unbiased == pytest.approx(3 * PEOPLE, abs=0.6)
    again = made.replay(prices_of(timed()))
    assert np.array_equal(again.maps.values, made.maps.values)
    said = (
        "the slots: parts of the day (00:00-06:00, 06:00-12:00, 12:00-18:00, 18:00-00:00), as clocks of Europe/Berlin"
    )
    assert said in made.statement.text()
    lines = [str(line) for line in ActivityLog(store, enrolment.devices(store)[0]).entries()]
    assert any(
        "cells in slots of time" in line and "apart by when they were: parts of the day" in line for line in lines
    )


@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostRows(2), OneVote(60)], ids=str)
def test_what_a_device_adds_is_bounded_over_all_slots_together(store, rule):
    """By brute force: no rows of a device, there or not, move the sums of a question by more than its sensitivity."""
    own = RowStore(store, enrolment.devices(store)[0])
    for encoder in (replace(EACH, bounding=rule), replace(ALL, bounding=rule)):
        sums, trouble = contribution(encoder, lambda: own.table(b"secret", "slots"))
        assert trouble is None
        assert np.abs(sums).sum() == encoder.sensitivity.l1 > 0
        assert (sums**2).sum() <= encoder.sensitivity.l2_squared
    nobody = contribution(EACH, lambda: RowStore(store, 10**6).table(b"secret", "slots"))
    assert nobody.trouble is None and not nobody.sums.any()


def test_a_person_is_told_that_their_times_are_read():
    assert (
        sorted(map(str, fields_read(EACH)))
        == ["places.lat", "places.lon", "places.time"]
        == [*map(str, sorted(fields_read(ALL), key=str))]
    )
    each, every = str(describe_query(task(EACH))), str(describe_query(task(ALL)))
    assert "in each of 64 cells in slots of time" in each and "apart by when they were: parts of the day" in each
    assert "in each of 16 cells, " in every and "at any of these times: parts of the day" in every
    everywhere = (EachSlot(TIMED, WholeDomain(TREE)), Leaves(TREE, TREE.root))
    sides = [describe_query(task(Counts(cells, AtMostRows(1)))).side for cells in everywhere]
    assert sides[0] == sides[1]


def test_a_person_may_keep_their_times_to_themselves():
    policy = Policy.parse("[question]\ntimes = false\n")
    assert Policy().order_refusal(task(EACH)) is None
    for encoder in (EACH, ALL):
        assert policy.order_refusal(task(encoder)) == "this device does not reveal when its rows were"
    assert policy.order_refusal(task(Counts(Leaves.at_level(TREE, 2), AtMostRows(1)))) is None
    assert Policy.parse(policy.to_toml()) == policy
    with pytest.raises(InputError, match="times is true or false"):
        Policy(times=1)


def test_an_order_says_its_slots_and_people_read_it():
    options = {"epsilon": 1, "box": "13.2,52.4,13.6,52.6", "dataset": "town", "outside": "drop"}
    same = {"name": "berlin", "cohort": Cohort(1_000, 1_000, sampling=Sampling.ONE), "purpose": "a map"}
    spec = ReleaseSpec.of(None, slots="hour-of-day", time_zone="Europe/Berlin", **options)
    made = Campaign.of(spec, most_numbers=4_000, **same)
    assert made.slots == Clock.hours("Europe/Berlin") and made.asking.most_numbers == 4_000
    assert made.purpose == "a map (also counts at what time people are where: hour-of-day)"
    assert campaign_from(dumps(made)) == made
    window = ReleaseSpec.of(None, slots="hour", since="2024-05-01T08:00", until="2024-05-01T12:00", **options)
    assert len(Campaign.of(window, most_numbers=4_000, **same).slots.names) == 4
    for wrong, words in (
        (ReleaseSpec.of(None, slots="hour-of-day", since="2024-05-01", **options), "leave the table"),
        (ReleaseSpec.of(None, slots="hour", since="2024-05-01T08:00", until="2024-05-01T12:30", **options), "whole"),
    ):
        with pytest.raises(InputError, match=words):
            Campaign.of(wrong, most_numbers=4_000, **same)
    carrier = ByOneReport("https://one.example/", "https://two.example/", 900, 4)
    with pytest.raises(InputError, match="not of times"):
        Campaign.of(spec, most_numbers=4_000, carrier=carrier, **same)
    with pytest.raises(InputError, match="--sampling one"):
        Campaign.of(spec, most_numbers=4_000, **{**same, "cohort": Cohort(1_000, 1_000)})
    with pytest.raises(InputError, match="24 slots need 768"):
        Campaign.of(spec, most_numbers=600, **same)


def test_a_box_may_be_found_first_and_hostile_slots_are_refused():
    method = AdaptiveSlots(TREE, QUARTERS, most_numbers=5_000)
    assert campaign(algorithm=PrivateBoundingBox(method)).slots == QUARTERS
    with pytest.raises(InputError, match="years 2 and 9998"):
        Spans("UTC", (0, 10**30))


def test_a_task_of_many_slots_is_read_without_naming_them_all(monkeypatch):
    """A server may ask for 65,535 stretches of time: their names took seconds, for each task."""
    spans = Spans("Europe/Berlin", tuple(range(0, 65_536 * 60, 60)))
    asked = dumps(task(Counts(EachSlot(TimedTree(TREE, spans), WholeDomain(TREE)), AtMostRows(1))))
    monkeypatch.setattr(Spans, "names", property(lambda _: pytest.fail("all names were made")))
    read = loads(asked, KNOWN, Task, MESSAGE)
    assert Policy().order_refusal(read) is None
    assert "65,535 stretches of time in Europe/Berlin, the first from 1970-01-01T01:00+01:00" in str(
        describe_query(read)
    )


def test_answered_rounds_of_a_campaign_that_ended_early_are_a_map_of_all_slots(tmp_path):
    own = places()
    columns = {name: np.concatenate([getattr(each, name) for each in own]) for name in ("time", "lon", "lat")}
    people = MemoryTable(np.repeat(np.arange(PEOPLE), 3), columns)
    ordered = timed()
    trust = SimulatedSecureAggregation(people, ordered.cohort, Stream.fixed(b"a campaign that ends early"))
    transcript = run(ordered.algorithm, trust, ordered.budget, Unrecorded()).transcript
    for answered in range(1, len(transcript) + 1):
        found = so_far(transcript[:answered])
        released(found, statement(ordered), ordered.algorithm, transcript[:answered]).save(tmp_path / "part.parquet")
        part = open_release(tmp_path / "part.parquet")
        assert part.cells.same_cells(found.cells)
        assert part.total().unbiased == pytest.approx(3 * PEOPLE, abs=8)
