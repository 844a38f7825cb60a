"""One server's half of many reports of Poplar1 at one level (draft-irtf-cfrg-vdaf-20, section 8.2).

Here are what servers ask for (`Poplar1Parameter`: nodes of one level of the tree), what a client sends (`ShareSizes`,
`DecodedReports`), the domain separation tags, the nodes that are walked once for all reports (`EvaluatedPrefixes`), and
the evaluation of reports at them with the sketch over what is found (`Poplar1Evaluator`).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Self

import numpy as np

from hazemap.vdaf import field255
from hazemap.vdaf.compiled_loops import Bools, Bytes, Ints, Words
from hazemap.vdaf.errors import CodecError, InputError, Refused
from hazemap.vdaf.idpf import CONVERT, EXTEND, KEY_SIZE, MODULUS_INNER
from hazemap.vdaf.vdaf import InvalidReport, ReportShare

MOST_LEVELS = 64
_HEAD = struct.Struct(">HI")


@dataclass(frozen=True, eq=False)
class Poplar1Parameter:
    """Level (0 is that below the root) and prefixes: the paths of its nodes as numbers, first step in the highest bit.

    >>> Poplar1Parameter(1, np.array([1, 2, 3], dtype=np.uint64)).to_bytes().hex()
    '0001000000034080c0'
    """

    level: int
    prefixes: Words

    def __post_init__(self) -> None:
        """Refuse levels that no tree has, and paths that are no nodes of the level."""
        if not 0 <= self.level < MOST_LEVELS:
            raise InputError(f"level {self.level}: there are 0 to {MOST_LEVELS - 1}")
        if self.prefixes.dtype != np.uint64 or self.prefixes.ndim != 1 or not 0 < self.prefixes.size < 1 << 32:
            raise InputError("prefixes are one or more whole numbers of 64 bits")
        if self.level < MOST_LEVELS - 1 and np.any(self.prefixes >> np.uint64(self.level + 1)):
            raise InputError(f"a prefix of level {self.level} has {self.level + 1} bits")

    @cached_property
    def increasing(self) -> bool:
        """Whether prefixes are sorted and none is there twice."""
        return bool(np.all(self.prefixes[1:] > self.prefixes[:-1]))

    def follows(self, previous: Self) -> bool:
        """Whether the level is deeper, and every prefix descends from one of those before. Both are increasing."""
        if self.level <= previous.level:
            return False
        above = self.prefixes >> np.uint64(self.level - previous.level)
        places = np.minimum(np.searchsorted(previous.prefixes, above), previous.prefixes.size - 1)
        return bool(np.array_equal(previous.prefixes[places], above))

    def to_bytes(self) -> bytes:
        """uint16 level, uint32 number of prefixes, and each in whole bytes, from the highest bit on."""
        size = self.level // 8 + 1
        aligned = self.prefixes << np.uint64(MOST_LEVELS - 1 - self.level)
        rows = aligned.astype(">u8").view(np.uint8).reshape(-1, 8)
        return _HEAD.pack(self.level, self.prefixes.size) + rows[:, :size].tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, most: int) -> Self:
        """What `to_bytes` wrote, with at most so many prefixes; CodecError for anything else."""
        if len(data) < _HEAD.size:
            raise CodecError("an aggregation parameter of Poplar1 has a level and a number of prefixes")
        level, count = _HEAD.unpack_from(data)
        if level >= MOST_LEVELS or not 0 < count <= most:
            raise CodecError(f"{count} prefixes of level {level}: 1 to {most} below level {MOST_LEVELS} can be asked")
        size = level // 8 + 1
        if len(data) != _HEAD.size + size * count:
            raise CodecError(f"{count} prefixes of level {level} take {size * count} bytes")
        rows = np.zeros((count, 8), dtype=np.uint8)
        rows[:, :size] = np.frombuffer(data, dtype=np.uint8, offset=_HEAD.size).reshape(count, size)
        aligned = rows.view(">u8")[:, 0].astype(np.uint64)
        prefixes = aligned >> np.uint64(MOST_LEVELS - 1 - level)
        if not np.array_equal(prefixes << np.uint64(MOST_LEVELS - 1 - level), aligned):
            raise CodecError(f"a prefix of level {level} is longer than {level + 1} bits")
        return cls(level, prefixes)


SEED_SIZE = 32
NONCE_SIZE = 16


@dataclass(frozen=True)
class ShareSizes:
    """Bytes of each part of a report on a tree of so many levels.

    >>> ShareSizes(46).public_share, ShareSizes(46).input_share
    (1532, 832)
    """

    bits: int

    @property
    def packed(self) -> int:
        """Of control bits."""
        return (2 * self.bits + 7) // 8

    @property
    def seeds(self) -> int:
        """Of seeds in correction words."""
        return KEY_SIZE * self.bits

    @property
    def inner(self) -> int:
        """Of two elements at each inner level."""
        return 16 * (self.bits - 1)

    @property
    def leaf(self) -> int:
        """Of two elements at the leaf."""
        return 2 * field255.SIZE

    @cached_property
    def public_share(self) -> int:
        """Control bits, seeds and values of correction words."""
        return self.packed + self.seeds + self.inner + self.leaf

    @cached_property
    def input_share(self) -> int:
        """A key, a seed, and shares of what the sketch is masked with."""
        return KEY_SIZE + SEED_SIZE + self.inner + self.leaf


@dataclass(frozen=True, eq=False)
class DecodedReports:
    """Reports as arrays, one row each; what a report got wrong stands in `faults`, and zeros in its rows."""

    faults: tuple[InvalidReport | None, ...]
    nonces: Bytes
    control_words: Bytes
    """[report, level, side]"""
    seed_words: Words
    """[report, level, 2]"""
    inner_words: Words
    """[report, level, 2]: data and authenticator"""
    leaf_words: Words
    """[report, 2, 4]"""
    keys: Words
    """[report, 2]"""
    correlation_seeds: Bytes
    inner_masks: Words
    """[report, level, 2]: A and B"""
    leaf_masks: Words
    """[report, 2, 4]"""

    @classmethod
    def decode(cls, bits: int, reports: Sequence[ReportShare]) -> "DecodedReports":
        """Read reports; every part has one length, and every element is below its modulus. O(bytes)."""
        sizes, count = ShareSizes(bits), len(reports)
        faults = [_fault(sizes, report) for report in reports]
        nonces = _rows([report.nonce for report in reports], faults, NONCE_SIZE)
        public = _rows([report.public_share for report in reports], faults, sizes.public_share)
        private = _rows([report.input_share for report in reports], faults, sizes.input_share)
        packed, seeds, inner, leaf = _split(public, sizes.packed, sizes.seeds, sizes.inner, sizes.leaf)
        flags = np.unpackbits(packed, axis=1, bitorder="little")
        key, correlation, inner_masks, leaf_masks = _split(private, KEY_SIZE, SEED_SIZE, sizes.inner, sizes.leaf)
        decoded = cls(
            (),
            nonces,
            np.ascontiguousarray(flags[:, : 2 * bits]).reshape(count, bits, 2),
            _words(seeds).reshape(count, bits, 2),
            _words(inner).reshape(count, bits - 1, 2),
            _words(leaf).reshape(count, 2, 4),
            _words(key),
            correlation,
            _words(inner_masks).reshape(count, bits - 1, 2),
            _words(leaf_masks).reshape(count, 2, 4),
        )
        trailing = flags[:, 2 * bits :].any(axis=1)
        outside = _outside(decoded.inner_words, decoded.leaf_words) | _outside(decoded.inner_masks, decoded.leaf_masks)
        for wrong, words in ((trailing, "control bits that no level has"), (outside, "a number that is no element")):
            for report in np.flatnonzero(wrong):
                faults[report] = faults[report] or InvalidReport(f"a report holds {words}", undecodable=True)
        return cls(tuple(faults), *list(vars(decoded).values())[1:])


def _fault(sizes: ShareSizes, report: ReportShare) -> InvalidReport | None:
    """What is wrong with the lengths of a report's parts."""
    wanted = (NONCE_SIZE, sizes.public_share, sizes.input_share)
    for name, part, size in zip(("a nonce", "a public share", "an input share"), report, wanted, strict=True):
        if len(part) != size:
            return InvalidReport(f"{name} of {sizes.bits} levels has {size} bytes, not {len(part)}", undecodable=True)
    return None


