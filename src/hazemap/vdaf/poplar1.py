"""Poplar1 (draft-irtf-cfrg-vdaf-20, section 8): each client holds a leaf of a binary tree; servers count them at nodes.

A client reports once. The servers ask level after level, of nodes below those that they asked before, so the tree may
depend on what was counted. Each level takes two rounds: the servers see that a report's shares are those of a vector
that is zero but for at most a single one (`poplar1_kernels`).

At inner levels a client that cheats can have one vote at a level, at places that need not agree from level to level.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np

from hazemap.vdaf import field255
from hazemap.vdaf.compiled_loops import Words
from hazemap.vdaf.errors import CodecError, InputError, Refused
from hazemap.vdaf.idpf import MODULUS_INNER, MOST_BITS, SIZE_INNER, IdpfBBCGGI21, elements
from hazemap.vdaf.poplar1_evaluation import (
    ID,
    NONCE_SIZE,
    SEED_SIZE,
    DecodedReports,
    Poplar1Evaluator,
    Poplar1Parameter,
    Poplar1Usage,
    ShareSizes,
    TreeNodes,
    length_and,
    tag,
)
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare, Vdaf
from hazemap.vdaf.xofs import TurboShake128

MOST_PREFIXES: Final = 1 << 16
MOST_CONTEXT: Final = 65_535 - 8


@dataclass(frozen=True, eq=False)
class SketchState:
    """Where one server stands with a report: `masks` (A and B) are there in the first round only."""

    agg_id: int
    level: int
    masks: tuple[int, int] | None
    out_share: Words
    """[prefix, words]"""


@dataclass(frozen=True)
class Poplar1(Vdaf):
    """Counts of leaves under nodes of a tree of `bits` levels, at most `most_prefixes` nodes at a time.

    A measurement is the path to a leaf as a number, first step in the highest bit.

    >>> poplar1 = Poplar1(bits=3)
    >>> public, shares = poplar1.shard(b"task", 0b101, bytes(16), bytes(range(128)))
    >>> len(public), [len(share) for share in shares]
    (145, [144, 144])
    """

    bits: int
    most_prefixes: int = MOST_PREFIXES
    _idpf: IdpfBBCGGI21 = field(init=False, repr=False, compare=False)

    ID = ID
    SHARES = 2
    ROUNDS = 2
    NONCE_SIZE = NONCE_SIZE
    RAND_SIZE = 3 * SEED_SIZE + 32
    VERIFY_KEY_SIZE = SEED_SIZE

    def __post_init__(self) -> None:
        """Refuse trees that are none."""
        if not 1 <= self.bits <= MOST_BITS or not 1 <= self.most_prefixes < 1 << 32:
            raise InputError(f"a tree of {self.bits} levels, {self.most_prefixes} nodes at a time: 1 to {MOST_BITS}")
        object.__setattr__(self, "_idpf", IdpfBBCGGI21(self.bits))

    @property
    def share_sizes(self) -> tuple[int, ...]:
        """Bytes of a report's public share, and of the input share of each aggregator."""
        sizes = ShareSizes(self.bits)
        return sizes.public_share, sizes.input_share, sizes.input_share

    def shard(self, ctx: bytes, measurement: int, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
        """A report of one leaf. Cost: some 40 permutations of Keccak in plain Python, and 8 blocks of AES a level."""
        if len(nonce) != NONCE_SIZE or len(rand) != self.RAND_SIZE or len(ctx) > MOST_CONTEXT:
            raise InputError(f"a report takes a nonce of {NONCE_SIZE} bytes and {self.RAND_SIZE} random bytes")
        idpf_rand, *seeds = (rand[start : start + SEED_SIZE] for start in range(0, len(rand), SEED_SIZE))
        drawn = _xof(seeds.pop(), Poplar1Usage.SHARD_RAND, ctx, nonce)
        fields = [self._idpf.field(level) for level in range(self.bits)]
        authenticators = elements(drawn, *fields[0], self.bits - 1) if self.bits > 1 else []
        authenticators += elements(drawn, *fields[-1], 1)
        beta = [(1, k) for k in authenticators]
        words, keys = self._idpf.gen(measurement, beta[:-1], beta[-1], ctx, nonce, idpf_rand)
        correlated = [self._correlated(seed, ctx, bytes([server]) + nonce) for server, seed in enumerate(seeds)]
        shares = [key + seed for key, seed in zip(keys, seeds, strict=True)]
        for level, ((modulus, size), k) in enumerate(zip(fields, authenticators, strict=True)):
            a, b, c = (sum(pair) for pair in zip(*(triples[level] for triples in correlated), strict=True))
            masks = (k - 2 * a) % modulus, (a * a + b - a * k + c) % modulus
            other = elements(drawn, modulus, size, 2)
            first = [(mask - share) % modulus for mask, share in zip(masks, other, strict=True)]
            for server, values in enumerate((first, other)):
                shares[server] += b"".join(value.to_bytes(size, "little") for value in values)
        return self._idpf.encode_public_share(words), shares

    def verify_init(
        self,
        verify_key: bytes,
        ctx: bytes,
        agg_id: int,
        agg_param: bytes,
        nonce: bytes,
        public_share: bytes,
        input_share: bytes,
    ) -> Continuation:
        """Evaluate one report at the nodes asked for, and its sketch."""
        report = ReportShare(nonce, public_share, input_share)
        [found] = self.verify_init_all(verify_key, ctx, agg_id, agg_param, [report])
        if isinstance(found, InvalidReport):
            raise found
        return found

    def verify_init_all(
        self, verify_key: bytes, ctx: bytes, agg_id: int, agg_param: bytes, reports: Sequence[ReportShare]
    ) -> list[Continuation | InvalidReport]:
        """`verify_init` of many reports at once, from the root of the tree."""
        return self.verify_init_below(verify_key, ctx, agg_id, agg_param, reports, None, keep=False)[0]

    def verify_init_below(
        self,
        verify_key: bytes,
        ctx: bytes,
        agg_id: int,
        agg_param: bytes,
        reports: Sequence[ReportShare],
        nodes: TreeNodes | None,
        *,
        keep: bool,
    ) -> tuple[list[Continuation | InvalidReport], TreeNodes | None]:
        """`verify_init` of many reports, from the nodes of a level before, kept for the same reports in this order.

        With `keep`, also the nodes of this level, for the next one. Cost: `Poplar1Evaluator.evaluate`; memory of 8
        bytes a report and prefix (32 at the leaves), 17 more for kept nodes: take some hundred reports at a time.
        """
        parameter = self._parameter(agg_param)
        if agg_id not in (0, 1) or len(verify_key) != self.VERIFY_KEY_SIZE or len(ctx) > MOST_CONTEXT:
            raise InputError(f"servers are 0 and 1, and verify with a key of {self.VERIFY_KEY_SIZE} bytes")
        if nodes is not None and len(nodes.seeds) != len(reports):
            raise InputError(f"nodes were kept for {len(nodes.seeds)} reports, and {len(reports)} are to be verified")
        if nodes is not None and nodes.level >= parameter.level:
            raise Refused(f"level {parameter.level} is not below level {nodes.level}")
        if not reports:
            return [], None
        decoded = DecodedReports.decode(self.bits, reports)
        evaluator = Poplar1Evaluator(self.bits, verify_key, ctx, agg_id)
        shares, kept = evaluator.evaluate(parameter, decoded, nodes, keep)
        found: list[Continuation | InvalidReport] = []
        sketches, masks = _bytes(shares.sketches), _numbers(shares.masks)
        size = len(sketches) // len(reports)
        for index, fault in enumerate(decoded.faults):
            a, b = masks[2 * index : 2 * index + 2]
            state = SketchState(agg_id, parameter.level, (a, b), shares.data[index])
            found.append(fault or Continuation(state, sketches[size * index : size * (index + 1)]))
        return found, kept

    def verifier_shares_to_message(
        self,
        ctx: bytes,  # noqa: ARG002 - of the interface
        agg_param: bytes,
        shares: Sequence[bytes],
    ) -> bytes:
        """The sketch itself after the first round; after the second nothing, or `InvalidReport` if it is not zero."""
        level = self._parameter(agg_param).level
        modulus, size = self._idpf.field(level)
        if len(shares) != self.SHARES or len(shares[0]) not in (size, 3 * size) or len(shares[0]) != len(shares[1]):
            raise InvalidReport("a share of a sketch has three numbers, and one in the second round", undecodable=True)
        one, other = (self._elements(level, share) for share in shares)
        total = [(x + y) % modulus for x, y in zip(one, other, strict=True)]
        if len(total) == 3:
            return b"".join(x.to_bytes(size, "little") for x in total)
        if total != [0]:
            raise _no_path()
        return b""

    def verify_next(
        self,
        ctx: bytes,  # noqa: ARG002 - of the interface
        state: SketchState,
        message: bytes,
    ) -> Continuation | Words:
        """The share of the second round, or after it the share of the result."""
        modulus, size = self._idpf.field(state.level)
        if state.masks is None:
            if message:
                raise InvalidReport("a sketch that is zero is told by an empty message", undecodable=True)
            return state.out_share
        if len(message) != 3 * size:
            raise InvalidReport(f"a sketch has {3 * size} bytes, not {len(message)}", undecodable=True)
        z0, z1, z2 = self._elements(state.level, message)
        a, b = state.masks
        share = (state.agg_id * (z0 * z0 - z1 - z2) + a * z0 + b) % modulus
        after = SketchState(state.agg_id, state.level, None, state.out_share)
        return Continuation(after, share.to_bytes(size, "little"))

    def verifier_shares_to_messages(
        self, ctx: bytes, agg_param: bytes, shares: Sequence[Sequence[bytes]]
    ) -> list[bytes | InvalidReport]:
        """`verifier_shares_to_message` of many reports: at once, unless a share of theirs is not well-formed."""
        modulus, size = self._idpf.field(self._parameter(agg_param).level)
        sizes = {len(share) for each in shares for share in each}
        if {len(each) for each in shares} != {self.SHARES} or sizes not in ({size}, {3 * size}):
            return super().verifier_shares_to_messages(ctx, agg_param, shares)
        one, other = (_read(b"".join(each), size) for each in zip(*shares, strict=True))
        if max(one) >= modulus or max(other) >= modulus:
            return super().verifier_shares_to_messages(ctx, agg_param, shares)
        totals = [(x + y) % modulus for x, y in zip(one, other, strict=True)]
        if sizes == {3 * size}:
            return [*_rows(_written(totals, size), 3 * size)]
        return [_no_path() if total else b"" for total in totals]

    def verify_next_all(
        self, ctx: bytes, states: Sequence[SketchState], messages: Sequence[bytes]
    ) -> list[Continuation | Words | InvalidReport]:
        """`verify_next` of many reports: at once, unless a message is not well-formed, or the states are not alike."""
        if len({(state.agg_id, state.level) for state in states}) != 1:
            return super().verify_next_all(ctx, states, messages)
        agg_id, level = states[0].agg_id, states[0].level
        modulus, size = self._idpf.field(level)
        masks = [state.masks for state in states if state.masks is not None]
        if len(masks) != len(states) or {len(message) for message in messages} != {3 * size}:
            return super().verify_next_all(ctx, states, messages)
        numbers = _read(b"".join(messages), size)
        if max(numbers) >= modulus:
            return super().verify_next_all(ctx, states, messages)
        sketches = zip(numbers[::3], numbers[1::3], numbers[2::3], masks, strict=True)
        shares = [(agg_id * (z0 * z0 - z1 - z2) + a * z0 + b) % modulus for z0, z1, z2, (a, b) in sketches]
        said = _rows(_written(shares, size), size)
        return [
            Continuation(SketchState(agg_id, level, None, state.out_share), share)
            for state, share in zip(states, said, strict=True)
        ]

    def is_valid(self, agg_param: bytes, previous: Sequence[bytes]) -> bool:
        """Whether prefixes are increasing, the level is below the last one, and all descend from those asked there."""
        try:
            parameter = self._parameter(agg_param)
        except Refused:
            return False
        return not previous or parameter.follows(self._parameter(previous[-1]))

    def modulus(self, agg_param: bytes) -> int:
        """That of Field64 at inner levels, of Field255 at the leaves."""
        return self._idpf.field(self._parameter(agg_param).level)[0]

    def output_length(self, agg_param: bytes) -> int:
        """How many prefixes are counted."""
        return self._parameter(agg_param).prefixes.size

    def encode_state(self, agg_param: bytes, state: SketchState) -> bytes:
        """One byte for server and round, A and B in the first, and the share of the result."""
        if state.out_share.shape != self._shape(agg_param):
            raise InputError("a state that belongs to another aggregation parameter")
        _, size = self._idpf.field(state.level)
        head = bytes([state.agg_id + 2 * (state.masks is None)])
        return head + b"".join(x.to_bytes(size, "little") for x in state.masks or ()) + _bytes(state.out_share)

    def decode_state(self, agg_param: bytes, data: bytes) -> SketchState:
        """What `encode_state` wrote; `CodecError` for anything else."""
        parameter = self._parameter(agg_param)
        modulus, size = self._idpf.field(parameter.level)
        first = data[:1] < b"\2"
        at = 1 + 2 * size * first
        a, b = (int.from_bytes(data[start : start + size], "little") for start in (1, 1 + size))
        if not data or data[0] > 3 or len(data) < at or (first and max(a, b) >= modulus):
            raise CodecError("a state of Poplar1 that no version of hazemap wrote")
        share = self.decode_agg_share(agg_param, data[at:])
        return SketchState(data[0] & 1, parameter.level, (a, b) if first else None, share)

    def merge(self, agg_param: bytes, shares: Iterable[Words]) -> Words:
        """The sum of shares; O(prefixes) each."""
        from hazemap.vdaf.field_kernels import add_into64, add_into255

        shape = self._shape(agg_param)
        total = np.zeros(shape, dtype=np.uint64)
        for share in shares:
            if share.shape != shape:
                raise Refused(f"a share of {share.shape[0]} numbers among those of {shape[0]}")
            (add_into64 if shape[1] == 1 else add_into255)(total, share)
        return total

    def share_of(self, agg_param: bytes, numbers: Sequence[int]) -> Words:
        """Numbers modulo that of the field."""
        modulus, size = self._idpf.field(self._parameter(agg_param).level)
        data = b"".join((x % modulus).to_bytes(size, "little") for x in numbers)
        return self.decode_agg_share(agg_param, data)

    def encode_agg_share(self, agg_param: bytes, share: Words) -> bytes:
        """One element after another, little end first."""
        if share.shape != self._shape(agg_param):
            raise InputError(f"a share of {share.shape} words, where {self._shape(agg_param)} belong")
        return _bytes(share)

    def decode_agg_share(self, agg_param: bytes, data: bytes) -> Words:
        """What `encode_agg_share` wrote; `CodecError` for anything else."""
        shape = self._shape(agg_param)
        if len(data) != 8 * shape[0] * shape[1]:
            raise CodecError(f"a share of {shape[0]} counts has {8 * shape[0] * shape[1]} bytes, not {len(data)}")
        share = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(shape)
        below = share[:, 0] < np.uint64(MODULUS_INNER) if shape[1] == 1 else field255.below_modulus(share)
        if not below.all():
            raise CodecError("a share holds a number that is not below the field's modulus")
        return share

    def unshard(self, agg_param: bytes, agg_shares: Sequence[Words]) -> list[int]:
        """The counts, in the order of prefixes."""
        if len(agg_shares) != self.SHARES:
            raise Refused(f"{len(agg_shares)} aggregate shares, where {self.SHARES} servers have one each")
        return _numbers(self.merge(agg_param, agg_shares))

    def _parameter(self, agg_param: bytes) -> Poplar1Parameter:
        """Level and prefixes, which are increasing and nodes of this tree."""
        return _parameter(self.bits, self.most_prefixes, agg_param)

    def _shape(self, agg_param: bytes) -> tuple[int, int]:
        """Of the array that a share of a result is."""
        parameter = self._parameter(agg_param)
        return parameter.prefixes.size, self._idpf.field(parameter.level)[1] // 8

    def _correlated(self, seed: bytes, ctx: bytes, binder: bytes) -> list[tuple[int, int, int]]:
        """One server's shares of a, b and c at each level."""
        inner = _xof(seed, Poplar1Usage.CORR_INNER, ctx, binder)
        leaf = elements(_xof(seed, Poplar1Usage.CORR_LEAF, ctx, binder), *self._idpf.field(self.bits - 1), 3)
        drawn = elements(inner, *self._idpf.field(0), 3 * (self.bits - 1)) if self.bits > 1 else []
        drawn += leaf
        return [(drawn[at], drawn[at + 1], drawn[at + 2]) for at in range(0, len(drawn), 3)]

    def _elements(self, level: int, data: bytes) -> list[int]:
        """The numbers of a message between servers."""
        modulus, size = self._idpf.field(level)
        numbers = _read(data, size)
        if max(numbers) >= modulus:
            raise InvalidReport("a sketch holds a number that is not below the field's modulus", undecodable=True)
        return numbers


@lru_cache(maxsize=16, typed=True)
def _parameter(bits: int, most: int, agg_param: bytes) -> Poplar1Parameter:
    """A parameter that may be asked of a tree of so many levels."""
    try:
        parameter = Poplar1Parameter.from_bytes(agg_param, most)
    except CodecError as error:
        raise Refused(str(error)) from None
    if parameter.level >= bits:
        raise Refused(f"level {parameter.level} of a tree of {bits}")
    if not parameter.increasing:
        raise Refused("prefixes are sorted, and none is there twice")
    return parameter


def _xof(seed: bytes, usage: Poplar1Usage, ctx: bytes, binder: bytes) -> TurboShake128:
    """XofTurboShake128."""
    return TurboShake128(length_and(tag(usage, ctx), 2) + length_and(seed, 1) + binder, 1)


def _numbers(words: Words) -> list[int]:
    """Elements, one a row of words."""
    return _read(_bytes(words), 8 * words.shape[-1])


def _read(data: bytes, size: int) -> list[int]:
    """Numbers of so many bytes each, little end first."""
    if size == SIZE_INNER:
        return list(struct.unpack(f"<{len(data) // size}Q", data))
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def _written(numbers: list[int], size: int) -> bytes:
    """What `_read` reads."""
    if size == SIZE_INNER:
        return struct.pack(f"<{len(numbers)}Q", *numbers)
    return b"".join(x.to_bytes(size, "little") for x in numbers)


def _rows(data: bytes, size: int) -> list[bytes]:
    """Parts of so many bytes."""
    return [data[at : at + size] for at in range(0, len(data), size)]


def _no_path() -> InvalidReport:
    """What a report is whose sketch is not zero."""
    return InvalidReport("a report's shares are not those of one path in the tree")


def _bytes(words: Words) -> bytes:
    """Elements one after another, little end first."""
    return np.ascontiguousarray(words, dtype="<u8").tobytes()
