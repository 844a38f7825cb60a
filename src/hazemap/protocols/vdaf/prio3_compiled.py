"""Prio3 of bit vectors in Field128 in machine code, many reports at a time: the twin of `prio3_plain`.

This module imports numba. Functions take reports whose lengths have been checked.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from hazemap.arrays import Bytes, Words
from hazemap.protocols.vdaf import field128_vectors, proof_loops
from hazemap.protocols.vdaf.bit_vector_circuits import BitVector
from hazemap.protocols.vdaf.ntt_field import FIELD128, NttField, roots
from hazemap.protocols.vdaf.prio3_parameters import Prio3Parameters, Usage
from hazemap.protocols.vdaf.prio3_verification import Prio3State, no_element, proof_does_not_hold, root_of_unity
from hazemap.protocols.vdaf.turboshake128_loops import padded
from hazemap.protocols.vdaf.vdaf import Continuation, InvalidReport, ReportShare
from hazemap.protocols.vdaf.xof_turboshake128 import DOMAIN, message
from hazemap.protocols.vdaf.xof_turboshake128_loops import hash_messages

_CACHE = 1 << 20
"""Bytes of measurement shares that are verified together."""
R = 1 << 128
P = FIELD128.modulus


class _Constants(NamedTuple):
    """What the loops of one circuit need: see `proof_loops`."""

    nodes: Words
    inverses: Words
    shifts: Words
    backward: Words
    constants: Words
    output_weights: Words
    other_weights: Words
    truncation: Words


@cache
def _constants(circuit: BitVector, shares: int, sends_values: bool) -> _Constants:
    p = circuit.wire_length
    nodes = roots(FIELD128, 2 * p)
    inverses = [1, *nodes[:0:-1]]
    reverse = [int(format(i, f"0{p.bit_length() - 1}b")[::-1], 2) for i in range(p)]
    each = FIELD128.inverse(shares)
    if sends_values:
        wanted = {2 * (call + 1) for call in range(circuit.calls)}
        outputs = [int(i in wanted) for i in range(circuit.gadget_length)]
    else:
        cycle = [sum(nodes[2 * call * i % (2 * p)] for call in range(1, circuit.calls + 1)) for i in range(p)]
        outputs = [cycle[i % p] for i in range(circuit.gadget_length)]
    return _Constants(
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


def shard(kind: Prio3Parameters, ctx: bytes, encoded: Bytes, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
    """The public share, and the input shares."""
    circuit, version = _circuit(kind), kind.version
    helpers, leader_blind, prove_seed = kind.split_randomness(rand)
    ids = range(1, kind.shares)
    meas = np.zeros((circuit.measurement_length, 2), dtype=np.uint64)
    meas[:, 0] = encoded
    shares = np.empty((kind.shares, *meas.shape), dtype=np.uint64)
    shares[0] = meas
    shares[1:] = _measurement_shares(kind, ctx, [seeds[0] for seeds in helpers], ids)
    for share in shares[1:]:
        field128_vectors.subtract_vector(shares[0], share)
    blinds = [leader_blind, *(seeds[-1] for seeds in helpers)]
    parts = _joint_rand_parts(kind, ctx, blinds, range(kind.shares), [nonce] * kind.shares, shares)
    joint_rands = _joint_rands(kind, ctx, joint_rand_seeds(kind, ctx, [b"".join(parts)]))
    messages = _messages(kind, ctx, Usage.PROVE_RANDOMNESS, [prove_seed], [bytes([kind.proofs])])
    prove_rands = _elements(messages, kind.proofs, circuit.gadget.arity)
    proofs = np.empty((1, kind.proofs, circuit.proof_length, 2), dtype=np.uint64)
    made = _constants(circuit, 1, version.sends_values)
    for index in range(kind.proofs):
        proof_loops.prove(
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
            proofs[0, index],
        )
    flat = proofs.reshape(-1, 2)
    for share in _proofs_shares(kind, ctx, [seeds[version.seeds_of_a_helper - 1] for seeds in helpers], ids):
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
    circuit, version, count = _circuit(kind), kind.version, len(reports)
    sound = np.ones(count, dtype=np.bool_)
    if agg_id == 0:
        meas = np.empty((count, circuit.measurement_length, 2), dtype=np.uint64)
        proofs = np.empty((count, kind.proofs, circuit.proof_length, 2), dtype=np.uint64)
        for i, report in enumerate(reports):
            words = np.frombuffer(report.input_share, dtype="<u8", count=meas[i].size + proofs[i].size)
            meas[i].reshape(-1)[:] = words[: meas[i].size]
            proofs[i].reshape(-1)[:] = words[meas[i].size :]
        field128_vectors.are_elements(meas, sound)
        field128_vectors.are_elements(proofs.reshape(count, -1, 2), sound)
    else:
        seeds = [kind.seeds(report.input_share) for report in reports]
        meas = _measurement_shares(kind, ctx, [each[0] for each in seeds], [agg_id] * count)
        own = version.seeds_of_a_helper - 1
        proofs = _proofs_shares(kind, ctx, [each[own] for each in seeds], [agg_id] * count)
    blinds = [report.input_share[-kind.blind_size :] for report in reports]
    nonces = [report.nonce for report in reports]
    parts = _joint_rand_parts(kind, ctx, blinds, [agg_id] * count, nonces, meas)
    begin, end = agg_id * version.seed_size, (agg_id + 1) * version.seed_size
    claimed = joint_rand_seeds(
        kind,
        ctx,
        [
            report.public_share[:begin] + part + report.public_share[end:]
            for report, part in zip(reports, parts, strict=True)
        ],
    )
    messages = _messages(
        kind, ctx, Usage.QUERY_RANDOMNESS, [verify_key] * count, [bytes([kind.proofs]) + nonce for nonce in nonces]
    )
    verifiers = np.empty((count, kind.proofs, circuit.verifier_length, 2), dtype=np.uint64)
    made = _constants(circuit, kind.shares, version.sends_values)
    points = np.ones(count, dtype=np.bool_)
    proof_loops.query_all(
        meas,
        proofs,
        _elements(messages, kind.proofs, circuit.query_rand_length),
        _joint_rands(kind, ctx, claimed),
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
    said = [verifier.tobytes() + part for verifier, part in zip(verifiers, parts, strict=True)]
    states = map(Prio3State, _truncated(circuit, meas, made.truncation), claimed)
    return [
        no_element(circuit.field.name) if not right else root_of_unity() if not fit else Continuation(state, share)
        for right, fit, state, share in zip(sound.tolist(), points.tolist(), states, said, strict=True)
    ]


def verifier_shares_to_messages(
    kind: Prio3Parameters, ctx: bytes, shares: Sequence[Sequence[bytes]]
) -> list[bytes | InvalidReport]:
    """The joint randomness seed of each report, if its proofs hold."""
    if not shares:
        return []
    sound, valid = _decided(kind, shares)
    parts = [b"".join(share[len(share) - kind.blind_size :] for share in each) for each in shares]
    return [
        no_element(kind.circuit.field.name) if not right else seed if holds else proof_does_not_hold()
        for right, holds, seed in zip(sound, valid, joint_rand_seeds(kind, ctx, parts), strict=True)
    ]


def _decided(kind: Prio3Parameters, shares: Sequence[Sequence[bytes]]) -> tuple[list[bool], list[bool]]:
    """Of each report: whether all its verifier shares are elements, and whether its proofs hold."""
    count, size = len(shares), kind.verifiers_length * kind.circuit.field.size
    data = b"".join(share[:size] for each in shares for share in each)
    verifiers = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(count, kind.shares, -1, 2)
    sound = np.ones((count, kind.shares), dtype=np.bool_)
    field128_vectors.are_elements(verifiers.reshape(count * kind.shares, -1, 2), sound.reshape(-1))
    valid = np.ones(count, dtype=np.bool_)
    proof_loops.decide_all(verifiers.reshape(count, kind.shares, kind.proofs, -1, 2), valid)
    return [bool(each.all()) for each in sound], [bool(each) for each in valid]


def sum_of(_field: NttField, shape: tuple[int, int], shares: Iterable[Words]) -> Words:
    """The sum of vectors of Field128."""
    total = np.zeros(shape, dtype=np.uint64)
    for share in shares:
        field128_vectors.add_vector(total, np.ascontiguousarray(share))
    return total


def joint_rand_seeds(kind: Prio3Parameters, ctx: bytes, parts: list[bytes]) -> list[bytes]:
    """The seeds of joint randomness, from all aggregators' parts for each report."""
    zero = bytes(kind.version.seed_size)
    return _seeds(kind, _messages(kind, ctx, Usage.JOINT_RAND_SEED, [zero] * len(parts), parts))


