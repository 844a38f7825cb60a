"""The circuits of one number: Count and Sum (draft-irtf-cfrg-vdaf-20, 7.4.1 and 7.4.2)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Bytes
from hazemap.vdaf.circuits import Circuit, ParallelSum, PolyEval
from hazemap.vdaf.ntt_field import NttField
from hazemap.vdaf.range_checked_integers import bits_of, weights_of, whole_number


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
