"""One server's half of many reports of Poplar1 at one level: nodes evaluated, and the sketch over them."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from hazemap.machine_code.arrays import Bytes, Words
from hazemap.vdaf.idpf import CONVERT, EXTEND
from hazemap.vdaf.poplar1_parameter import Poplar1Parameter
from hazemap.vdaf.poplar1_shares import DecodedReports
from hazemap.vdaf.poplar1_tags import Usage, idpf_tag, length_and, tag
from hazemap.vdaf.prefix_tree import PrefixTree

_NODES_TOGETHER = 1 << 16
"""Nodes of several reports that are in memory at once: some 2 MB, which a processor keeps near."""


@dataclass(frozen=True, eq=False)
class TreeNodes:
    """Where many reports stand at the nodes of one level, so that the next level goes on from there.

    17 bytes a node and report. The row of a report that is not valid is of no use.
    """

    level: int
    nodes: Words
    seeds: Words
    """[report, node, 2]"""
    controls: Bytes
    """[report, node]"""

    def of(self, reports: list[int]) -> "TreeNodes":
        """Some reports', in that order."""
        return TreeNodes(self.level, self.nodes, self.seeds[reports], self.controls[reports])


_ROOT = np.zeros(1, dtype=np.uint64)


@lru_cache(maxsize=4, typed=True)
def _below_root(parameter: Poplar1Parameter) -> PrefixTree:
    """What all jobs with this parameter walk: a parameter is itself, whatever is in it.

    A tree has 8 bytes a node: 33 MB for the most prefixes on the deepest level that there are.
    """
    return PrefixTree.below(_ROOT, -1, parameter.prefixes, parameter.level)


@dataclass(frozen=True, eq=False)
class EvaluatedShares:
    """Of each report: the share of the sketch, what masks its second round, and the share of the result."""

    sketches: Words
    """[report, 3, words]"""
    masks: Words
    """[report, 2, words]"""
    data: Words
    """[report, prefix, words]"""


@dataclass(frozen=True, eq=False)
class _Begun:
    """Of each report: what its tree is expanded with, and the message that its sketch's random numbers are drawn from.

    Some hundred bytes a report: made for all of them, before their trees are walked a few at a time.
    """

    aes_keys: Words
    """[report, use, 2]"""
    verify: Words
    """[report, words]"""


