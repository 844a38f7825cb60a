"""What each person measured in each place, added up: what a curator keeps of the rows."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Columns, Tree
from hazemap.domains.dial import Dial
from hazemap.domains.measured import Measured
from hazemap.domains.places import Places
from hazemap.errors import TableError
from hazemap.tables.bounding import Bounding
from hazemap.tables.draws import KeyWords, SamplingKey, numbers, seeds
from hazemap.tables.votes import Votes
from hazemap.tables.whereabouts import Whereabouts

Numbers = NDArray[np.int64]
AT_ONCE = 1 << 20
"""Of so many pairs counters are in memory at one time."""
DRAWN_AS = "OwnMeans"
"""Places of a person are drawn as that rule draws them."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a person and a place, and Σ marks (`Dial.marks`) of their records, int64[pairs, marks].

    Only a trust model may hold it, and `whereabouts`, which hold no value, are public under VALUES ONLY. A person who
    is in a place with a million records is one pair: O(pairs), never O(rows).

    >>> from hazemap.domains import Always, Gauge, Quadtree
    >>> rows = {"lon": np.array([2.0, 2, 3]), "lat": np.array([48.0, 48, 49]), "value": np.array([0.0, 60, 15])}
    >>> places = Places(Quadtree.world(depth=1), Always(), Gauge(0, 60))
    >>> pairs = Pairs.of_rows(places, np.array([7, 7, 8]), rows, key=0)
    >>> pairs.whereabouts.records, pairs.sums[:, 0] / (1 << 20)
    (array([2, 1]), array([1.  , 0.25]))
    """

    tree: Measured
    whereabouts: Whereabouts
    sums: Numbers

    @classmethod
    def of_rows(cls, places: Places, person: Numbers, columns: Columns, key: SamplingKey) -> "Pairs":
        """From rows in memory: the plain twin of what an engine does (`tables.counting.pairing`)."""
        found = places.rows(columns)
        known = found.cells != NOWHERE
        cells, at = np.unique(found.cells[known], return_inverse=True)
        tree = places.occupied(cells)
        place = at.astype(np.int64) * len(places.slots.names) + found.slots[known]
        words = KeyWords.expanded(key, DRAWN_AS)
        codes, who = np.unique(seeds(person[known].view(np.uint64), words), return_inverse=True)
        both, pair, records = np.unique(
            who.astype(np.int64) * tree.places + place, return_inverse=True, return_counts=True
        )
        marks = Dial(places.gauge).marks
        sums = np.zeros((len(both), marks.shape[1]), dtype=np.int64)
        np.add.at(sums, pair, marks[found.readings[known]])
        whose, where = np.divmod(both, tree.places)
        drawn = numbers(codes[whose], where.astype(np.uint64))
        order = np.lexsort((drawn, whose))
        firsts = np.concatenate([[0], np.cumsum(np.bincount(whose))])
        public = Whereabouts(firsts, where[order].astype(np.int32), records[order].astype(np.int64), tree.places)
        return cls(tree, public, sums[order])

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """`TableError`: these pairs answer for values whose numbers of people are public, and for nothing else."""
        raise TableError(f"pairs of people and places answer no question about {type(tree).__name__} under {bounding}")


@dataclass(frozen=True, eq=False)
class KeptPairs:
    """Those pairs that count in a release, bool[pairs], and for how many records at most.

    Which these are was chosen from whereabouts alone, so it is public; the table holds values, so it is not.
    """

    pairs: Pairs
    kept: NDArray[np.bool_]
    records: int

    def counters(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Places, and the counters of one person each, some hundred thousand pairs at a time."""
        dial, public = Dial(self.pairs.tree.gauge), self.pairs.whereabouts
        chosen = np.flatnonzero(self.kept)
        for start in range(0, len(chosen), AT_ONCE):
            some = chosen[start : start + AT_ONCE]
            records = public.records[some]
            shared = dial.shared(self.pairs.sums[some], records, np.minimum(records, self.records))
            yield public.place[some].astype(np.int64), shared

    def weights(self) -> tuple[Numbers, int, int]:
        """The weight that counts in each place; the most of a person in all places, and of its squares. O(pairs)."""
        public = self.pairs.whereabouts
        weights = np.where(self.kept, public.weights(self.records), 0)
        place = np.zeros(public.number, dtype=np.int64)
        np.add.at(place, public.place, weights)
        own = np.add.reduceat(weights, public.firsts[:-1])
        return place, int(own.max()), int(np.add.reduceat(weights**2, public.firsts[:-1]).max())

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """`TableError`, as of `Pairs`."""
        return self.pairs.votes(tree, bounding)