def _circuit(kind: Prio3Parameters) -> BitVector:
    assert isinstance(kind.circuit, BitVector)  # noqa: S101 - for the type checker: `Prio3` asks before it comes here
    return kind.circuit


def _truncated(circuit: BitVector, meas: Words, weights: Words) -> Words:
    if len(circuit.output_weights) == 1:
        return meas[:, : circuit.output_length]
    sums = np.empty((len(meas), circuit.output_length, 2), dtype=np.uint64)
    for vector, each in zip(meas, sums, strict=True):
        field128_vectors.weighted_sums(vector, weights, each)
    return sums


def _measurement_shares(kind: Prio3Parameters, ctx: bytes, seeds: list[bytes], ids: Sequence[int]) -> Words:
    messages = _messages(kind, ctx, Usage.MEASUREMENT_SHARE, seeds, [bytes([agg_id]) for agg_id in ids])
    return _elements(messages, 1, kind.circuit.measurement_length)[:, 0]


def _proofs_shares(kind: Prio3Parameters, ctx: bytes, seeds: list[bytes], ids: Sequence[int]) -> Words:
    binders = [bytes([kind.proofs, agg_id]) for agg_id in ids]
    return _elements(_messages(kind, ctx, Usage.PROOF_SHARE, seeds, binders), kind.proofs, kind.circuit.proof_length)