@dataclass(frozen=True)
class Poplar1Evaluator:
    """What one server evaluates reports with."""

    bits: int
    verify_key: bytes
    ctx: bytes
    agg_id: int

    def evaluate(
        self, parameter: Poplar1Parameter, reports: DecodedReports, nodes: TreeNodes | None, keep: bool
    ) -> tuple[EvaluatedShares, TreeNodes | None]:
        """The shares of all reports at one level, from kept nodes of a level above it or from the root.

        Cost: 2 blocks of AES for each node on the way and report, 3 at the level; at the leaves 2 permutations.
        """
        count, prefixes, level = len(reports.faults), parameter.prefixes, parameter.level
        words = 4 if level == self.bits - 1 else 1
        if nodes is None:
            root = np.full((count, 1), self.agg_id, dtype=np.uint8)
            nodes, tree = TreeNodes(-1, _ROOT, reports.keys[:, None], root), _below_root(parameter)
        else:
            tree = PrefixTree.below(nodes.nodes, nodes.level, prefixes, level)
        shares = EvaluatedShares(
            self._correlated(parameter, reports),
            self._masks(level, reports),
            np.empty((count, prefixes.size, words), np.uint64),
        )
        keep = keep and words == 1
        kept = TreeNodes(
            level,
            prefixes,
            np.empty((count if keep else 0, prefixes.size, 2), dtype=np.uint64),
            np.empty((count if keep else 0, prefixes.size), dtype=np.uint8),
        )
        begun = _Begun(self._aes_keys(reports.nonces), self._verify_messages(level, reports.nonces))
        together = max(8, _NODES_TOGETHER // prefixes.size & -8)
        for first, last in pairwise([*range(0, count, together), count]):
            some = slice(first, last)
            if words == 1:
                self._inner(parameter, reports, begun, nodes, tree, some, shares, kept)
            else:
                self._leaf(parameter, reports, begun, nodes, tree, some, shares)
        return shares, kept if keep else None

    def _inner(
        self,
        parameter: Poplar1Parameter,
        reports: DecodedReports,
        begun: _Begun,
        nodes: TreeNodes,
        tree: PrefixTree,
        some: slice,
        shares: EvaluatedShares,
        kept: TreeNodes,
    ) -> None:
        """Some reports, at a level above the leaves."""
        from hazemap.vdaf import poplar1_sketch, turboshake128_kernels

        size, count = parameter.prefixes.size, some.stop - some.start
        drawn = np.empty((count, size, 2), dtype=np.uint64)
        seeds, controls = self._walk(reports, begun, nodes, tree, some, drawn, kept.seeds.size > 0)
        random = np.empty((count, size), dtype=np.uint64)
        turboshake128_kernels.elements64(begun.verify[some], 0, random)
        poplar1_sketch.finish64(
            drawn,
            controls,
            reports.inner_words[some, parameter.level],
            self.agg_id == 1,
            random,
            shares.data[some, :, 0],
            shares.sketches[some, :, 0],
        )
        if kept.seeds.size:
            kept.seeds[some], kept.controls[some] = seeds, controls

    def _leaf(
        self,
        parameter: Poplar1Parameter,
        reports: DecodedReports,
        begun: _Begun,
        nodes: TreeNodes,
        tree: PrefixTree,
        some: slice,
        shares: EvaluatedShares,
    ) -> None:
        """Some reports, at the leaves."""
        from hazemap.vdaf import idpf_leaf_kernels, poplar1_sketch, turboshake128_kernels

        size, count = parameter.prefixes.size, some.stop - some.start
        seeds, controls = self._walk(
            reports, begun, nodes, tree.without_last(), some, np.empty((count, 0, 2), np.uint64), True
        )
        values = np.empty((count, 2, size, 4), dtype=np.uint64)
        heads = [length_and(idpf_tag(usage, self.ctx), 2) + bytes([16]) for usage in (EXTEND, CONVERT)]
        messages = np.stack(
            [turboshake128_kernels.padded([head, bytes(16), reports.nonces[some]], 1) for head in heads]
        )
        idpf_leaf_kernels.leaf_values(
            messages,
            len(heads[0]),
            reports.seed_words[some, -1],
            reports.control_words[some, -1],
            tree.of_level(tree.offsets.size - 2),
            seeds,
            controls,
            reports.leaf_words[some],
            values,
        )
        random = np.empty((count, size, 4), dtype=np.uint64)
        turboshake128_kernels.elements255(begun.verify[some], random)
        poplar1_sketch.finish255(values, self.agg_id == 1, random, shares.data[some], shares.sketches[some])

    def _walk(
        self,
        reports: DecodedReports,
        begun: _Begun,
        nodes: TreeNodes,
        tree: PrefixTree,
        some: slice,
        drawn: Words,
        kept: bool,
    ) -> tuple[Words, Bytes]:
        """Some reports' seeds, if they are `kept`, and control bits at the end of a tree of inner levels."""
        from hazemap.vdaf import idpf_kernels

        keys = begun.aes_keys[some]
        last = tree.of_level(tree.offsets.size - 2).size if tree.offsets.size > 1 else tree.start.size
        seeds = np.empty((len(keys), last if kept else 0, 2), dtype=np.uint64)
        controls = np.empty((len(keys), last), dtype=np.uint8)
        idpf_kernels.walk(
            keys,
            reports.seed_words[some],
            reports.control_words[some],
            tree.steps,
            tree.offsets,
            nodes.level + 1,
            nodes.seeds[some][:, tree.start],
            nodes.controls[some][:, tree.start],
            seeds,
            controls,
            drawn,
        )
        return seeds, controls

    def _aes_keys(self, nonces: Bytes) -> Words:
        """The fixed keys of AES of each report, for both uses."""
        from hazemap.vdaf.turboshake128_kernels import padded, squeezed

        keys = np.empty((len(nonces), 2, 2), dtype=np.uint64)
        for usage in (EXTEND, CONVERT):
            squeezed(padded([length_and(idpf_tag(usage, self.ctx), 2), nonces], 2), keys[:, usage])
        return keys

    def _verify_messages(self, level: int, nonces: Bytes) -> Words:
        """What the random numbers of the sketch are drawn from."""
        from hazemap.vdaf.turboshake128_kernels import padded

        head = length_and(tag(Usage.VERIFY_RAND, self.ctx), 2) + length_and(self.verify_key, 1)
        return padded([head, nonces, level.to_bytes(2, "big")], 1)

    def _correlated(self, parameter: Poplar1Parameter, reports: DecodedReports) -> Words:
        """The shares of a, b and c, with which the first round is masked."""
        from hazemap.vdaf import turboshake128_kernels as loops

        leaf = parameter.level == self.bits - 1
        head = length_and(tag(Usage.CORR_LEAF if leaf else Usage.CORR_INNER, self.ctx), 2) + bytes([32])
        messages = loops.padded([head, reports.correlation_seeds, bytes([self.agg_id]), reports.nonces], 1)
        found = np.empty((len(messages), 3, 4 if leaf else 1), dtype=np.uint64)
        if leaf:
            loops.elements255(messages, found)
        else:
            loops.elements64(messages, 3 * parameter.level, found[:, :, 0])
        return found

    def _masks(self, level: int, reports: DecodedReports) -> Words:
        """The shares of A and B."""
        return reports.leaf_masks if level == self.bits - 1 else reports.inner_masks[:, level, :, None]
