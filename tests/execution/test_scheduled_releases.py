"""Schedules: what is due is released once, whatever happened before; what is refused is refused before it is read."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import InputError, LedgerError, ScheduleRunning
from hazemap.execution import scheduled_releases
from hazemap.execution.crash_recovery import recover
from hazemap.execution.run import journal_folder
from hazemap.execution.scheduled_releases import run_schedule, schedule_series, schedule_status
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.releases import Release
from hazemap.specs.schedule_spec import ScheduleSpec

pytestmark = pytest.mark.filterwarnings("ignore:.*hides whether there are any")


def rows(months: int) -> pa.Table:
    """A table of a person a minute: the first month has 500 rows, the second 1,000, and so on."""
    times = [
        datetime(2025, month, 1, 0, 30, tzinfo=UTC) + timedelta(minutes=minute)
        for month in range(1, months + 1)
        for minute in range(500 * month)
    ]
    chance = np.random.default_rng(1)
    lon, lat = chance.normal([[13.4], [52.5]], [[0.03], [0.02]], (2, len(times)))
    at = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"user": np.arange(len(times)), "lon": lon, "lat": lat, "at": at})


@pytest.fixture
def book(tmp_path) -> Ledger:
    return Ledger(tmp_path / "home" / "ledger.sqlite")


@pytest.fixture
def order(tmp_path):
    """A monthly schedule over a table of three months."""
    pq.write_table(rows(3), tmp_path / "visits.parquet")
    (tmp_path / "maps").mkdir()
    usual = {"source": "visits.parquet", "person": "user", "time": "at", "epsilon": "1", "method": "flat:2"}
    usual |= {"cells": "quadtree:4"}
    usual |= {"box": "13.2,52.4,13.6,52.6", "output": "maps/{period}.parquet", "dataset": "city"}
    own = {"name": "monthly", "every": "month", "begins": "2025-01-01", "yearly_epsilon": "100"}

    def made(release=(), **more):
        return ScheduleSpec.from_json({**usual, **dict(release)}, {**own, **more}, tmp_path)

    return made


def states(done):
    return [each.state for each in done.periods]


def test_each_period_is_released_once_with_its_own_rows_and_running_again_does_nothing(order, book, tmp_path):
    spec = order()
    assert states(run_schedule(spec, ledger=book, now="2025-02-01")) == ["released"]
    done = run_schedule(spec, ledger=book, now="2025-04-01")
    assert states(done) == ["there", "released", "released"] and done.exit_code == 0
    again = run_schedule(spec, ledger=book, now="2025-04-01")
    assert states(again) == ["there"] * 3 and again.to_json()["periods"] == [] and again.to_json()["there"] == 3
    assert len(book.history()) == 3 and str(again.left) == "ε = 97"
    for month in (1, 2, 3):
        made = Release.open(tmp_path / "maps" / f"2025-{month:02}.parquet")
        assert abs(made.total().unbiased - 500 * month) < 200  # of 16 cells at ε = 1, 45 standard errors
        assert made.statement.dataset == "city"
    assert not list(journal_folder(book).glob("*"))


def test_nothing_is_due_before_a_period_is_over_and_its_rows_had_time_to_come(order, book):
    spec = order(wait_hours=6.0, time_zone="Europe/Berlin")
    assert states(schedule_status(spec, ledger=book, now="2025-02-01T05:59:59")) == []
    assert states(schedule_status(spec, ledger=book, now="2025-02-01T06:00:00")) == ["due"]
    empty = run_schedule(spec, ledger=book, now="2024-06-01")
    assert (empty.exit_code, empty.year, empty.to_json()["periods"]) == (0, None, [])
    assert not book.path.exists()


def test_what_is_yet_to_come_is_not_released(order, book):
    later = datetime.now(UTC) + timedelta(days=1)
    for now in (later, later.isoformat()):
        with pytest.raises(InputError, match="yet to come"):
            run_schedule(order(), ledger=book, now=now)
    with pytest.raises(InputError, match="has an offset"):
        run_schedule(order(), ledger=book, now=datetime(2025, 2, 1))


def test_missed_periods_are_skipped_where_that_is_declared(order, book):
    done = run_schedule(order(missed="skip"), ledger=book, now="2025-04-01")
    assert states(done) == ["missed", "missed", "released"] and done.to_json()["missed"] == 2


def test_a_year_without_room_is_refused_before_the_table_is_read_and_the_next_year_goes_on(order, book, tmp_path):
    spec = order(yearly_epsilon="2")
    (tmp_path / "visits.parquet").unlink()
    book.cap("city", PureDP("0.5"))
    done = run_schedule(spec, ledger=book, now="2025-02-01")
    assert states(done) == ["refused"] and done.exit_code == 3 and not book.history()
    book.cap("city", PureDP(100))
    pq.write_table(rows(3), tmp_path / "visits.parquet")
    assert states(run_schedule(spec, ledger=book, now="2025-03-01")) == ["released", "released"]
    (tmp_path / "visits.parquet").unlink()
    done = run_schedule(spec, ledger=book, now="2025-04-01")
    assert states(done) == ["there", "there", "refused"] and done.exit_code == 3
    assert "2025 of the schedule 'monthly' has ε = 0 left" in str(done.periods[-1].error)
    pq.write_table(rows(3), tmp_path / "visits.parquet")
    done = run_schedule(spec, ledger=book, now="2026-02-01")
    assert states(done) == ["there"] * 2 + ["refused"] * 10 + ["released"] and done.exit_code == 0
    assert str(done.spent) == "ε = 1" and done.year == "2026"


class Killed(BaseException):
    """Stands for a process that ends here."""


@pytest.mark.parametrize(
    "home", ["execution.run.Curator.answer", "releases.Release.save", "privacy.ledger.Ledger.released"]
)
def test_a_period_that_was_paid_for_is_finished_at_no_second_price(home, order, book, tmp_path, monkeypatch):
    def dies(*_, **__):
        raise Killed

    spec = order()
    with monkeypatch.context() as patch:
        patch.setattr(f"hazemap.{home}", dies)
        with pytest.raises(Killed):
            run_schedule(spec, ledger=book, now="2025-02-01")
    assert states(schedule_status(spec, ledger=book, now="2025-03-01")) == ["unfinished", "due"]
    pq.write_table(rows(4), tmp_path / "visits.parquet")  # the table grew meanwhile
    done = run_schedule(spec, ledger=book, now="2025-03-01")
    assert states(done) == ["recovered", "released"] and done.exit_code == 0
    charges = book.periods("monthly")
    assert [each.occasion.period for each in charges if not each.again] == ["2025-01", "2025-02"]
    assert sum(each.again for each in charges) == ("answer" in home)  # the question whose answer was lost
    assert all(each.released for each in charges)


def test_what_is_lost_is_said_and_not_paid_for_again(order, book, monkeypatch):
    spec = order()
    book.charge("city", PureDP(1), "a map", _unit(), "gone", spec.occasion("2025-01"))
    done = run_schedule(spec, ledger=book, now="2025-02-01")
    assert states(done) == ["lost"] and done.exit_code == 1 and len(book.history()) == 1
    assert states(run_schedule(spec, ledger=book, now="2025-03-01")) == ["lost", "released"]


def _unit():
    from hazemap.privacy.privacy_unit import Unit

    return Unit.person("user", "whole numbers")


def test_a_period_that_fails_does_not_stop_the_others_and_is_tried_again(order, book, tmp_path):
    spec = order({"source": "visits-{period}.parquet"})
    pq.write_table(rows(2), tmp_path / "visits-2025-02.parquet")
    done = run_schedule(spec, ledger=book, now="2025-03-01")
    assert states(done) == ["failed", "released"] and done.exit_code == 2
    assert done.to_json()["periods"][0]["error"]["type"] == "FileError"
    pq.write_table(rows(1), tmp_path / "visits-2025-01.parquet")
    done = run_schedule(spec, ledger=book, now="2025-03-01")
    assert states(done) == ["released", "there"] and done.exit_code == 0


def test_releases_share_the_cells_of_the_one_before_and_the_series_says_how_the_error_changes(order, book):
    spec = order({"method": "auto", "epsilon": "2"}, share_cells=True)
    done = run_schedule(spec, ledger=book, now="2025-04-01")
    assert [each.prior and Path(each.prior).name for each in done.periods] == [
        None,
        "2025-01.parquet",
        "2025-02.parquet",
    ]
    series = schedule_series(spec, ledger=book, now="2025-04-01")
    assert [each.name for each in series.points] == ["2025-01", "2025-02", "2025-03"]
    assert series.points[2].cells == series.points[1].cells == series.points[0].cells
    assert series.points[1].total_p <= 1e-8 and series.points[2].cells_p is not None  # 500, 1,000, 1,500 people
    Path(done.periods[1].file).unlink()
    assert [each.place for each in schedule_series(spec, ledger=book, now="2025-04-01").points] == [0, 2]
    # the newest that is there still
    later = run_schedule(spec, ledger=book, now="2025-05-01")
    assert Path(later.periods[-1].prior).name == "2025-03.parquet"


def test_two_processes_do_not_run_one_schedule_at_once(order, book):
    spec = order()
    with scheduled_releases._alone(spec, book):
        with pytest.raises(ScheduleRunning, match="nothing was done here") as caught:
            run_schedule(spec, ledger=book, now="2025-02-01")
        assert caught.value.exit_code == 6
        other = order({"output": "maps/other-{period}.parquet"}, name="other")
        assert states(run_schedule(other, ledger=book, now="2025-02-01")) == ["released"]
    assert not book.periods(spec.name)


def test_a_machine_that_was_slower_pays_nothing(order, book, monkeypatch):
    """Two machines with one ledger: between a look at the ledger and the charge the other one pays."""
    spec = order()
    real = scheduled_releases.execute

    def late(*arguments):
        book.charge("city", PureDP(1), "the other's", _unit(), "its", spec.occasion("2025-01"))
        return real(*arguments)

    monkeypatch.setattr(scheduled_releases, "execute", late)
    done = run_schedule(spec, ledger=book, now="2025-02-01")
    assert states(done) == ["there"] and len(book.history()) == 1


def test_a_ledger_that_cannot_be_used_stops_everything(order, tmp_path):
    (tmp_path / "notes").write_bytes(b"my notes" * 500)
    with pytest.raises(LedgerError):
        run_schedule(order(), ledger=Ledger(tmp_path / "notes"), now="2025-04-01")


def test_what_a_run_says_does_not_depend_on_the_rows(order, book, tmp_path):
    """Tables with nobody, one person and three thousand people: one JSON line, but for charges that were paid."""
    said = []
    for number, table in enumerate((rows(1), rows(1)[:0], rows(1)[:1])):
        pq.write_table(table, tmp_path / "visits.parquet")
        spec = order({"output": f"maps/{{period}}-{number}.parquet"}, name=f"try {number}")
        done = run_schedule(spec, ledger=book, now="2025-03-01")
        told = done.to_json() | {"schedule": "a try"}
        for each in told["periods"]:
            each["file"] = each["charge"] = None
        said.append(json.dumps(told))
    assert len(set(said)) == 1


def test_empty_periods_stop_after_their_look_and_the_exit_code_says_so(order, book, tmp_path, looks, monkeypatch):
    """A month has people and the next has none: it pays a tenth, once. The noise is the same each time."""
    monkeypatch.setattr(Stream, "from_os", classmethod(lambda _cls: Stream.fixed(b"the luck of nights")))
    table = rows(2).append_column("weight", pa.array(np.ones(1_500)))
    pq.write_table(table, tmp_path / "visits.parquet")
    spec = order({"method": "auto", "cells": "quadtree"}, begins="2025-02-01")
    done = run_schedule(spec, ledger=book, now="2025-04-01")
    assert states(done) == ["released", "stopped"] and done.exit_code == 7
    assert [str(each.charge.price) for each in book.history()] == ["ε = 0.1", "ε = 0.9", "ε = 0.1"]
    assert str(done.left) == "ε = 98.9" and not (tmp_path / "maps" / "2025-03.parquet").exists()
    assert "nobody stands out" in json.dumps(done.to_json(), ensure_ascii=False)
    (tmp_path / "visits.parquet").unlink()
    for again in (
        run_schedule(spec, ledger=book, now="2025-04-01"),
        schedule_status(spec, ledger=book, now="2025-04-01"),
    ):
        assert states(again) == ["there", "stopped"] and again.exit_code == 7 and len(book.history()) == 3
    pq.write_table(table, tmp_path / "visits.parquet")
    recover(3, ledger=book, go_on=True, same_table=True)
    done = run_schedule(spec, ledger=book, now="2025-04-01")
    assert states(done) == ["there", "there"] and done.exit_code == 0 and str(done.left) == "ε = 98"
