"""What a client of Poplar1 sends (draft-irtf-cfrg-vdaf-20, 8.2.6): parts of a report, and many reports as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.machine_code.arrays import Bools, Bytes, Words
from hazemap.vdaf import field255
from hazemap.vdaf.idpf import KEY_SIZE, MODULUS_INNER
from hazemap.vdaf.vdaf import InvalidReport, ReportShare

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
