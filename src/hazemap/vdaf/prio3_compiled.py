"""Prio3 in machine code, many reports at a time: the twin of `prio3_plain`. This module imports numba.

Bit vectors in Field128 are proved, verified and added up by the loops of `proof_kernels`, which need a circuit's roots
of unity and weights (`proof_constants`); of other circuits, which are small, only the streams of the XOF are drawn here
(`Prio3Streams`). Arrays of elements are uint64[reports, …, words of an element]. Functions take reports whose lengths
have been checked.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hazemap.vdaf import prio3_plain, proof_kernels
from hazemap.vdaf.circuits import BitVector
from hazemap.vdaf.compiled_loops import Bools, Bytes, Words, compiled
from hazemap.vdaf.field_kernels import add128, add_product, load128, nothing128, reduced128, store128, sub128
from hazemap.vdaf.ntt_field import FIELD128, NttField, roots
from hazemap.vdaf.prio3_plain import (
    Prio3Parameters,
    Prio3State,
    Prio3Usage,
    no_element,
    proof_does_not_hold,
    query,
    root_of_unity,
)
from hazemap.vdaf.turboshake128_kernels import HIGH128, LOW128, hash_messages, padded
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare
from hazemap.vdaf.xofs import DOMAIN, message


class Prio3Streams:
    """The streams of one variant of Prio3 in one context."""

    def __init__(self, kind: Prio3Parameters, ctx: bytes) -> None:
        self._kind, self._ctx, self._words = kind, ctx, kind.circuit.field.words

    def measurement_shares(self, seeds: list[bytes], ids: Sequence[int]) -> Words:
        """Measurement shares of helpers, by the number of each: uint64[reports, length, words]."""
        messages = self._messages(Prio3Usage.MEASUREMENT_SHARE, seeds, [bytes([agg_id]) for agg_id in ids])
        return self._elements(messages, 1, self._kind.circuit.measurement_length)[:, 0]

    def proofs_shares(self, seeds: list[bytes], ids: Sequence[int]) -> Words:
        """Proof shares of helpers: uint64[reports, proofs, length, words]."""
        binders = [bytes([self._kind.proofs, agg_id]) for agg_id in ids]
        messages = self._messages(Prio3Usage.PROOF_SHARE, seeds, binders)
        return self._elements(messages, self._kind.proofs, self._kind.circuit.proof_length)

    def joint_rand_parts(
        self, blinds: list[bytes], ids: Sequence[int], nonces: list[bytes], shares: Words
    ) -> list[bytes]:
        """An aggregator's part of joint randomness, of each measurement share."""
        binders = [bytes([agg_id]) + nonce for agg_id, nonce in zip(ids, nonces, strict=True)]
        return self._seeds(self._messages(Prio3Usage.JOINT_RAND_PART, blinds, binders, shares))

    def joint_rand_seeds(self, parts: list[bytes]) -> list[bytes]:
        """The seeds of joint randomness, from all aggregators' parts for each report."""
        zero = bytes(self._kind.version.seed_size)
        return self._seeds(self._messages(Prio3Usage.JOINT_RAND_SEED, [zero] * len(parts), parts))

    def joint_rands(self, seeds: list[bytes]) -> Words:
        """Joint randomness: uint64[reports, proofs, length, words]."""
        return self._for_proofs(Prio3Usage.JOINT_RANDOMNESS, seeds, b"", self._kind.circuit.joint_rand_length)

    def prove_rands(self, seed: bytes) -> Words:
        """A prover's randomness: uint64[1, proofs, length, words]."""
        return self._for_proofs(Prio3Usage.PROVE_RANDOMNESS, [seed], b"", self._kind.circuit.gadget.arity)

    def query_rands(self, verify_key: bytes, nonces: list[bytes]) -> Words:
        """The aggregators' randomness: uint64[reports, proofs, length, words]."""
        seeds, length = [verify_key] * len(nonces), self._kind.circuit.query_rand_length
        return self._for_proofs(Prio3Usage.QUERY_RANDOMNESS, seeds, nonces, length)

    def _for_proofs(self, usage: Prio3Usage, seeds: list[bytes], nonces: list[bytes] | bytes, length: int) -> Words:
        proofs = self._kind.proofs
        binders = [bytes([proofs]) + (nonces[i] if isinstance(nonces, list) else nonces) for i in range(len(seeds))]
        return self._elements(self._messages(usage, seeds, binders), proofs, length)

    def _messages(
        self, usage: Prio3Usage, seeds: list[bytes], binders: list[bytes], shares: Words | None = None
    ) -> Words:
        """Messages of the XOF, padded to blocks; shares of measurements end the binders."""
        tag = self._kind.tag(usage, self._ctx)
        heads = [message(self._kind.version, seed, tag, binder) for seed, binder in zip(seeds, binders, strict=True)]
        columns = [np.frombuffer(b"".join(heads), dtype=np.uint8).reshape(len(heads), -1)]
        if shares is not None:
            columns.append(shares.view(np.uint8).reshape(len(heads), -1))
        return padded([*columns], DOMAIN)

    def _seeds(self, messages: Words) -> list[bytes]:
        found = np.empty((len(messages), self._kind.version.seed_size // 8), dtype=np.uint64)
        hash_messages(messages, found, np.empty((len(messages), 0, self._words), dtype=np.uint64))
        return [each.tobytes() for each in found]

    def _elements(self, messages: Words, proofs: int, length: int) -> Words:
        found = np.empty((len(messages), proofs * length, self._words), dtype=np.uint64)
        hash_messages(messages, np.empty((len(messages), 0), dtype=np.uint64), found)
        return found.reshape(len(messages), proofs, length, self._words)


R = 1 << 128
P = FIELD128.modulus


class ProofConstants(NamedTuple):
    """Arguments of the loops, by their names there."""

    nodes: Words
    inverses: Words
    shifts: Words
    backward: Words
    constants: Words
    output_weights: Words
    other_weights: Words
    truncation: Words


@lru_cache(maxsize=64, typed=True)
def proof_constants(circuit: BitVector, shares: int, sends_values: bool) -> ProofConstants:
    """Of a circuit whose measurements are split into so many shares."""
    p = circuit.wire_length
    nodes = roots(FIELD128, 2 * p)
    inverses = [1, *nodes[:0:-1]]
    reverse = [int(format(i, f"0{p.bit_length() - 1}b")[::-1], 2) for i in range(p)]
    each = FIELD128.inverse(shares)
    if sends_values:
        wanted = {2 * (call + 1) for call in range(circuit.calls)}
        outputs = [int(i in wanted) for i in range(circuit.gadget_length)]
    else:
        ends = [nodes[2 * i * (circuit.calls + 1) % (2 * p)] for i in range(p)]
        cycle = [circuit.calls] + [
            (ends[i] - nodes[2 * i]) * FIELD128.inverse(nodes[2 * i] - 1) % P for i in range(1, p)
        ]  # the sums of the geometric series w^(i · call) over all calls
        outputs = [cycle[i % p] for i in range(circuit.gadget_length)]
    return ProofConstants(
        _times_r(nodes),
        _times_r(inverses),
        _times_r([nodes[i] * FIELD128.inverse(p) for i in reverse]),
        _times_r([FIELD128.inverse(2 * p)]),
        FIELD128.to_words(
            [
                R * R % P,
                FIELD128.inverse(p) * R % P,
                FIELD128.inverse(2 * p) * R % P,
                each,
                circuit.constant * each % P,
            ]
        ),
        _times_r(outputs),
        _times_r(list(circuit.other_weights)),
        _times_r(list(circuit.output_weights)),
    )


def _times_r(numbers: list[int]) -> Words:
    return FIELD128.to_words([number * R % P for number in numbers])


@compiled
def add_vector(total: Words, vector: Words) -> None:  # pragma: no cover - compiled
    """Add a vector, uint64[n, 2], to a total."""
    for i in range(total.shape[0]):
        store128(total, i, add128(load128(total, i), load128(vector, i)))


@compiled
def subtract_vector(total: Words, vector: Words) -> None:  # pragma: no cover - compiled
    """Take a vector from a total."""
    for i in range(total.shape[0]):
        store128(total, i, sub128(load128(total, i), load128(vector, i)))


@compiled
def are_elements(vectors: Words, found: Bools) -> None:  # pragma: no cover - compiled
    """Clear `found` for each of many vectors, uint64[n, length, 2], with a number that is not below the modulus."""
    for i in range(vectors.shape[0]):
        wrong, vector = np.uint64(0), vectors[i]
        for j in range(vector.shape[0]):
            low, high = load128(vector, j)
            wrong |= np.uint64(high > HIGH128) | (np.uint64(high == HIGH128) & np.uint64(low >= LOW128))
        if wrong:
            found[i] = False


@compiled
def weighted_sums(vector: Words, weights: Words, sums: Words) -> None:  # pragma: no cover - compiled
    """The sums of groups of consecutive elements by the same weights, which are times R."""
    group = weights.shape[0]
    for i in range(sums.shape[0]):
        total = nothing128()
        for j in range(group):
            total = add_product(total, load128(weights, j), load128(vector, i * group + j))
        store128(sums, i, reduced128(total))


_CACHE = 1 << 20
"""Bytes of measurement shares that are verified together."""


def shard(kind: Prio3Parameters, ctx: bytes, encoded: Bytes, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
    """The public share, and the input shares."""
    if not by_loops(kind):
        return prio3_plain.shard(kind, ctx, encoded, nonce, rand)
    circuit, version, streams = _bit_vector(kind), kind.version, Prio3Streams(kind, ctx)
    helpers, leader_blind, prove_seed = kind.split_randomness(rand)
    ids = range(1, kind.shares)
    meas = np.zeros((circuit.measurement_length, 2), dtype=np.uint64)
    meas[:, 0] = encoded
    shares = np.empty((kind.shares, *meas.shape), dtype=np.uint64)
    shares[0] = meas
    shares[1:] = streams.measurement_shares([seeds[0] for seeds in helpers], ids)
    for share in shares[1:]:
        subtract_vector(shares[0], share)
    blinds = [leader_blind, *(seeds[-1] for seeds in helpers)]
    parts = streams.joint_rand_parts(blinds, range(kind.shares), [nonce] * kind.shares, shares)
    joint_rands = streams.joint_rands(streams.joint_rand_seeds([b"".join(parts)]))
    prove_rands = streams.prove_rands(prove_seed)
    proofs = np.empty((kind.proofs, circuit.proof_length, 2), dtype=np.uint64)
    made = proof_constants(circuit, 1, version.sends_values)
    for index in range(kind.proofs):
        proof_kernels.prove(
            meas,
            prove_rands[0, index],
            joint_rands[0, index],
            circuit.calls,
            version.sends_values,
            made.nodes,
            made.inverses,
            made.shifts,
            made.backward,
            made.constants,
            proofs[index],
        )
    flat = proofs.reshape(-1, 2)
    for share in streams.proofs_shares([seeds[version.seeds_of_a_helper - 1] for seeds in helpers], ids):
        subtract_vector(flat, share.reshape(-1, 2))
    leader = shares[0].tobytes() + flat.tobytes() + leader_blind
    return b"".join(parts), [leader, *(b"".join(seeds) for seeds in helpers)]


def verify_init_all(
    kind: Prio3Parameters, verify_key: bytes, ctx: bytes, agg_id: int, reports: Sequence[ReportShare]
) -> list[Continuation | InvalidReport]:
    """The state and the verifier share of each report."""
    size = max(8, min(512, _CACHE // kind.measurement_size // 8 * 8))
    found: list[Continuation | InvalidReport] = []
    for start in range(0, len(reports), size):
        found += _verify_init(kind, verify_key, ctx, agg_id, reports[start : start + size])
    return found


def _verify_init(
    kind: Prio3Parameters, verify_key: bytes, ctx: bytes, agg_id: int, reports: Sequence[ReportShare]
) -> list[Continuation | InvalidReport]:
    streams, count, field = Prio3Streams(kind, ctx), len(reports), kind.circuit.field
    sound = np.ones(count, dtype=np.bool_)
    if agg_id == 0:
        meas, proofs = _leader_shares(kind, reports)
        for array in (meas, proofs.reshape(count, -1, field.words)):
            if field == FIELD128:
                are_elements(array, sound)
            else:
                sound &= (array[:, :, 0] < np.uint64(field.modulus)).all(axis=1)
    else:
        seeds, own = [kind.seeds(report.input_share) for report in reports], kind.version.seeds_of_a_helper - 1
        meas = streams.measurement_shares([each[0] for each in seeds], [agg_id] * count)
        proofs = streams.proofs_shares([each[own] for each in seeds], [agg_id] * count)
    nonces = [report.nonce for report in reports]
    parts = claimed = [b""] * count
    joint_rands = np.empty((count, kind.proofs, 0, field.words), dtype=np.uint64)
    if kind.joint:
        blinds = [report.input_share[-kind.blind_size :] for report in reports]
        parts = streams.joint_rand_parts(blinds, [agg_id] * count, nonces, meas)
        begin, end = agg_id * kind.blind_size, (agg_id + 1) * kind.blind_size
        claimed = streams.joint_rand_seeds(
            [
                report.public_share[:begin] + part + report.public_share[end:]
                for report, part in zip(reports, parts, strict=True)
            ]
        )
        joint_rands = streams.joint_rands(claimed)
    query_rands = streams.query_rands(verify_key, nonces)
    sums = _truncated(kind, meas)
    if by_loops(kind):
        points, verifiers = _queried(kind, meas, sums, proofs, query_rands, joint_rands)
    else:
        points, verifiers = _queried_plainly(kind, meas, proofs, query_rands, joint_rands)
    said = [verifier.tobytes() + part for verifier, part in zip(verifiers, parts, strict=True)]
    states = map(Prio3State, sums, claimed)
    return [
        no_element(field.name) if not right else root_of_unity() if not fit else Continuation(state, share)
        for right, fit, state, share in zip(sound.tolist(), points.tolist(), states, said, strict=True)
    ]


def _leader_shares(kind: Prio3Parameters, reports: Sequence[ReportShare]) -> tuple[Words, Words]:
    """Measurement shares and proof shares as they were sent."""
    count, words = len(reports), kind.circuit.field.words
    meas = np.empty((count, kind.circuit.measurement_length, words), dtype=np.uint64)
    proofs = np.empty((count, kind.proofs, kind.circuit.proof_length, words), dtype=np.uint64)
    for i, report in enumerate(reports):
        sent = np.frombuffer(report.input_share, dtype="<u8", count=meas[i].size + proofs[i].size)
        meas[i].reshape(-1)[:] = sent[: meas[i].size]
        proofs[i].reshape(-1)[:] = sent[meas[i].size :]
    return meas, proofs


def _queried(
    kind: Prio3Parameters, meas: Words, sums: Words, proofs: Words, query_rands: Words, joint_rands: Words
) -> tuple[Bools, Words]:
    """Whether the points of each report are of use, and the shares of its verifiers."""
    circuit, version = _bit_vector(kind), kind.version
    verifiers = np.empty((len(meas), kind.proofs, circuit.verifier_length, 2), dtype=np.uint64)
    made = proof_constants(circuit, kind.shares, version.sends_values)
    points = np.ones(len(meas), dtype=np.bool_)
    proof_kernels.query_all(
        meas,
        meas if len(circuit.output_weights) == 1 else sums,
        proofs,
        query_rands,
        joint_rands,
        circuit.chunk_length,
        circuit.calls,
        circuit.output_length,
        circuit.affine,
        version.sends_values,
        made.nodes,
        made.constants,
        made.output_weights,
        made.other_weights,
        verifiers,
        points,
    )
    return points, verifiers


def _queried_plainly(
    kind: Prio3Parameters, meas: Words, proofs: Words, query_rands: Words, joint_rands: Words
) -> tuple[Bools, Words]:
    """`_queried` for circuits of one number, in plain Python."""
    circuit, read = kind.circuit, kind.circuit.field.from_words
    verifiers = np.zeros((len(meas), kind.proofs, circuit.verifier_length, circuit.field.words), dtype=np.uint64)
    points = np.ones(len(meas), dtype=np.bool_)
    for i, index in np.ndindex(len(meas), kind.proofs):
        shares, rands = (meas[i], proofs[i, index]), (query_rands[i, index], joint_rands[i, index])
        (vector, proof), (query_rand, joint_rand) = map(read, shares), map(read, rands)
        try:
            found = query(
                circuit, vector, proof, query_rand, joint_rand, kind.shares, sends_values=kind.version.sends_values
            )
            verifiers[i, index] = circuit.field.to_words(found)
        except InvalidReport:
            points[i] = False
    return points, verifiers


def verifier_shares_to_messages(
    kind: Prio3Parameters, ctx: bytes, shares: Sequence[Sequence[bytes]]
) -> list[bytes | InvalidReport]:
    """The joint randomness seed of each report, if its proofs hold."""
    if not by_loops(kind):
        return prio3_plain.verifier_shares_to_messages(kind, ctx, shares)
    if not shares:
        return []
    sound, valid = _decided(kind, shares)
    parts = [b"".join(share[len(share) - kind.blind_size :] for share in each) for each in shares]
    return [
        no_element(kind.circuit.field.name) if not right else seed if holds else proof_does_not_hold()
        for right, holds, seed in zip(sound, valid, Prio3Streams(kind, ctx).joint_rand_seeds(parts), strict=True)
    ]


def _decided(kind: Prio3Parameters, shares: Sequence[Sequence[bytes]]) -> tuple[list[bool], list[bool]]:
    """Of each report: whether all its verifier shares are elements, and whether its proofs hold."""
    count, size = len(shares), kind.verifiers_length * kind.circuit.field.size
    data = b"".join(share[:size] for each in shares for share in each)
    verifiers = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(count, kind.shares, -1, 2)
    sound = np.ones((count, kind.shares), dtype=np.bool_)
    are_elements(verifiers.reshape(count * kind.shares, -1, 2), sound.reshape(-1))
    valid = np.ones(count, dtype=np.bool_)
    proof_kernels.decide_all(verifiers.reshape(count, kind.shares, kind.proofs, -1, 2), valid)
    return [bool(each.all()) for each in sound], [bool(each) for each in valid]


def sum_of(field: NttField, shape: tuple[int, int], shares: Iterable[Words]) -> Words:
    """The sum of vectors."""
    if field != FIELD128:
        return prio3_plain.sum_of(field, shape, shares)
    total = np.zeros(shape, dtype=np.uint64)
    for share in shares:
        add_vector(total, np.ascontiguousarray(share))
    return total


def by_loops(kind: Prio3Parameters) -> bool:
    """Whether there are loops for the proofs of this variant, and not only for its streams."""
    return isinstance(kind.circuit, BitVector) and kind.circuit.field == FIELD128


def _bit_vector(kind: Prio3Parameters) -> BitVector:
    assert isinstance(kind.circuit, BitVector)  # noqa: S101 - for the type checker: `by_loops` has said so
    return kind.circuit


def _truncated(kind: Prio3Parameters, meas: Words) -> Words:
    circuit, field = kind.circuit, kind.circuit.field
    sums = np.empty((len(meas), circuit.output_length, field.words), dtype=np.uint64)
    if isinstance(circuit, BitVector) and len(circuit.output_weights) == 1:
        return meas[:, : circuit.output_length]
    for vector, each in zip(meas, sums, strict=True):
        if by_loops(kind):
            weights = proof_constants(_bit_vector(kind), kind.shares, kind.version.sends_values).truncation
            weighted_sums(vector, weights, each)
        else:
            each[:] = field.to_words(circuit.truncate(field.from_words(vector)))
    return sums
