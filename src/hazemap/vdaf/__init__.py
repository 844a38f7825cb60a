"""Verifiable distributed aggregation functions (draft-irtf-cfrg-vdaf): bytes in, bytes out; no randomness inside.

The public names are imported when they are first used; every other name of this folder is private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hazemap.vdaf.circuits import shortest_chunk_length
    from hazemap.vdaf.errors import CodecError, HazemapError, InputError, Refused
    from hazemap.vdaf.hpke import Aead, CipherSuite, HpkeKeyPair, Kdf, Kem
    from hazemap.vdaf.poplar1 import Poplar1
    from hazemap.vdaf.prio3 import (
        Prio3,
        prio3_count,
        prio3_histogram,
        prio3_l1_bound_sum,
        prio3_multihot_count_vec,
        prio3_sum,
        prio3_sum_vec,
    )
    from hazemap.vdaf.vdaf import VDAF_08, VDAF_18, Continuation, InvalidReport, ReportShare, Vdaf, VdafVersion

__all__ = [
    "VDAF_08",
    "VDAF_18",
    "Aead",
    "CipherSuite",
    "CodecError",
    "Continuation",
    "HazemapError",
    "HpkeKeyPair",
    "InputError",
    "InvalidReport",
    "Kdf",
    "Kem",
    "Poplar1",
    "Prio3",
    "Refused",
    "ReportShare",
    "Vdaf",
    "VdafVersion",
    "prio3_count",
    "prio3_histogram",
    "prio3_l1_bound_sum",
    "prio3_multihot_count_vec",
    "prio3_sum",
    "prio3_sum_vec",
    "shortest_chunk_length",
]

_MODULES = {
    "circuits": ("shortest_chunk_length",),
    "errors": ("CodecError", "HazemapError", "InputError", "Refused"),
    "hpke": ("Aead", "CipherSuite", "Kdf", "Kem", "HpkeKeyPair"),
    "poplar1": ("Poplar1",),
    "vdaf": ("VDAF_08", "VDAF_18", "Continuation", "InvalidReport", "ReportShare", "Vdaf", "VdafVersion"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hazemap.vdaf' has no attribute {name!r}")
    value = getattr(import_module(f"hazemap.vdaf.{_MODULE_OF.get(name, 'prio3')}"), name)
    globals()[name] = value
    return value
