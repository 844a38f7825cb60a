"""Prio3 (draft-irtf-cfrg-vdaf-20, 7.2) in plain Python: for small reports, and the twin of `prio3_compiled`.

Functions of one report, whose arguments have been checked for their lengths.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import add, sub

import numpy as np

from hazemap.errors import CodecError
from hazemap.machine_code.arrays import Bytes, Words
from hazemap.vdaf import proofs
from hazemap.vdaf.ntt_field import NttField
from hazemap.vdaf.prio3_parameters import Prio3Parameters, Usage
from hazemap.vdaf.prio3_verification import Prio3State, no_element, proof_does_not_hold
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare
from hazemap.vdaf.xof_turboshake128 import XofTurboShake128


def shard(kind: Prio3Parameters, ctx: bytes, bits: Bytes, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
    """The public share, and the input shares."""
    field, circuit = kind.circuit.field, kind.circuit
    helpers, leader_blind, prove_seed = kind.split_randomness(rand)
    encoded: list[int] = bits.tolist()
    leader_share, parts, joint_rands = encoded, [], list[int]()
    for agg_id, seeds in enumerate(helpers, 1):
        share = _measurement_share(kind, ctx, agg_id, seeds[0])
        leader_share = _each(sub, field.modulus, leader_share, share)
        if kind.joint:
            parts.append(_joint_rand_part(kind, ctx, agg_id, seeds[-1], nonce, field.encode(share)))
    if kind.joint:
        parts.insert(0, _joint_rand_part(kind, ctx, 0, leader_blind, nonce, field.encode(leader_share)))
        joint_rands = _joint_rands(kind, ctx, joint_rand_seed(kind, ctx, parts))
    prove_rands = _expanded(
        kind, ctx, Usage.PROVE_RANDOMNESS, prove_seed, bytes([kind.proofs]), kind.proofs * circuit.gadget.arity
    )
    leader_proofs: list[int] = []
    for index in range(kind.proofs):
        leader_proofs += proofs.prove(
            circuit,
            encoded,
            _part(prove_rands, index, kind.proofs),
            _part(joint_rands, index, kind.proofs),
            sends_values=kind.version.sends_values,
        )
    for agg_id, seeds in enumerate(helpers, 1):
        leader_proofs = _each(sub, field.modulus, leader_proofs, _proofs_share(kind, ctx, agg_id, seeds))
    leader = field.encode(leader_share) + field.encode(leader_proofs) + leader_blind
    return b"".join(parts), [leader, *(b"".join(seeds) for seeds in helpers)]


def verify_init_all(
    kind: Prio3Parameters, verify_key: bytes, ctx: bytes, agg_id: int, reports: Sequence[ReportShare]
) -> list[Continuation | InvalidReport]:
    """The state and the verifier share of each report."""
    found: list[Continuation | InvalidReport] = []
    for report in reports:
        try:
            found.append(_verify_init(kind, verify_key, ctx, agg_id, report))
        except InvalidReport as error:
            found.append(error)
    return found


def _verify_init(
    kind: Prio3Parameters, verify_key: bytes, ctx: bytes, agg_id: int, report: ReportShare
) -> Continuation:
    nonce, public_share, input_share = report
    field, circuit = kind.circuit.field, kind.circuit
    blind = input_share[len(input_share) - kind.blind_size :]
    if agg_id == 0:
        try:
            elements = field.decode(input_share[: len(input_share) - kind.blind_size])
        except CodecError:
            raise no_element(field.name) from None
        meas, proofs_share = elements[: circuit.measurement_length], elements[circuit.measurement_length :]
    else:
        seeds = kind.seeds(input_share)
        meas = _measurement_share(kind, ctx, agg_id, seeds[0])
        proofs_share = _proofs_share(kind, ctx, agg_id, seeds)
    part, claimed, joint_rands = b"", b"", list[int]()
    if kind.joint:
        part = _joint_rand_part(kind, ctx, agg_id, blind, nonce, field.encode(meas))
        parts = kind.seeds(public_share)
        parts[agg_id] = part
        claimed = joint_rand_seed(kind, ctx, parts)
        joint_rands = _joint_rands(kind, ctx, claimed)
    length = kind.proofs * circuit.query_rand_length
    query_rands = _expanded(kind, ctx, Usage.QUERY_RANDOMNESS, verify_key, bytes([kind.proofs]) + nonce, length)
    verifiers: list[int] = []
    for index in range(kind.proofs):
        verifiers += proofs.query(
            circuit,
            meas,
            _part(proofs_share, index, kind.proofs),
            _part(query_rands, index, kind.proofs),
            _part(joint_rands, index, kind.proofs),
            kind.shares,
            sends_values=kind.version.sends_values,
        )
    state = Prio3State(field.to_words(circuit.truncate(meas)), claimed)
    return Continuation(state, field.encode(verifiers) + part)


def verifier_shares_to_messages(
    kind: Prio3Parameters, ctx: bytes, shares: Sequence[Sequence[bytes]]
) -> list[bytes | InvalidReport]:
    """The joint randomness seed (b"" without) of each report, if its proofs hold."""
    found: list[bytes | InvalidReport] = []
    for each in shares:
        try:
            found.append(_message(kind, ctx, each))
        except InvalidReport as error:
            found.append(error)
    return found


def _message(kind: Prio3Parameters, ctx: bytes, shares: Sequence[bytes]) -> bytes:
    field = kind.circuit.field
    verifiers, parts = [0] * kind.verifiers_length, []
    for share in shares:
        end = len(share) - kind.blind_size
        try:
            verifiers = _each(add, field.modulus, verifiers, field.decode(share[:end]))
        except CodecError:
            raise no_element(field.name) from None
        parts.append(share[end:])
    for index in range(kind.proofs):
        if not proofs.decide(kind.circuit, _part(verifiers, index, kind.proofs)):
            raise proof_does_not_hold()
    return joint_rand_seed(kind, ctx, parts) if kind.joint else b""


def sum_of(field: NttField, shape: tuple[int, int], shares: Iterable[Words]) -> Words:
    """The sum of at most 2^31 vectors: the halves of words are added up apart, and reduced once."""
    low, high = np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.uint64)
    for share in shares:
        low += share & np.uint64(0xFFFFFFFF)
        high += share >> np.uint64(32)
    totals = [0] * shape[0]
    for word in range(shape[1]):
        pairs = zip(low[:, word].tolist(), high[:, word].tolist(), strict=True)
        totals = [total + (x + (y << 32) << 64 * word) for total, (x, y) in zip(totals, pairs, strict=True)]
    return field.to_words([total % field.modulus for total in totals])


def joint_rand_seed(kind: Prio3Parameters, ctx: bytes, parts: list[bytes]) -> bytes:
    """The seed of joint randomness, from each aggregator's part."""
    size = kind.version.seed_size
    return _stream(kind, ctx, Usage.JOINT_RAND_SEED, bytes(size), b"".join(parts)).next(size)


