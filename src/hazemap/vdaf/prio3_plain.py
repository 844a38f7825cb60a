"""Prio3 (draft-irtf-cfrg-vdaf-20, 7.2) in plain Python: for small reports, and the twin of `prio3_compiled`.

`Prio3Parameters` fixes one variant; it, the state and the refusals are the same in both twins. `prove`, `query` and
`decide` are the fully linear proofs (7.3; Boneh et al. 2019), the twins of those of `proof_kernels`: a wire polynomial
has a random value at 1 and a wire's inputs at the other powers of the p-th root of unity; the gadget polynomial is the
gadget of the wire polynomials, so its values there are the outputs. The other functions are of one report, whose
arguments have been checked for their lengths.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from operator import add, sub
from typing import NamedTuple

import numpy as np

from hazemap.vdaf.circuits import Circuit
from hazemap.vdaf.compiled_loops import Bytes, Words
from hazemap.vdaf.errors import CodecError, InputError
from hazemap.vdaf.ntt_field import NttField, power_of_two_from, roots
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare, VdafVersion
from hazemap.vdaf.xofs import XofTurboShake128


class Prio3Usage(IntEnum):
    """What an output of the XOF is for."""

    MEASUREMENT_SHARE = 1
    PROOF_SHARE = 2
    JOINT_RANDOMNESS = 3
    PROVE_RANDOMNESS = 4
    QUERY_RANDOMNESS = 5
    JOINT_RAND_SEED = 6
    JOINT_RAND_PART = 7


@dataclass(frozen=True)
class Prio3Parameters:
    """One variant, and the sizes of its messages."""

    circuit: Circuit
    version: VdafVersion
    algorithm: int
    shares: int = 2
    proofs: int = 1

    def __post_init__(self) -> None:
        if not 2 <= self.shares <= 255:
            raise InputError(f"a measurement is split into 2 to 255 shares, not {self.shares}")
        if not 1 <= self.proofs <= 255:
            raise InputError(f"a report has 1 to 255 proofs, not {self.proofs}")

    @cached_property
    def joint(self) -> bool:
        """Whether there is joint randomness."""
        return self.circuit.joint_rand_length > 0

    @cached_property
    def measurement_size(self) -> int:
        """Bytes of a measurement share."""
        return self.circuit.measurement_length * self.circuit.field.size

    @cached_property
    def proofs_length(self) -> int:
        """Elements of all proofs."""
        return self.proofs * self.circuit.proof_length

    @cached_property
    def verifiers_length(self) -> int:
        """Elements of all verifiers."""
        return self.proofs * self.circuit.verifier_length

    @cached_property
    def blind_size(self) -> int:
        """Bytes of the seed that hides a share in joint randomness; 0 without."""
        return self.version.seed_size if self.joint else 0

    @cached_property
    def rand_size(self) -> int:
        """Bytes of randomness for a report."""
        seeds = (self.shares - 1) * self.version.seeds_of_a_helper + 1 + (self.shares if self.joint else 0)
        return seeds * self.version.seed_size

    @cached_property
    def public_share_size(self) -> int:
        """Bytes of a public share."""
        return self.shares * self.blind_size

    def input_share_size(self, agg_id: int) -> int:
        """Bytes of an aggregator's input share."""
        if agg_id == 0:
            return self.measurement_size + self.proofs_length * self.circuit.field.size + self.blind_size
        return self.version.seeds_of_a_helper * self.version.seed_size + self.blind_size

    @cached_property
    def verifier_share_size(self) -> int:
        """Bytes of a verifier share."""
        return self.verifiers_length * self.circuit.field.size + self.blind_size

    def tag(self, usage: Prio3Usage, ctx: bytes) -> bytes:
        """The domain separation tag."""
        return self.version.domain_separation_tag(self.algorithm, usage, ctx)

    def seeds(self, data: bytes) -> list[bytes]:
        """Seeds one after another."""
        size = self.version.seed_size
        return [data[i : i + size] for i in range(0, len(data), size)]

    def split_randomness(self, rand: bytes) -> tuple[list[list[bytes]], bytes, bytes]:
        """The seeds of each helper (a blind is the last), the leader's blind, and the prover's seed."""
        seeds = self.seeds(rand)
        each = self.version.seeds_of_a_helper + self.joint
        helpers = [seeds[i * each : (i + 1) * each] for i in range(self.shares - 1)]
        return helpers, seeds[-2] if self.joint else b"", seeds[-1]

    def check_report_share(self, agg_id: int, public_share: bytes, input_share: bytes) -> None:
        """`InvalidReport` unless both have their length."""
        if len(public_share) != self.public_share_size:
            raise _wrong_size("a public share", self.public_share_size, len(public_share))
        if len(input_share) != self.input_share_size(agg_id):
            raise _wrong_size("an input share", self.input_share_size(agg_id), len(input_share))

    def check_verifier_shares(self, sizes: list[int]) -> None:
        """`InvalidReport` unless there is one of the right length from each aggregator."""
        if len(sizes) != self.shares:
            raise InputError(f"{self.shares} aggregators say what they found, not {len(sizes)}")
        for size in sizes:
            if size != self.verifier_share_size:
                raise _wrong_size("a verifier share", self.verifier_share_size, size)


