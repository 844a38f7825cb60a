"""A client answers a stage once, and remembers what it answered before anybody hears it."""

import tracemalloc
import zlib
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.federated.protocols.secure_aggregation.people import Anything, FixedCoins, session

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.client import ClientState, SecureSumClient
from hazemap.federated.protocols.secure_aggregation.messages import Masked, Stage, Unmask
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode

ME = 1


@pytest.mark.parametrize("mode", Mode)
def test_the_state_with_the_reply_is_saved_before_the_reply_is_given(mode):
    here = session(5, mode)
    order: list[str] = []
    states: list[bytes] = []
    here.clients[ME] = here.client(ME, save=lambda state: (order.append("saved"), states.append(state)))
    while here.server.stage < Stage.OPENED:
        reply = here.clients[ME].receive(here.server.message_for(ME))
        order.append("given")
        assert ClientState.from_bytes(states[-1]).reply == reply == here.clients[ME].reply
        here.server.receive(ME, reply)
        here.stage(without=[ME])
    assert order == ["saved", "given"] * (6 if mode is Mode.MALICIOUS else 5)


@pytest.mark.parametrize("mode", Mode)
def test_a_client_that_cannot_save_gives_no_reply_and_may_be_asked_again(mode):
    here = session(5, mode)
    while here.server.stage < Stage.OPENED:
        client, message = here.clients[ME], here.server.message_for(ME)
        before, honest = client._memory, client._save

        def full(_state: bytes) -> None:
            raise OSError("no space left")

        client._save = full
        with pytest.raises(OSError, match="no space"):
            client.receive(message)
        assert client._memory is before
        client._save = honest
        here.stage()
    assert here.server.result.people == 5


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("killed", [Stage.KEYS, Stage.PICKS, Stage.SHARES, Stage.MASKED, Stage.ASSENT, Stage.UNMASK])
@pytest.mark.parametrize("sent", [False, True], ids=["before it was sent", "after it was sent"])
def test_a_client_killed_after_any_answer_goes_on_and_repeats_it(mode, killed, sent):
    here = session(5, mode)
    calls: Counter[int] = Counter()

    def contribution(position: int):
        def contribute(_terms):
            calls[position] += 1
            return here.vectors[position]

        return contribute

    here.clients = [here.client(p, contribution=contribution(p)) for p in range(5)]
    here.until(killed)
    stage = here.server.stage
    message = here.server.message_for(ME)
    reply = here.clients[ME].receive(message)
    if sent:
        here.server.receive(ME, reply)
    identity = here.identities[ME]
    again = SecureSumClient.resume(
        here.saved[ME],
        identity,
        Anything(),
        contribution(ME),
        lambda s: here.saved.__setitem__(ME, s),
        here.clients[ME]._coins,
    )
    assert again.stage is stage and again.session == here.terms.session and again.terms == here.terms
    assert again.reply == reply == again.receive(message)
    here.server.receive(ME, again.reply)
    here.clients[ME] = again
    here.play()
    assert calls[ME] == 1
    assert here.server.culprits == {} and here.server.result.people == 5
    assert here.server.result.sums.tolist() == here.exact(range(5)).tolist()


def test_a_state_is_for_its_own_identity_and_version():
    here = session(5)
    here.stage()
    state = here.saved[ME]
    with pytest.raises(InputError, match="another identity"):
        SecureSumClient.resume(state, here.identities[0], Anything(), None)
    with pytest.raises(CodecError):
        SecureSumClient.resume(b"\x01" + state[1:], here.identities[ME], Anything(), None)


@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from([Stage.SHARES, Stage.ASSENT, Stage.OPENED]))
def test_a_damaged_state_is_refused_or_read_but_never_crashes(place, value, stage):
    state = STATES[stage]
    place %= len(state)
    changed = bytes(b ^ value if i == place else b for i, b in enumerate(state))
    for bad in (state[:place], state + b"\0", changed):
        try:
            memory = ClientState.from_bytes(bad)
        except CodecError:
            continue
        assert memory.to_bytes() == bad
        memory.known(), memory.dealt() if memory.shares else None


def _states() -> dict[Stage, bytes]:
    here, states = session(4, Mode.MALICIOUS), {}
    while here.server.stage < Stage.OPENED:
        here.stage()
        states[here.server.stage] = here.saved[ME]
    return states


STATES = _states()


