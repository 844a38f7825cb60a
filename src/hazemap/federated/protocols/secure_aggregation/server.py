"""The server's side of a secure sum: it carries messages, adds masked vectors, and can open nothing but the sum."""

import logging
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from hazemap.errors import CodecError, InputError, NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as rosters
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.key_agreement import AgreementKeyPair
from hazemap.federated.protocols.secure_aggregation.messages import (
    LETTER,
    Assent,
    Assents,
    Inbox,
    InSession,
    Invitation,
    Keys,
    Masked,
    Neighbours,
    Peer,
    Picks,
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
from hazemap.federated.protocols.secure_aggregation.modular_packing import unpack, word
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment, ring_neighbours
from hazemap.federated.protocols.secure_aggregation.session_parameters import HASH, Mode, SessionParameters
from hazemap.federated.protocols.secure_aggregation.unmasking import Opened, SecretShareHolders, Unmasking
from hazemap.machine_code.arrays import Bools, Ints
from hazemap.privacy.signing_identities import verified

LOG = logging.getLogger("hazemap.federated.protocols.secure_aggregation")

_PROBE = AgreementKeyPair.from_bytes(bytes(range(32)))  # no secret: what is agreed with it is thrown away


class Server:
    """Runs one session from invitation to sum. No clock, no chance: the same calls give the same server.

    So a coordinator keeps the (position, message) pairs it was sent and the moments it called `advance` and `leave`,
    and after a restart replays them to a new server. What breaks the rules is Refused, its sender named in `culprits`
    and asked no more; the session goes on without it wherever its secrets are not missing. A message that came too
    late is Refused and nobody's fault.

    Vectors are added as they arrive: memory is O(size + clients · degree). `advance` after UNMASK is where the work
    is (`Unmasking.open`).
    """

    def __init__(self, terms: SessionParameters, roster: Sequence[bytes], seed: bytes | None = None) -> None:
        if len(roster) != terms.clients or rosters.root(roster) != terms.roster:
            raise InputError("the roster is not the one in the terms")
        if len(set(roster)) != len(roster):
            raise InputError("an identity is in the roster twice")
        if terms.mode is Mode.SEMI_HONEST and (seed is None or commitment(seed) != terms.graph):
            raise InputError("the seed of the ring is not the one that the terms commit to")
        if terms.mode is Mode.MALICIOUS and seed is not None:
            raise InputError("in malicious mode clients draw their neighbours: there is no seed")
        self.terms = terms
        self.stage = Stage.KEYS
        self.result: Opened | None = None
        self.culprits: dict[int, str] = {}
        self.dropped: dict[int, Stage] = {}
        self.lonely: set[int] = set()
        """of those who dropped out: who answered, but had too few holders left"""
        self._roster = list(roster)
        self._proofs = rosters.proofs(roster)
        self._seed = seed or bytes(HASH)
        self._asked: set[int] = set(range(terms.clients))
        self._answered: dict[int, bytes] = {}
        self._peers: dict[int, Peer] = {}
        self._shown: set[bytes] = set()
        self._picks: dict[int, Ints] = {}
        self._sharing = SecretShareHolders(terms.clients, {})
        self._letters = np.empty((0, LETTER), dtype=np.uint8)
        self._shared: Bools = np.zeros(terms.clients, dtype=bool)
        self._masked: Bools = np.zeros(terms.clients, dtype=bool)
        self._total = np.zeros(terms.size, dtype=word(terms.bits))
        self._members = Bitmap.of(terms.clients, [])
        self._sharers = self._members
        self._signatures: dict[int, bytes] = {}
        self._assents: dict[int, bytes] = {}
        self._unmasking: Unmasking | None = None

    @property
    def waiting(self) -> int:
        """How many were asked in this stage and have not answered."""
        return len(self._asked)

    def message_for(self, position: int) -> bytes | None:
        """The message for this client to answer now; None if it is out, has answered, or the session is over."""
        if position not in self._asked:
            return None
        session = self.terms.session
        message: SecureSumMessage
        match self.stage:
            case Stage.KEYS:
                message = Invitation(self.terms, position, self._proofs[position])
            case Stage.PICKS:
                message = Roll(session, self._members)
            case Stage.SHARES:
                peers = (self._peers[peer] for peer in self._sharing.peers(position).tolist())
                message = Neighbours(session, self._members, self._seed, tuple(peers))
            case Stage.MASKED:
                message = self._inbox(position)
            case Stage.ASSENT:
                message = Survivors(session, self._members)
            case _:
                message = self._assents_for(position)
        return message.encode()

    def receive(self, position: int, message: bytes) -> None:
        """Take a client's answer. Refused or CodecError: it was not taken (see `culprits` for whether it is out)."""
        try:
            self._receive(position, message)
        except (Refused, CodecError) as error:
            LOG.warning("session %s refuses client %d: %s", self.terms.session.hex()[:16], position, error)
            raise

    def leave(self, position: int) -> None:
        """A client will not answer: do not wait for it."""
        if position in self._asked:
            self._asked.remove(position)
            self.dropped[position] = self.stage

    def advance(self) -> None:
        """Close the stage: clients that did not answer drop out. NotOpened, and the end, if too few are left."""
        for position in sorted(self._asked):
            self.leave(position)
        stage, self._answered = self.stage, {}
        try:
            match stage:
                case Stage.KEYS:
                    self._after_keys()
                case Stage.PICKS:
                    self._ask(Stage.SHARES, self._picks)
                    self._share(self._picks)
                case Stage.SHARES:
                    self._after_shares()
                case Stage.MASKED:
                    self._after_masked()
                case Stage.ASSENT:
                    self._after_assent()
                case Stage.UNMASK if self._unmasking is not None:
                    self._after_unmask(self._unmasking)
                case _:
                    raise InputError("the session is over: there is no stage to close")
        except NotOpened as error:
            self.stage, self._asked, self._unmasking = Stage.FAILED, set(), None
            LOG.warning("session %s ends after %s: %s", self.terms.session.hex()[:16], stage.name, error)
            raise
        LOG.info("session %s: %s is over, %d to answer", self.terms.session.hex()[:16], stage.name, self.waiting)

    def _receive(self, position: int, data: bytes) -> None:
        if not 0 <= position < self.terms.clients:
            raise Refused(f"there is no client {position} in a session of {self.terms.clients}")
        digest = sha256(data).digest()
        if self._answered.get(position) == digest:
            return  # sent again: its reply was lost
        if position not in self._asked and position not in self._answered:
            raise Refused("it is not asked any more")
        try:
            message = decode(data)
            if isinstance(message, InSession) and message.session == self.terms.session and message.stage < self.stage:
                raise _LateError(f"its answer to {message.stage.name} came too late")
            if position in self._answered:
                raise Refused(f"it gave two answers to {self.stage.name}")
            self._take(position, message)
        except _LateError:
            raise
        except (Refused, CodecError) as error:
            self._exclude(position, str(error))
            raise
        self._asked.remove(position)
        self._answered[position] = digest

    def _exclude(self, position: int, reason: str) -> None:
        """Name a client and ask it no more. What it gave in this stage is undone where that can be."""
        self.culprits[position] = reason
        self._asked.discard(position)
        self._answered.pop(position, None)
        if self.stage is Stage.KEYS:
            self._peers.pop(position, None)
        elif self.stage is Stage.PICKS:
            self._picks.pop(position, None)
        elif self.stage is Stage.SHARES:
            self._shared[position] = False
        elif self.stage is Stage.ASSENT:
            self._assents.pop(position, None)

    def _take(self, position: int, message: SecureSumMessage) -> None:
        if not isinstance(message, InSession) or message.session != self.terms.session:
            raise Refused(f"its {type(message).__name__} belongs to another session")
        match self.stage, message:
            case Stage.KEYS, Keys():
                self._take_keys(position, message)
            case Stage.PICKS, Picks():
                own = np.array(message.picks, dtype=np.int64)
                wanted = min(self.terms.degree, len(self._members) - 1)
                if (
                    len(own) != wanted
                    or position in message.picks
                    or not all(p in self._members for p in message.picks)
                ):
                    raise Refused(f"its picks are not {wanted} other clients that have sent keys")
                self._picks[position] = own
            case Stage.SHARES, Sealed():
                edges = self._sharing.from_dealer(position)
                if list(message.letters) != self._sharing.holders(position).tolist():
                    raise Refused("its letters are not to its holders")
                letters = np.frombuffer(b"".join(message.letters.values()), dtype=np.uint8)
                self._letters[edges] = letters.reshape(-1, LETTER)
                self._shared[position] = True
            case Stage.MASKED, Masked():
                self._take_vector(position, message)
            case Stage.ASSENT, Assent():
                statement = assent_statement(self.terms.session, position, self._sharers, self._members)
                if not verified(self._roster[position], message.signature, statement):
                    raise Refused("its assent is not signed by it for these survivors")
                self._assents[position] = message.signature
            case Stage.UNMASK, Unmask() if self._unmasking is not None:
                self._unmasking.tell(position, message)
            case _:
                raise Refused(f"its {type(message).__name__} is no answer to {self.stage.name}")

    def _take_keys(self, position: int, message: Keys) -> None:
        keys, identity = message.keys, self._roster[position]
        for key in (keys.sealing, keys.masking):
            _PROBE.exchanged(key)
        if keys.sealing == keys.masking or not self._shown.isdisjoint((keys.sealing, keys.masking)):
            raise Refused("it shows a key twice, or another's")
        statement = keys_statement(self.terms.session, position, keys.sealing, keys.masking, keys.commitment)
        if not verified(identity, keys.signature, statement):
            raise Refused("its keys are not signed by it for this session")
        self._shown |= {keys.sealing, keys.masking}
        self._peers[position] = Peer(position, identity, self._proofs[position], keys)

    def _take_vector(self, position: int, message: Masked) -> None:
        vector = unpack(message.vector, self.terms.size, self.terms.bits)
        statement = masked_statement(self.terms.session, position, self._sharers)
        if not verified(self._roster[position], message.signature, statement):
            raise Refused("it has not signed among which clients its vector is masked")
        self._total += vector
        self._masked[position] = True
        self._signatures[position] = message.signature

    def _inbox(self, position: int) -> Inbox:
        dealers = self._sharing.dealers(position)
        shared = self._shared[dealers]
        rows = self._letters[self._sharing.to_holder(position)[shared]]
        letters = dict(zip(dealers[shared].tolist(), (row.tobytes() for row in rows), strict=True))
        return Inbox(self.terms.session, self._sharers, letters)

    def _assents_for(self, position: int) -> Assents:
        signers = [p for p in self._sharing.holders(position).tolist() if p in self._assents]
        assents = {signer: self._assents[signer] for signer in signers[: self.terms.threshold]}
        dealers = self._sharing.dealers(position)
        lying = self.terms.mode is Mode.MALICIOUS  # what it might be, its clients have to exclude
        masked = {p: self._signatures[p] for p in dealers[self._masked[dealers]].tolist()} if lying else {}
        return Assents(self.terms.session, assents, masked)

    def _ask(self, stage: Stage, positions: Sequence[int] | dict[int, Ints]) -> None:
        """Open a stage to those who are still in; NotOpened if they are fewer than must survive."""
        if stage <= Stage.ASSENT and len(positions) < self.terms.survivors:
            raise NotOpened(
                f"{len(positions)} clients are left of {self.terms.clients}, fewer than the {self.terms.survivors} "
                "that must survive: nothing was opened; ask again, or more people"
            )
        self.stage = stage
        self._asked = {position for position in positions if position not in self.culprits}

    def _after_keys(self) -> None:
        members = sorted(self._peers)
        self._members = Bitmap.of(self.terms.clients, members)
        if self.terms.mode is Mode.MALICIOUS:
            self._ask(Stage.PICKS, members)
        else:
            self._ask(Stage.SHARES, members)
            rows = ring_neighbours(self._seed, np.array(members, dtype=np.int64), self.terms.degree)
            self._share(dict(zip(members, rows, strict=True)))

    def _share(self, holders: dict[int, Ints]) -> None:
        self._sharing = SecretShareHolders(self.terms.clients, holders)
        self._letters = np.zeros((self._sharing.edges, LETTER), dtype=np.uint8)

    def _after_shares(self) -> None:
        """Leave out clients with too few holders that shared, again and again, until there are none."""
        while (lonely := self._shared & (self._sharing.holding(self._shared) < self.terms.threshold)).any():
            self._shared &= ~lonely
            for position in np.flatnonzero(lonely).tolist():
                self.dropped[position] = Stage.SHARES
                self.lonely.add(position)
        sharers = np.flatnonzero(self._shared).tolist()
        self._ask(Stage.MASKED, sharers)
        self._sharers = Bitmap.of(self.terms.clients, sharers)

    def _after_masked(self) -> None:
        self._letters = np.empty((0, LETTER), dtype=np.uint8)
        survivors = np.flatnonzero(self._masked).tolist()
        self._ask(Stage.ASSENT, survivors)
        self._members = Bitmap.of(self.terms.clients, survivors)
        keys = {position: peer.keys for position, peer in self._peers.items()}
        self._unmasking = Unmasking(self.terms, self._sharing, keys, self._shared, self._masked)
        self._check_enough(survivors)

    def _after_assent(self) -> None:
        assented = np.zeros(self.terms.clients, dtype=bool)
        assented[list(self._assents)] = True
        convinced = assented & (self._sharing.holding(assented) >= self.terms.threshold)
        tellers = np.flatnonzero(convinced).tolist()
        self._check_enough(tellers)
        self._ask(Stage.UNMASK, tellers)

    def _check_enough(self, tellers: Sequence[int]) -> None:
        marks = np.zeros(self.terms.clients, dtype=bool)
        marks[[teller for teller in tellers if teller not in self.culprits]] = True
        if self._unmasking is None or not self._unmasking.enough(marks):
            raise NotOpened(
                f"a client's secret has fewer than {self.terms.threshold} holders left: nothing was opened; ask again, "
                "with more neighbours or a lower threshold"
            )

    def _after_unmask(self, unmasking: Unmasking) -> None:
        try:
            secrets = unmasking.secrets()
        finally:
            self.culprits |= unmasking.culprits
        self.result = unmasking.open(self._total, secrets)
        self.stage = Stage.OPENED
        self._unmasking = None


class _LateError(Refused):
    """An answer to a stage that is over: it is not taken, and its sender is not at fault."""
