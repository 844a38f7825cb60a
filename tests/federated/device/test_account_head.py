"""What a server keeps of a device's account: nobody else reads it, and it tells a store that was put back."""

import json
import random
from datetime import timedelta
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.federated.device.hostile_bytes import VECTORS
from tests.federated.device.reporting import NOW, request
from tests.federated.device.room import FEW, task
from tests.federated.device.test_device_account import POLICY

from hazemap.errors import Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.account_clock import AccountClock, Uptime
from hazemap.federated.device.account.account_head import HEAD, HeadSeal
from hazemap.federated.device.account.charges import EVERY, ChargeSums
from hazemap.federated.device.account.device_account import NOTHING_LEFT, DeviceAccount, MapRound, RecipeReport
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount, budget_lines
from hazemap.federated.device.server_task import ParsedTask
from hazemap.federated.device.store.encrypted_store import EncryptedStore

FILE = VECTORS / "device" / "heads.json"
SERVER = bytes(range(32))
NUMBERS = (0, 1, 255, 256, 2**53 - 1)


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        enrolment.add(store, 2)
        yield store


def account(store, device=1, server=SERVER, days=0):
    """The account as its process sees it after so many days."""
    known = enrolment.read(store, device).enrolled("https://maps.example", "", "d", "t", server.hex())
    clock = AccountClock(store, lambda: Uptime("a boot", days * 86_400 * 10**9))
    return DeviceAccount(store, device, known, FEW, clock=clock)


def pay(own, campaign="homes", asked=None):
    paid = own.paid(asked or MapRound(task(campaign=campaign), bytes(32)), NOW, lambda: None)
    assert own.store.commit([paid.writes]) == [None]


def tables(store):
    """What a copy of the file holds, but for what nothing here changes."""
    return {name: store.read(f"SELECT * FROM {name}") for name in ("charges", "log", "sums", "about")}


def put_back(store, copy):
    with store.writing() as database:
        for name, rows in copy.items():
            database.execute(f"DELETE FROM {name}")
            for row in rows:
                database.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)


def vectors():
    cases = []
    for at, number in enumerate(NUMBERS):
        key, server = (random.Random(f"{what} {at}").randbytes(32) for what in ("key", "server"))
        head = HeadSeal(key, server).sealed(number)
        cases.append({"key": key.hex(), "server": server.hex(), "number": str(number), "head": head.hex()})
    return cases


def test_heads_are_those_of_the_vectors():
    assert json.loads(FILE.read_text())["heads"] == vectors()


@given(st.binary(max_size=HEAD + 1), st.integers(0, 8 * HEAD - 1), st.integers(0, 2**64 - 1))
def test_nobody_makes_a_head_or_a_larger_one_of_another(made, bit, number):
    seal = HeadSeal(bytes(32), SERVER)
    head = seal.sealed(number)
    assert len(head) == HEAD and seal.opened(head) == number and seal.opened(made) is None
    changed = (int.from_bytes(head) ^ (1 << bit)).to_bytes(HEAD)
    assert seal.opened(changed) is None


def test_two_servers_have_nothing_in_common_and_no_device_opens_the_head_of_another():
    heads = {HeadSeal(bytes([key] * 32), bytes([server] * 32)).sealed(5) for key in range(4) for server in range(4)}
    assert len({head[:16] for head in heads}) == len({head[16:] for head in heads}) == 16
    for head in heads:
        opening = [HeadSeal(bytes([key] * 32), bytes([at] * 32)).opened(head) for key in range(4) for at in range(4)]
        assert sorted(map(str, opening)) == ["5", *["None"] * 15]


def test_a_device_notices_a_copy_by_its_own_head_alone(store):
    """Not by one of another device or server, an older one, its present one, junk, or none."""
    own, copy = account(store), tables(store)
    heads = [own.head()]
    for campaign in ("homes", "work"):
        pay(own, campaign)
        heads.append(own.head())
    assert len(set(heads)) == 3
    assert [own.put_back(head, NOW) for head in (*heads, b"", bytes(HEAD), b"x" * 99)] == [()] * 6
    for device, server in ((2, SERVER), (1, bytes(32))):
        other = account(store, device, server)
        assert [other.put_back(head, NOW) for head in heads] == [()] * 3
    put_back(store, copy)
    assert own.put_back(heads[0], NOW) == () and own.put_back(heads[2], NOW)
    assert DeviceAccount(store, 1, enrolment.read(store, 1), FEW).put_back(heads[2], NOW) == (), "no server"


