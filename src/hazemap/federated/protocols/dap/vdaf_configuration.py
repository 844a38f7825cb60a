"""What a task measures (draft-ietf-ppm-dap-18, appendix B), extensions, and the HPKE keys that an aggregator offers.

A measurement is a VDAF by its number, and its parameters, all bounded; it says how far one measurement can move the
sums: Δ₁ and Δ₂² of one person added or removed. Extensions of tasks, reports, aggregation jobs and collection jobs have
one form and one rule: uint16 type ‖ opaque data, strictly ascending, all understood. A list that is read from a message
may still be out of order: the handler of the message says what that means for it (`check_extensions`).
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Final

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.resource_paths import DapMessage
from hazemap.field_types import check_fields
from hazemap.vdaf.hpke import CipherSuite
from hazemap.vdaf.idpf import MOST_BITS
from hazemap.vdaf.tls_encoding import Structure, number, opaque, vector

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

    @property
    def norm_1(self) -> int:
        """Δ₁, 1 unless a measurement can move the sums further."""
        return 1

    @property
    def norm_2_squared(self) -> int:
        """Δ₂²."""
        return 1


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


@dataclass(frozen=True)
class Extension(Structure):
    """Its type, and what that type makes of its data.

    >>> Extension(0x1234, b"hello").to_bytes().hex()
    '1234000568656c6c6f'
    """

    type: Annotated[int, number(2)]
    data: Annotated[bytes, opaque(2)]


Extensions = Annotated[tuple[Extension, ...], vector(Extension, 2)]


class InvalidExtensions(CodecError):
    """Extensions whose types do not ascend strictly, or whose data mean nothing."""


class UnsupportedExtensions(CodecError):
    """Extensions that this side does not know; `types` are theirs, ascending."""

    def __init__(self, types: Collection[int]) -> None:
        self.types = tuple(sorted(set(types)))
        super().__init__(f"extensions {', '.join(map(str, self.types))} are not known here, and may not be ignored")


def check_extensions(extensions: tuple[Extension, ...], known: Collection[int]) -> dict[int, bytes]:
    """The data by their types: InvalidExtensions unless these ascend, UnsupportedExtensions unless all are known.

    >>> check_extensions((Extension(1, b"a"), Extension(4, b"b")), {1, 2, 4})
    {1: b'a', 4: b'b'}
    """
    if not extensions:
        return {}
    types = [each.type for each in extensions]
    if any(left >= right for left, right in pairwise(types)):
        raise InvalidExtensions("extensions must ascend strictly by their types, and do not")
    if unknown := set(types) - set(known):
        raise UnsupportedExtensions(unknown)
    return {each.type: each.data for each in extensions}


@dataclass(frozen=True)
class HpkeConfig(Structure):
    """A public key with the algorithms it is for, by their numbers in RFC 9180, section 7; they may be unknown here.

    >>> HpkeConfig(12, 0x10, 3, 2, b"").to_bytes().hex()
    '0c0010000300020000'
    """

    id: Annotated[int, number(1)]
    kem: Annotated[int, number(2)]
    kdf: Annotated[int, number(2)]
    aead: Annotated[int, number(2)]
    public_key: Annotated[bytes, opaque(2)]
    """its length is the KEM's: who uses the key checks that, and so an empty one is never used"""

    @property
    def suite(self) -> CipherSuite | None:
        """The algorithms, or None if one is not known here, or the key cannot be one of theirs."""
        suite = CipherSuite.of(self.kem, self.kdf, self.aead)
        return suite if suite is not None and len(self.public_key) == suite.kem.public_key_bytes else None

    def seal(self, info: bytes, aad: bytes, plain: bytes, randomness: bytes) -> HpkeCiphertext:
        """Something for the holder of the private key; `Refused` where the key or an algorithm is not usable."""
        if (suite := self.suite) is None:
            raise Refused(f"the HPKE configuration {self.id} has an algorithm that is not known here, or no such key")
        return HpkeCiphertext(self.id, *suite.seal(self.public_key, info, aad, plain, randomness))


@dataclass(frozen=True)
class HpkeConfigList(DapMessage, name="hpke-config-list", largest=2 + 0xFFFF):
    """All that an aggregator offers, the preferred first.

    >>> HpkeConfigList((HpkeConfig(12, 0x10, 3, 2, b""),)).to_bytes().hex()
    '00090c0010000300020000'
    """

    configs: Annotated[tuple[HpkeConfig, ...], vector(HpkeConfig, 2)]

    def preferred(self) -> HpkeConfig:
        """The first that can be used here; `Refused` where there is none, or where two have one id.

        >>> usable = HpkeConfig(7, 0x20, 1, 1, bytes(32))
        >>> HpkeConfigList((HpkeConfig(6, 0x9999, 1, 1, b""), usable)).preferred() == usable
        True
        """
        if len({config.id for config in self.configs}) != len(self.configs):
            raise Refused("an aggregator offers two HPKE configurations of one id: its shares could not be told apart")
        for config in self.configs:
            if config.suite is not None:
                return config
        raise Refused("an aggregator offers no HPKE configuration whose algorithms are known here")