def _rows(parts: Sequence[bytes], faults: Sequence[InvalidReport | None], size: int) -> Bytes:
    """Parts of one length as rows, with zeros for reports that are wrong."""
    data = b"".join(bytes(size) if fault else part for part, fault in zip(parts, faults, strict=True))
    return np.frombuffer(data, dtype=np.uint8).reshape(len(parts), size)


def _split(rows: Bytes, *sizes: int) -> list[Bytes]:
    """Columns of so many bytes each."""
    return np.split(rows, np.cumsum(sizes)[:-1], axis=1)


def _words(columns: Bytes) -> Words:
    """Little-endian words of 64 bits."""
    return np.ascontiguousarray(columns).view("<u8").astype(np.uint64, copy=False)


def _outside(inner: Words, leaf: Words) -> Bools:
    """Which reports hold a number that is not below its modulus."""
    wrong_inner: Bools = np.any(inner >= np.uint64(MODULUS_INNER), axis=(1, 2))
    wrong_leaf: Bools = np.any(~field255.below_modulus(leaf), axis=1)
    return wrong_inner | wrong_leaf


VERSION = 18
ID = 6


class Poplar1Usage(IntEnum):
    """What an output of XofTurboShake128 is for."""

    SHARD_RAND = 1
    CORR_INNER = 2
    CORR_LEAF = 3
    VERIFY_RAND = 4


