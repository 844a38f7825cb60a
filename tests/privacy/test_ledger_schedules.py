"""Schedules in the ledger: a period is paid for once, and a year costs no more than its allowance."""

import multiprocessing
import sqlite3
from fractions import Fraction
from itertools import count
from pathlib import Path
from threading import BrokenBarrierError

import pytest

from hazemap.errors import CapExceeded, InputError, LedgerError, PeriodPaid
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import Occasion
from hazemap.privacy.ledger_units import left_in, spent_in
from hazemap.privacy.privacy_unit import FULL, Unit

PEOPLE = Unit.person("user", "text")
PRICE, YEAR = PureDP("0.3"), PureDP(1)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def pay(ledger, period, price=PRICE, allowance=YEAR, dataset="city", run=None, schedule="nightly"):
    return ledger.charge(dataset, price, "a map", PEOPLE, run, Occasion(schedule, period, allowance))


def test_a_period_is_paid_for_once_and_another_schedule_has_periods_of_its_own(ledger):
    pay(ledger, "2026-01-01")
    with pytest.raises(PeriodPaid, match="2026-01-01 of the schedule 'nightly' is paid for already"):
        pay(ledger, "2026-01-01")
    with pytest.raises(PeriodPaid):
        ledger.check("city", PRICE, FULL, Occasion("nightly", "2026-01-01", PureDP(1)))
    pay(ledger, "2026-01-01", schedule="weekly")
    assert len(ledger.history()) == 2
    assert ledger.history()[0].occasion == Occasion("nightly", "2026-01-01", PureDP(1))


def test_a_year_costs_its_allowance_exactly_and_no_more_and_the_next_year_has_its_own(ledger):
    tenth = PureDP(Fraction(1, 10))
    for day in range(10):
        pay(ledger, f"2026-01-{day + 1:02}", tenth)
    with pytest.raises(CapExceeded, match="2026 of the schedule 'nightly' has ε = 0 left"):
        pay(ledger, "2026-01-11", tenth)
    with pytest.raises(CapExceeded):
        ledger.check("city", PureDP("1e-9"), FULL, Occasion("nightly", "2026-01-11", PureDP(1)))
    pay(ledger, "2027-01-01", tenth)
    paid = ledger.periods("nightly")
    assert str(spent_in("2026", paid, PureDP(1))) == "ε = 1" and str(left_in("2027", paid, PureDP(1))) == "ε = 0.9"


def test_an_allowance_in_rho_takes_pure_prices_and_one_in_pure_epsilon_no_rho(ledger):
    pay(ledger, "2026-01-01", PureDP(1), ZCDP(1))
    pay(ledger, "2026-01-02", ZCDP("0.5"), ZCDP(1))
    with pytest.raises(CapExceeded):
        pay(ledger, "2026-01-03", ZCDP("0.001"), ZCDP(1))
    pay(ledger, "2026-01-03", ZCDP("0.001"), ApproxDP(9, "1e-6"))
    for price in (PureDP("0.1"), ZCDP("0.001")):
        with pytest.raises(CapExceeded):
            pay(ledger, "2026-01-04", price, PureDP(100))
    with pytest.raises(CapExceeded, match="implies no finite pure"):
        pay(ledger, "2027-01-04", ZCDP("0.001"), PureDP(100))


def test_a_cap_of_the_data_set_refuses_too_and_what_is_refused_leaves_nothing(ledger):
    ledger.cap("city", PureDP("0.5"))
    pay(ledger, "2026-01-01")
    with pytest.raises(CapExceeded, match="the data set 'city'"):
        pay(ledger, "2026-01-02", allowance=PureDP(100))
    assert [each.occasion.period for each in ledger.periods("nightly")] == ["2026-01-01"]


def test_a_schedule_has_one_data_set(ledger):
    pay(ledger, "2026-01-01")
    with pytest.raises(InputError, match="a schedule has one data set"):
        pay(ledger, "2026-01-02", dataset="town")


def test_a_question_asked_again_counts_in_the_year_and_does_not_pay_for_a_period(ledger):
    pay(ledger, "2026-01-01", run="a")
    pay(ledger, "2026-01-01", run="a:1")
    with pytest.raises(PeriodPaid):
        pay(ledger, "2026-01-01", run="b")
    assert [each.again for each in ledger.periods("nightly")] == [False, True]
    pay(ledger, "2026-01-02")
    with pytest.raises(CapExceeded):
        pay(ledger, "2026-01-01", run="a:2")


def test_a_ledger_of_the_version_before_keeps_its_charges_and_takes_schedules(ledger):
    ledger.charge("city", PRICE, "by hand", PEOPLE)
    with sqlite3.connect(ledger.path) as db:
        for column in ("schedule", "period", "allowance"):
            db.execute(f"ALTER TABLE charges DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 2")
    before = ledger.path.read_bytes()
    assert [record.charge.what for record in ledger.history()] == ["by hand"] and ledger.periods("nightly") == []
    assert ledger.path.read_bytes() == before
    pay(ledger, "2026-01-01")
    assert [(record.charge.what, record.occasion is None) for record in ledger.history()] == [
        ("by hand", True),
        ("a map", False),
    ]


FORK = multiprocessing.get_context("fork")
RACES = 250


def _race(path: Path) -> list[list[int]]:
    start, results = FORK.Barrier(4), FORK.Queue()
    racers = [FORK.Process(target=_racer, args=(path, start, results)) for _ in range(4)]
    for racer in racers:
        racer.start()
    found = [results.get(timeout=600) for _ in racers]
    for racer in racers:
        racer.join()
    return found


def _racer(path: Path, start, results) -> None:
    won: list[int] = []
    ledger = Ledger(path)
    for race in range(RACES):
        try:
            start.wait(300)
            while True:
                try:
                    pay(ledger, f"2026, {race}", PureDP("0.01"))
                    break
                except LedgerError:  # in use by others for a minute: nothing was written
                    continue
        except PeriodPaid:
            continue
        except (CapExceeded, BrokenBarrierError):
            start.abort()
            break
        won.append(race)
    results.put(won)


@pytest.mark.slow
def test_of_four_processes_that_come_to_one_period_one_pays_and_the_year_ends_at_its_allowance(ledger):
    found = _race(ledger.path)
    won = [race for each in found for race in each]
    assert sorted(won) == list(range(100))  # 1 / 0.01: no period twice, and none beyond the allowance
    assert sum(bool(each) for each in found) > 1  # more than one process won some
    assert sum(each.price.epsilon for each in ledger.periods("nightly")) == 1


@pytest.mark.slow
def test_a_ledger_that_looks_before_it_writes_pays_twice_and_is_found_out(tmp_path, monkeypatch):
    """A twin: the check is made before the transaction, so two processes find a period unpaid, sooner or later."""
    from hazemap.privacy import ledger as module

    real = module.check_occasion
    charge = Ledger.charge

    def looks_first(self, dataset, price, what, unit, run=None, occasion=None):
        with self.store.reading() as db:
            real(db, dataset, price, price.rho, occasion, again=False)
        return charge(self, dataset, price, what, unit, run, occasion)

    monkeypatch.setattr(module, "check_occasion", lambda *_, **__: None)
    monkeypatch.setattr(Ledger, "charge", looks_first)
    for number in count():
        won = [race for each in _race(tmp_path / f"{number}.sqlite") for race in each]
        if sorted(won) != list(range(100)):
            return
