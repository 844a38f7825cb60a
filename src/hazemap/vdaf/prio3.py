"""Prio3: sums, vectors of sums and histograms of measurements that are proved valid (draft-irtf-cfrg-vdaf-20, 7).

prio3_count                       how many measurements are 1
prio3_sum                         the sum of numbers 0 … max_measurement
prio3_sum_vec                     sums of vectors of such numbers
prio3_histogram                   how many measurements are each of `length` cells
prio3_multihot_count_vec          … have each of `length` bits set, where each sets at most `max_weight`
prio3_l1_bound_sum                sums of vectors of numbers that add up to at most `max_value`; it is of
                                  draft-ietf-ppm-l1-bound-sum-02
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hazemap.vdaf import prio3_plain
from hazemap.vdaf.circuits import (
    BitVector,
    Circuit,
    Count,
    HistogramCircuit,
    L1BoundSum,
    MultihotCountVec,
    Sum,
    weights_of,
)
from hazemap.vdaf.compiled_loops import Words, worth_compiling
from hazemap.vdaf.errors import CodecError, InputError, Refused
from hazemap.vdaf.ntt_field import FIELD64, FIELD128
from hazemap.vdaf.prio3_plain import Prio3Parameters, Prio3State
from hazemap.vdaf.vdaf import VDAF_18, Continuation, InvalidReport, ReportShare, Vdaf, VdafVersion

_STEPS = 40
"""Numbers that a plain loop goes through for each bit of a measurement."""


class Prio3(Vdaf):
    """One variant of Prio3; make it by one of the functions of this module.

    >>> vdaf = prio3_count()
    >>> nonce, rand, key = bytes(16), bytes(vdaf.RAND_SIZE), bytes(vdaf.VERIFY_KEY_SIZE)
    >>> public, shares = vdaf.shard(b"", 1, nonce, rand)
    >>> begun = [vdaf.verify_init(key, b"", i, b"", nonce, public, share) for i, share in enumerate(shares)]
    >>> message = vdaf.verifier_shares_to_message(b"", b"", [each.verifier_share for each in begun])
    >>> vdaf.unshard(b"", [vdaf.merge(b"", [vdaf.verify_next(b"", each.state, message)]) for each in begun])
    [1]
    """

    ROUNDS = 1
    NONCE_SIZE = 16

    def __init__(self, parameters: Prio3Parameters, *, compiled: bool | None = None) -> None:
        self.parameters = parameters
        self._compiled = compiled
        self.ID = parameters.algorithm
        self.SHARES = parameters.shares
        self.RAND_SIZE = parameters.rand_size
        self.VERIFY_KEY_SIZE = parameters.version.seed_size
        self._field = parameters.circuit.field

    @property
    def share_sizes(self) -> tuple[int, ...]:
        """Bytes of a report's public share, and of the input share of each aggregator."""
        own = self.parameters
        return (own.public_share_size, *(own.input_share_size(aggregator) for aggregator in range(self.SHARES)))

    def shard(self, ctx: bytes, measurement: Any, nonce: bytes, rand: bytes) -> tuple[bytes, list[bytes]]:
        """The public share and the input shares of a measurement."""
        _check_size("a nonce", nonce, self.NONCE_SIZE)
        _check_size("the randomness of a report", rand, self.RAND_SIZE)
        encoded = self.parameters.circuit.encode(measurement)
        public_share, input_shares = self._twin(1).shard(self.parameters, ctx, encoded, nonce, rand)
        return public_share, input_shares

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
        """The state and the verifier share of an aggregator."""
        report = ReportShare(nonce, public_share, input_share)
        (found,) = self.verify_init_all(verify_key, ctx, agg_id, agg_param, [report])
        if isinstance(found, InvalidReport):
            raise found
        return found

    def verify_init_all(
        self, verify_key: bytes, ctx: bytes, agg_id: int, agg_param: bytes, reports: Sequence[ReportShare]
    ) -> list[Continuation | InvalidReport]:
        """`verify_init` of many reports, several at a time where that is faster."""
        self._check_parameter(agg_param)
        _check_size("a verification key", verify_key, self.VERIFY_KEY_SIZE)
        if not 0 <= agg_id < self.SHARES:
            raise InputError(f"there are aggregators 0 to {self.SHARES - 1}, no {agg_id}")
        found: dict[int, Continuation | InvalidReport] = {}
        for i, report in enumerate(reports):
            _check_size("a nonce", report.nonce, self.NONCE_SIZE)
            try:
                self.parameters.check_report_share(agg_id, report.public_share, report.input_share)
            except InvalidReport as error:
                found[i] = error
        rest = [i for i in range(len(reports)) if i not in found]
        begin, sound = self._twin(len(rest)).verify_init_all, [reports[i] for i in rest]
        found |= zip(rest, begin(self.parameters, verify_key, ctx, agg_id, sound), strict=True)
        return [found[i] for i in range(len(reports))]

    def _twin(self, reports: int) -> Any:
        """What does so many reports: machine code, unless they are few and small and numba is not loaded."""
        steps = _STEPS * self.parameters.circuit.measurement_length * reports
        if not (worth_compiling(steps) if self._compiled is None else self._compiled):
            return prio3_plain
        from hazemap.vdaf import prio3_compiled

        return prio3_compiled

    def verifier_shares_to_message(self, ctx: bytes, agg_param: bytes, shares: Sequence[bytes]) -> bytes:
        """The joint randomness seed, if the proofs hold."""
        (found,) = self.verifier_shares_to_messages(ctx, agg_param, [shares])
        if isinstance(found, InvalidReport):
            raise found
        return found

    def verifier_shares_to_messages(
        self, ctx: bytes, agg_param: bytes, shares: Sequence[Sequence[bytes]]
    ) -> list[bytes | InvalidReport]:
        """`verifier_shares_to_message` of many reports."""
        self._check_parameter(agg_param)
        found: list[bytes | InvalidReport] = [b""] * len(shares)
        rest = []
        for i, each in enumerate(shares):
            try:
                self.parameters.check_verifier_shares([len(share) for share in each])
                rest.append(i)
            except InvalidReport as error:
                found[i] = error
        decide, sound = self._twin(len(rest)).verifier_shares_to_messages, [shares[i] for i in rest]
        for i, message in zip(rest, decide(self.parameters, ctx, sound), strict=True):
            found[i] = message
        return found

    def verify_next(self, ctx: bytes, state: Any, message: bytes) -> Continuation | Words:  # noqa: ARG002 - as every VDAF
        """The output share, if the joint randomness is what the client said."""
        out_share, claimed = state
        if len(message) != len(claimed):
            raise InvalidReport(f"a verifier message has {len(claimed)} bytes, not {len(message)}", undecodable=True)
        if message != claimed:
            raise InvalidReport("the client made its proof with other joint randomness than the aggregators have")
        return out_share  # type: ignore[no-any-return]

    def is_valid(self, agg_param: bytes, previous: Sequence[bytes]) -> bool:
        """Whether it was not aggregated yet."""
        self._check_parameter(agg_param)
        return not previous

    def modulus(self, agg_param: bytes) -> int:
        """Of the circuit's field."""
        self._check_parameter(agg_param)
        return self._field.modulus

    def output_length(self, agg_param: bytes) -> int:
        """Numbers of a result."""
        self._check_parameter(agg_param)
        return self.parameters.circuit.output_length

    def encode_state(self, agg_param: bytes, state: Any) -> bytes:
        """The joint randomness seed and the output share."""
        out_share, claimed = state
        return bytes(claimed) + self.encode_agg_share(agg_param, out_share)

    def decode_state(self, agg_param: bytes, data: bytes) -> Prio3State:
        """What `encode_state` wrote."""
        size = self.parameters.blind_size
        if len(data) < size:
            raise CodecError("a stored state of a report is damaged")
        return Prio3State(self.decode_agg_share(agg_param, data[size:]), data[:size])

    def merge(self, agg_param: bytes, shares: Iterable[Words]) -> Words:
        """The sum of shares, in any order."""
        shape = (self.output_length(agg_param), self._field.words)
        return self._twin(1).sum_of(self._field, shape, self._checked(shares, shape))  # type: ignore[no-any-return]

    def _checked(self, shares: Iterable[Words], shape: tuple[int, int]) -> Iterable[Words]:
        for share in shares:
            if share.shape != shape or share.dtype != np.uint64:
                raise InputError(f"a share is uint64{list(shape)} here, not {share.dtype}{list(share.shape)}")
            yield share

    def share_of(self, agg_param: bytes, numbers: Sequence[int]) -> Words:
        """Signed numbers as elements."""
        if len(numbers) != self.output_length(agg_param):
            raise InputError(f"{len(numbers)} numbers are no result of {self.output_length(agg_param)}")
        return self._field.to_words([int(number) % self._field.modulus for number in numbers])

    def encode_agg_share(self, agg_param: bytes, share: Words) -> bytes:
        """Element after element, little end first."""
        if share.shape != (self.output_length(agg_param), self._field.words):
            raise InputError("this is no share of a result of these parameters")
        return np.ascontiguousarray(share, dtype="<u8").tobytes()

    def decode_agg_share(self, agg_param: bytes, data: bytes) -> Words:
        """The elements; `CodecError` for another length, and for a number that is no element."""
        expected = self.output_length(agg_param) * self._field.size
        if len(data) != expected:
            raise CodecError(f"a share of a result has {expected} bytes here, not {len(data)}")
        return self._field.decode_words(data)

    def unshard(self, agg_param: bytes, agg_shares: Sequence[Words]) -> list[int]:
        """The sums of the aggregate shares of all aggregators."""
        if len(agg_shares) != self.SHARES:
            raise InputError(f"a result has {self.SHARES} shares, not {len(agg_shares)}")
        return self._field.from_words(self.merge(agg_param, agg_shares))

    def _check_parameter(self, agg_param: bytes) -> None:
        if agg_param:
            raise Refused(f"Prio3 has no aggregation parameter, and {len(agg_param)} bytes of one were given")


