"""What a page is told of maps with time, of maps with marks and of statistics."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.releases.test_marked_release import BOX
from tests.releases.test_marked_release import rows as marked_rows
from tests.releases.test_statistics_release import made as statistics  # noqa: F401  # a fixture
from tests.releases.test_timed_release import released as released_with_time

import hazemap
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import leading
from hazemap.releases import MarkedRelease, Statistics, TimedRelease
from hazemap.releases.page import map_payload, page_file
from hazemap.releases.page.packed_arrays import painted, unpack


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> TimedRelease:
    return released_with_time(tmp_path_factory.mktemp("timed"))


@pytest.fixture(scope="module")
def marked(tmp_path_factory) -> MarkedRelease:
    ledger = hazemap.Ledger(tmp_path_factory.mktemp("marks") / "ledger.sqlite")
    asked = {"person": "user", "epsilon": 2, "box": BOX, "mark": ["ill", "status=2"], "ledger": ledger}
    return hazemap.release(marked_rows(1_500), **asked)


def test_a_page_is_told_what_a_map_with_time_says_of_each_slot(timed):
    told = timed.page_data("hours")
    assert (told["kind"], told["title"], told["slots"]["names"]) == ("slots", "hours", list(timed.slots))
    positions = painted(timed.maps.cells)
    for name in ("best_guess", "unbiased", "low", "high"):
        found = unpack(told["slots"]["cells"][name]).reshape(3, -1)
        for slot in range(3):
            assert found[slot] == pytest.approx(timed.during(slot).columns(positions)[name], rel=1e-6)
    assert unpack(told["slots"]["cells"]["stddev"]) == pytest.approx(timed.during(0).map.stddev[positions], rel=1e-6)
    for slot, total in enumerate(told["slots"]["totals"]):
        assert total["best_guess"] == timed.during(slot).total().best_guess
    assert told["total"]["best_guess"] == timed.total().best_guess
    json.dumps(told, allow_nan=False)


def test_a_slot_is_painted_as_finely_as_it_was_counted(timed):
    """As the page works it out: every part of the total has the density of the slot's cell around it."""
    told = timed.page_data()
    fine, cells = told["cells"]["fine"], told["slots"]["cells"]
    owner = unpack(told["slots"]["holder"])[unpack(fine["cell"])]
    area = np.bincount(owner, unpack(fine["area"]))
    assert area == pytest.approx(unpack(cells["area"]), rel=1e-4), "parts of the total tile the cells of a slot"
    for slot, made in enumerate(timed.by_slot):
        assert made.shown is made.map and made.map.cells.size == timed.maps.cells.size
        people = unpack(cells["best_guess"]).reshape(3, -1)[slot]
        assert people == pytest.approx(made.map.values[painted(timed.maps.cells)], rel=1e-4, abs=1e-4)


def test_a_page_is_told_the_share_of_each_mark_in_each_cell(marked):
    told = marked.page_data()
    assert told["kind"] == "marks"
    positions = painted(marked.cells)
    columns = marked.columns(positions)
    for mark in told["marks"]:
        for what in ("share", "low", "high"):
            assert np.allclose(unpack(mark[what]), columns[f"{mark['name']}_{what}"], rtol=1e-6, equal_nan=True)
    assert [mark["whole"]["value"] for mark in told["marks"]] == [each.value for each in marked.share().shares]
    assert 0 <= told["shares"]["low"] < told["shares"]["high"] <= 1
    json.dumps(told, allow_nan=False)


def test_a_page_is_told_each_statistic_of_each_slot(statistics):  # noqa: F811
    told = statistics.page_data()
    assert (told["kind"], told["value"], told["slots"]) == ("values", "speed", list(statistics.slots))
    assert [each["name"] for each in told["statistics"]] == ["mean", "variance", "q0.1", "q0.5"]
    names = statistics.cells.tree.names(statistics.cells.cells[painted(statistics.cells)])
    for each in told["statistics"]:
        low = unpack(each["low"]).reshape(len(statistics.slots), -1)
        value = unpack(each["value"]).reshape(low.shape)
        for at, name in enumerate(names):
            for slot in range(len(statistics.slots)):
                (found,) = [one for one in statistics.ask(name, str(slot)) if one.statistic == each["name"]]
                assert low[slot, at] == pytest.approx(found.low, rel=1e-6, abs=1e-6)
                assert np.isnan(value[slot, at]) == (found.value is None)
                assert found.value is None or value[slot, at] == pytest.approx(found.value, rel=1e-6)
    json.dumps(told, allow_nan=False)


def test_a_page_is_told_the_histogram_of_each_place(statistics):  # noqa: F811
    told = statistics.page_data()["histogram"]
    slots, name = len(statistics.slots), statistics.names[painted(statistics.cells)[3]]
    people = unpack(told["people"]).reshape(slots, -1, len(told["edges"]) - 1)
    for slot in range(slots):
        found = statistics.histogram(name, str(slot))
        assert people[slot, 3] == pytest.approx(found.people, rel=1e-6)
        ends = leading(found.people, found.people - told["margin"], found.people + told["margin"])
        assert [list(each) for each in ends] == [pytest.approx(each) for each in found.interval()], "as the page has it"
    assert told["edges"] == found.edges.tolist()


def test_statistics_without_bins_have_no_histogram(statistics):  # noqa: F811
    tree = statistics.measurements.tree
    flat = replace(tree, value_encoding=replace(tree.value_encoding, branchings=(), weights=(1,)))
    counters = statistics.measurements.counters[:, : tree.value_encoding.degree + 1]
    made = replace(statistics, measurements=replace(statistics.measurements, tree=flat, counters=counters), ranks=())
    assert made.page_data()["histogram"] is None


def test_more_numbers_than_a_browser_can_hold_are_refused(timed, statistics, monkeypatch):  # noqa: F811
    monkeypatch.setattr(map_payload, "MOST_SLOT_NUMBERS", 100)
    monkeypatch.setattr(map_payload, "MOST_NUMBERS", 100)
    with pytest.raises(InputError, match="at most 100 numbers"):
        timed.page_data()
    with pytest.raises(InputError, match="at most 100 numbers"):
        statistics.page_data()


def test_whatever_a_slot_a_mark_or_a_value_is_called_stays_data(statistics):  # noqa: F811
    evil = "</script><script>alert(1)</script>"
    text = page_file.script_text(Statistics.page_data(replace(statistics, value=evil)))
    assert "<" not in text and json.loads(text)["value"] == evil
