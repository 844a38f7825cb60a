"""Who holds whose shares, in flat arrays as the server keeps it; and who is to blame where shares are wrong."""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Ints


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
