"""The time by which budgets come back: never faster than time itself, whatever a clock says, nor later than needed."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.federated.device.recipe_room import OPEN, POLICY, recipe, recipe_task, typing
from tests.federated.device.reporting import request
from tests.federated.device.room import FEW, NOW, Room, settle, task

from hazemap.errors import InputError, Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account import account_clock
from hazemap.federated.device.account.account_clock import AccountClock, Uptime, system_uptime
from hazemap.federated.device.account.device_account import DeviceAccount, RecipeReport
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.task_handler import TaskHandler
from hazemap.federated.recipes.policy_document import example
from hazemap.federated.study.population_study import PRIVATE, StoredDevices
from hazemap.privacy.budget import PureDP

DAYS = 30
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


class Machine:
    """A machine with a clock that anybody may set, and true time, which nobody on it sees."""

    def __init__(self):
        self.time, self.clock, self.boot, self.up, self.off = NOW, NOW, 0, timedelta(hours=5), timedelta(0)

    def uptime(self):
        return Uptime(f"boot {self.boot}", self.up // timedelta(microseconds=1) * 1_000)

    def waits(self, passed):
        self.time, self.clock, self.up = self.time + passed, self.clock + passed, self.up + passed

    def starts_again(self, off, up=timedelta(0)):
        self.time, self.clock = self.time + off, self.clock + off
        self.boot, self.up = self.boot + 1, up


class SteppedBack(Machine):
    """One that loses its uptime within a boot, as after a snapshot: it must not gain by it."""

    def starts_again(self, off, up=timedelta(0)):
        self.time, self.clock, self.up = self.time + off, self.clock + off, up


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as opened:
        enrolment.add(opened)
        yield opened


def pays(store, machine, at):
    """One round of ε = 0.1 if the account lets it be paid at its time."""
    account, asked = PrivacyAccount(store, 1), task(share=Fraction(1, 10), budget=PureDP(1))
    asked = replace(asked, campaign=f"{machine.time}")
    if account.refusal(asked, RULES, at.now) is None:
        assert store.commit([[account.charge(asked, bytes(32), at.now), *at.writes]]) == [None]
        return True
    return False


RULES = replace(FEW, campaign=Fraction(10), period=Fraction(3, 10), days=DAYS)
MOVES = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 40 * 24)),
    st.tuples(st.just("set"), st.integers(-50_000, 50_000)),
    st.tuples(st.just("off"), st.integers(0, 40 * 24)),
    st.tuples(st.just("keep"), st.just(0)),
    st.tuples(st.just("pay"), st.just(0)),
    st.tuples(st.just("pay"), st.just(0)),
)


def most_in_a_period(store, moves, clock_of, kind=Machine):
    """The largest number of rounds that were paid in any true period, after what somebody did to a machine."""
    machine, paid = kind(), []
    for move, hours in moves:
        if move == "wait":
            machine.waits(hours * HOUR)
        elif move == "set":
            machine.clock = min(max(NOW + hours * HOUR, datetime(1971, 1, 1, tzinfo=UTC)), NOW + 50_000 * HOUR)
        elif move == "off":
            machine.starts_again(hours * HOUR)
        elif move == "keep":
            AccountClock(store, machine.uptime).keep(machine.clock)
        elif pays(store, machine, clock_of(store, machine)):
            paid.append(machine.time)
    return max((sum(each - DAYS * DAY < other <= each for other in paid) for each in paid), default=0)


def by_account(store, machine):
    return AccountClock(store, machine.uptime).reading(machine.clock)


def by_clock(store, machine):
    """The twin: as it was when the device's clock decided."""
    return by_account(store, machine)._replace(now=machine.clock)


FORWARD = [*[("pay", 0)] * 3, ("set", DAYS * 24), *[("pay", 0)] * 3]


@pytest.fixture(scope="module")
def used_again(tmp_path_factory):
    """A store that need not outlive a crash."""
    with EncryptedStore.opened(tmp_path_factory.mktemp("clock") / "devices.sqlite", create=True) as opened:
        opened.read("PRAGMA synchronous = OFF")
        enrolment.add(opened)
        yield opened


@pytest.mark.parametrize("kind", [Machine, SteppedBack])
@settings(max_examples=50, deadline=None, derandomize=True)
@given(moves=st.lists(MOVES, max_size=25))
def test_in_no_true_period_more_is_paid_than_the_cap_whatever_the_clock_says(used_again, kind, moves):
    with used_again.writing() as database:
        database.execute("DELETE FROM charges")
        database.execute("DELETE FROM about WHERE name = 'clock'")
    assert most_in_a_period(used_again, [*FORWARD, *moves], by_account, kind) <= 3