@pytest.mark.parametrize("damage", ["junk", "cut", "another", "a bomb", "none"])
def test_a_contribution_that_is_not_the_one_committed_to_is_refused_and_no_more_of_it_is_unpacked(damage):
    here = session(5)
    here.until(Stage.MASKED)
    state, message = ClientState.from_bytes(here.saved[ME]), here.server.message_for(ME)
    packed = zlib.decompress(state.contribution)
    spoilt = {
        "junk": b"junk",
        "cut": state.contribution[:4],
        "another": zlib.compress(bytes(len(packed))),
        "a bomb": zlib.compress(packed + bytes(1 << 26)),
        "none": b"",
    }
    coins = FixedCoins(f"client {ME}", b"noise %d" % ME)
    bad = replace(state, contribution=spoilt[damage]).to_bytes()
    client = SecureSumClient.resume(bad, here.identities[ME], Anything(), lambda _: here.vectors[ME], None, coins)
    tracemalloc.start()
    try:
        with pytest.raises(CodecError, match="the contribution in this memory is damaged"):
            client.receive(message)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()
    assert client.stage is Stage.SHARES


@pytest.mark.parametrize("mode", Mode)
def test_keys_are_forgotten_when_they_are_used(mode):
    """What a phone that is lost later still knows: after MASKED no secret of its own, after UNMASK none of others."""
    here = session(5, mode)
    here.until(Stage.SHARES)
    secrets = [getattr(here.clients[ME]._memory, name) for name in ("sealing", "masking", "seed")]
    assert all(len(secret) == 32 for secret in secrets)
    here.stage()
    letters = [peer.letter for peer in here.clients[ME]._memory.known()]
    assert secrets[0] not in here.saved[ME] and secrets[1] in here.saved[ME]
    here.stage()
    assert not any(secret in here.saved[ME] for secret in secrets + letters)
    shares = list(here.clients[ME]._memory.dealt().values())
    assert len(shares) == 4 and all(seed in here.saved[ME] for _, seed in shares)
    here.stage()
    here.stage()
    told = Unmask.decode(here.clients[ME].reply)
    assert not told.keys
    assert not any(key in here.saved[ME] for key, _ in shares)


def test_a_contribution_that_does_not_fit_is_the_devices_fault_and_is_not_sent():
    here = session(5, bits=8)
    for vector in (
        np.zeros(4, dtype=np.int64),
        np.zeros(5, dtype=np.int32),
        np.zeros(5),
        [0] * 5,
        np.array([0, 0, 0, 0, 128]),
        np.array([0, 0, 0, 0, -129]),
    ):
        here = session(5, bits=8)
        here.clients[ME] = here.client(ME, contribution=lambda _terms, vector=vector: vector)
        before = here.clients[ME].stage
        with pytest.raises(InputError, match="a contribution to this session"):
            here.clients[ME].receive(here.server.message_for(ME))
        assert here.clients[ME].stage is before


def test_who_stays_out_at_the_last_moment_counts_as_dropped_and_the_reason_is_logged(caplog):
    def declines(_terms, _exact):
        raise Refused("the budget of this month is spent")

    here = session(6)
    here.clients[ME] = here.client(ME, pay=declines)
    here.play()
    assert here.server.result.people == 5 and here.server.dropped == {ME: Stage.MASKED}
    assert "the budget of this month is spent" in caplog.text


def test_everybodys_masks_are_different_in_every_session_and_for_everybody():
    """The same people, vectors and noise, in two sessions and in two places: nothing that is sent repeats."""
    seen = set()
    for name in ("one", "two"):
        here = session(4, size=64, name=name, bits=32)
        here.vectors[:] = 0
        here.until(Stage.ASSENT)
        for client in here.clients:
            seen.add(Masked.decode(client.reply).vector)
    assert len(seen) == 8


def test_a_masked_vector_looks_uniform():
    """Chi-square over the 256 values of a byte: 40,000 bytes of one client whose vector is constant.

    A uniform sequence fails with probability below 1e-6; the unmasked vector of this client fails surely.
    """
    here = session(4, size=10_000, bits=32)
    here.until(Stage.ASSENT)
    vector = Masked.decode(here.clients[ME].reply).vector

    def statistic(data: bytes) -> float:
        counts = np.bincount(np.frombuffer(data, dtype=np.uint8), minlength=256)
        expected = len(data) / 256
        return float(((counts - expected) ** 2 / expected).sum())

    limit = 377.1  # P(χ² with 255 degrees of freedom > 377.1) < 1e-6
    assert statistic(vector) < limit
    assert statistic(here.vectors[ME].astype("<u4").tobytes()) > limit


def test_noise_is_in_every_vector():
    """Two clients with the same masks and vectors, but other noise, differ by their noise and nothing else."""
    one, two = session(4, bits=16), session(4, bits=16)
    from hazemap.privacy.random_stream import Stream

    two.clients[ME] = two.client(ME, coins=FixedCoins("client 1", b"other"))
    for here in (one, two):
        here.play()
    noise = one.terms.noise
    first, other = (noise.share(Stream.fixed(seed), 5) for seed in (b"noise 1", b"other"))
    assert ((one.server.result.sums - two.server.result.sums) == first - other).all()
    assert first.tolist() != other.tolist()
