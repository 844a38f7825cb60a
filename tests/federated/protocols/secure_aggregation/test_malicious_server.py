"""Must show: a server that asks for what it may not have is refused, and the reason is in the log."""

import logging
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.protocols.secure_aggregation.people import Anything, FixedCoins, Session, session

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.client import ClientState, SecureSumClient
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.key_agreement import self_mask
from hazemap.federated.protocols.secure_aggregation.masks import subtract_mask
from hazemap.federated.protocols.secure_aggregation.messages import (
    Assents,
    Inbox,
    Invitation,
    Keys,
    Masked,
    Neighbours,
    Roll,
    Sealed,
    Stage,
    Survivors,
    Unmask,
    assent_statement,
    decode,
    keys_statement,
    masked_statement,
)
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, reduced, unpack
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.privacy.distributed_noise import DistributedNoise

ME = 2  # the client that the server tries to cheat


def at(stage: Stage, mode: Mode = Mode.SEMI_HONEST, **shape) -> Session:
    """A session just before this client answers a stage."""
    here = session(7, mode, **({"threshold": 4, "survivors": 5} | shape))
    here.until(stage)
    return here


def refused(here: Session, message: bytes, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is refused, for this reason, which is logged; and nothing has changed: the honest message gets its reply."""
    client, before = here.clients[ME], here.clients[ME]._memory
    caplog.clear()
    with (
        caplog.at_level(logging.WARNING, "hazemap.federated.protocols.secure_aggregation"),
        pytest.raises((Refused, CodecError), match=reason) as error,
    ):
        client.receive(message)
    assert str(error.value) in caplog.text
    assert client._memory is before
    honest = here.server.message_for(ME)
    if honest is not None:
        assert here.server.receive(ME, client.receive(honest)) is None


def without(bitmap: Bitmap, *gone: int) -> Bitmap:
    return Bitmap.of(bitmap.size, [p for p in bitmap.positions().tolist() if p not in gone])


INVITATIONS = {
    "a mode of no protection": (
        lambda terms: replace(terms, mode=Mode.SEMI_HONEST, graph=bytes(32)),
        "takes part in malicious sessions, not in semi-honest ones",
    ),
    "too few invited": (
        lambda terms: replace(terms, clients=99, degree=98, threshold=70, survivors=90),
        "99 clients is too small: at least 100",
    ),
    "too many invited": (lambda terms: replace(terms, clients=100_000), "100000 clients is too large"),
    "too few survivors": (
        lambda terms: replace(terms, survivors=59, noise=DistributedNoise(Fraction(10), 40)),
        "over 59 clients is too small",
    ),
    "a lowered threshold": (lambda terms: replace(terms, threshold=100), "threshold of 100 is too low"),
    "a lowered degree": (lambda terms: replace(terms, degree=20, threshold=12), "work with the server"),
    "noise for more people than are honest": (
        lambda terms: replace(terms, noise=DistributedNoise(Fraction(10), 170)),
        "shares of 170 clients, but only",
    ),
    "too long a vector": (lambda terms: replace(terms, size=2_000_000), "too long"),
}


@pytest.mark.parametrize("name", INVITATIONS)
def test_terms_below_the_floors_are_refused(name, caplog):
    change, reason = INVITATIONS[name]
    floors = MinimumParameters(100, 60, Fraction(1, 20), most=10_000, modes=frozenset([Mode.MALICIOUS]))
    good = {"degree": 199, "threshold": 150, "survivors": 180, "noise": DistributedNoise(Fraction(10), 60)}
    terms = session(7, Mode.MALICIOUS).terms
    good_terms = replace(terms, clients=200, **good)
    floors.check(good_terms)
    here = session(7)
    client = here.client(ME, floors=floors)
    with (
        caplog.at_level(logging.WARNING, "hazemap.federated.protocols.secure_aggregation"),
        pytest.raises(Refused, match=reason),
    ):
        client.receive(Invitation(change(good_terms), ME, ()).encode())
    assert "before any session refuses" in caplog.text
    assert client.session is None and client.stage is None


def test_a_reused_session_is_refused(caplog):
    here = session(7)
    message = here.server.message_for(ME)
    answered = {here.terms.session}
    client = here.client(ME, seen=answered.__contains__)
    with (
        caplog.at_level(logging.WARNING, "hazemap.federated.protocols.secure_aggregation"),
        pytest.raises(Refused, match="answered before"),
    ):
        client.receive(message)
    assert "answered before" in caplog.text
    assert here.client(ME, seen=set().__contains__).receive(message)


def test_an_invitation_to_another_position_or_roster_is_refused():
    here = session(7)
    honest = Invitation.decode(here.server.message_for(ME))
    others = session(7, name="others")
    for message in (
        replace(honest, position=3),
        replace(honest, proof=honest.proof[:-1]),
        replace(honest, position=2**32 - 1),
        Invitation(others.terms, ME, roster.proof(others.roster, ME)),
    ):
        with pytest.raises(Refused, match="is not at position"):
            here.clients[ME].receive(message.encode())


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 17},
        {"threshold": 3},
        {"survivors": 4},
        {"noise": DistributedNoise(Fraction(1, 10), 4)},
        {"nonce": bytes(32)},
        {"task": bytes(32)},
        {"size": 4},
    ],
    ids=lambda change: next(iter(change)),
)
def test_one_client_cannot_be_told_other_terms_than_its_peers(change, caplog):
    """Another modulus, noise or threshold is another session, in which nobody else has signed keys."""
    here = session(7, threshold=4, survivors=5)
    terms = replace(here.terms, **change)
    other = here.client(ME, contribution=lambda terms: here.vectors[ME][: terms.size])
    other.receive(Invitation(terms, ME, roster.proof(here.roster, ME)).encode())
    here.stage()
    message = Neighbours.decode(here.server.message_for(ME))
    with pytest.raises(Refused, match="another session"):
        other.receive(message.encode())
    with (
        caplog.at_level(logging.WARNING, "hazemap.federated.protocols.secure_aggregation"),
        pytest.raises(Refused, match="not signed by it for this session"),
    ):
        other.receive(replace(message, session=terms.session).encode())
    assert "not signed by it" in caplog.text


def cheating_neighbours(here: Session, message: Neighbours) -> dict[str, tuple[Neighbours, str]]:
    peers, first = message.peers, message.peers[0]
    mine = here.server._peers[ME]
    stranger = session(7, name="strangers")
    stranger.until(Stage.SHARES)
    foreign = stranger.server._peers[first.position]
    other_keys = replace(first.keys, masking=peers[1].keys.masking)
    cases = {
        "itself": (replace(message, peers=(*peers[:2], mine, *peers[2:])), "its own neighbour"),
        "a short roll": (
            replace(message, roll=Bitmap.of(6, range(6))),
            "the list of clients that have sent keys is of 6 clients, but the session has 7",
        ),
        "a roll without it": (
            replace(message, roll=without(message.roll, ME)),
            "this client is not on the list of clients that have sent keys",
        ),
        "a small roll": (replace(message, roll=without(message.roll, 0, 5, 6)), "fewer than the 5 that must survive"),
        "a neighbour not on the roll": (
            replace(message, roll=without(message.roll, 0)),
            "a neighbour was presented|roll is not the one",
        ),
        "a neighbour too few": (replace(message, peers=peers[1:]), "neighbours are not those"),
        "no neighbours": (replace(message, peers=()), "neighbours are not those"),
        "an identity outside the roster": (replace(message, peers=(foreign, *peers[1:])), "not the one in the roster"),
        "a proof of another": (
            replace(message, peers=(replace(first, proof=peers[1].proof), *peers[1:])),
            "not the one in the roster",
        ),
        "keys put in the place of others": (
            replace(message, peers=(replace(first, keys=other_keys), peers[1], *peers[2:])),
            "(not signed|same identity or key)",
        ),
        "keys of another session": (
            replace(message, peers=(replace(first, keys=foreign.keys), *peers[1:])),
            "not signed",
        ),
        "its own keys as another's": (
            replace(message, peers=(replace(first, keys=mine.keys), *peers[1:])),
            "same identity or key",
        ),
    }
    if here.terms.mode is Mode.SEMI_HONEST:
        cases["another seed"] = replace(message, seed=bytes(32)), "not the one that was committed to"
    else:
        cases["a seed"] = replace(message, seed=b"1" * 32), "neighbours are not those that were drawn"
        cases["another roll"] = (
            replace(message, roll=without(message.roll, 6)),
            "roll is not the one|has sent no keys",
        )
    return cases


@pytest.mark.parametrize("mode", Mode)
def test_neighbours_that_are_not_its_own_are_refused(mode, caplog):
    here = at(Stage.SHARES, mode)
    message = Neighbours.decode(here.server.message_for(ME))
    for name, (cheat, reason) in cheating_neighbours(here, message).items():
        caplog.clear()
        with pytest.raises(Refused) as error:
            here.clients[ME].receive(cheat.encode())
        assert re.search(reason, str(error.value)), name
        assert str(error.value) in caplog.text
    here.play()
    assert here.server.result is not None


def test_a_ring_that_the_server_likes_better_is_refused():
    here = at(Stage.SHARES, degree=4, threshold=3)
    message = Neighbours.decode(here.server.message_for(ME))
    stranger = next(p for p in range(7) if p != ME and p not in {peer.position for peer in message.peers})
    peers = sorted([*message.peers[1:], here.server._peers[stranger]], key=lambda peer: peer.position)
    with pytest.raises(Refused, match="not those on the ring"):
        here.clients[ME].receive(replace(message, peers=tuple(peers)).encode())


def test_more_peers_than_a_fair_draw_gives_are_refused(caplog):
    here = session(60, Mode.MALICIOUS, degree=3, threshold=2, survivors=50)
    here.until(Stage.SHARES)
    message = Neighbours.decode(here.server.message_for(ME))
    everybody = tuple(peer for position, peer in here.server._peers.items() if position != ME)
    assert len(everybody) == 59
    with pytest.raises(Refused, match="no fair draw does that"):
        here.clients[ME].receive(replace(message, peers=everybody).encode())
    assert "no fair draw" in caplog.text


@pytest.mark.parametrize("case", ["a short roll", "without it", "a small roll"])
def test_a_roll_that_is_none_is_refused(case, caplog):
    here = at(Stage.PICKS, Mode.MALICIOUS)
    roll = Roll.decode(here.server.message_for(ME))
    cheat, reason = {
        "a short roll": (Bitmap.of(6, range(6)), "of 6 clients"),
        "without it": (without(roll.roll, ME), "this client is not on the list"),
        "a small roll": (without(roll.roll, 0, 1, 3), "fewer than the 5"),
    }[case]
    refused(here, replace(roll, roll=cheat).encode(), reason, caplog)


@pytest.mark.parametrize("mode", Mode)
def test_a_peer_whose_key_is_of_low_order_is_refused(mode):
    """A server that works with a client may forward what it should have refused itself."""
    for field in ("sealing", "masking"):
        here = session(7, mode, threshold=4, survivors=5)
        keys = Keys.decode(here.clients[0].receive(here.server.message_for(0))).keys
        keys = replace(keys, **{field: bytes(32)})
        statement = keys_statement(here.terms.session, 0, keys.sealing, keys.masking, keys.commitment)
        keys = replace(keys, signature=here.identities[0].sign(statement))
        for position in range(1, 7):
            here.deliver(position)
        peer = replace(next(iter(here.server._peers.values())), position=0, identity=here.roster[0])
        here.server._peers[0] = replace(peer, proof=here.server._proofs[0], keys=keys)
        here.server._asked.discard(0)
        here.server.advance()
        if mode is Mode.MALICIOUS:
            here.stage()
        if field == "sealing":
            assert ME in here.server._asked
            with pytest.raises(Refused, match="low order"):
                here.clients[ME].receive(here.server.message_for(ME))
            continue
        sealed = Sealed.decode(here.clients[ME].receive(here.server.message_for(ME)))
        letters = dict.fromkeys(sealed.letters, next(iter(sealed.letters.values())))
        here.clients[ME]._pay = None  # whoever charges for it, fails
        with pytest.raises(Refused, match="low order"):
            here.clients[ME].receive(Inbox(here.terms.session, Bitmap.of(7, range(7)), letters).encode())


@pytest.mark.parametrize("mode", Mode)
def test_an_inbox_that_is_not_its_own_is_refused(mode, caplog):
    here = session(9, mode, degree=6, threshold=4, survivors=5)
    here.stage(without=[8])
    here.until(Stage.MASKED, without=[8])
    inbox = Inbox.decode(here.server.message_for(ME))
    holders = here.server._sharing.holders(ME).tolist()
    letter = next(iter(inbox.letters.values()))
    some = dict(list(inbox.letters.items())[1:])
    few = without(inbox.sharers, *holders[:3])
    cases = [
        (replace(inbox, sharers=Bitmap.of(8, range(8))), "the list of clients that have shared is of 8 clients"),
        (
            replace(inbox, sharers=without(inbox.sharers, ME)),
            "this client is not on the list of clients that have shared",
        ),
        (replace(inbox, sharers=without(inbox.sharers, *holders[:4])), "fewer than the 5 that must survive"),
        (replace(inbox, sharers=Bitmap.of(9, range(9))), "listed as having shared that has sent no keys"),
        (replace(inbox, sharers=without(inbox.sharers, next(iter(inbox.letters)))), "letters are not those"),
        (replace(inbox, letters={**inbox.letters, 8: letter}), "letters are not those"),
        (
            replace(inbox, sharers=few, letters={p: x for p, x in inbox.letters.items() if p in few}),
            "holders have shared, fewer than 4",
        ),
    ]
    if mode is Mode.SEMI_HONEST:
        cases.append((replace(inbox, letters=some), "letters are not those"))
    for cheat, reason in cases:
        with pytest.raises(Refused, match=reason):
            here.clients[ME].receive(cheat.encode())
    refused(here, cases[0][0].encode(), cases[0][1], caplog)


def test_a_letter_changed_or_from_another_place_is_left_out_and_does_no_harm(caplog):
    """It may be the dealer's fault, so the client goes on; what it cannot read it cannot tell."""
    here = at(Stage.MASKED)
    inbox = Inbox.decode(here.server.message_for(ME))
    changed = bytes([inbox.letters[0][0] ^ 1]) + inbox.letters[0][1:]
    swapped = {**inbox.letters, 0: changed, 1: inbox.letters[3], 3: inbox.letters[1]}
    here.server.receive(ME, here.clients[ME].receive(replace(inbox, letters=swapped).encode()))
    assert caplog.text.count("are left out: a sealed letter does not verify") == 3
    here.until(Stage.UNMASK)
    told = Unmask.decode(here.clients[ME].receive(here.server.message_for(ME)))
    assert set(told.seeds) == {4, 5, 6}
    here.play()
    assert here.server.result.sums.tolist() == here.exact(range(7)).tolist()


@pytest.mark.parametrize("mode", Mode)
def test_survivors_that_cannot_be_are_refused(mode, caplog):
    here = session(8, mode, threshold=4, survivors=5)
    here.stage(without=[7])
    here.until(Stage.ASSENT, without=[7])
    message = Survivors.decode(here.server.message_for(ME))
    cases = [
        (Bitmap.of(9, range(7)), "the list of clients that have survived is of 9 clients"),
        (without(message.survivors, ME), "this client is not on the list of clients that have survived"),
        (Bitmap.of(8, range(4)), "fewer than the 5 that must survive"),
        (Bitmap.of(8, range(8)), "not among the clients that shared"),
    ]
    for cheat, reason in cases:
        refused(here, replace(message, survivors=cheat).encode(), reason, caplog)
        here = session(8, mode, threshold=4, survivors=5)
        here.stage(without=[7])
        here.until(Stage.ASSENT, without=[7])


def test_a_survivor_that_was_said_to_have_shared_nothing_is_refused(caplog):
    here = at(Stage.MASKED)
    inbox = Inbox.decode(here.server.message_for(ME))
    hidden = Inbox(inbox.session, without(inbox.sharers, 0), dict(list(inbox.letters.items())[1:]))
    here.clients[ME].receive(hidden.encode())
    here.stage(without=[ME])
    survivors = Survivors(here.terms.session, Bitmap.of(7, range(7)))
    with pytest.raises(Refused, match="not among the clients that shared"):
        here.clients[ME].receive(survivors.encode())
    assert "not among the clients that shared" in caplog.text


def test_survivors_among_whom_it_stands_alone_are_refused(caplog):
    """On a ring of 12 with 4 neighbours each, a server leaves out two neighbours of one client: 9 others survive."""
    here = session(12, degree=4, threshold=3, survivors=8)
    here.until(Stage.ASSENT)
    message = Survivors.decode(here.server.message_for(ME))
    lonely = without(message.survivors, *here.server._sharing.holders(ME).tolist()[:2])
    assert len(lonely) == 10
    refused(here, replace(message, survivors=lonely).encode(), "2 of this client's holders survive", caplog)


def test_two_survivor_sets_are_refused_by_who_sees_both_and_by_who_sees_one(caplog):
    here = at(Stage.ASSENT)
    honest = Survivors.decode(here.server.message_for(ME))
    here.server.receive(ME, here.clients[ME].receive(honest.encode()))
    second = replace(honest, survivors=without(honest.survivors, 6))
    refused(here, second.encode(), "ASSENT is asked a second time, otherwise", caplog)

    here = at(Stage.ASSENT)  # now it sees another set than all the others
    other = replace(honest, survivors=without(honest.survivors, 6))
    here.clients[ME].receive(other.encode())
    here.stage(without=[ME])
    assents = {p: s for p, s in here.server._assents.items() if p not in (ME, 6)}
    with pytest.raises(Refused, match="did not assent to the survivors that this client assented to"):
        here.clients[ME].receive(Assents(here.terms.session, assents, {}).encode())
    assert "did not assent" in caplog.text


def test_assents_that_do_not_convince_are_refused(caplog):
    here = at(Stage.UNMASK)
    message = Assents.decode(here.server.message_for(ME))
    sharers, survivors, terms = here.server._sharers, here.server._members, here.terms
    own = here.identities[ME].sign(assent_statement(terms.session, ME, sharers, survivors))
    few = dict(list(message.assents.items())[1:])
    first = next(iter(message.assents))
    forged = {**message.assents, first: own}
    for cheat, reason in [
        ({}, "0 holders assent, fewer than the threshold 4"),
        (few, "3 holders assent, fewer than the threshold 4"),
        ({**few, ME: own}, "is no neighbour of this one"),
        ({**few, 7: own}, "is no neighbour of this one"),
        (forged, f"client {first} did not assent"),
    ]:
        with pytest.raises(Refused, match=reason):
            here.clients[ME].receive(replace(message, assents=cheat).encode())
    refused(here, replace(message, assents=forged).encode(), "did not assent", caplog)


def test_in_malicious_mode_no_seed_is_told_of_who_masked_among_others(caplog):
    """A server that hid neighbours from a client, so that its vector has fewer masks, cannot have it opened."""
    here = at(Stage.MASKED, Mode.MALICIOUS)
    inbox = Inbox.decode(here.server.message_for(5))
    hidden = replace(
        inbox, sharers=without(inbox.sharers, 0), letters={p: x for p, x in inbox.letters.items() if p != 0}
    )
    fewer = here.clients[5].receive(hidden.encode())
    with pytest.raises(Refused, match="not signed among which clients"):
        here.server.receive(5, fewer)
    here = at(Stage.UNMASK, Mode.MALICIOUS)
    message = Assents.decode(here.server.message_for(ME))
    assert set(message.masked) == {0, 1, 3, 4, 5, 6}
    other = here.identities[5].sign(masked_statement(here.terms.session, 5, hidden.sharers))
    for masked, reason in (
        ({}, "client 0 did not mask"),
        ({p: s for p, s in message.masked.items() if p != 5}, "client 5 did not mask its vector among those"),
        ({**message.masked, 5: other}, "client 5 did not mask its vector among those"),
        ({**message.masked, 5: message.masked[6]}, "client 5 did not mask its vector among those"),
        ({**message.masked, ME: other}, "is no neighbour of this one"),
    ):
        with pytest.raises(Refused, match=reason):
            here.clients[ME].receive(replace(message, masked=masked).encode())
    refused(here, replace(message, masked={**message.masked, 5: other}).encode(), "did not mask its vector", caplog)


@pytest.mark.parametrize("mode", Mode)
def test_nobody_gets_both_shares_of_a_client(mode, caplog):
    """Not in one answer, and not by asking again about other survivors."""
    here = session(7, mode, threshold=4, survivors=5)
    here.until(Stage.MASKED)
    here.stage(without=[6])
    here.stage()
    message = Assents.decode(here.server.message_for(ME))
    reply = here.clients[ME].receive(message.encode())
    told = Unmask.decode(reply)
    assert set(told.keys) == {6} and set(told.seeds) == {0, 1, 3, 4, 5}
    assert here.clients[ME].receive(message.encode()) == reply
    everybody = Bitmap.of(7, range(7))
    statements = {p: assent_statement(here.terms.session, p, here.server._sharers, everybody) for p in (0, 1, 3, 4)}
    lies = {p: here.identities[p].sign(statement) for p, statement in statements.items()}
    for again in (
        Survivors(here.terms.session, everybody),
        Assents(here.terms.session, lies, {}),
        replace(message, assents={}),
    ):
        with pytest.raises(Refused, match="asked a second time"):
            here.clients[ME].receive(again.encode())
    assert "asked a second time" in caplog.text
    assert not here.clients[ME]._memory.shares  # they are gone


@pytest.mark.parametrize("mode", Mode)
def test_messages_replayed_reordered_or_of_another_session_are_refused(mode, caplog):
    """Every message of a session and of another one, at every stage: only the due one gets a new answer."""
    here, other = (session(5, mode, threshold=3, survivors=4, name=name) for name in ("here", "there"))
    script: list[tuple[Stage, bytes]] = []
    foreign: list[bytes] = []
    for s, keep in ((here, lambda m: script.append((here.server.stage, m))), (other, foreign.append)):
        while s.server.stage < Stage.OPENED:
            keep(s.server.message_for(ME))
            s.stage()
    client, replies = here.client(ME), []
    for turn, (stage, message) in enumerate(script):
        for later in script[turn + 1 :]:
            with pytest.raises(Refused, match=r"before"):
                client.receive(later[1])
        for alien in foreign[1:] if turn == 0 else foreign:
            with pytest.raises(Refused, match=r"another session|before an invitation"):
                client.receive(alien)
        replies.append(client.receive(message))
        assert client.stage is stage
        assert client.receive(message) == replies[-1]
        for earlier in script[:turn]:
            with pytest.raises(Refused, match="asked a second time"):
                client.receive(earlier[1])
        for answer in replies:
            with pytest.raises(Refused):
                client.receive(answer)
    assert client.receive(script[-1][1]) == replies[-1]
    assert "is asked before" in caplog.text and "another session" in caplog.text


@pytest.mark.parametrize("mode", Mode)
def test_truncated_lengthened_and_flipped_messages_never_get_a_new_answer(mode):
    here = session(5, mode, threshold=3, survivors=4)
    while here.server.stage < Stage.OPENED:
        message = here.server.message_for(ME)
        client = here.clients[ME]
        for cut in {1, 2, 34, len(message) // 2, len(message) - 1}:
            with pytest.raises((CodecError, Refused)):
                client.receive(message[:cut])
        with pytest.raises(CodecError):
            client.receive(message + b"\0")
        with pytest.raises(CodecError):
            client.receive(b"")
        if here.server.stage is not Stage.KEYS:  # other terms may be good terms too
            for bit in range(0, 34 * 8, 7):
                changed = bytearray(message)
                changed[bit // 8] ^= 1 << bit % 8
                with pytest.raises((CodecError, Refused)):
                    client.receive(bytes(changed))
        here.stage()
    assert here.server.result is not None


def test_a_clients_own_message_is_no_servers_message():
    here = at(Stage.SHARES)
    message = here.server.message_for(ME)
    sealed = here.clients[ME].receive(message)
    assert isinstance(decode(sealed), Sealed)
    with pytest.raises(Refused):
        here.clients[ME].receive(sealed)
    with pytest.raises(Refused, match="is what a client says"):
        here.clients[ME].receive(Masked(here.terms.session, b"", bytes(64)).encode())


def holders_of_some(mode: Mode) -> tuple[Session, Assents, list[int], list[int]]:
    """A session in which not everybody holds this client's shares, before UNMASK: its holders, and the others."""
    here = session(13, mode, degree=6, threshold=4, survivors=11)
    here.until(Stage.UNMASK)
    holders = here.server._sharing.holders(ME).tolist()
    others = sorted({*range(13)} - {ME, *holders})
    return here, Assents.decode(here.server.message_for(ME)), holders, others


@pytest.mark.parametrize("mode", Mode)
def test_every_assent_that_counts_is_a_true_one_of_a_holder(mode):
    """Each of the t counts: one that is forged, in whatever place, or of somebody who holds nothing, opens nothing."""
    here, message, holders, others = holders_of_some(mode)
    client, assents = here.clients[ME], message.assents
    assert len(assents) == here.terms.threshold == 4 and assents.keys() <= set(holders) and len(others) == 6
    for place in assents:
        wrong = bytearray(assents[place])
        wrong[0] ^= 1
        with pytest.raises(Refused, match=f"client {place} did not assent"):
            client.receive(replace(message, assents={**assents, place: bytes(wrong)}).encode())
    dealers = set(here.server._sharing.dealers(ME).tolist())
    strangers = [other for other in others if mode is Mode.SEMI_HONEST or other in dealers]
    assert strangers, "some deal to this client and hold nothing of it"
    for stranger in strangers:
        genuine = here.server._assents[stranger]
        for gone in assents:
            mixed = dict(sorted({**{p: s for p, s in assents.items() if p != gone}, stranger: genuine}.items()))
            with pytest.raises(Refused, match="is no neighbour of this one"):
                client.receive(replace(message, assents=mixed).encode())
    assert client.stage is Stage.ASSENT
    client.receive(message.encode())


def test_the_roll_that_neighbours_are_drawn_from_stays(caplog):
    """Whoever is added to, or taken from, the roll after the draw makes another session of it."""
    for change in (lambda roll: Bitmap.of(8, [*roll.positions(), 7]), lambda roll: without(roll, 6)):
        here = session(8, Mode.MALICIOUS, degree=3, threshold=3, survivors=5)
        here.until(Stage.PICKS, without=[7])
        here.stage(without=[7])
        message = Neighbours.decode(here.server.message_for(ME))
        roll = change(message.roll)
        kept = tuple(peer for peer in message.peers if peer.position in roll)
        before = here.clients[ME]._memory
        with pytest.raises(Refused, match=r"not the one that neighbours were drawn from|neighbours are not those"):
            here.clients[ME].receive(replace(message, roll=roll, peers=kept).encode())
        if len(kept) == len(message.peers):
            assert "the roll is not the one that neighbours were drawn from" in caplog.text
        assert here.clients[ME]._memory is before
        here.clients[ME].receive(message.encode())


@pytest.mark.parametrize("mode", Mode)
def test_vectors_that_a_client_masked_among_several_lists_after_it_was_put_back_cancel_no_masks(mode):
    """With one mask for each pair, a + b + c - 2 d of four lists of sharers would open this client alone."""
    here = session(4, mode, threshold=2, survivors=3)
    here.until(Stage.MASKED)
    inbox, state = Inbox.decode(here.server.message_for(ME)), here.saved[ME]
    alone = np.zeros(here.terms.size, dtype=np.int64)
    for gone, times in ((0, 1), (1, 1), (3, 1), (None, -2)):
        letters = {position: letter for position, letter in inbox.letters.items() if position != gone}
        sharers = inbox.sharers if gone is None else without(inbox.sharers, gone)
        again = SecureSumClient.resume(
            state,
            here.identities[ME],
            Anything(),
            lambda _: here.vectors[ME],
            coins=FixedCoins(f"client {ME}", b"noise %d" % ME),
        )
        vector = Masked.decode(again.receive(replace(inbox, sharers=sharers, letters=letters).encode())).vector
        alone += times * unpack(vector, here.terms.size, here.terms.bits).astype(np.int64)
    opened = reduced(alone, here.terms.bits)
    subtract_mask(opened, self_mask(ClientState.from_bytes(state).seed, here.terms.session))
    assert np.count_nonzero(lifted(opened, here.terms.bits) == here.exact([ME])) <= 1


@pytest.mark.parametrize("mode", Mode)
def test_no_key_and_no_share_outlives_its_use(mode):
    """Letter keys go with the letters, own secrets with the vector, and shares with the answer that tells them."""
    here = session(7, mode, threshold=4, survivors=5)
    here.until(Stage.MASKED)
    memory = here.clients[ME]._memory
    letters, own = [peer.letter for peer in memory.known()], [memory.masking, memory.seed]
    assert len(letters) == 6 and all(any(letter) for letter in letters) and all(own)
    here.stage()
    after = here.clients[ME]._memory
    assert not any(any(peer.letter) or any(peer.masking) for peer in after.known())
    assert not (after.sealing or after.masking or after.seed) and after.shares
    shares = [share for both in after.dealt().values() for share in both]
    here.stage()
    here.stage()
    told, state = here.clients[ME]._memory, here.saved[ME]
    assert not (told.shares or told.acquaintances or told.known())
    body = state.replace(told.reply, b"")
    assert not any(secret in body for secret in (*letters, *own, *shares))