def test_the_twin_that_goes_by_the_clock_pays_twice(store):
    assert most_in_a_period(store, FORWARD, by_clock) == 6


def test_budgets_come_back_after_exactly_a_period_where_a_machine_runs_or_sleeps(store):
    machine = Machine()
    while pays(store, machine, by_account(store, machine)):
        pass
    machine.waits(DAYS * DAY - timedelta(microseconds=1))
    machine.clock = NOW - 999 * DAY
    assert not pays(store, machine, by_account(store, machine))
    machine.waits(timedelta(microseconds=1))
    assert pays(store, machine, by_account(store, machine))


def test_a_machine_that_was_off_goes_on_from_what_was_noted_until_somebody_confirms_the_date(store):
    machine = Machine()
    assert pays(store, machine, by_account(store, machine))
    machine.waits(DAY)
    AccountClock(store, machine.uptime).keep(machine.clock)
    machine.waits(HOUR)  # lost: nobody has noted it
    machine.starts_again(40 * DAY, up=9 * HOUR)
    assert by_account(store, machine).now == NOW + DAY
    AccountClock(store, machine.uptime).keep(machine.clock)
    machine.waits(2 * HOUR)
    assert by_account(store, machine).now == NOW + DAY + 2 * HOUR
    machine.clock += 500 * DAY
    with pytest.raises(InputError, match="put it right first"):
        AccountClock(store, machine.uptime).confirmed(machine.clock, machine.time.date())
    machine.clock = machine.time
    for days in (-2, 2):
        with pytest.raises(InputError, match="put it right first"):
            AccountClock(store, machine.uptime).confirmed(machine.clock, machine.time.date() + days * DAY)
    AccountClock(store, machine.uptime).confirmed(machine.clock, machine.time.date() + DAY)  # another time zone
    assert by_account(store, machine).now == machine.time
    machine.clock -= 300 * DAY
    AccountClock(store, machine.uptime).confirmed(machine.clock, machine.clock.date())
    assert by_account(store, machine).now == machine.time, "never back"


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a"), ("", "0")])
def test_a_machine_of_another_boot_stands_still_whatever_the_names_of_its_boots(store, first, second):
    def clock(boot, hours):
        return AccountClock(store, lambda: Uptime(boot, hours * 3_600 * 10**9))

    clock(first, 1).keep(NOW)
    assert clock(first, 3).reading(NOW) == (NOW + 2 * HOUR, ())
    found = clock(second, 50).reading(NOW + 400 * DAY)
    assert found.now == NOW and len(found.writes) == 1, "and the first charge of a boot brings its line"
    clock(second, 50).keep(NOW)
    assert clock(second, 51).reading(NOW) == (NOW + HOUR, ())


def test_a_store_of_before_goes_on_from_its_last_charge(store):
    assert store.commit([[RecipeAccount(store, 1).charge(request("0.1"), NOW)]]) == [None]
    machine = Machine()
    machine.clock = NOW + 400 * DAY
    assert by_account(store, machine).now == NOW
    AccountClock(store, machine.uptime).keep(machine.clock)
    machine.waits(HOUR)
    assert by_account(store, machine).now == NOW + HOUR


def test_whoever_charges_by_a_line_that_another_process_has_replaced_is_kept_out(store):
    machine, other = Machine(), Machine()
    assert pays(store, machine, by_account(store, machine))
    other.boot = 7
    stale = by_account(store, other)
    machine.waits(DAY)
    AccountClock(store, machine.uptime).keep(machine.clock)
    asked, account = task(campaign="x"), PrivacyAccount(store, 1)
    [failed] = store.commit([[account.charge(asked, bytes(32), stale.now), *stale.writes]])
    assert failed is not None and len(account.charges()) == 1


def test_a_time_beyond_all_calendars_stands_still(store):
    machine = Machine()
    machine.clock = datetime(9999, 12, 31, 23, tzinfo=UTC)
    AccountClock(store, machine.uptime).keep(machine.clock)
    machine.up += DAY
    assert by_account(store, machine).now == datetime.max.replace(tzinfo=UTC)


def test_a_line_that_was_changed_is_refused_and_nothing_is_freed(store):
    machine = Machine()
    AccountClock(store, machine.uptime).keep(machine.clock)
    with store.writing() as database:
        database.execute("UPDATE about SET value = zeroblob(80) WHERE name = 'clock'")
    with pytest.raises(Exception, match="damaged"):
        by_account(store, machine)


def test_the_machine_s_own_uptime_goes_on_and_names_its_boot():
    first, second = system_uptime(), system_uptime()
    assert first.boot == second.boot and first.nanoseconds <= second.nanoseconds


