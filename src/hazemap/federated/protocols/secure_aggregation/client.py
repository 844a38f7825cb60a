"""A person's side of a secure sum: it answers each stage once, and refuses a server that asks for anything else.

A checkpoint is what it remembers of a session between two messages: enough to go on after its process was killed.
"""

import logging
import struct
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.authenticated_encryption import associated, seal, unseal
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.key_agreement import (
    AgreementKeyPair,
    Coins,
    DeviceCoins,
    letter_key,
    pair_mask,
    seed_commitment,
    self_mask,
)
from hazemap.federated.protocols.secure_aggregation.masks import add_mask, subtract_mask
from hazemap.federated.protocols.secure_aggregation.messages import (
    Assent,
    Assents,
    Inbox,
    InSession,
    Invitation,
    Keys,
    Masked,
    Neighbours,
    Numbers,
    Picks,
    PublicKeys,
    Roll,
    Sealed,
    SecureSumMessage,
    Stage,
    Survivors,
    Unmask,
    assent_statement,
    decode,
    keys_statement,
    masked_statement,
)
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import Judge
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, pack, packed_length, reduced, unpack
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import (
    check_distinct,
    check_listed,
    check_neighbours,
    check_peer,
    drawn_neighbours,
)
from hazemap.federated.protocols.secure_aggregation.session_parameters import Hash, Mode, SessionParameters, Terms
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE, is_share, split_all
from hazemap.privacy.signing_identities import Identity, verified
from hazemap.vdaf.tls_encoding import Form, Structure, TlsReader, TlsWriter, fixed, number, opaque

_VERSION = 2
_KEY = 32
_GONE = bytes(_KEY)
_SECRETS = 2 * SHARE
_RECORD = struct.Struct(">IB32s32s32s")

HOLDS, DEALS, SHARED = 1, 2, 4


class KnownPeer(NamedTuple):
    """A neighbour whose identity and keys were verified; `letter` is SECRET."""

    position: int
    roles: int
    """HOLDS: has shares of mine. DEALS: sends me shares of its own. SHARED: the server says it has shared."""
    identity: bytes
    letter: bytes
    """the key of the letters between us"""
    masking: bytes
    """its public key for our mask"""

    def __repr__(self) -> str:
        return f"<KnownPeer {self.position} {self.identity.hex()[:16]}…>"


def _read_stage(reader: TlsReader) -> Stage:
    try:
        stage = Stage(reader.number(1))
    except ValueError:
        raise CodecError("this memory is of no known stage") from None
    if stage > Stage.UNMASK:
        raise CodecError(f"no client answers {stage.name}: this memory is of no stage that is answered")
    return stage


Secret = Annotated[bytes, opaque(1)]
Text = Annotated[bytes, opaque(4)]


