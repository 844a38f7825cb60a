"""Must show: fifteen hostile devices of 150 change nothing but their own votes, whatever they do."""

import os
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.server.fleet import FakeDevice, crowd
from tests.federated.server.test_campaign_spec import campaign, counts, played, truth

from hazemap.federated.protocols.secure_aggregation.messages import Sealed, Unmask
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.privacy.budget import PureDP

LETTERS = 3
"""The stage at which shares are dealt."""


def deals_letters_that_cannot_be_read(device: FakeDevice) -> None:
    """Its holders have no share of it, so its mask cannot be taken off."""

    def broken(stage: int, reply: bytes) -> bytes:
        if stage != LETTERS:
            return reply
        sealed = Sealed.decode(reply)
        return replace(sealed, letters={who: os.urandom(len(each)) for who, each in sealed.letters.items()}).encode()

    device.broken = broken


def deals_shares_of_another_secret(device: FakeDevice) -> None:
    """Its letters are in order, and its shares fit no commitment."""

    def broken(stage: int, reply: bytes) -> bytes:
        if stage == 1:
            for client in device.clients.values():
                if client._memory.stage == 1:
                    found = client._memory = replace(client._memory, seed=os.urandom(32))
                    client._secrets = lambda *_, found=found: (found.sealing, found.masking, found.seed)
        return reply

    device.broken = broken


def tells_wrong_shares(device: FakeDevice) -> None:
    """It spoils what others dealt to it."""

    def broken(stage: int, reply: bytes) -> bytes:
        if stage != 6:
            return reply
        told = Unmask.decode(reply)
        wrong = {who: each[:-1] + bytes([each[-1] ^ 1]) for who, each in told.seeds.items()}
        return replace(told, seeds=wrong).encode()

    device.broken = broken


def cuts(stage: int):
    """A masked vector, or any answer, that is none."""

    def hostile(device: FakeDevice) -> None:
        device.broken = lambda at, reply: reply[:-1] if at == stage else reply

    return hostile


def signs_wrongly(stage: int):
    def hostile(device: FakeDevice) -> None:
        device.broken = lambda at, reply: reply[:-1] + bytes([reply[-1] ^ 1]) if at == stage else reply

    return hostile


def is_silent_from(stage: int):
    def hostile(device: FakeDevice) -> None:
        device.silent = stage

    return hostile


HOSTILE = [
    deals_letters_that_cannot_be_read,
    deals_letters_that_cannot_be_read,
    deals_shares_of_another_secret,
    tells_wrong_shares,
    tells_wrong_shares,
    cuts(4),
    cuts(2),
    signs_wrongly(1),
    signs_wrongly(4),
    signs_wrongly(5),
    *(is_silent_from(stage) for stage in (1, 3, 4, 5, 6)),
]


async def nothing(_http) -> bool:
    return False


def within_their_own_votes(release, honest: list[FakeDevice], hostile: list[FakeDevice]) -> None:
    """Everybody honest is counted once, and of the hostile each once at most."""
    found, least, most = Counter(counts(release)), truth(honest), truth([*honest, *hostile])
    assert all(least[cell] <= found[cell] <= most[cell] for cell in {*found, *most}), (found, least, most)


def test_a_dealer_of_bad_shares_is_named_and_the_round_goes_on_without_it(tmp_path):
    """One of twelve made a campaign fail that was paid."""
    devices = crowd(12)
    deals_shares_of_another_secret(devices[0])
    town, status, release = played(tmp_path, devices, campaign())
    assert status["state"] == "done", status["reason"]
    [each] = status["rounds"]
    assert list(each["culprits"]) == [devices[0].name]
    assert each["attempts"] == 2
    assert counts(release) == truth(devices[1:])
    [record] = town.ledger.history("town")
    assert record.charge.price == PureDP(1_000)


def test_others_are_asked_before_those_who_have_paid(tmp_path):
    """24 are enrolled and 12 are asked; when vectors were sent in vain, the other twelve take their places."""
    devices, dealers = crowd(24), []

    def broken(stage: int, reply: bytes) -> bytes:
        if stage != LETTERS or dealers:
            return reply
        dealers.append(stage)
        sealed = Sealed.decode(reply)
        return replace(sealed, letters={who: os.urandom(len(each)) for who, each in sealed.letters.items()}).encode()

    for device in devices:
        device.broken = broken
    _, status, _ = played(tmp_path, devices, campaign())
    assert status["state"] == "done", status["reason"]
    [each] = status["rounds"]
    assert (each["attempts"], each["people"], len(each["culprits"])) == (2, 12, 1)
    assert [device.contributed for device in devices] == [[("berlin", 1)]] * 24, "nobody pays twice"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifteen_hostile_devices_of_a_hundred_and_fifty_change_nothing_but_their_own_votes(tmp_path):
    devices = crowd(150)
    hostile, honest = devices[:15], devices[15:]
    for device, make in zip(hostile, HOSTILE, strict=True):
        make(device)
    # the last one enrols the identity of another once more, and has its seat: the old ticket is no good
    hostile[-1].identity, hostile[-1].silent = hostile[-2].identity, 99
    hostile[-2].step = nothing
    cohort = Cohort(149, 149, dropout=Fraction(1, 5), corrupt=Fraction(1, 10))
    ordered = campaign(cohort=cohort, deadlines=Deadlines.all(600, quiet=300))
    town, status, release = played(tmp_path, devices, ordered, hasty=True)
    assert status["state"] == "done", status["reason"]
    within_their_own_votes(release, honest, hostile)
    [each] = status["rounds"]
    assert {device.name for device in hostile[:3]} <= set(each["culprits"]) <= {device.name for device in hostile}
    [record] = town.ledger.history("town")
    assert (record.released, record.charge.price) == (True, PureDP(1_000))