def tag(usage: Poplar1Usage, ctx: bytes) -> bytes:
    """Of Poplar1 itself.

    >>> tag(Poplar1Usage.VERIFY_RAND, b"app").hex()
    '1200000000060004617070'
    """
    return bytes([VERSION, 0]) + ID.to_bytes(4, "big") + usage.to_bytes(2, "big") + ctx


def idpf_tag(usage: int, ctx: bytes) -> bytes:
    """Of its point functions.

    >>> idpf_tag(1, b"app").hex()
    '1201000000000001617070'
    """
    return bytes([VERSION, 1]) + bytes(4) + usage.to_bytes(2, "big") + ctx


def length_and(part: bytes, size: int) -> bytes:
    """A part of a message after its length, little end first."""
    return len(part).to_bytes(size, "little") + part


@dataclass(frozen=True, eq=False)
class EvaluatedPrefixes:
    """Every node between some start nodes and sorted prefixes below them.

    Step `s` of a level leads to child `s % 2` of node `s // 2` of the level above, in that level's order. The steps of
    the i-th level below the start are `steps[offsets[i] : offsets[i + 1]]`; the last level has the prefixes.

    >>> tree = EvaluatedPrefixes.below(np.array([0], dtype=np.uint64), -1, np.array([1, 4, 5], dtype=np.uint64), 2)
    >>> tree.start.tolist(), [tree.of_level(i).tolist() for i in range(3)]
    ([0], [[0, 1], [0, 2], [1, 2, 3]])
    """

    start: Ints
    """which of the nodes above are begun from"""
    steps: Ints
    offsets: Ints

    @classmethod
    def below(cls, nodes: Words, node_level: int, prefixes: Words, level: int) -> "EvaluatedPrefixes":
        """The tree from nodes of one level (the root's is -1) to prefixes of a deeper one. O(levels x prefixes)."""
        each = [prefixes >> np.uint64(level - depth) for depth in range(max(node_level, 0), level + 1)]
        each = [numbers[np.flatnonzero(np.diff(numbers, prepend=~numbers[:1]))] for numbers in each]
        above = each.pop(0) if node_level >= 0 else np.zeros(min(1, prefixes.size), dtype=np.uint64)
        start = np.searchsorted(nodes, above)
        if start.size and (start[-1] >= nodes.size or not np.array_equal(nodes[start], above)):
            raise Refused("a prefix does not descend from those of the level before")
        steps = [np.empty(0, dtype=np.int64)]
        for numbers in each:
            parents = np.searchsorted(above, numbers >> np.uint64(1))
            steps.append(2 * parents + (numbers & np.uint64(1)).astype(np.int64))
            above = numbers
        offsets = np.cumsum([len(part) for part in steps])
        return cls(start, np.concatenate(steps), offsets)

    def of_level(self, index: int) -> Ints:
        """The steps of the level so many below the first one."""
        return self.steps[self.offsets[index] : self.offsets[index + 1]]

    def without_last(self) -> "EvaluatedPrefixes":
        """The tree down to the level above the prefixes."""
        return EvaluatedPrefixes(self.start, self.steps[: self.offsets[-2]], self.offsets[:-1])


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
def _below_root(parameter: Poplar1Parameter) -> EvaluatedPrefixes:
    """What all jobs with this parameter walk: a parameter is itself, whatever is in it.

    A tree has 8 bytes a node: 33 MB for the most prefixes on the deepest level that there are.
    """
    return EvaluatedPrefixes.below(_ROOT, -1, parameter.prefixes, parameter.level)


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
            tree = EvaluatedPrefixes.below(nodes.nodes, nodes.level, prefixes, level)
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
        tree: EvaluatedPrefixes,
        some: slice,
        shares: EvaluatedShares,
        kept: TreeNodes,
    ) -> None:
        """Some reports, at a level above the leaves."""
        from hazemap.vdaf import poplar1_kernels, turboshake128_kernels

        size, count = parameter.prefixes.size, some.stop - some.start
        drawn = np.empty((count, size, 2), dtype=np.uint64)
        seeds, controls = self._walk(reports, begun, nodes, tree, some, drawn, kept.seeds.size > 0)
        random = np.empty((count, size), dtype=np.uint64)
        turboshake128_kernels.elements64(begun.verify[some], 0, random)
        poplar1_kernels.finish64(
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
        tree: EvaluatedPrefixes,
        some: slice,
        shares: EvaluatedShares,
    ) -> None:
        """Some reports, at the leaves."""
        from hazemap.vdaf import poplar1_kernels, turboshake128_kernels

        size, count = parameter.prefixes.size, some.stop - some.start
        seeds, controls = self._walk(
            reports, begun, nodes, tree.without_last(), some, np.empty((count, 0, 2), np.uint64), True
        )
        values = np.empty((count, 2, size, 4), dtype=np.uint64)
        heads = [length_and(idpf_tag(usage, self.ctx), 2) + bytes([16]) for usage in (EXTEND, CONVERT)]
        messages = np.stack(
            [turboshake128_kernels.padded([head, bytes(16), reports.nonces[some]], 1) for head in heads]
        )
        poplar1_kernels.leaf_values(
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
        poplar1_kernels.finish255(values, self.agg_id == 1, random, shares.data[some], shares.sketches[some])

    def _walk(
        self,
        reports: DecodedReports,
        begun: _Begun,
        nodes: TreeNodes,
        tree: EvaluatedPrefixes,
        some: slice,
        drawn: Words,
        kept: bool,
    ) -> tuple[Words, Bytes]:
        """Some reports' seeds, if they are `kept`, and control bits at the end of a tree of inner levels."""
        from hazemap.vdaf import poplar1_kernels

        keys = begun.aes_keys[some]
        last = tree.of_level(tree.offsets.size - 2).size if tree.offsets.size > 1 else tree.start.size
        seeds = np.empty((len(keys), last if kept else 0, 2), dtype=np.uint64)
        controls = np.empty((len(keys), last), dtype=np.uint8)
        poplar1_kernels.walk(
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

        head = length_and(tag(Poplar1Usage.VERIFY_RAND, self.ctx), 2) + length_and(self.verify_key, 1)
        return padded([head, nonces, level.to_bytes(2, "big")], 1)

    def _correlated(self, parameter: Poplar1Parameter, reports: DecodedReports) -> Words:
        """The shares of a, b and c, with which the first round is masked."""
        from hazemap.vdaf import turboshake128_kernels as loops

        leaf = parameter.level == self.bits - 1
        head = length_and(tag(Poplar1Usage.CORR_LEAF if leaf else Poplar1Usage.CORR_INNER, self.ctx), 2) + bytes([32])
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