@dataclass(frozen=True)
class ClientState(Structure):
    """The state after an answer. Its secrets are forgotten at the first answer that needs them no more.

    A `ClientState` is small and flat, one `bytes` for all neighbours, so that many clients fit into one process.
    """

    stage: Annotated[Stage, Form(lambda writer, stage: writer.number(stage, 1), _read_stage)]
    """what was answered last"""
    terms: Terms
    position: Annotated[int, number(4)]
    identity: Annotated[bytes, fixed(_KEY)]
    """the public half"""
    asked: Hash
    """SHA-256 of the message that was answered"""
    reply: Text = field(repr=False)
    sealing: Secret = field(default=b"", repr=False)
    """own X25519 key for letters, until SHARES is answered"""
    masking: Secret = field(default=b"", repr=False)
    """own X25519 key for masks, until MASKED is answered"""
    seed: Secret = field(default=b"", repr=False)
    """of the self mask, until MASKED is answered"""
    said: Hash = field(default=_GONE, repr=False)
    """SHA-256 of the contribution as it is packed, until MASKED is answered"""
    contribution: Text = field(default=b"", repr=False)
    """packed modulo 2^b, and compressed, until MASKED is answered"""
    roll: Text = b""
    """bits of who sent keys"""
    picks: Numbers = ()
    acquaintances: Text = field(default=b"", repr=False)
    shares: Text = field(default=b"", repr=False)
    """what others dealt, of each its position and two shares"""
    sharers: Text = b""
    """bits of who has shared: whom it masked among"""
    survivors: Text = b""
    """bits of who is in the sum, as assented to"""

    def known(self) -> list[KnownPeer]:
        """All neighbours, ascending."""
        return [KnownPeer(*record) for record in _RECORD.iter_unpack(self.acquaintances)]

    def bitmap(self, bits: bytes) -> Bitmap:
        """The roll, the sharers or the survivors."""
        return Bitmap(self.terms.clients, bits)

    def packed(self) -> bytes:
        """The contribution, packed; CodecError where it is not the one that was committed to. No more is unpacked."""
        most = packed_length(self.terms.size, self.terms.bits)
        try:
            found = zlib.decompressobj().decompress(self.contribution, most + 1)
        except zlib.error:
            found = b""
        if sha256(found).digest() != self.said:
            raise CodecError("the contribution in this memory is damaged")
        return found

    def dealt(self) -> dict[int, tuple[bytes, bytes]]:
        """By dealer: a share of its masking key, and one of its seed."""
        return {
            dealer: (both[:SHARE], both[SHARE:]) for dealer, both in TlsReader(self.shares).numbered(_SECRETS).items()
        }

    def acquainted(self, neighbours: Iterable[KnownPeer]) -> "ClientState":
        """The same with these neighbours."""
        return replace(self, acquaintances=b"".join(_RECORD.pack(*neighbour) for neighbour in neighbours))

    def holding(self, shares: dict[int, bytes]) -> "ClientState":
        """The same with these shares, two of each dealer; own keys, seed, contribution and the keys of letters are
        forgotten.
        """
        neighbours = [neighbour._replace(letter=_GONE, masking=_GONE) for neighbour in self.known()]
        dealt = TlsWriter().numbered(shares, _SECRETS).done()
        forgotten = replace(self, sealing=b"", masking=b"", seed=b"", said=_GONE, contribution=b"")
        return replace(forgotten.acquainted(neighbours), shares=dealt)

    def write(self, writer: TlsWriter) -> TlsWriter:
        """Everything, secrets included: to be kept where the device's rows are kept."""
        return super().write(writer.number(_VERSION, 1))

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote; CodecError for bytes that are no memory of a client."""
        if reader.number(1) != _VERSION:
            raise CodecError(f"this is no client's memory of version {_VERSION}")
        memory = super().read(reader)
        memory._check()
        return memory

    def _check(self) -> None:
        if any(len(secret) not in (0, _KEY) for secret in (self.sealing, self.masking, self.seed)):
            raise CodecError("a key in this memory has a wrong length")
        if len(self.acquaintances) % _RECORD.size or self.position >= self.terms.clients:
            raise CodecError("the neighbours in this memory are damaged")
        try:
            for bits in filter(None, (self.roll, self.sharers, self.survivors)):
                self.bitmap(bits)
        except InputError:
            raise CodecError("a bitmap in this memory is damaged") from None
        if self.shares:
            reader = TlsReader(self.shares)
            reader.numbered(_SECRETS)
            reader.end()


LOG = logging.getLogger("hazemap.federated.protocols.secure_aggregation")

Contribution = Callable[[SessionParameters], NDArray[np.int64]]
"""The exact sums of this person for these terms, int64[size]; raises Refused to stay out."""

Payment = Callable[[SessionParameters, NDArray[np.int64]], None]
"""Charges for a vector of these sums; raises Refused to stay out."""


def _free(terms: SessionParameters, exact: NDArray[np.int64]) -> None:
    """Nobody keeps an account."""


class SecureSumClient:
    """Answers the messages of one session (Bonawitz et al. 2017, with the neighbours of Bell et al. 2020).

    A server may count on little. A person may count on this:

    * A stage is answered once. The same message again gets the same reply; any other is Refused. With `save`, the
      whole state and the reply are saved before the reply is returned, so it holds through a crash as well.
    * It reveals one share of a peer, never both: it answers UNMASK once, about one set of survivors. With
      2t > k + c, c of the k holders corrupt, nobody else puts both secrets of an honest client together.
    * It answers UNMASK only after t of its own holders have signed the same survivors. So the masking key
      of an honest client that answered UNMASK stays secret, whatever the server told others: fewer than t of its
      holders are left to give it away. In malicious mode it reveals a share of a seed only for a peer that signed that
      it masked among the same clients, this one among them. So a vector that is opened was masked with t of its
      holders, each corrupt or with a key that nobody learns: it is opened in a sum with them, or not at all.
    * Keys, seeds, shares and noise follow from `coins`, the session and the contribution. A client whose state was put
      back from a copy sends the same bytes again, or keys and noise that have nothing to do with those of before.

    A refused message changes nothing: the stage stays open, and the reason is logged. `contribution` is called at KEYS,
    after everything else was checked, and kept: the seed that is committed to there follows from it, so the first
    message commits to it and hides it. `pay` is called at MASKED, after everything else was checked, once, or again if
    the process died before `save` returned: a charge in it must be by session. `seen` says whether another client
    object has answered a session before.

    `receive` costs 30 ms of CPU in all stages together with 100 neighbours, and 50 ms in malicious mode, where they are
    some 200; most of it goes to their signatures.
    """

    def __init__(
        self,
        identity: Identity,
        floors: Judge,
        contribution: Contribution,
        save: Callable[[bytes], None] | None = None,
        coins: Coins | None = None,
        pay: Payment = _free,
        seen: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._identity = identity
        self._floors = floors
        self._contribution = contribution
        self._save = save
        self._coins = coins or DeviceCoins.from_os()
        self._pay = pay
        self._seen = seen
        self._memory: ClientState | None = None

    @classmethod
    def resume(
        cls,
        state: bytes,
        identity: Identity,
        floors: Judge,
        contribution: Contribution,
        save: Callable[[bytes], None] | None = None,
        coins: Coins | None = None,
        pay: Payment = _free,
    ) -> "SecureSumClient":
        """The client whose state was saved, after a crash; send its `reply` again, in case it was not sent.

        CodecError for bytes that `save` was never given, InputError for those of another identity. Of two clients
        resumed from one state only one may go on.
        """
        client = cls(identity, floors, contribution, save, coins, pay)
        client._memory = ClientState.from_bytes(state)
        if client._memory.identity != identity.public:
            raise InputError("this is the state of another identity's client")
        return client

    @property
    def session(self) -> bytes | None:
        """The name of the session; None before an invitation was accepted."""
        return self._memory.terms.session if self._memory else None

    @property
    def terms(self) -> SessionParameters | None:
        """What the session is about; None before an invitation was accepted."""
        return self._memory.terms if self._memory else None

    @property
    def stage(self) -> Stage | None:
        """The stage that was answered last; None before the first."""
        return self._memory.stage if self._memory else None

    @property
    def reply(self) -> bytes | None:
        """The last answer."""
        return self._memory.reply if self._memory else None

    def receive(self, message: bytes) -> bytes:
        """The one reply to the message of this stage; Refused or CodecError (and nothing changes) if it gets none."""
        asked = sha256(message).digest()
        if self._memory is not None and asked == self._memory.asked:
            return self._memory.reply
        try:
            memory, reply = self._answer(decode(message), asked)
        except (Refused, CodecError) as error:
            where = f"in session {self.session.hex()[:16]}" if self.session else "before any session"
            LOG.warning("a client %s refuses a message: %s", where, error)
            raise
        memory = replace(memory, stage=_due(self._memory), asked=asked, reply=reply.encode())
        if self._save is not None:
            self._save(memory.to_bytes())
        self._memory = memory
        LOG.debug("a client in session %s answers %s", memory.terms.session.hex()[:16], memory.stage.name)
        return memory.reply

    def _answer(self, message: SecureSumMessage, asked: bytes) -> tuple[ClientState, InSession]:
        """What to remember and what to say, if it is this message's turn."""
        memory = self._memory
        if isinstance(message, Invitation) and memory is None:
            return self._keys(message)
        if memory is None:
            raise Refused(f"{type(message).__name__} came before an invitation")
        if not isinstance(message, InSession | Invitation) or message.session != memory.terms.session:
            raise Refused(f"{type(message).__name__} belongs to another session")
        if memory.stage is Stage.UNMASK or message.stage < (due := _due(memory)):
            raise Refused(f"{message.stage.name} is asked a second time, otherwise: a stage has one answer")
        if message.stage > due:
            raise Refused(f"{message.stage.name} is asked before {due.name}")
        match message:
            case Roll():
                return self._picks(memory, message, asked)
            case Neighbours():
                return self._shares(memory, message, asked)
            case Inbox():
                return self._masked(memory, message)
            case Survivors():
                return self._assent(memory, message)
            case Assents():
                return self._unmask(memory, message)
        raise Refused(f"{type(message).__name__} is what a client says, not a server")

    def _keys(self, message: Invitation) -> tuple[ClientState, Keys]:
        terms, position, public = message.terms, message.position, self._identity.public
        self._floors.check(terms)
        if not roster.belongs(terms.roster, terms.clients, position, public, message.proof):
            raise Refused(f"this client's identity is not at position {position} of the roster")
        session = terms.session
        if self._seen is not None and self._seen(session):
            raise Refused("this session was answered before: it is not answered twice")
        packed = pack(reduced(_checked(self._contribution(terms), terms), terms.bits), terms.bits)
        said = sha256(packed).digest()
        first, second, seed = self._secrets(terms, position, said)
        sealing, masking = AgreementKeyPair.from_bytes(first), AgreementKeyPair.from_bytes(second)
        promise = seed_commitment(session, position, seed)
        statement = keys_statement(session, position, sealing.public, masking.public, promise)
        keys = PublicKeys(sealing.public, masking.public, promise, self._identity.sign(statement))
        memory = ClientState(
            Stage.KEYS, terms, position, public, b"", b"", first, second, seed, said, zlib.compress(packed, 1)
        )
        return memory, Keys(session, keys)

    def _secrets(self, terms: SessionParameters, position: int, said: bytes) -> tuple[bytes, bytes, bytes]:
        """The private keys and the seed of a contribution with this digest: 32 bytes each."""
        drawn = self._coins(terms.session, b"keys", position.to_bytes(4, "big"), said).bytes(96)
        return drawn[:32], drawn[32:64], drawn[64:]

    def _picks(self, memory: ClientState, message: Roll, asked: bytes) -> tuple[ClientState, Picks]:
        terms = memory.terms
        check_listed(message.roll, terms, memory.position, "have sent keys")
        members = message.roll.positions()
        coins = self._coins(terms.session, b"picks", asked, memory.said)
        picks = tuple(drawn_neighbours(coins.bytes, members, memory.position, terms.degree).tolist())
        return replace(memory, roll=message.roll.bits, picks=picks), Picks(terms.session, picks)

    def _shares(self, memory: ClientState, message: Neighbours, asked: bytes) -> tuple[ClientState, Sealed]:
        terms, own, session = memory.terms, memory.position, memory.terms.session
        check_listed(message.roll, terms, own, "have sent keys")
        if terms.mode is Mode.MALICIOUS and message.roll.bits != memory.roll:
            raise Refused("the roll is not the one that neighbours were drawn from")
        holders = check_neighbours(terms, own, memory.picks, message)
        sealing, masking = AgreementKeyPair.from_bytes(memory.sealing), AgreementKeyPair.from_bytes(memory.masking)
        check_distinct((memory.identity, sealing.public, masking.public), message.peers)
        acquaintances = []
        for peer in message.peers:
            check_peer(terms, peer)
            roles = HOLDS if peer.position in holders else DEALS
            letter = letter_key(sealing, peer.keys.sealing, session)
            acquaintances.append(KnownPeer(peer.position, roles, peer.identity, letter, peer.keys.masking))
        points = [holder + 1 for holder in holders]
        coins = self._coins(session, b"shares", asked, memory.said)
        shares = split_all([memory.masking, memory.seed], terms.threshold, points, coins.bytes)
        both = dict(zip(holders, map(b"".join, zip(*shares, strict=True)), strict=True))
        letters = {
            peer.position: seal(peer.letter, associated(session, own, peer.position, Stage.SHARES), both[peer.position])
            for peer in acquaintances
            if peer.roles & HOLDS
        }
        memory = replace(memory, roll=message.roll.bits, picks=(), sealing=b"")
        return memory.acquainted(acquaintances), Sealed(session, letters)

    def _masked(self, memory: ClientState, message: Inbox) -> tuple[ClientState, Masked]:
        terms, own, session = memory.terms, memory.position, memory.terms.session
        peers = _in_session(memory, message)
        shares = {}
        for peer in peers:
            address = associated(session, peer.position, own, Stage.SHARES)
            if peer.roles & DEALS and (both := _opened(peer, address, message.letters[peer.position])) is not None:
                shares[peer.position] = both
        private = AgreementKeyPair.from_bytes(memory.masking)
        among = message.sharers.bits
        masks = {p.position: pair_mask(private, p.masking, session, among) for p in peers if p.roles & SHARED}
        if self._secrets(terms, own, memory.said)[1:] != (memory.masking, memory.seed):
            raise Refused("this device has not the contribution that its first message committed to: it leaves")
        exact = lifted(unpack(memory.packed(), terms.size, terms.bits), terms.bits)
        self._pay(terms, exact)
        noise = terms.noise.share(self._coins(session, b"noise", memory.said), terms.size)
        vector = reduced(exact + noise, terms.bits)
        add_mask(vector, self_mask(memory.seed, session))
        for position, key in masks.items():
            (add_mask if own < position else subtract_mask)(vector, key)
        signature = self._identity.sign(masked_statement(session, own, message.sharers))
        memory = replace(memory.acquainted(peers).holding(shares), sharers=message.sharers.bits)
        return memory, Masked(session, pack(vector, terms.bits), signature)

    def _assent(self, memory: ClientState, message: Survivors) -> tuple[ClientState, Assent]:
        terms, own, survivors = memory.terms, memory.position, message.survivors
        check_listed(survivors, terms, own, "have survived")
        sharers = memory.bitmap(memory.sharers)
        if not _within(survivors, sharers):
            raise Refused("a survivor is not among the clients that shared, as the server listed them before")
        holders = sum(peer.roles & HOLDS and peer.position in survivors for peer in memory.known())
        if holders < terms.threshold:
            raise Refused(f"{holders} of this client's holders survive, fewer than the threshold {terms.threshold}")
        signature = self._identity.sign(assent_statement(terms.session, own, sharers, survivors))
        return replace(memory, survivors=survivors.bits), Assent(terms.session, signature)

    def _unmask(self, memory: ClientState, message: Assents) -> tuple[ClientState, Unmask]:
        terms, sharers, survivors = memory.terms, memory.bitmap(memory.sharers), memory.bitmap(memory.survivors)
        known = {peer.position: peer for peer in memory.known() if peer.position in survivors}
        holders = {position for position, peer in known.items() if peer.roles & HOLDS}
        dealers = {position for position, peer in known.items() if peer.roles & DEALS}
        if not message.assents.keys() <= holders or not message.masked.keys() <= dealers:
            raise Refused("a signature was presented of a client that is no neighbour of this one, or did not survive")
        if len(message.assents) < terms.threshold:
            raise Refused(f"{len(message.assents)} holders assent, fewer than the threshold {terms.threshold}")
        for position, signature in list(message.assents.items())[: terms.threshold]:  # as many as count
            statement = assent_statement(terms.session, position, sharers, survivors)
            if not verified(known[position].identity, signature, statement):
                raise Refused(f"client {position} did not assent to the survivors that this client assented to")
        dealt = memory.dealt()
        for position in sorted(dealers & dealt.keys()) if terms.mode is Mode.MALICIOUS else ():
            statement = masked_statement(terms.session, position, sharers)
            if not verified(known[position].identity, message.masked.get(position, b""), statement):
                raise Refused(f"client {position} did not mask its vector among those that this client masked among")
        seeds, keys = {}, {}
        for dealer, (key, seed) in dealt.items():
            if dealer in survivors:
                seeds[dealer] = seed
            else:
                keys[dealer] = key
        return replace(memory, shares=b"", acquaintances=b""), Unmask(terms.session, seeds, keys)