def _check_size(what: str, data: bytes, size: int) -> None:
    if len(data) != size:
        raise InputError(f"{what} has {size} bytes here, not {len(data)}")


def _prio3(name: str, circuit: Circuit, version: VdafVersion, shares: int) -> Prio3:
    return Prio3(Prio3Parameters(circuit, version, version.ids[name], shares))


def prio3_count(*, shares: int = 2, version: VdafVersion = VDAF_18) -> Prio3:
    """Counts measurements that are 1; the others are 0."""
    return _prio3("Count", Count(FIELD64), version, shares)


def prio3_sum(max_measurement: int, *, shares: int = 2, version: VdafVersion = VDAF_18) -> Prio3:
    """Adds numbers from 0 to `max_measurement`; in version 08 that is one less than a power of two."""
    _check_most(max_measurement, version)
    field = FIELD64 if version.reduces_by_query else FIELD128
    return _prio3("Sum", Sum(field, max_measurement, version.reduces_by_query), version, shares)


def prio3_sum_vec(
    length: int, max_measurement: int, chunk_length: int, *, shares: int = 2, version: VdafVersion = VDAF_18
) -> Prio3:
    """Adds vectors of `length` numbers from 0 to `max_measurement`; `chunk_length` is that of the proof."""
    _check_most(max_measurement, version)
    weights = tuple(weights_of(max_measurement))
    circuit = BitVector(FIELD128, length, chunk_length, version.reduces_by_query, output_weights=weights)
    return _prio3("SumVec", circuit, version, shares)