def _wrong_size(what: str, expected: int, found: int) -> InvalidReport:
    return InvalidReport(f"{what} has {expected} bytes here, not {found}", undecodable=True)


class Prio3State(NamedTuple):
    """What an aggregator keeps of a report until the others have spoken."""

    out_share: Words
    joint_rand_seed: bytes
    """as the client claims it; b"" where there is no joint randomness"""


def no_element(field: str) -> InvalidReport:
    """A number in a share is no element of the field."""
    return InvalidReport(f"a number is no element of {field}: it is not below the modulus", undecodable=True)


def root_of_unity() -> InvalidReport:
    """The point of a query must be none of those that fix the polynomials: one report in 2^57 or fewer meets one."""
    return InvalidReport("the point of a query is a root of unity, where it would tell of the measurement")


def proof_does_not_hold() -> InvalidReport:
    """The measurement is not valid, or some share is not what the client made."""
    return InvalidReport("the proof does not hold: the measurement is not valid, or a share was changed")


def prove(
    circuit: Circuit, meas: list[int], prove_rand: list[int], joint_rand: list[int], *, sends_values: bool
) -> list[int]:
    """A proof that an encoded measurement is valid. O(calls · arity · log calls)."""
    field, p = circuit.field, circuit.wire_length
    calls = circuit.gadget_inputs(meas, joint_rand, 1)
    size = power_of_two_from(circuit.gadget_length)
    wires = []
    for wire, seed in enumerate(prove_rand):
        values = [seed] + [inputs[wire] for inputs in calls] + [0] * (p - 1 - len(calls))
        wires.append(field.ntt(field.inverse_ntt(values), size))
    values = [circuit.gadget.evaluate(field, list(inputs)) for inputs in zip(*wires, strict=True)]
    polynomial = values if sends_values else field.inverse_ntt(values)
    return prove_rand + polynomial[: circuit.gadget_length]