def _due(memory: ClientState | None) -> Stage:
    """The stage that comes next, after any but the last."""
    if memory is None:
        return Stage.KEYS
    if memory.stage is Stage.KEYS and memory.terms.mode is Mode.SEMI_HONEST:
        return Stage.SHARES
    return Stage(memory.stage + 1)


def _in_session(memory: ClientState, message: Inbox) -> list[KnownPeer]:
    """The neighbours with the roles that they have now; Refused if the inbox cannot be this client's."""
    terms, sharers, letters = memory.terms, message.sharers, message.letters.keys()
    check_listed(sharers, terms, memory.position, "have shared")
    if not _within(sharers, memory.bitmap(memory.roll)):
        raise Refused("a client is listed as having shared that has sent no keys")
    peers = memory.known()
    shared = {peer.position for peer in peers if peer.position in sharers}
    holders = {peer.position for peer in peers if peer.roles & HOLDS}
    dealers = shared if terms.mode is Mode.SEMI_HONEST else shared - holders
    if not dealers <= letters <= shared:
        raise Refused("the letters are not those of the neighbours that have shared with this client")
    if len(holders & shared) < terms.threshold:
        raise Refused(f"{len(holders & shared)} of this client's holders have shared, fewer than {terms.threshold}")
    return [
        peer._replace(
            roles=(HOLDS if peer.position in holders else 0)
            | (SHARED if peer.position in shared else 0)
            | (DEALS if peer.position in letters else 0)
        )
        for peer in peers
    ]


def _within(some: Bitmap, others: Bitmap) -> bool:
    return not int.from_bytes(some.bits, "big") & ~int.from_bytes(others.bits, "big")


def _opened(peer: KnownPeer, address: bytes, letter: bytes) -> bytes | None:
    """The two shares in a letter. A letter that cannot be read harms its dealer alone: the session goes on."""
    try:
        both = unseal(peer.letter, address, letter)
    except Refused as error:
        LOG.warning("the shares of client %d are left out: %s", peer.position, error)
        return None
    if not is_share(both[:SHARE]) or not is_share(both[SHARE:]):
        LOG.warning("the shares of client %d are left out: they are not written as they should be", peer.position)
        return None
    return both


def _checked(exact: NDArray[np.int64], terms: SessionParameters) -> NDArray[np.int64]:
    """A person's contribution, if it fits the session: what does not is the device's fault, not the server's."""
    half = 1 << (terms.bits - 1)
    if not isinstance(exact, np.ndarray) or exact.dtype != np.int64 or exact.shape != (terms.size,):
        raise InputError(f"a contribution to this session is int64[{terms.size}]")
    if exact.min() < -half or exact.max() >= half:
        raise InputError(f"a contribution to this session has numbers of {terms.bits} bits")
    return exact
