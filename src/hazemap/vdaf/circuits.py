"""Validity circuits (draft-irtf-cfrg-vdaf-20, 7.3.2): which encoded measurements are valid, in plain Python.

Each has one gadget, called several times on affine functions of the measurement; an affine function of the gadget's
outputs is 0 if the measurement is valid, and hardly ever otherwise. Constants are divided by the number of shares, so
that the same functions take shares to shares.

Count and Sum take one number (7.4.1 and 7.4.2). SumVec, Histogram and MultihotCountVec take many bits (7.4.3 to 7.4.5),
and so does L1BoundSum (draft-ietf-ppm-l1-bound-sum-02, section 3). A number becomes bits with weights that no number
out of range has.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hazemap.vdaf.compiled_loops import Bytes
from hazemap.vdaf.errors import InputError
from hazemap.vdaf.ntt_field import NttField, power_of_two_from


@dataclass(frozen=True)
class ParallelSum:
    """The sum of products of `count` pairs of inputs; with one pair it is the gadget `Mul`.

    >>> from hazemap.vdaf.ntt_field import FIELD64
    >>> ParallelSum(2).evaluate(FIELD64, [2, 3, 4, 5])
    26
    """

    count: int
    degree = 2

    @property
    def arity(self) -> int:
        """How many inputs it has."""
        return 2 * self.count

    def evaluate(self, field: NttField, inputs: list[int]) -> int:
        """Its output."""
        return sum(x * y for x, y in zip(inputs[::2], inputs[1::2], strict=True)) % field.modulus


@dataclass(frozen=True)
class PolyEval:
    """A polynomial of one input, by its coefficients, the constant first.

    >>> from hazemap.vdaf.ntt_field import FIELD64
    >>> PolyEval((0, -1, 1)).evaluate(FIELD64, [3])
    6
    """

    coefficients: tuple[int, ...]
    arity = 1

    @property
    def degree(self) -> int:
        """The polynomial's degree."""
        return len(self.coefficients) - 1

    def evaluate(self, field: NttField, inputs: list[int]) -> int:
        """Its output."""
        total = 0
        for coefficient in reversed(self.coefficients):
            total = (total * inputs[0] + coefficient) % field.modulus
        return total


class Circuit(ABC):
    """One circuit with its parameters. Elements are whole numbers below the modulus of `field`."""

    field: NttField
    measurement_length: int
    joint_rand_length: int
    output_length: int
    checks: int
    """how many outputs are joined by randomness of the aggregators' key; 1 if none is needed for that"""

    @property
    @abstractmethod
    def gadget(self) -> ParallelSum | PolyEval:
        """The one gadget."""

    @property
    @abstractmethod
    def calls(self) -> int:
        """How often the gadget is called."""

    @abstractmethod
    def encode(self, measurement: Any) -> Bytes:
        """A measurement as small numbers, one for each element; `InputError` for what cannot be measured."""

    @abstractmethod
    def gadget_inputs(self, meas: list[int], joint_rand: list[int], shares: int) -> list[list[int]]:
        """The inputs of each call."""

    @abstractmethod
    def reduced(
        self, outputs: list[int], meas: list[int], joint_rand: list[int], query_rand: list[int], shares: int
    ) -> int:
        """All checks as one number, from the outputs of the calls."""

    @abstractmethod
    def truncate(self, meas: list[int]) -> list[int]:
        """The numbers that are added up."""

    @property
    def wire_length(self) -> int:
        """Points of a wire polynomial: one for each call and a random one, up to a power of two."""
        return power_of_two_from(1 + self.calls)

    @property
    def gadget_length(self) -> int:
        """Numbers that fix the gadget polynomial."""
        return self.gadget.degree * (self.wire_length - 1) + 1

    @property
    def proof_length(self) -> int:
        """Elements of one proof: the wires' random values, and the gadget polynomial."""
        return self.gadget.arity + self.gadget_length

    @property
    def verifier_length(self) -> int:
        """Elements that an aggregator says of one proof: the checks, the wires and the gadget at a random point."""
        return self.gadget.arity + 2

    @property
    def query_rand_length(self) -> int:
        """Random elements for one query: the point, and the factors of the checks."""
        return 1 + (self.checks if self.checks > 1 else 0)


