"""Must show: clients that break the rules are named and left out, and the session goes on where it can."""

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.federated.protocols.secure_aggregation.people import STAGES, Session, dice, session

from hazemap.errors import CodecError, NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation.authenticated_encryption import associated, seal
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.messages import (
    Assent,
    Keys,
    Masked,
    Picks,
    PublicKeys,
    Sealed,
    Stage,
    Survivors,
    Unmask,
    assent_statement,
    keys_statement,
    masked_statement,
)
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE, split

LIAR = 3

LOW_ORDER = [
    (0).to_bytes(32, "little"),
    (1).to_bytes(32, "little"),
    (2**255 - 19 - 1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]


def shape(mode: Mode) -> Session:
    """Nine people, of whom eight are enough, on a full graph: t = 4, so two liars among 8 shares are found."""
    return session(9, mode, threshold=4, survivors=7, bits=13, name=f"liars {mode}")


def named(here: Session, *culprits: int) -> str:
    """The session was opened without them where it could be, exactly; the reason that the first is named for."""
    here.play()
    assert sorted(here.server.culprits) == sorted(culprits)
    survivors = np.flatnonzero(here.server._masked).tolist()
    assert here.server.result.sums.tolist() == here.exact(survivors).tolist()
    return here.server.culprits[culprits[0]]


def signed(here: Session, position: int, keys: PublicKeys, by: int | None = None) -> bytes:
    statement = keys_statement(here.terms.session, position, keys.sealing, keys.masking, keys.commitment)
    signature = here.identities[position if by is None else by].sign(statement)
    return Keys(here.terms.session, replace(keys, signature=signature)).encode()


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("what", ["garbage", "nothing", "cut", "lengthened", "of another session", "of a later stage"])
def test_what_is_no_answer_names_its_sender_and_the_others_go_on(mode, stage, what, caplog):
    if (mode is Mode.SEMI_HONEST and stage is Stage.PICKS) or (stage is Stage.UNMASK and what == "of a later stage"):
        return
    here = shape(mode)
    cheats: dict[str, Callable[[bytes], bytes]] = {
        "garbage": lambda reply: dice("garbage")(len(reply)),
        "nothing": lambda _reply: b"",
        "cut": lambda reply: reply[:-1],
        "lengthened": lambda reply: reply + b"\0",
        "of another session": lambda reply: reply[:2] + bytes(32) + reply[34:],
        "of a later stage": lambda _reply: Unmask(here.terms.session, {}, {}).encode(),
    }
    here.cheats[LIAR, stage] = cheats[what]
    with caplog.at_level(logging.WARNING, "hazemap.federated.protocols.secure_aggregation"):
        reason = named(here, LIAR)
    assert f"refuses client {LIAR}: {reason}" in caplog.text
    assert here.server.result.people == (8 if stage <= Stage.MASKED else 9)
    assert LIAR not in here.server.dropped


@pytest.mark.parametrize("field", ["sealing", "masking"])
@pytest.mark.parametrize("key", LOW_ORDER, ids=lambda key: key.hex()[:8])
def test_a_key_of_low_order_is_found_before_anybody_else_sees_it(field, key):
    here = shape(Mode.SEMI_HONEST)
    here.cheats[LIAR, Stage.KEYS] = lambda reply: signed(here, LIAR, replace(Keys.decode(reply).keys, **{field: key}))
    assert "low order" in named(here, LIAR)


@pytest.mark.parametrize("key", [2**255 - 19, 2**255 - 19 + 9, 2**255 + 9, 2**256 - 1])
def test_a_key_in_disguise_is_refused(key):
    """The same point written otherwise would pass for another key."""
    here = shape(Mode.SEMI_HONEST)
    disguised = key.to_bytes(32, "little")
    here.cheats[LIAR, Stage.KEYS] = lambda reply: signed(
        here, LIAR, replace(Keys.decode(reply).keys, masking=disguised)
    )
    assert "not written as it should be" in named(here, LIAR)


@pytest.mark.parametrize("case", ["changed", "by another", "for another position"])
def test_keys_that_are_not_signed_by_their_client_are_refused(case):
    here = shape(Mode.MALICIOUS)
    here.cheats[LIAR, Stage.KEYS] = {
        "changed": lambda reply: reply[:-1] + bytes([reply[-1] ^ 1]),
        "by another": lambda reply: signed(here, LIAR, Keys.decode(reply).keys, by=4),
        "for another position": lambda reply: signed(here, 4, Keys.decode(reply).keys, by=LIAR),
    }[case]
    assert "not signed by it" in named(here, LIAR)


def test_a_key_that_another_has_shown_is_refused():
    here = shape(Mode.SEMI_HONEST)
    stolen = Keys.decode(here.clients[0].receive(here.server.message_for(0))).keys
    here.cheats[LIAR, Stage.KEYS] = lambda reply: signed(
        here, LIAR, replace(Keys.decode(reply).keys, masking=stolen.masking)
    )
    assert "a key twice, or another's" in named(here, LIAR)


@pytest.mark.parametrize("picks", [(0, 1, 2), (0, 1, 2, 4, 5), (0, 1, 2, 3), (0, 1, 2, 99), ()])
def test_picks_that_no_fair_client_draws_are_refused(picks):
    here = session(9, Mode.MALICIOUS, degree=4, threshold=2, survivors=5)
    here.cheats[LIAR, Stage.PICKS] = lambda _reply: Picks(here.terms.session, picks).encode()
    assert "its picks are not 4 other clients" in named(here, LIAR)


def test_letters_to_others_than_its_holders_are_refused():
    letter = bytes(94)
    for letters in ({}, {0: letter}, dict.fromkeys([0, 1, 2, 4, 5, 6, 7], letter), dict.fromkeys(range(9), letter)):
        here = shape(Mode.SEMI_HONEST)
        here.cheats[LIAR, Stage.SHARES] = lambda _reply, here=here, letters=letters: Sealed(
            here.terms.session, letters
        ).encode()
        assert "its letters are not to its holders" in named(here, LIAR)


def test_a_vector_of_a_wrong_length_or_with_a_bit_too_many_is_refused():
    here = shape(Mode.SEMI_HONEST)  # 5 numbers of 13 bits are 65 bits: 9 bytes with 7 to spare
    honest = here.terms.size * here.terms.bits
    assert honest == 65
    for vector in (b"", bytes(8), bytes(10), bytes(9_000), bytes(8) + b"\x02", bytes(8) + b"\x80"):
        here = shape(Mode.SEMI_HONEST)
        here.cheats[LIAR, Stage.MASKED] = lambda _reply, here=here, vector=vector: Masked(
            here.terms.session, vector, bytes(64)
        ).encode()
        named(here, LIAR)
        assert here.server.result.people == 8


def test_an_assent_to_other_survivors_or_by_another_is_refused():
    for position, gone, by in ((LIAR, 8, LIAR), (LIAR, None, 4), (4, None, LIAR)):
        here = shape(Mode.MALICIOUS)
        here.until(Stage.ASSENT)
        survivors = Bitmap.of(9, [p for p in range(9) if p != gone])
        signature = here.identities[by].sign(
            assent_statement(here.terms.session, position, here.server._sharers, survivors)
        )
        here.cheats[LIAR, Stage.ASSENT] = lambda _reply, here=here, signature=signature: Assent(
            here.terms.session, signature
        ).encode()
        assert "assent is not signed by it" in named(here, LIAR)
        assert here.server.result.people == 9


def test_a_vector_that_is_signed_for_other_sharers_or_by_another_is_refused():
    for gone, by in ((8, LIAR), (None, 4)):
        here = shape(Mode.MALICIOUS)
        sharers = Bitmap.of(9, [p for p in range(9) if p != gone])
        signature = here.identities[by].sign(masked_statement(here.terms.session, LIAR, sharers))
        here.cheats[LIAR, Stage.MASKED] = lambda reply, signature=signature: replace(
            Masked.decode(reply), signature=signature
        ).encode()
        assert "not signed among which clients its vector is masked" in named(here, LIAR)
        assert here.server.result.people == 8


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("liars", [1, 2])
def test_wrong_shares_are_corrected_and_who_told_them_is_named(mode, liars):
    """8 shares of threshold 4 leave room for 2 that are wrong."""
    here = shape(mode)
    here.until(Stage.MASKED)
    here.stage(without=[0])

    def lie(reply: bytes) -> bytes:
        message = Unmask.decode(reply)
        wrong = {p: bytes([0]) + dice("lies")(SHARE - 1) for p in message.seeds}
        return replace(message, seeds=wrong, keys={p: bytes(SHARE) for p in message.keys}).encode()

    for liar in range(LIAR, LIAR + liars):
        here.cheats[liar, Stage.UNMASK] = lie
    assert named(here, *range(LIAR, LIAR + liars)).startswith("told ")
    assert here.server.result.people == 8


def test_one_wrong_share_names_who_told_it_and_says_whose_word_stands_against_it():
    here = shape(Mode.SEMI_HONEST)
    here.until(Stage.UNMASK)

    def lie(reply: bytes) -> bytes:
        message = Unmask.decode(reply)
        return replace(message, seeds={**message.seeds, 0: bytes(SHARE)}).encode()

    here.cheats[1, Stage.UNMASK] = lie
    assert named(here, 1) == "told a wrong share of client 0, or none (or 0 dealt it so)"


@pytest.mark.parametrize("case", ["its own", "unknown", "the other kind", "both kinds", "not of the field"])
def test_shares_that_were_not_asked_for_are_refused(case):
    here = shape(Mode.SEMI_HONEST)
    here.until(Stage.MASKED)
    here.stage(without=[0])
    share = bytes(SHARE)

    def lie(reply: bytes) -> bytes:
        message = Unmask.decode(reply)
        seeds, keys = message.seeds, message.keys
        seeds, keys = {
            "its own": ({**seeds, LIAR: share}, keys),
            "unknown": ({**seeds, 99: share}, keys),
            "the other kind": ({p: s for p, s in seeds.items() if p != 5}, {**keys, 5: share}),
            "both kinds": (seeds, {**keys, 5: share}),
            "not of the field": ({**seeds, 5: b"\xff" * SHARE}, keys),
        }[case]
        return replace(message, seeds=seeds, keys=keys).encode()

    here.cheats[LIAR, Stage.UNMASK] = lie
    named(here, LIAR)
    assert here.server.result.people == 8


def dealing(here: Session, shares: Callable[[int], bytes | None]) -> Callable[[bytes], bytes]:
    """A dealer that puts other shares into its letters: of each holder 66 bytes, or None for what it should."""

    def deal(reply: bytes) -> bytes:
        letters = dict(Sealed.decode(reply).letters)
        for peer in here.clients[LIAR]._memory.known():
            if (both := shares(peer.position)) is not None:
                address = associated(here.terms.session, LIAR, peer.position, Stage.SHARES)
                letters[peer.position] = seal(peer.letter, address, both)
        return Sealed(here.terms.session, letters).encode()

    return deal


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("dealt", [bytes(2 * SHARE), b"\xff" * 2 * SHARE], ids=["wrong", "unreadable"])
def test_wrong_shares_dealt_to_some_are_corrected_and_the_dealer_is_named(mode, dealt):
    here = shape(mode)
    here.cheats[LIAR, Stage.SHARES] = dealing(here, lambda holder: dealt if holder in (0, 5) else None)
    assert named(here, LIAR) == "dealt 2 shares that are wrong or missing"
    assert here.server.result.people == 9


def test_letters_that_nobody_can_open_end_the_session_and_name_the_dealer():
    here = shape(Mode.SEMI_HONEST)
    here.cheats[LIAR, Stage.SHARES] = lambda reply: Sealed(
        here.terms.session, dict.fromkeys(Sealed.decode(reply).letters, bytes(94))
    ).encode()
    ends(here)


@pytest.mark.parametrize("gone", [False, True])
def test_shares_that_fit_no_secret_end_the_session_and_name_the_dealer(gone):
    here = shape(Mode.SEMI_HONEST)
    random = dice("no polynomial")
    here.cheats[LIAR, Stage.SHARES] = dealing(here, lambda _holder: b"\0" + random(32) + b"\0" + random(32))
    ends(here, {LIAR: Stage.MASKED} if gone else {})


@pytest.mark.parametrize("gone", [False, True])
def test_shares_of_another_secret_than_was_committed_to_end_the_session_and_name_the_dealer(gone):
    """They fit a polynomial well: only the commitment, or the public key, tells."""
    here = shape(Mode.SEMI_HONEST)
    points = [p + 1 for p in range(9) if p != LIAR]
    shares = dict(zip(points, split(b"another secret, 32 bytes long...", 4, points), strict=True))
    here.cheats[LIAR, Stage.SHARES] = dealing(here, lambda holder: 2 * shares[holder + 1])
    ends(here, {LIAR: Stage.MASKED} if gone else {})


def ends(here: Session, drops: dict[int, Stage] | None = None) -> None:
    """Nothing is opened, the liar alone is named, and a session without it is opened."""
    with pytest.raises(NotOpened, match="form another without its culprits"):
        here.play(drops)
    assert list(here.server.culprits) == [LIAR]
    assert here.server.stage is Stage.FAILED and here.server.result is None
    again = session(8, threshold=4, survivors=7)
    again.play()
    assert again.server.result.people == 8


def test_more_liars_than_can_be_told_from_honest_people_open_nothing():
    here = shape(Mode.SEMI_HONEST)
    here.until(Stage.UNMASK)
    for liar in range(5):
        here.cheats[liar, Stage.UNMASK] = lambda reply: replace(
            (message := Unmask.decode(reply)), seeds={p: b"\0" + dice(f"{p}{reply[-40:]}")(32) for p in message.seeds}
        ).encode()
    with pytest.raises(NotOpened):
        here.play()
    assert here.server.result is None


def test_an_answer_that_comes_too_late_is_refused_and_nobodys_fault():
    here = shape(Mode.SEMI_HONEST)
    late = here.clients[LIAR].receive(here.server.message_for(LIAR))
    here.stage(without=[LIAR])
    with pytest.raises(Refused, match="not asked any more"):
        here.server.receive(LIAR, late)
    again = here.clients[0].reply
    with pytest.raises(Refused, match="its answer to KEYS came too late"):
        here.server.receive(0, again)
    here.play()
    assert here.server.culprits == {} and here.server.dropped == {LIAR: Stage.KEYS}
    assert here.server.result.people == 8


def test_an_answer_that_comes_twice_counts_once_and_two_answers_name_their_sender():
    here = shape(Mode.SEMI_HONEST)
    here.until(Stage.MASKED)
    reply = here.clients[0].receive(here.server.message_for(0))
    here.server.receive(0, reply)
    here.server.receive(0, reply)
    assert here.server.waiting == 8
    other = Masked(here.terms.session, bytes(9), bytes(64)).encode()
    here.deliver(LIAR)
    with pytest.raises(Refused, match="two answers to MASKED"):
        here.server.receive(LIAR, other)
    named(here, LIAR)
    assert here.server.result.people == 9  # the first answer stands


@pytest.mark.parametrize("stage", [Stage.KEYS, Stage.PICKS, Stage.SHARES, Stage.ASSENT])
def test_two_answers_to_other_stages_undo_the_first(stage):
    here = shape(Mode.MALICIOUS)
    here.until(stage)
    here.deliver(LIAR)
    with pytest.raises(CodecError):
        here.server.receive(LIAR, b"another")
    named(here, LIAR)
    assert here.server.result.people == (8 if stage < Stage.MASKED else 9)


def test_a_stranger_is_refused_and_changes_nothing():
    here = shape(Mode.SEMI_HONEST)
    for position in (-1, 9, 1_000_000):
        with pytest.raises(Refused, match="there is no client"):
            here.server.receive(position, b"")
    here.play()
    assert here.server.culprits == {}


def test_who_is_out_stays_out():
    here = shape(Mode.SEMI_HONEST)
    honest = here.clients[LIAR].receive(here.server.message_for(LIAR))
    with pytest.raises(CodecError):
        here.server.receive(LIAR, b"garbage")
    with pytest.raises(Refused, match="not asked any more"):
        here.server.receive(LIAR, honest)
    assert here.server.message_for(LIAR) is None
    assert named(here, LIAR)


def test_a_survivors_message_is_no_answer():
    here = shape(Mode.SEMI_HONEST)
    here.cheats[LIAR, Stage.ASSENT] = lambda _reply: Survivors(here.terms.session, Bitmap.of(9, range(9))).encode()
    assert named(here, LIAR) == "its Survivors is no answer to ASSENT"
