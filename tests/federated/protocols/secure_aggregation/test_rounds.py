"""Must show: whoever drops out, whenever, the sum is exact or nothing is opened."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.federated.protocols.secure_aggregation.people import STAGES, Session, session

from hazemap.errors import NotOpened
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode


@st.composite
def plays(draw) -> tuple[Session, dict[int, Stage]]:
    """A session of any small shape, and when people stop answering."""
    clients = draw(st.integers(2, 8))
    mode = draw(st.sampled_from(Mode))
    degree = draw(st.integers(1, clients - 1))
    if mode is Mode.SEMI_HONEST and degree % 2 and degree != clients - 1:
        degree += 1
    threshold = draw(st.integers(1, degree))
    survivors = draw(st.integers(1, clients))
    bits = draw(st.sampled_from([6, 16, 17, 32]))
    drops = draw(st.dictionaries(st.integers(0, clients - 1), st.sampled_from(STAGES), max_size=clients))
    here = session(
        clients, mode, degree, threshold, survivors, size=3, bits=bits, name=f"play {draw(st.integers(0, 9))}"
    )
    return here, drops


def check(here: Session, drops: dict[int, Stage]) -> bool:
    """Plays a session to its end and compares with what its people know. Whether it was opened."""
    stayed = [p for p in range(here.terms.clients) if drops.get(p, Stage.OPENED) > Stage.MASKED]
    try:
        here.play(drops)
    except NotOpened:
        assert here.server.stage is Stage.FAILED and here.server.result is None
        assert here.server.waiting == 0 and here.server.message_for(0) is None
        still_masked(here)
        return False
    result = here.server.result
    survivors = np.flatnonzero(here.server._masked).tolist()
    assert result.people == len(survivors) >= here.terms.survivors
    assert set(survivors) <= set(stayed)
    assert result.sums.dtype == np.int64
    assert result.sums.tolist() == here.exact(survivors).tolist()
    assert here.server.culprits == {}
    return True


def still_masked(here: Session) -> None:
    """What a server is left with says nothing: it is not the sum, nor any part of it that its people know of."""
    server, terms = here.server, here.terms
    arrived = np.flatnonzero(server._masked).tolist()
    if terms.bits < 16 or not arrived:  # a few bits are like others by chance
        return
    half = 1 << (terms.bits - 1)
    held = (server._total.astype(np.int64) + half) % (1 << terms.bits) - half
    assert held.tolist() != here.exact(arrived).tolist()
    for position in arrived:
        assert held.tolist() != here.exact([position]).tolist()


@settings(max_examples=40)
@given(plays())
def test_the_sum_is_exact_or_nothing_is_opened(play):
    check(*play)


@pytest.mark.slow
@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(plays())
def test_the_sum_is_exact_or_nothing_is_opened_a_thousand_times(play):
    check(*play)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("stage", STAGES)
def test_somebody_may_drop_out_in_any_stage(mode, stage):
    here = session(7, mode, threshold=3, survivors=5)
    assert check(here, {2: stage, 4: stage})
    if mode is Mode.SEMI_HONEST and stage is Stage.PICKS:  # there is no such stage: they are gone in the next
        stage = Stage.SHARES
    assert here.server.dropped == {2: stage, 4: stage}
    assert here.server.result.people == (5 if stage <= Stage.MASKED else 7)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("stage", [Stage.KEYS, Stage.SHARES, Stage.MASKED])
def test_with_one_survivor_less_than_agreed_nothing_is_opened(mode, stage):
    survivors = 5
    just_enough = dict.fromkeys(range(2), stage)
    assert check(session(7, mode, threshold=3, survivors=survivors), just_enough)
    one_less = dict.fromkeys(range(3), stage)
    assert not check(session(7, mode, threshold=3, survivors=survivors), one_less)


@pytest.mark.parametrize("mode", Mode)
def test_exactly_t_holders_open_a_sum_and_t_minus_1_do_not(mode):
    """Of 7 clients all but t + 1 leave before the last stage: each of those has t holders, the others t + 1."""
    leave = dict.fromkeys(range(4, 7), Stage.UNMASK)
    assert check(session(7, mode, threshold=3, survivors=4), leave)
    leave = dict.fromkeys(range(3, 7), Stage.UNMASK)
    assert not check(session(7, mode, threshold=3, survivors=4), leave)


@pytest.mark.parametrize("mode", Mode)
def test_exactly_t_assents_convince_a_client_and_t_minus_1_do_not(mode):
    leave = dict.fromkeys(range(4, 7), Stage.ASSENT)
    assert check(session(7, mode, threshold=3, survivors=4), leave)
    leave = dict.fromkeys(range(3, 7), Stage.ASSENT)
    assert not check(session(7, mode, threshold=3, survivors=4), leave)


def test_who_is_left_with_too_few_neighbours_on_the_ring_is_left_out_with_all_who_need_it():
    """On a ring of degree 4, threshold 4, whoever loses a neighbour before it has shared can share with nobody."""
    here = session(9, degree=4, threshold=4, survivors=1)
    assert not check(here, {0: Stage.SHARES})
    assert here.server.dropped[0] is Stage.SHARES
    assert len(here.server.dropped) == 9


def test_a_neighbourhood_below_the_threshold_after_masking_opens_nothing():
    here = session(9, degree=4, threshold=4, survivors=1)
    assert not check(here, {0: Stage.MASKED})


def test_in_a_sparse_session_people_drop_out_everywhere():
    drops = {3: Stage.KEYS, 11: Stage.SHARES, 19: Stage.MASKED, 20: Stage.MASKED, 27: Stage.ASSENT, 33: Stage.UNMASK}
    for mode in Mode:
        here = session(40, mode, degree=16, threshold=8, survivors=30, size=100, bits=20)
        assert check(here, drops)
        assert here.server.result.people == 36


def test_sums_are_lifted_to_signed_numbers():
    here = session(5, bits=8, scale=Fraction(1, 60))
    here.vectors[:] = [[-25, 25, 0, 1, -1]] * 5
    here.play()
    assert here.server.result.sums.tolist() == [-125, 125, 0, 5, -5]