def whole_number(value: Any, most: int, what: str) -> int:
    """A measurement that is a whole number from 0 to `most`; `InputError` for anything else, NaN too."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not 0 <= value <= most:
        raise InputError(f"{what} is a whole number from 0 to {most}")
    return int(value)


def whole_numbers(values: Any, length: int, most: int, what: str) -> list[int]:
    """A measurement that is a list or an array of `length` whole numbers from 0 to `most`."""
    array = values if isinstance(values, np.ndarray) else None
    if array is not None:
        values = array.tolist() if array.ndim == 1 and array.dtype.kind in "biu" else None
    wrong = not isinstance(values, list | tuple) or len(values) != length
    if wrong or not all(isinstance(x, int | np.integer) and 0 <= x <= most for x in values):
        raise InputError(f"{what} is a list of {length} whole numbers from 0 to {most}")
    return [int(x) for x in values]


def weights_of(most: int) -> list[int]:
    """Weights of bits of which the sums are exactly the numbers from 0 to `most`.

    >>> weights_of(5), weights_of(7)
    ([1, 2, 2], [1, 2, 4])
    """
    bits = most.bit_length()
    return [1 << i for i in range(bits - 1)] + [most - (1 << bits - 1) + 1]


def bits_of(values: list[int], most: int) -> Bytes:
    """The bits with these weights of numbers from 0 to `most` < 2^64: a last bit is 1 only where it must be.

    >>> bits_of([3, 4], 5).tolist()
    [1, 1, 0, 0, 1, 1]
    """
    bits = most.bit_length()
    numbers = np.array(values, dtype=np.uint64)
    above = numbers >> np.uint64(bits - 1)
    rest = numbers - above * np.uint64(weights_of(most)[-1])
    found = np.empty((len(values), bits), dtype=np.uint8)
    for i in range(bits - 1):
        found[:, i] = rest >> np.uint64(i) & np.uint64(1)
    found[:, -1] = above
    return found.reshape(-1)


@dataclass(frozen=True)
class Count(Circuit):
    """0 or 1: x · x = x.

    >>> from hazemap.vdaf.ntt_field import FIELD64
    >>> Count(FIELD64).gadget_inputs([1], [], 2)
    [[1, 1]]
    """

    field: NttField
    measurement_length = 1
    joint_rand_length = 0
    output_length = 1
    checks = 1
    gadget = ParallelSum(1)
    calls = 1

    def encode(self, measurement: Any) -> Bytes:
        """0, 1, False or True."""
        value = int(measurement) if isinstance(measurement, bool) else measurement
        return np.array([whole_number(value, 1, "what is counted")], dtype=np.uint8)

    def gadget_inputs(self, meas: list[int], joint_rand: list[int], shares: int) -> list[list[int]]:  # noqa: ARG002
        """The number, twice."""
        return [[meas[0], meas[0]]]

    def reduced(
        self,
        outputs: list[int],
        meas: list[int],
        joint_rand: list[int],  # noqa: ARG002 - as every circuit
        query_rand: list[int],  # noqa: ARG002
        shares: int,  # noqa: ARG002
    ) -> int:
        """x² − x."""
        return (outputs[0] - meas[0]) % self.field.modulus

    def truncate(self, meas: list[int]) -> list[int]:
        """The number itself."""
        return meas


@dataclass(frozen=True)
class Sum(Circuit):
    """A number from 0 to `max_measurement`, as bits: x² − x = 0 for each.

    >>> from hazemap.vdaf.ntt_field import FIELD64
    >>> Sum(FIELD64, 5, reduces_by_query=True).truncate([0, 1, 1])
    [4]
    """

    field: NttField
    max_measurement: int
    reduces_by_query: bool
    output_length = 1
    gadget = PolyEval((0, -1, 1))

    def __post_init__(self) -> None:
        if type(self.max_measurement) is not int or not 0 < self.max_measurement < self.field.modulus:
            raise InputError(f"the largest number of a sum is from 1 to below the modulus of {self.field.name}")

    @property
    def calls(self) -> int:
        """One a bit."""
        return self.max_measurement.bit_length()

    @property
    def measurement_length(self) -> int:  # type: ignore[override]
        """The bits."""
        return self.calls

    @property
    def joint_rand_length(self) -> int:  # type: ignore[override]
        """One number, of which the powers join the checks; none where the query joins them."""
        return 0 if self.reduces_by_query else 1

    @property
    def checks(self) -> int:  # type: ignore[override]
        """One a bit."""
        return self.calls if self.reduces_by_query else 1

    def encode(self, measurement: Any) -> Bytes:
        """The bits of a number."""
        value = whole_number(measurement, self.max_measurement, "what is summed")
        return bits_of([value], self.max_measurement)

    def gadget_inputs(self, meas: list[int], joint_rand: list[int], shares: int) -> list[list[int]]:  # noqa: ARG002
        """A bit each."""
        return [[x] for x in meas]

    def reduced(
        self,
        outputs: list[int],
        meas: list[int],  # noqa: ARG002 - as every circuit
        joint_rand: list[int],
        query_rand: list[int],
        shares: int,  # noqa: ARG002
    ) -> int:
        """A random combination of the checks."""
        p = self.field.modulus
        if self.reduces_by_query:
            return sum(r * x for r, x in zip(query_rand or [1], outputs, strict=True)) % p
        return sum(pow(joint_rand[0], i + 1, p) * x for i, x in enumerate(outputs)) % p

    def truncate(self, meas: list[int]) -> list[int]:
        """The weighted sum of the bits."""
        weights = weights_of(self.max_measurement)
        return [sum(w * x for w, x in zip(weights, meas, strict=True)) % self.field.modulus]


@dataclass(frozen=True)
class BitVector(Circuit):
    """Bits, in chunks: a random combination of x² − x over all is 0. All circuits of this module are of it.

    An output is the sum of a group of consecutive bits by `output_weights`. If `affine`, another sum is 0 too: that of
    all outputs, of the bits after them by `other_weights`, and of `constant`.
    """

    field: NttField
    output_length: int
    chunk_length: int
    reduces_by_query: bool
    output_weights: tuple[int, ...] = (1,)
    other_weights: tuple[int, ...] = ()
    constant: int = 0
    affine: bool = False

    def __post_init__(self) -> None:
        if type(self.output_length) is not int or not 1 <= self.output_length < 1 << 32:
            raise InputError("the length of a vector is from 1 to below 2^32")
        if type(self.chunk_length) is not int or not 1 <= self.chunk_length <= self.measurement_length:
            raise InputError(f"a chunk of a proof has from 1 to all {self.measurement_length} bits")

    @cached_property
    def gadget(self) -> ParallelSum:
        """Sums of products over a chunk."""
        return ParallelSum(self.chunk_length)

    @cached_property
    def calls(self) -> int:
        """One a chunk."""
        return -(-self.measurement_length // self.chunk_length)

    @cached_property
    def measurement_length(self) -> int:  # type: ignore[override]
        """All bits."""
        return self.output_length * len(self.output_weights) + len(self.other_weights)

    @property
    def joint_rand_length(self) -> int:  # type: ignore[override]
        """A number for each chunk; or one for all chunks, and one that joins the checks."""
        return self.calls if self.reduces_by_query else 1 + self.affine

    @property
    def checks(self) -> int:  # type: ignore[override]
        """That all are bits, and the affine one."""
        return 1 + self.affine if self.reduces_by_query else 1

    def encode(self, measurement: Any) -> Bytes:
        """A list of numbers, each as bits."""
        most = sum(self.output_weights)
        numbers = whole_numbers(measurement, self.output_length, most, "what is summed")
        return bits_of(numbers, most)

    def gadget_inputs(self, meas: list[int], joint_rand: list[int], shares: int) -> list[list[int]]:
        """r^j · x and x − 1, for the bits of a chunk; 0 where the last chunk has no bit."""
        p, each = self.field.modulus, self.field.inverse(shares)
        power, found = joint_rand[0], []
        for call in range(self.calls):
            r = joint_rand[call] if self.reduces_by_query else joint_rand[0]
            power = r if self.reduces_by_query else power
            chunk = meas[call * self.chunk_length : (call + 1) * self.chunk_length]
            inputs = []
            for x in chunk + [0] * (self.chunk_length - len(chunk)):
                inputs += [power * x % p, (x - each) % p]
                power = power * r % p
            found.append(inputs)
        return found

    def reduced(
        self, outputs: list[int], meas: list[int], joint_rand: list[int], query_rand: list[int], shares: int
    ) -> int:
        """Both checks, joined."""
        p, bits = self.field.modulus, sum(outputs)
        if not self.affine:
            return bits % p
        others = meas[self.output_length * len(self.output_weights) :]
        total = sum(self.truncate(meas)) + self.constant * self.field.inverse(shares)
        total += sum(w * x for w, x in zip(self.other_weights, others, strict=True))
        r = query_rand if self.reduces_by_query else [joint_rand[1], joint_rand[1] ** 2]
        return (r[0] * bits + r[1] * total) % p

    def truncate(self, meas: list[int]) -> list[int]:
        """The sums of groups."""
        n = len(self.output_weights)
        return [
            sum(w * x for w, x in zip(self.output_weights, meas[i * n : (i + 1) * n], strict=True)) % self.field.modulus
            for i in range(self.output_length)
        ]


@dataclass(frozen=True)
class HistogramCircuit(BitVector):
    """The one cell of a measurement."""

    def encode(self, measurement: Any) -> Bytes:
        """A one among zeros."""
        cell = whole_number(measurement, self.output_length - 1, "a cell of a histogram")
        encoded = np.zeros(self.output_length, dtype=np.uint8)
        encoded[cell] = 1
        return encoded


@dataclass(frozen=True)
class MultihotCountVec(BitVector):
    """At most `max_weight` of many cells; the weight follows, as bits of the weight plus `weight_offset`."""

    max_weight: int = 1
    weight_offset: int = 0

    def encode(self, measurement: Any) -> Bytes:
        """Zeros and ones, and how many ones there are."""
        cells = whole_numbers(measurement, self.output_length, 1, "a vector of cells")
        if sum(cells) > self.max_weight:
            raise InputError(f"at most {self.max_weight} cells are 1, not {sum(cells)}")
        most = self.max_weight + self.weight_offset
        return np.concatenate([np.array(cells, dtype=np.uint8), bits_of([sum(cells) + self.weight_offset], most)])


@dataclass(frozen=True)
class L1BoundSum(BitVector):
    """Numbers of which the sum is at most what one of them may be; the sum follows, as bits of the same weights.

    The sum of `output_length` < 2^32 numbers below 2^64 does not wrap around in Field128: that it is 0 less the sum
    which the client says, modulo p, says so of whole numbers too.
    """

    def encode(self, measurement: Any) -> Bytes:
        """A list of numbers and their sum, each as bits."""
        most = sum(self.output_weights)
        numbers = whole_numbers(measurement, self.output_length, most, "what is summed under a bound")
        if sum(numbers) > most:
            raise InputError(f"the numbers of one measurement add up to {most} at most, not {sum(numbers)}")
        return bits_of([*numbers, sum(numbers)], most)


def shortest_chunk_length(bits: int) -> int:
    """The chunk length with the shortest proof for so many bits.

    >>> shortest_chunk_length(4096)
    66
    """
    best, found = bits + 8 * bits, bits
    points = 2
    while points <= 2 * bits + 2:
        chunk = -(-bits // (points - 1))
        length = 2 * chunk + 2 * (points - 1) + 1
        if length < best:
            best, found = length, chunk
        points *= 2
    return found
