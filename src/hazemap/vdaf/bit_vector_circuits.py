"""The circuits of many bits.

SumVec, Histogram and MultihotCountVec are of draft-irtf-cfrg-vdaf-20, 7.4.3 to 7.4.5; L1BoundSum is of
draft-ietf-ppm-l1-bound-sum-02, section 3.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Bytes
from hazemap.vdaf.circuits import Circuit, ParallelSum
from hazemap.vdaf.ntt_field import NttField
from hazemap.vdaf.range_checked_integers import bits_of, whole_number, whole_numbers


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
class Histogram(BitVector):
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
