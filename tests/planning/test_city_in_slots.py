"""Plans of maps with time: a made-up city that sleeps and works, and what its slots are told with."""

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.federated.planning.trust_plan import planned_trusts
from hazemap.planning.release_plan import advice, facts, plan
from hazemap.planning.synthetic_city import CityInSlots, SyntheticTable, moments_of
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.temporal.time_slots import Clock, Spans, Weekdays
from hazemap.values.cells_in_slots import AllSlots
from hazemap.values.timed_tree import TimedTree

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BOX, 6)
HALVES = Clock("Asia/Tokyo", (8 * 3600, 20 * 3600))


@pytest.fixture(scope="module")
def city():
    return SyntheticTable.of(TREE, BOX, 20_000)


@pytest.mark.parametrize("slots", [Clock.hours("UTC"), HALVES, Weekdays("UTC"), Spans("UTC", (0, 3600, 90_000))])
def test_all_slots_together_are_the_city(city, slots):
    made = CityInSlots.of(city, slots, 20_000)
    together = isinstance(slots, Spans) or np.allclose(made.density.sum(axis=0), city.density, atol=1e-12)
    assert together and made.density.sum() == pytest.approx(1)
    assert abs(int(made.people.sum()) - 20_000) < 8 * 20_000**0.5  # Poisson: beyond with a chance below 1e-12
    timed = TimedTree(TREE, slots)
    votes = made.votes(timed, AtMostRows(2))
    assert votes.weights.sum() == 2 * made.people.sum()
    whole = made.votes(TREE, AtMostRows(2))
    cells = AllSlots(timed, _leaves())
    assert np.array_equal(cells.total(votes.cells, votes.weights), _leaves().total(whole.cells, whole.weights))
    assert set(np.unique(slots.at(moments_of(slots)))) >= set(range(len(slots.names)))


def _leaves():
    return Leaves.at_level(TREE, 3)


def test_people_work_by_day_and_sleep_at_night(city):
    """By the clocks of the slots, wherever they are: a quarter of all rows are at work, most of them by day."""
    day, night = CityInSlots.of(city, HALVES, 20_000).density
    assert 0.45 < day.sum() < 0.75
    assert np.abs(day / day.sum() - night / night.sum()).sum() > 0.3
    hours = CityInSlots.of(city, Clock.hours("Asia/Tokyo"), 20_000).density.sum(axis=1)
    assert hours[8:20].sum() == pytest.approx(day.sum())


def test_a_plan_of_slots_is_the_same_every_time_and_says_what_they_are_told_with():
    first, again = (plan(str(BOX), people=20_000, epsilon=1, slots="clock:8,20", time_zone="Asia/Tokyo") for _ in "ab")
    assert first == again
    few, made = plan(str(BOX), people=20_000, epsilon=1, slots="hour-of-day").slots, first.slots
    assert (made.number, few.number) == (2, 24)
    assert made.slots == "parts of the day (08:00-20:00, 20:00-08:00), as clocks of Asia/Tokyo show it"
    assert few.cells < made.cells and made.misplaced < few.misplaced < 1
    assert made.expected.misplaced < made.misplaced
    assert 1 < made.cell < made.stddev
    said = " ".join(advice(first, "auto"))
    assert "Maps of 2 slots (parts of the day (08:00-20:00" in said and "slot's map misplaces" in said
    assert facts(first, "auto")["slots"]["number"] == 2
    assert plan(str(BOX), people=1_000, epsilon=1).slots is None


def test_slots_that_cannot_be_planned_are_refused():
    with pytest.raises(InputError, match="at most 200 slots"):
        plan(str(BOX), people=20_000, epsilon=1, slots="hour", since="2024-01-01", until="2024-02-01")
    with pytest.raises(InputError, match="adaptive method alone"):
        plan(str(BOX), people=20_000, epsilon=1, slots="hour-of-day", method="flat:3")


def test_trust_models_are_planned_with_slots():
    spec = ReleaseSpec.of(box=str(BOX), epsilon=2, slots="clock:8,20")
    made = {each.name: each for each in planned_trusts(spec, 5_000, ("curator", "two-servers", "one-report"))}
    assert "squares or hexagons" in made["one-report"].refused
    assert 0 < made["curator"].misplaced < 1 and made["curator"].total < made["two-servers"].total
    assert made["two-servers"].bytes > 10_000 and made["curator"].bytes is None
