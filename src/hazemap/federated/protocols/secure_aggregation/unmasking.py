"""The end of a session: shares become secrets, secrets become masks, and the masks are taken off the sum.

`SecretShareHolders` says who holds whose shares, in flat arrays as the server keeps them, and who is to blame
where shares are wrong.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation.key_agreement import (
    AgreementKeyPair,
    pair_mask,
    seed_commitment,
    self_mask,
)
from hazemap.federated.protocols.secure_aggregation.masks import add_mask, subtract_mask
from hazemap.federated.protocols.secure_aggregation.messages import PublicKeys, Unmask
from hazemap.federated.protocols.secure_aggregation.modular_packing import Words, lifted
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SHARE, join_all, join_with_errors
from hazemap.machine_code.arrays import Bools, Ints


class SecretShareHolders:
    """The edges of a session, ordered by dealer and then by holder; what travels along them is kept by their number.

    A letter or a share is a row of bytes[edges, length], so that a session of 10,000 clients of degree 100 is a
    few arrays and no million of objects.

    >>> sharing = SecretShareHolders(3, {0: np.array([1, 2]), 2: np.array([0])})
    >>> sharing.holders(0).tolist(), sharing.dealers(0).tolist(), sharing.peers(0).tolist()
    ([1, 2], [2], [1, 2])
    >>> sharing.from_dealer(2), sharing.to_holder(0).tolist()
    (slice(2, 3, None), [2])
    """

    def __init__(self, clients: int, holders: Mapping[int, Ints]) -> None:
        degrees = np.zeros(clients, dtype=np.int64)
        for dealer, row in holders.items():
            degrees[dealer] = len(row)
        rows = [holders[dealer] for dealer in sorted(holders)]
        self._holder = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
        self._dealer = np.repeat(np.arange(clients), degrees)
        self._start = np.concatenate([[0], np.cumsum(degrees)])
        self._by_holder = np.argsort(self._holder, kind="stable")
        counts = np.bincount(self._holder, minlength=clients)
        self._held = np.concatenate([[0], np.cumsum(counts)])

    @property
    def edges(self) -> int:
        """How many there are."""
        return len(self._holder)

    def from_dealer(self, dealer: int) -> slice:
        """The edges of a dealer, to its holders ascending."""
        return slice(int(self._start[dealer]), int(self._start[dealer + 1]))

    def to_holder(self, holder: int) -> NDArray[np.int64]:
        """The edges to a holder, from its dealers ascending."""
        return self._by_holder[self._held[holder] : self._held[holder + 1]]

    def holders(self, dealer: int) -> Ints:
        """Who holds shares of a dealer, ascending."""
        return self._holder[self.from_dealer(dealer)]

    def dealers(self, holder: int) -> Ints:
        """Whose shares a holder holds, ascending."""
        return self._dealer[self.to_holder(holder)]

    def peers(self, client: int) -> Ints:
        """Everybody with whom a client has a mask: its holders and its dealers, ascending."""
        return np.union1d(self.holders(client), self.dealers(client))

    def holding(self, marks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many holders each client has among the marked ones, int64[clients]."""
        running = np.concatenate([[0], np.cumsum(marks[self._holder])])
        return np.asarray(running[self._start[1:]] - running[self._start[:-1]], dtype=np.int64)

    def adjacent(self, marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each client has a peer among the marked ones, bool[clients]."""
        found = np.zeros(len(self._start) - 1, dtype=bool)
        found[self._dealer[marks[self._holder]]] = True
        found[self._holder[marks[self._dealer]]] = True
        return found


def blamed(quarrels: Iterable[tuple[int, int]]) -> dict[int, str]:
    """A small set of clients that explains all quarrels, each (holder, dealer), with the reasons.

    A share that is wrong or missing was spoilt by its holder or dealt so; nobody else can say which. The client in the
    most quarrels is named first, with them all, and so on: liars are few, and quarrel with many. In a quarrel of one
    against one the holder is named, and its reason says so.

    >>> blamed([(1, 7), (2, 7), (3, 7), (4, 5)])
    {7: 'dealt 3 shares that are wrong or missing', 4: 'told a wrong share of client 5, or none (or 5 dealt it so)'}
    """
    left = set(quarrels)
    named = {}
    while left:
        told, dealt = Counter(holder for holder, _ in left), Counter(dealer for _, dealer in left)
        worst = max(
            told.keys() | dealt.keys(), key=lambda client: (told[client] + dealt[client], told[client], -client)
        )
        if told[worst] + dealt[worst] == 1:  # then `told`: of two that are in one quarrel the holder comes first
            [dealer] = [dealer for holder, dealer in left if holder == worst]
            named[worst] = f"told a wrong share of client {dealer}, or none (or {dealer} dealt it so)"
        else:
            reasons = [(told[worst], "told"), (dealt[worst], "dealt")]
            named[worst] = ", ".join(
                f"{word} {count} shares that are wrong or missing" for count, word in reasons if count
            )
        left = {quarrel for quarrel in left if worst not in quarrel}
    return named


@dataclass(frozen=True, eq=False)
class Opened:
    """What a session tells: the exact sums of contributions and noise, int64[size], over this many people.

    >>> Opened(np.array([3, -1]), people=2).people
    2
    """

    sums: NDArray[np.int64]
    people: int


class Unmasking:
    """Collects the shares that holders send, and opens the sum.

    Of a survivor the seed of its self mask is needed; of a client that shared and then was gone, the key of the masks
    that it has with survivors. `culprits` names, after `secrets`, those whose shares did not fit.
    """

    def __init__(
        self,
        terms: SessionParameters,
        sharing: SecretShareHolders,
        keys: Mapping[int, PublicKeys],
        shared: Bools,
        survivors: Bools,
    ) -> None:
        self._terms = terms
        self._sharing = sharing
        self._keys = keys
        self._shared = shared
        self._survivors = survivors
        self._needed: Bools = survivors | (shared & sharing.adjacent(survivors))
        self._told = np.zeros((sharing.edges, SHARE), dtype=np.uint8)
        self._has = np.zeros(sharing.edges, dtype=bool)
        self._suspects: set[int] = set()
        self._quarrels: set[tuple[int, int]] = set()
        self.culprits: dict[int, str] = {}

    def enough(self, holders: Bools) -> bool:
        """Whether every secret that is needed has `threshold` holders among these."""
        return bool((self._sharing.holding(holders)[self._needed] >= self._terms.threshold).all())

    def tell(self, holder: int, message: Unmask) -> None:
        """Take the shares of a holder; Refused, and none is taken, if it sends any that it was not asked for."""
        edges, dealers = self._sharing.to_holder(holder), self._sharing.dealers(holder)
        asked = self._shared[dealers]
        seeds, keys = (dealers[asked & kind].tolist() for kind in (self._survivors[dealers], ~self._survivors[dealers]))
        if not (message.seeds.keys() <= set(seeds) and message.keys.keys() <= set(keys)):
            raise Refused("it sends shares that it was not asked for")
        both = {**message.seeds, **message.keys}
        told = np.array([dealer in both for dealer in dealers.tolist()], dtype=bool)
        rows = b"".join(both[dealer] for dealer in dealers[told].tolist())
        self._told[edges[told]] = np.frombuffer(rows, dtype=np.uint8).reshape(-1, SHARE)
        self._has[edges[told]] = True
        self._quarrels |= {(holder, dealer) for dealer in dealers[asked & ~told & self._needed[dealers]].tolist()}

    def secrets(self) -> dict[int, bytes]:
        """The seed of every survivor and the masking key of everybody else who is needed.

        Each is checked against what its dealer committed to; where it differs, wrong shares are found as errors of a
        Reed–Solomon word. NotOpened if a secret has too few shares, or its dealer's shares fit none; `culprits` then
        names all who are to blame, so that another session can do without them.
        """
        threshold = self._terms.threshold
        dealers: list[int] = np.flatnonzero(self._needed).tolist()
        few = [dealer for dealer in dealers if self._has[self._sharing.from_dealer(dealer)].sum() < threshold]
        enough = [dealer for dealer in dealers if dealer not in {*few}]
        joined = join_all([self._shares(dealer, threshold) for dealer in enough], threshold) if enough else []
        both = zip(enough, joined, strict=True)
        secrets = {dealer: secret for dealer, secret in both if secret and self._fits(dealer, secret)}
        self._mend([dealer for dealer in enough if dealer not in secrets], secrets)
        self.culprits |= blamed(self._quarrels)
        unfit = [dealer for dealer in enough if dealer not in secrets]
        for dealer in unfit:
            self.culprits[dealer] = (
                "dealt shares that fit no secret it was committed to (or too many of their holders lied)"
            )
        if few or unfit:
            causes = [(few, "the shares of {} clients are too few"), (unfit, "{} clients dealt wrong shares")]
            what = ", ".join(words.format(len(which)) for which, words in causes if which)
            raise NotOpened(f"{what}: this session cannot be opened; form another without its culprits")
        return secrets

    def open(self, total: Words, secrets: Mapping[int, bytes]) -> Opened:
        """Take all masks off the sum of the vectors, in place.

        One mask for each survivor, and one key agreement and one mask for each pair of a survivor and a client that
        shared and was gone: at 65,536 words of 32 bits about 40 µs and 70 µs.
        """
        session, among = self._terms.session, np.packbits(self._shared).tobytes()
        for dealer, secret in secrets.items():
            if self._survivors[dealer]:
                subtract_mask(total, self_mask(secret, session))
                continue
            private, peers = AgreementKeyPair.from_bytes(secret), self._sharing.peers(dealer)
            for peer in peers[self._survivors[peers]].tolist():
                key = pair_mask(private, self._keys[peer].masking, session, among)
                (subtract_mask if peer < dealer else add_mask)(total, key)
        return Opened(lifted(total, self._terms.bits), int(self._survivors.sum()))

    def _shares(self, dealer: int, most: int | None = None) -> dict[int, bytes]:
        """The shares told of a dealer, by point; the first `most` of them."""
        edges = self._sharing.from_dealer(dealer)
        has = self._has[edges]
        points = (self._sharing.holders(dealer)[has][:most] + 1).tolist()
        rows = self._told[edges][has][:most].tobytes()
        return dict(zip(points, (rows[i : i + SHARE] for i in range(0, len(rows), SHARE)), strict=True))

    def _fits(self, dealer: int, secret: bytes) -> bool:
        """Whether this is what the dealer's signed keys promise."""
        keys = self._keys[dealer]
        if self._survivors[dealer]:
            return seed_commitment(self._terms.session, dealer, secret) == keys.commitment
        return AgreementKeyPair.from_bytes(secret).public == keys.masking

    def _mend(self, left: list[int], secrets: dict[int, bytes]) -> None:
        """Find the secrets of which some shares are wrong. A liar that is found at one dealer is left out at all."""
        suspects = -1
        while left and len(self._suspects) > suspects:
            suspects = len(self._suspects)
            found = {dealer: secret for dealer in left if (secret := self._mended(dealer)) is not None}
            secrets.update(found)
            left = [dealer for dealer in left if dealer not in found]

    def _mended(self, dealer: int) -> bytes | None:
        """A secret of which some shares are wrong; None if its dealer's shares fit none.

        First without those who have lied before, which costs little, so that a liar is decoded once and not for
        each of its dealers. Nobody is blamed but for a share that does not fit the secret.
        """
        threshold, shares = self._terms.threshold, self._shares(dealer)
        trusted = {point: share for point, share in shares.items() if point - 1 not in self._suspects}
        if len(trusted) >= threshold and len(trusted) < len(shares):
            [secret] = join_all([trusted], threshold)
            if secret is not None and self._fits(dealer, secret):
                good = dict(list(trusted.items())[: threshold - 1])
                doubted = sorted(shares.keys() - trusted.keys())
                again = join_all([{point: shares[point], **good} for point in doubted], threshold)
                wrong = [point for point, other in zip(doubted, again, strict=True) if other != secret]
                self._quarrels |= {(point - 1, dealer) for point in wrong}
                return secret
        for some in (shares, trusted):
            try:
                secret, wrong_points = join_with_errors(some, threshold)
            except NotOpened:
                continue
            if self._fits(dealer, secret):
                self._suspects |= {point - 1 for point in wrong_points}
                self._quarrels |= {(point - 1, dealer) for point in wrong_points}
                return secret
        return None
