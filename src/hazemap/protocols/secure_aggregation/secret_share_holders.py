"""Who holds whose shares, as the server keeps it: an edge from each dealer to each of its holders, in flat arrays."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints


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
