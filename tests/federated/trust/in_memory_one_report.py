"""People in one process who report once, and two servers who walk down the tree: for tests.

Adding up shares is free: noise goes on the sums of a question, not on the counts below them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves, WholeDomain
from hazemap.encoders import Concatenation, Counts, Encoder
from hazemap.errors import Refused, Unanswerable
from hazemap.federated.trust.one_report import OneReportTrust, moved
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.federated.trust.report_batch import asked_of
from hazemap.machine_code.arrays import Bools, Ints, Words
from hazemap.privacy.budget import Budget
from hazemap.privacy.two_server_noise import TwoServerNoise, lifted, residues
from hazemap.queries.noisy_queries import Answer, Question
from hazemap.vdaf.idpf import MODULUS_INNER
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.poplar1_evaluation import TreeNodes
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare

WholeNumbers = NDArray[np.object_]
"""Of any size, such as sums of elements of a field that are yet to be reduced."""


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Counts of some cells of one level, in their ascending order, and of whoever is nowhere.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> counts = LevelCounts(Leaves.at_level(tree, 1), 1, [10, 20, 30, 40], nowhere=5)
    >>> known, sums = counts.within(Leaves(tree, np.array([1, 5, 16], dtype=np.uint64)))
    >>> known.tolist(), sums.tolist()
    ([True, True, False], [100, 20, 0])
    """

    cells: Leaves
    level: int
    counts: Sequence[int]
    nowhere: int

    def within(self, asked: Leaves) -> tuple[Bools, WholeNumbers]:
        """Which cells these fill, and for those the sums of all counts in them. O(cells x log counts)."""
        begins, ends = asked.spans
        first, last = self.cells.stretches
        at = np.searchsorted(first, begins, "right") - 1
        known = (asked.levels >= 0) & (asked.levels <= self.level) & (at >= 0) & (last[at] >= ends)
        sums = np.zeros(asked.size, dtype=np.object_)
        here = np.searchsorted(self.cells.spans[0], begins[known])
        there = np.searchsorted(self.cells.spans[0], ends[known], "right")
        sums[known] = self._until[there] - self._until[here]
        return known, sums

    @cached_property
    def _until(self) -> WholeNumbers:
        return np.array(list(accumulate(self.counts, initial=0)), dtype=np.object_)


def asked_sums(encoder: Encoder, levels: Sequence[LevelCounts]) -> WholeNumbers:
    """The sums that a question asks, from the least deep level that knows each cell; `Unanswerable` if none does.

    A person counts in the deepest of the cells asked that holds them, as everywhere. O(cells x levels x log counts).
    """
    if isinstance(encoder, Concatenation):
        parts = zip(encoder.weights, encoder.parts, strict=True)
        return np.concatenate([weight * asked_sums(part, levels) for weight, part in parts])
    if isinstance(encoder, Counts) and isinstance(encoder.cells, WholeDomain):
        whole = asked_sums(Counts(_leaves(encoder.cells), encoder.bounding), levels)
        return np.array([whole.sum()], dtype=np.object_)
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves):
        raise Unanswerable("one report answers counts of listed cells")
    asked = encoder.cells
    missing = asked.cells != NOWHERE
    sums = np.full(asked.size, levels[-1].nowhere if levels else 0, dtype=np.object_)
    for counts in sorted(levels, key=lambda each: each.level):
        known, found = counts.within(asked)
        sums[known & missing] = found[known & missing]
        missing &= ~known
    if missing.any() or not levels:
        raise Unanswerable(f"{int(missing.sum()):,} cells are no unions of cells that the servers counted")
    return asked.own(sums)


def _leaves(whole: WholeDomain) -> Leaves:
    cells: Cells = whole.tree.root
    return Leaves(whole.tree, cells)


T = TypeVar("T")
_CONTEXT = b"hazemap in memory"


class OneReportServer:
    """One of two servers: its shares of all reports, how far it has walked, and its shares of what was counted."""

    def __init__(self, poplar1: Poplar1, index: int, key: bytes, reports: Sequence[ReportShare]) -> None:
        self.levels: list[LevelCounts] = []
        self._poplar1, self._index, self._key = poplar1, index, key
        self._reports, self._asked = list(reports), list[bytes]()
        self._nodes: TreeNodes | None = None

    def begin(self, parameter: bytes) -> list[Continuation]:
        """The first round at a level that goes down from those before."""
        if not self._poplar1.is_valid(parameter, self._asked):
            raise Refused("each level of a tree is asked below the one before, in cells that were asked there")
        self._asked.append(parameter)
        begun, self._nodes = self._poplar1.verify_init_below(
            self._key, _CONTEXT, self._index, parameter, self._reports, self._nodes, keep=True
        )
        return [_valid(each) for each in begun]

    def go_on(self, parameter: bytes, own: Sequence[Any], other: Sequence[Any]) -> list[Any]:
        """The next round of every report, from both servers' last one; after two rounds, shares of its counts."""
        both = (own, other) if self._index == 0 else (other, own)
        said = [(a.verifier_share, b.verifier_share) for a, b in zip(*both, strict=True)]
        messages = [_valid(each) for each in self._poplar1.verifier_shares_to_messages(_CONTEXT, parameter, said)]
        return [_valid(each) for each in self._poplar1.verify_next_all(_CONTEXT, [a.state for a in own], messages)]

    def add_up(self, parameter: bytes, shares: Sequence[Words], cells: Leaves, level: int, places: Ints) -> None:
        """Keep the shares of the counts of a level's cells, whose places among the prefixes are given."""
        counts = self._poplar1.merge(parameter, shares)[:, 0].tolist()
        self.levels.append(LevelCounts(cells, level, [counts[place] for place in places], counts[-1]))