def query(
    circuit: Circuit,
    meas: list[int],
    proof: list[int],
    query_rand: list[int],
    joint_rand: list[int],
    shares: int,
    *,
    sends_values: bool,
) -> list[int]:
    """A share of the verifier, from shares of measurement and proof; `InvalidReport` for a point of no use."""
    field, p = circuit.field, circuit.wire_length
    *factors, point = query_rand
    if pow(point, p, field.modulus) == 1:
        raise root_of_unity()
    arity, size = circuit.gadget.arity, power_of_two_from(circuit.gadget_length)
    seeds, polynomial = proof[:arity], proof[arity:]
    if sends_values:
        values = polynomial + [
            _dot(field.lagrange_basis(size, missing, len(polynomial)), polynomial, field.modulus)
            for missing in roots(field, size)[len(polynomial) :]
        ]
        gadget_at_point = _dot(field.lagrange_basis(size, point), values, field.modulus)
    else:
        values = field.ntt(polynomial, size)
        gadget_at_point = sum(c * pow(point, i, field.modulus) for i, c in enumerate(polynomial)) % field.modulus
    calls = circuit.gadget_inputs(meas, joint_rand, shares)
    outputs = [values[(call + 1) * size // p] for call in range(circuit.calls)]
    basis = field.lagrange_basis(p, point)
    wires = [_dot(basis, [seed] + [inputs[wire] for inputs in calls], field.modulus) for wire, seed in enumerate(seeds)]
    return [circuit.reduced(outputs, meas, joint_rand, factors, shares), *wires, gadget_at_point]


def decide(circuit: Circuit, verifier: list[int]) -> bool:
    """Whether a verifier, the sum of all shares, says that the measurement is valid."""
    checks, *wires, gadget_at_point = verifier
    return checks == 0 and circuit.gadget.evaluate(circuit.field, wires) == gadget_at_point


def _dot(weights: list[int], values: list[int], modulus: int) -> int:
    return sum(w * x for w, x in zip(weights, values, strict=False)) % modulus


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
        kind, ctx, Prio3Usage.PROVE_RANDOMNESS, prove_seed, bytes([kind.proofs]), kind.proofs * circuit.gadget.arity
    )
    leader_proofs: list[int] = []
    for index in range(kind.proofs):
        leader_proofs += prove(
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
    query_rands = _expanded(kind, ctx, Prio3Usage.QUERY_RANDOMNESS, verify_key, bytes([kind.proofs]) + nonce, length)
    verifiers: list[int] = []
    for index in range(kind.proofs):
        verifiers += query(
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
        if not decide(kind.circuit, _part(verifiers, index, kind.proofs)):
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
    return _stream(kind, ctx, Prio3Usage.JOINT_RAND_SEED, bytes(size), b"".join(parts)).next(size)


def _measurement_share(kind: Prio3Parameters, ctx: bytes, agg_id: int, seed: bytes) -> list[int]:
    return _expanded(kind, ctx, Prio3Usage.MEASUREMENT_SHARE, seed, bytes([agg_id]), kind.circuit.measurement_length)


def _proofs_share(kind: Prio3Parameters, ctx: bytes, agg_id: int, seeds: list[bytes]) -> list[int]:
    seed = seeds[kind.version.seeds_of_a_helper - 1]
    return _expanded(kind, ctx, Prio3Usage.PROOF_SHARE, seed, bytes([kind.proofs, agg_id]), kind.proofs_length)


def _joint_rand_part(kind: Prio3Parameters, ctx: bytes, agg_id: int, blind: bytes, nonce: bytes, share: bytes) -> bytes:
    binder = bytes([agg_id]) + nonce + share
    return _stream(kind, ctx, Prio3Usage.JOINT_RAND_PART, blind, binder).next(kind.version.seed_size)


def _joint_rands(kind: Prio3Parameters, ctx: bytes, seed: bytes) -> list[int]:
    length = kind.proofs * kind.circuit.joint_rand_length
    return _expanded(kind, ctx, Prio3Usage.JOINT_RANDOMNESS, seed, bytes([kind.proofs]), length)


def _stream(kind: Prio3Parameters, ctx: bytes, usage: Prio3Usage, seed: bytes, binder: bytes) -> XofTurboShake128:
    return XofTurboShake128(kind.version, seed, kind.tag(usage, ctx), binder)


def _expanded(
    kind: Prio3Parameters, ctx: bytes, usage: Prio3Usage, seed: bytes, binder: bytes, length: int
) -> list[int]:
    return _stream(kind, ctx, usage, seed, binder).next_vector(kind.circuit.field, length)


def _part(vector: list[int], index: int, count: int) -> list[int]:
    length = len(vector) // count
    return vector[index * length : (index + 1) * length]


def _each(operation: Callable[[int, int], int], modulus: int, left: list[int], right: list[int]) -> list[int]:
    return [operation(x, y) % modulus for x, y in zip(left, right, strict=True)]