def _joint_rand_parts(
    kind: Prio3Parameters, ctx: bytes, blinds: list[bytes], ids: Sequence[int], nonces: list[bytes], shares: Words
) -> list[bytes]:
    binders = [bytes([agg_id]) + nonce for agg_id, nonce in zip(ids, nonces, strict=True)]
    return _seeds(kind, _messages(kind, ctx, Usage.JOINT_RAND_PART, blinds, binders, shares))


def _joint_rands(kind: Prio3Parameters, ctx: bytes, seeds: list[bytes]) -> Words:
    messages = _messages(kind, ctx, Usage.JOINT_RANDOMNESS, seeds, [bytes([kind.proofs])] * len(seeds))
    return _elements(messages, kind.proofs, kind.circuit.joint_rand_length)


def _messages(
    kind: Prio3Parameters,
    ctx: bytes,
    usage: Usage,
    seeds: list[bytes],
    binders: list[bytes],
    shares: Words | None = None,
) -> Words:
    """Messages of the XOF, padded to blocks; shares of measurements end the binders."""
    tag = kind.tag(usage, ctx)
    heads = [message(kind.version, seed, tag, binder) for seed, binder in zip(seeds, binders, strict=True)]
    columns = [np.frombuffer(b"".join(heads), dtype=np.uint8).reshape(len(heads), -1)]
    if shares is not None:
        columns.append(shares.view(np.uint8).reshape(len(heads), -1))
    return padded([*columns], DOMAIN)


def _seeds(kind: Prio3Parameters, messages: Words) -> list[bytes]:
    found = np.empty((len(messages), kind.version.seed_size // 8), dtype=np.uint64)
    hash_messages(messages, found, np.empty((len(messages), 0, 2), dtype=np.uint64))
    return [each.tobytes() for each in found]


def _elements(messages: Words, proofs: int, length: int) -> Words:
    """Field elements of each message: uint64[n, proofs, length, 2]."""
    found = np.empty((len(messages), proofs * length, 2), dtype=np.uint64)
    hash_messages(messages, np.empty((len(messages), 0), dtype=np.uint64), found)
    return found.reshape(len(messages), proofs, length, 2)
