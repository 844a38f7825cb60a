"""A task extension of ours: reports of nobody that each aggregator adds to its sums, where people randomise their own.

The price of a randomised report in a sum is that among so many others. A server that leaves them out, or makes them up,
would change it; so each server adds as many reports of people who hold nothing, randomised by the same law. Of them
those of the one honest server are enough, whoever else has reported: everything else is added to them.

    uint8 law · uint64 numerator · uint64 denominator · uint64 numerator · uint64 denominator · uint64 reports

The law is by its ε₀ and 0/1, or by the chances to keep a 1 and to turn a 0 on. The extension is bound into every share.
"""

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from typing import Annotated, Final, Self

import numpy as np

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import check_fraction
from hazemap.federated.protocols.dap.vdaf_configuration import MultihotConfiguration, VdafConfiguration
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream
from hazemap.vdaf.tls_encoding import Structure, code, number

BLANK_REPORTS: Final = 0xFF04
"""The type of the task extension, beside that of its noise."""
MOST_BLANK: Final = 1 << 24


class ReportLawCode(IntEnum):
    """How people randomise their bits.

    >>> ReportLawCode.ASYMMETRIC.value
    2
    """

    SYMMETRIC = 1
    ASYMMETRIC = 2
    UNARY = 3


@dataclass(frozen=True)
class BlankReports(Structure):
    """So many reports of people who hold nothing, by a law.

    >>> blank = BlankReports.of(Asymmetric(Fraction(4)), 999)
    >>> blank.law, blank.draw(Stream.from_os(), 5).shape, len(blank.to_bytes())
    (Asymmetric(epsilon=Fraction(4, 1)), (5,), 41)
    """

    kind: Annotated[ReportLawCode, code(ReportLawCode, 1)]
    numerator: Annotated[int, number(8)]
    denominator: Annotated[int, number(8)]
    numerator_2: Annotated[int, number(8)]
    denominator_2: Annotated[int, number(8)]
    reports: Annotated[int, number(8)]

    def __post_init__(self) -> None:
        check_fraction("the law of reports", self.numerator, self.denominator, least=0)
        check_fraction("the law of reports", self.numerator_2, self.denominator_2, least=0)
        if (self.kind is ReportLawCode.UNARY) != (self.numerator_2 > 0):
            raise InputError("reports are by an ε₀, or by two chances")
        if not 0 <= self.reports <= MOST_BLANK:
            raise InputError(f"a server adds at most {MOST_BLANK:,} reports of nobody, not {self.reports:,}")
        _ = self.law

    @classmethod
    def of(cls, law: Symmetric | Asymmetric | UnaryEncoding, reports: int) -> Self:
        """So many of this law; InputError for one that cannot be written exactly."""
        if isinstance(law, UnaryEncoding):
            return cls(ReportLawCode.UNARY, *law.keep.as_integer_ratio(), *law.turn_on.as_integer_ratio(), reports)
        kind = ReportLawCode.SYMMETRIC if isinstance(law, Symmetric) else ReportLawCode.ASYMMETRIC
        return cls(kind, *law.epsilon.as_integer_ratio(), 0, 1, reports)

    @property
    def law(self) -> Symmetric | Asymmetric | UnaryEncoding:
        """How people randomise their reports."""
        first = Fraction(self.numerator, self.denominator)
        if self.kind is ReportLawCode.UNARY:
            return UnaryEncoding(first, Fraction(self.numerator_2, self.denominator_2))
        return Symmetric(first) if self.kind is ReportLawCode.SYMMETRIC else Asymmetric(first)

    def draw(self, stream: Stream, size: int) -> Ints:
        """The sum of the reports, int64[size]."""
        return self.law.sums(stream, np.zeros(size, dtype=np.int64), self.reports)

    def check(self, measured: VdafConfiguration) -> None:
        """InputError unless the task measures bits."""
        if not isinstance(measured, MultihotConfiguration):
            raise InputError(f"reports of nobody are added to sums of bits, not of {measured.NAME}")