def test_after_a_copy_the_period_is_spent_in_words_and_comes_back_when_it_has_passed(store):
    own, copy = account(store), tables(store)
    pay(own)
    pay(own, "work")
    head = own.head()
    put_back(store, copy)
    assert store.commit([own.put_back(head, NOW)]) == [None]
    assert own.head() == head and own.put_back(head, NOW) == ()
    [line] = own.log.lines()
    assert "charge 2, not 0" in line.question and "forgotten: 2;" in line.outcome
    assert own.log.entries() == [line] and str(line).count("\n") == 2
    asked, read = MapRound(task(), bytes(32)), lambda: ParsedTask(task())
    for anything in (asked, MapRound(task(campaign="new"), bytes(32), seen=True), RecipeReport(request(), POLICY)):
        with pytest.raises(Refused, match="put back from a copy") as refused:
            own.paid(anything, NOW, lambda: pytest.fail("something was made"))
        assert own.refused(bytes(32), refused.value, NOW, read).told == NOTHING_LEFT
    lines = list(budget_lines(store, 1, POLICY, NOW))
    assert lines and {each.left for each in lines} == {0}, "and so its person is shown"
    longest = max(POLICY.days, *(limit.days for limit in POLICY.limits))
    assert FEW.days < longest
    with pytest.raises(Refused, match="put back"):
        account(store, days=FEW.days - 1).check(asked, NOW)
    account(store, days=FEW.days).check(asked, NOW)
    with pytest.raises(Refused, match="put back"):
        account(store, days=longest - 1).check(RecipeReport(request(), POLICY), NOW)
    assert all(each.left for each in budget_lines(store, 1, POLICY, NOW + timedelta(days=longest)))
    account(store, days=longest).check(RecipeReport(request(), POLICY), NOW)
    pay(account(store, days=longest))
    assert len(PrivacyAccount(store, 1).charges()) == 1 and RecipeAccount(store, 1).charges() == []


def test_a_copy_is_remembered_after_the_charges_that_follow_are_summed(store):
    """As the sum of a day: the charge for what was forgotten stays in the period of its own time."""
    own, copy = account(store), tables(store)
    pay(own)
    head = own.head()
    put_back(store, copy)
    assert store.commit([own.put_back(head, NOW)]) == [None]
    later = account(store, days=FEW.days)
    with store.writing() as database:
        for number in range(2, EVERY + 2):
            cheap = task(campaign="work", share=Fraction(1, 1_000))
            database.execute(*PrivacyAccount(store, 1).charge(cheap, bytes(32), NOW + timedelta(days=FEW.days), number))
    assert store.commit([ChargeSums(store, 1).writes()]) == [None] and store.read("SELECT * FROM sums")
    later.check(MapRound(task(), bytes(32)), NOW)
    with pytest.raises(Refused, match="put back"):
        account(store, days=FEW.days - 1).check(MapRound(task(), bytes(32)), NOW)


OPS = ("pays", "pays, and the message is lost", "copies", "is put back", "asks")


@pytest.mark.parametrize("way", ["drawn", pytest.param("every", marks=pytest.mark.slow)])
def test_in_any_history_a_copy_is_noticed_where_its_server_knows_more_and_never_else(store, way):
    """Crashes and lost messages alone are never taken for a copy: the charge is on the disk before the message is sent.

    A crash before that is none of these, for it leaves no trace anywhere.
    """
    rng, own, empty, noticed = random.Random(1), account(store), tables(store), 0
    histories = (rng.choices(OPS, k=12) for _ in range(50)) if way == "drawn" else product(OPS, repeat=5)
    for history in histories:
        put_back(store, empty)
        copies, kept, known, backs = [empty], b"", 0, 0
        for op in history:
            last = store.next_number("charges", 1) - 1
            if op.startswith("pays"):
                assert store.commit([[PrivacyAccount(store, 1).charge(task(), bytes(32), NOW)]]) == [None]
                if op == "pays":
                    kept, known = own.head(), last + 1
            elif op == "copies":
                copies.append(tables(store))
            elif op == "is put back":
                put_back(store, rng.choice(copies))
                backs += 1
            else:
                writes = own.put_back(kept, NOW)
                assert bool(writes) == (known > last), history
                assert backs or not writes, history
                assert store.commit([writes]) == [None]
                noticed += bool(writes)
    assert noticed > 5


def test_numbers_go_on_from_the_charge_that_stands_for_what_was_forgotten(store):
    own, copy = account(store), tables(store)
    heads = []
    for number in range(3):
        pay(own, f"campaign {number}")
        heads.append(own.head())
    put_back(store, copy)
    assert store.commit([own.put_back(heads[-1], NOW)]) == [None]
    pay(account(store, days=FEW.days))
    numbers = [number for number, _ in store.records("charges", 1)]
    assert numbers == [3, 4]
    assert own.put_back(heads[-1], NOW + timedelta(days=1)) == () and own.head() not in heads


if __name__ == "__main__":
    lines = ",\n".join(f"  {json.dumps(each)}" for each in vectors())
    FILE.write_text(f'{{\n "heads": [\n{lines}\n ]\n}}\n', encoding="utf-8")
