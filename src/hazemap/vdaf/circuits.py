"""Validity circuits (draft-irtf-cfrg-vdaf-20, 7.3.2): which encoded measurements are valid, in plain Python.

Each has one gadget, called several times on affine functions of the measurement; an affine function of the gadget's
outputs is 0 if the measurement is valid, and hardly ever otherwise. Constants are divided by the number of shares, so
that the same functions take shares to shares.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from hazemap.machine_code.arrays import Bytes
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