def _measurement_share(kind: Prio3Parameters, ctx: bytes, agg_id: int, seed: bytes) -> list[int]:
    return _expanded(kind, ctx, Usage.MEASUREMENT_SHARE, seed, bytes([agg_id]), kind.circuit.measurement_length)


def _proofs_share(kind: Prio3Parameters, ctx: bytes, agg_id: int, seeds: list[bytes]) -> list[int]:
    seed = seeds[kind.version.seeds_of_a_helper - 1]
    return _expanded(kind, ctx, Usage.PROOF_SHARE, seed, bytes([kind.proofs, agg_id]), kind.proofs_length)


def _joint_rand_part(kind: Prio3Parameters, ctx: bytes, agg_id: int, blind: bytes, nonce: bytes, share: bytes) -> bytes:
    binder = bytes([agg_id]) + nonce + share
    return _stream(kind, ctx, Usage.JOINT_RAND_PART, blind, binder).next(kind.version.seed_size)


def _joint_rands(kind: Prio3Parameters, ctx: bytes, seed: bytes) -> list[int]:
    length = kind.proofs * kind.circuit.joint_rand_length
    return _expanded(kind, ctx, Usage.JOINT_RANDOMNESS, seed, bytes([kind.proofs]), length)


def _stream(kind: Prio3Parameters, ctx: bytes, usage: Usage, seed: bytes, binder: bytes) -> XofTurboShake128:
    return XofTurboShake128(kind.version, seed, kind.tag(usage, ctx), binder)


def _expanded(kind: Prio3Parameters, ctx: bytes, usage: Usage, seed: bytes, binder: bytes, length: int) -> list[int]:
    return _stream(kind, ctx, usage, seed, binder).next_vector(kind.circuit.field, length)


def _part(vector: list[int], index: int, count: int) -> list[int]:
    length = len(vector) // count
    return vector[index * length : (index + 1) * length]


def _each(operation: Callable[[int, int], int], modulus: int, left: list[int], right: list[int]) -> list[int]:
    return [operation(x, y) % modulus for x, y in zip(left, right, strict=True)]