def prio3_histogram(length: int, chunk_length: int, *, shares: int = 2, version: VdafVersion = VDAF_18) -> Prio3:
    """Counts how many measurements are each of `length` cells."""
    circuit = HistogramCircuit(FIELD128, length, chunk_length, version.reduces_by_query, constant=-1, affine=True)
    return _prio3("Histogram", circuit, version, shares)


def prio3_multihot_count_vec(
    length: int, max_weight: int, chunk_length: int, *, shares: int = 2, version: VdafVersion = VDAF_18
) -> Prio3:
    """Counts how many measurements have each of `length` bits set, where each sets at most `max_weight`.

    In version 08 it is MultiHotHistogram, whose number is not registered.
    """
    if type(max_weight) is not int or not 1 <= max_weight <= length:
        raise InputError(f"the largest weight is a whole number from 1 to the length {length}")
    offset = 0 if version.reduces_by_query else (1 << max_weight.bit_length()) - 1 - max_weight
    weights = tuple(-weight for weight in weights_of(max_weight + offset))
    circuit = MultihotCountVec(
        FIELD128,
        length,
        chunk_length,
        version.reduces_by_query,
        other_weights=weights,
        constant=offset,
        affine=True,
        max_weight=max_weight,
        weight_offset=offset,
    )
    return _prio3("MultihotCountVec", circuit, version, shares)


def prio3_l1_bound_sum(length: int, max_value: int, chunk_length: int, *, shares: int = 2) -> Prio3:
    """Adds vectors of `length` numbers of which each, and their sum, is from 0 to `max_value`. Draft 08 has none."""
    _check_most(max_value, VDAF_18)
    weights = tuple(weights_of(max_value))
    circuit = L1BoundSum(
        FIELD128,
        length,
        chunk_length,
        VDAF_18.reduces_by_query,
        output_weights=weights,
        other_weights=tuple(-weight for weight in weights),
        affine=True,
    )
    return _prio3("L1BoundSum", circuit, VDAF_18, shares)


def _check_most(most: int, version: VdafVersion) -> None:
    if type(most) is not int or not 1 <= most < 1 << 64:
        raise InputError("the largest number of a sum is a whole number from 1 to below 2^64")
    if not version.reduces_by_query and most & (most + 1):
        raise InputError(
            f"in version {version.number:02} the largest number of a sum is 2^bits − 1, which {most} is not"
        )
