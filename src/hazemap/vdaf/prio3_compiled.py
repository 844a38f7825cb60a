"""Prio3 in machine code, many reports at a time: the twin of `prio3_plain`.

Bit vectors in Field128 are proved, verified and added up by loops; of other circuits, which are small, only the streams
are. This module imports numba. Functions take reports whose lengths have been checked.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from hazemap.machine_code.arrays import Bools, Bytes, Words
from hazemap.vdaf import field128_vectors, prio3_plain, proof_kernels
from hazemap.vdaf.bit_vector_circuits import BitVector
from hazemap.vdaf.ntt_field import FIELD128, NttField
from hazemap.vdaf.prio3_parameters import Prio3Parameters
from hazemap.vdaf.prio3_streams import Prio3Streams
from hazemap.vdaf.prio3_verification import Prio3State, no_element, proof_does_not_hold, root_of_unity
from hazemap.vdaf.proof_constants import proof_constants
from hazemap.vdaf.proofs import query
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare

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
        field128_vectors.subtract_vector(shares[0], share)
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
        field128_vectors.subtract_vector(flat, share.reshape(-1, 2))
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
                field128_vectors.are_elements(array, sound)
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
    field128_vectors.are_elements(verifiers.reshape(count * kind.shares, -1, 2), sound.reshape(-1))
    valid = np.ones(count, dtype=np.bool_)
    proof_kernels.decide_all(verifiers.reshape(count, kind.shares, kind.proofs, -1, 2), valid)
    return [bool(each.all()) for each in sound], [bool(each) for each in valid]


def sum_of(field: NttField, shape: tuple[int, int], shares: Iterable[Words]) -> Words:
    """The sum of vectors."""
    if field != FIELD128:
        return prio3_plain.sum_of(field, shape, shares)
    total = np.zeros(shape, dtype=np.uint64)
    for share in shares:
        field128_vectors.add_vector(total, np.ascontiguousarray(share))
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
            field128_vectors.weighted_sums(vector, weights, each)
        else:
            each[:] = field.to_words(circuit.truncate(field.from_words(vector)))
    return sums