@pytest.mark.parametrize("text", [None, " \n"])
def test_a_machine_that_does_not_name_its_boots_has_one_for_each_process(tmp_path, monkeypatch, text):
    nowhere = tmp_path / "boot_id"
    if text is not None:
        nowhere.write_text(text)
    monkeypatch.setattr(account_clock, "_BOOT", nowhere)
    account_clock._boot.cache_clear()
    try:
        first, second = system_uptime(), system_uptime()
        assert first.boot == second.boot and len(first.boot) == 36
    finally:
        account_clock._boot.cache_clear()


# Every way in which a device pays.


class Frozen:
    """An uptime that stands still, whatever a test says the time is."""

    def __call__(self):
        return Uptime("one", 0)


def test_answers_to_maps_are_paid_by_the_account_s_time(store):
    devices = settle(store, 12)
    rules, clock = replace(FEW, period=Fraction(1, 10), days=DAYS), AccountClock(store, Frozen())
    one, two = (Room(store, task(12, campaign=name), devices, policy=rules, nonce=name.encode() * 32) for name in "ab")
    assert _until_paid(one, devices[0], clock, NOW) is None
    assert clock.reading(NOW).writes == (), "the first line of a boot is on the disk with the charge"
    assert "nothing left" in _until_paid(two, devices[0], clock, NOW + 400 * DAY)


def test_answers_to_recipes_are_paid_by_the_account_s_time(store):
    tight = replace(POLICY, analyses=(replace(POLICY.analyses[0], epsilon=Fraction(4)),))
    devices, clock = typing(store, [["so"]] * 20, policy=tight), AccountClock(store, Frozen())
    one, two = (Room(store, recipe_task(number=at), devices, policy=OPEN, nonce=bytes([at] * 32)) for at in (1, 2))
    assert _until_paid(one, devices[0], clock, NOW) is None
    assert clock.reading(NOW).writes == ()
    assert "nothing left" in _until_paid(two, devices[0], clock, NOW + DAYS * DAY)
    assert [each.time for each in RecipeAccount(store, devices[0]).charges()] == [NOW]


def test_every_report_is_paid_by_the_account_s_time(store):
    own = DeviceAccount(store, 1, enrolment.read(store, 1), OPEN)

    def paid(name, now):
        done = own.paid(RecipeReport(request("0.4", audience=name * 32), example()), now, bytes)
        assert store.commit([done.writes]) == [None]

    paid(b"1", NOW)
    assert AccountClock(store).reading(NOW).writes == ()
    with pytest.raises(Refused, match="the analysis next_word may be told of by 1 reports"):
        paid(b"2", NOW + 400 * DAY)


def test_stored_devices_that_answer_a_study_pay_by_the_account_s_time(store, monkeypatch):
    tight = replace(POLICY, analyses=(replace(POLICY.analyses[0], epsilon=Fraction(4)),))
    typing(store, [["so"]] * 3, policy=tight)
    answering = StoredDevices(store, OPEN)
    asked = recipe(minimum_cohort=18)
    assert len(answering.recipe_bins(asked)) == 4 and AccountClock(store).reading(NOW).writes == ()

    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return super().now(tz) + 400 * DAY

    monkeypatch.setattr("hazemap.federated.study.population_study.datetime", Later)
    assert len(answering.recipe_bins(asked)) == 0 and list(answering.refusals) == [PRIVATE]


def _until_paid(room, device, clock, now):
    """One device as far as its masked vector; the others answer by the room's own clock."""
    position = room.devices.index(device)
    while room.server.stage < 5:
        for other in range(len(room.devices)):
            if other != position:
                room.turn(other)
        if (work := room.work(position)) is not None:
            known = enrolment.read(room.store, device)
            account = DeviceAccount(room.store, device, known, room.policy, room.public_log, clock)
            own = TaskHandler(account)
            step = own.answer(replace(work, until=now.timestamp() + 60), now)
            assert room.store.commit([step.writes]) == [None]
            if step.refusal:
                return step.refusal
            room.server.receive(position, step.reply)
        room.server.advance()
    return None


def test_whoever_charges_a_device_has_asked_this_clock():
    charging = re.compile(r"(account|campaigns|recipes)(\([^)]*\))?\.charge\(", re.I)
    package = Path(account_clock.__file__).parents[2]
    files = [path for folder in ("device", "study") for path in (package / folder).rglob("*.py")]
    found = {path.name: "paid_at" in path.read_text() for path in files if charging.search(path.read_text())}
    assert found == {"device_account.py": True}, "one place charges, by the account's time"
