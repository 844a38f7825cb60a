"""The devices' side: protocols, servers, devices, recipes and studies, and the trust models that count through them.

The public names are imported when they are first used; every other module of this folder is private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hazemap.federated.protocols.dap.privacy_parameters import PrivacyParameters, WalkTerms
    from hazemap.federated.protocols.dap.task import BatchMode, DapTask
    from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
    from hazemap.federated.protocols.shuffle.shuffle_parameters import ShuffleParameters
    from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
    from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
    from hazemap.federated.trust.prefix_walk import CellStrings
    from hazemap.privacy.amplification.aggregate_price import aggregate_price, best_unary, minimum_cohort
    from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
    from hazemap.privacy.distributed_noise import DistributedNoise
    from hazemap.privacy.random_stream import Stream

__all__ = [
    "BatchMode",
    "BitFlipLaw",
    "CellStrings",
    "Cohort",
    "DapTask",
    "DistributedNoise",
    "Poplar1Configuration",
    "PrivacyParameters",
    "Sampling",
    "ShuffleParameters",
    "SimulatedSecureAggregation",
    "Stream",
    "WalkTerms",
    "aggregate_price",
    "best_unary",
    "minimum_cohort",
]

_MODULES = {
    "federated.protocols.dap.privacy_parameters": ("PrivacyParameters", "WalkTerms"),
    "federated.protocols.dap.task": ("BatchMode", "DapTask"),
    "federated.protocols.dap.vdaf_configuration": ("Poplar1Configuration",),
    "federated.protocols.shuffle.shuffle_parameters": ("ShuffleParameters",),
    "federated.trust.cohort_assumptions": ("Cohort", "Sampling"),
    "federated.trust.prefix_walk": ("CellStrings",),
    "federated.trust.in_memory_secure_aggregation": ("SimulatedSecureAggregation",),
    "privacy.amplification.aggregate_price": ("aggregate_price", "best_unary", "minimum_cohort"),
    "privacy.amplification.bit_flip_law": ("BitFlipLaw",),
    "privacy.distributed_noise": ("DistributedNoise",),
    "privacy.random_stream": ("Stream",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'hazemap.federated' has no attribute {name!r}")
    value = getattr(import_module(f"hazemap.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
