"""What differs between the versions of Prio3 that are spoken: draft-irtf-cfrg-vdaf-20 (wire version 18), and -08."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hazemap.errors import InputError


@dataclass(frozen=True)
class VdafVersion:
    """One version's facts.

    >>> VDAF_18.domain_separation_tag(4, 2, b"app").hex(), VDAF_08.domain_separation_tag(3, 2, b"").hex()
    ('1200000000040002617070', '0800000000030002')
    """

    number: int
    """the version byte of domain separation tags"""
    seed_size: int
    """bytes of a seed of the XOF, and of a verification key"""
    tag_length_size: int
    """bytes in which the XOF writes the length of a tag"""
    writes_seed_length: bool
    """whether the XOF writes the length of a seed before it"""
    binds_context: bool
    """whether tags end in the application's context"""
    seeds_of_a_helper: int
    """1: measurement share and proof share come from one seed; 2: from one each"""
    sends_values: bool
    """whether proofs hold a gadget polynomial's values (Lagrange), or its coefficients (monomial)"""
    reduces_by_query: bool
    """whether checks are joined by randomness of the aggregators' key, or by joint randomness"""
    ids: MappingProxyType[str, int]
    """numbers of the variants of Prio3"""

    def domain_separation_tag(self, algorithm: int, usage: int, ctx: bytes) -> bytes:
        """What keeps outputs of the XOF for different ends apart."""
        if ctx and not self.binds_context:
            raise InputError(f"version {self.number:02} of VDAFs is not bound to a context: give none")
        if len(ctx) > 65_535 - 8:
            raise InputError("a context has at most 65,527 bytes")
        return bytes([self.number, 0]) + algorithm.to_bytes(4, "big") + usage.to_bytes(2, "big") + ctx


VDAF_18: Final = VdafVersion(
    number=18,
    seed_size=32,
    tag_length_size=2,
    writes_seed_length=True,
    binds_context=True,
    seeds_of_a_helper=1,
    sends_values=True,
    reduces_by_query=True,
    ids=MappingProxyType({"Count": 1, "Sum": 2, "SumVec": 3, "Histogram": 4, "MultihotCountVec": 5, "L1BoundSum": 7}),
)
VDAF_08: Final = VdafVersion(
    number=8,
    seed_size=16,
    tag_length_size=1,
    writes_seed_length=False,
    binds_context=False,
    seeds_of_a_helper=2,
    sends_values=False,
    reduces_by_query=False,
    ids=MappingProxyType({"Count": 0, "Sum": 1, "SumVec": 2, "Histogram": 3, "MultihotCountVec": 0xFFFFFFFF}),
)