class InMemoryOneReport(OneReportTrust):
    """Answers by reports that the people of a table make once, in shares for two servers (Poplar1).

    Each server adds up its shares of a question's sums, and adds the whole noise before they leave it. Its answers have
    the law of `OneReportTrust`. A person costs some 10 ms, and 1 ms for each level.

    >>> from hazemap import AtMostRows, Counts, MemoryTable, PureDP, Quadtree, Query
    >>> from hazemap.federated.trust.report_batch import ReportBatch
    >>> table = MemoryTable(np.arange(20), {"lon": np.full(20, 2.35), "lat": np.full(20, 48.85)})
    >>> trust = InMemoryOneReport(table, ReportBatch(20, 19), levels=1)
    >>> tree = Quadtree.world(depth=2)
    >>> trust.answer(Query(Counts(Leaves.at_level(tree, 1), AtMostRows(1)), 1), PureDP(50)).sums
    array([ 0, 20,  0,  0])
    """

    _servers: tuple[OneReportServer, OneReportServer] | None = None

    def answer(self, question: Question, price: Budget) -> Answer:
        """Walk down as far as the question needs, add up, and add both servers' noise."""
        encoder = asked_of(question, "two servers").encoder
        self.walk.take(encoder)
        noise = TwoServerNoise.within(price, moved(encoder))
        _, people = self._opened(encoder)
        servers = self._servers = self._servers or self._reported()
        for level, cells in self.walk.candidates[len(servers[0].levels) :]:
            self._go_down(servers, level, cells)
        added = noise if noise.fits else noise.widest
        shares = []
        for server in servers:
            sums = asked_sums(encoder, server.levels) * int(noise.fits)  # where it does not fit 64 bits, noise alone
            drawn = residues(added.share(self._stream, encoder.size), MODULUS_INNER)
            shares.append([(a + b) % MODULUS_INNER for a, b in zip(sums.tolist(), drawn, strict=True)])
        together = lifted([(a + b) % MODULUS_INNER for a, b in zip(*shares, strict=True)], MODULUS_INNER)
        return Answer(together, np.array([noise.stddev]), noise.kurtosis, people)

    def _reported(self) -> tuple[OneReportServer, OneReportServer]:
        """Both servers, with the reports of whoever was drawn and answered."""
        if self.walk.where is None or self._sample is None:
            raise Unanswerable("nothing was asked, so nobody has reported")
        tree, bounding = self.walk.where
        votes, strings, stream = self._sample.votes(tree, bounding), CellStrings(tree), self._stream
        poplar1 = Poplar1(strings.bits, self.walk.most + 1)
        reports: tuple[list[ReportShare], list[ReportShare]] = [], []
        for string in strings.of_people(np.repeat(votes.cells, votes.weights)).tolist():
            nonce, rand = (stream.words(size // 8).tobytes() for size in (poplar1.NONCE_SIZE, poplar1.RAND_SIZE))
            public, shares = poplar1.shard(_CONTEXT, string, nonce, rand)
            for server, share in enumerate(shares):
                reports[server].append(ReportShare(nonce, public, share))
        key = stream.words(poplar1.VERIFY_KEY_SIZE // 8).tobytes()
        return OneReportServer(poplar1, 0, key, reports[0]), OneReportServer(poplar1, 1, key, reports[1])

    def _go_down(self, servers: tuple[OneReportServer, OneReportServer], level: int, cells: Cells) -> None:
        """Count one more level: both rounds of verification, and each server's shares of the counts."""
        if self.walk.where is None:
            raise Unanswerable("nothing was asked")
        tree, _ = self.walk.where
        asked, places = CellStrings(tree).parameter(level, cells)
        parameter = asked.to_bytes()
        said: list[list[Any]] = [list(server.begin(parameter)) for server in servers]
        for _ in range(Poplar1.ROUNDS):
            said = [server.go_on(parameter, said[i], said[1 - i]) for i, server in enumerate(servers)]
        for server, shares in zip(servers, said, strict=True):
            server.add_up(parameter, shares, Leaves(tree, cells), level, places)


def _valid(outcome: T | InvalidReport) -> T:
    """What came of a report; people of one process make no wrong ones."""
    if isinstance(outcome, InvalidReport):
        raise outcome
    return outcome
