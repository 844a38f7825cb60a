"""What a task measures (draft-ietf-ppm-dap-18, appendix B): a VDAF by its number, and its parameters, all bounded.

A configuration also says how far one measurement can move the sums: Δ₁ and Δ₂² of one person added or removed.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from hazemap.errors import CodecError, InputError
from hazemap.field_types import check_fields
from hazemap.vdaf.idpf import MOST_BITS
from hazemap.vdaf.tls_encoding import Structure, number

FIELD64: Final = 2**64 - 2**32 + 1
"""The modulus of the smallest field: of Count, of Sum, and of the inner levels of Poplar1."""
MOST_ELEMENTS: Final = 1 << 22
"""Field elements of one measurement, at most: 64 MiB a share."""


class _Configuration(Structure):
    VDAF: ClassVar[int]
    NAME: ClassVar[str]

    def __init_subclass__(cls, *, vdaf: int, name: str) -> None:
        super().__init_subclass__()
        cls.VDAF, cls.NAME = vdaf, name


def _within(what: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{what} must be {least} to {most}, not {value}")


def _check_vector(length: int, entry_bits: int, chunk_length: int) -> None:
    _within("the length of a vector", length, 1, MOST_ELEMENTS)
    _within("the bits of a vector", length * entry_bits, 1, MOST_ELEMENTS)
    _within("the chunk length of a proof", chunk_length, 1, length * entry_bits)


@dataclass(frozen=True)
class CountConfiguration(_Configuration, vdaf=1, name="Prio3Count"):
    """How many measurements are 1; the others are 0.

    >>> CountConfiguration().to_bytes(), CountConfiguration().norm_1
    (b'', 1)
    """

    @property
    def norm_1(self) -> int:
        """Δ₁."""
        return 1

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return 1


@dataclass(frozen=True)
class SumConfiguration(_Configuration, vdaf=2, name="Prio3Sum"):
    """The sum of numbers 0 … `max_measurement`."""

    max_measurement: Annotated[int, number(8)]

    def __post_init__(self) -> None:
        check_fields(self)
        _within("the largest number of a sum", self.max_measurement, 1, FIELD64 - 1)

    @property
    def norm_1(self) -> int:
        """Δ₁."""
        return self.max_measurement

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return self.max_measurement**2


@dataclass(frozen=True)
class SumVecConfiguration(_Configuration, vdaf=3, name="Prio3SumVec"):
    """The sums of vectors of `length` numbers 0 … `max_measurement`."""

    length: Annotated[int, number(4)]
    max_measurement: Annotated[int, number(8)]
    chunk_length: Annotated[int, number(4)]

    def __post_init__(self) -> None:
        check_fields(self)
        _within("the largest number of a sum", self.max_measurement, 1, (1 << 64) - 1)
        _check_vector(self.length, self.max_measurement.bit_length(), self.chunk_length)

    @property
    def norm_1(self) -> int:
        """Δ₁."""
        return self.length * self.max_measurement

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return self.length * self.max_measurement**2


@dataclass(frozen=True)
class HistogramConfiguration(_Configuration, vdaf=4, name="Prio3Histogram"):
    """How many measurements are each of `length` cells.

    >>> HistogramConfiguration(256, 18).to_bytes().hex()
    '0000010000000012'
    """

    length: Annotated[int, number(4)]
    chunk_length: Annotated[int, number(4)]

    def __post_init__(self) -> None:
        check_fields(self)
        _check_vector(self.length, 1, self.chunk_length)

    @property
    def norm_1(self) -> int:
        """Δ₁."""
        return 1

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return 1


@dataclass(frozen=True)
class MultihotConfiguration(_Configuration, vdaf=5, name="Prio3MultihotCountVec"):
    """How many measurements have each of `length` bits set; each sets at most `max_weight`."""

    length: Annotated[int, number(4)]
    chunk_length: Annotated[int, number(4)]
    max_weight: Annotated[int, number(8)]

    def __post_init__(self) -> None:
        check_fields(self)
        _within("the largest weight", self.max_weight, 1, self.length)
        _check_vector(self.length, 1, 1)
        _within("the chunk length of a proof", self.chunk_length, 1, self.length + self.max_weight.bit_length())

    @property
    def norm_1(self) -> int:
        """Δ₁."""
        return self.max_weight

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return self.max_weight


@dataclass(frozen=True)
class Poplar1Configuration(_Configuration, vdaf=6, name="Poplar1"):
    """How many measurements, strings of `bits` bits, begin with each of some prefixes; Δ are of one level."""

    bits: Annotated[int, number(2)]

    def __post_init__(self) -> None:
        check_fields(self)
        _within("the bits of a string", self.bits, 1, MOST_BITS)

    @property
    def norm_1(self) -> int:
        """Δ₁."""
        return 1

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return 1


VdafConfiguration = (
    CountConfiguration
    | SumConfiguration
    | SumVecConfiguration
    | HistogramConfiguration
    | MultihotConfiguration
    | Poplar1Configuration
)
_BY_NUMBER: dict[int, type[VdafConfiguration]] = {
    each.VDAF: each
    for each in (
        CountConfiguration,
        SumConfiguration,
        SumVecConfiguration,
        HistogramConfiguration,
        MultihotConfiguration,
        Poplar1Configuration,
    )
}


def read_configuration(vdaf_type: int, data: bytes) -> VdafConfiguration:
    """The configuration of a VDAF; CodecError for a number that is not known, or parameters that cannot be.

    >>> read_configuration(2, bytes.fromhex("00000000000000ff"))
    SumConfiguration(max_measurement=255)
    """
    kind = _BY_NUMBER.get(vdaf_type)
    if kind is None:
        known = ", ".join(f"{number} ({each.NAME})" for number, each in _BY_NUMBER.items())
        raise CodecError(f"VDAF {vdaf_type:#x} is not known here, only {known}")
    return kind.from_bytes(data)
