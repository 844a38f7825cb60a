"""Who answers: the only side that sees rows, and the only one that adds noise.

Each name is imported from its module when it is first asked for, so that one trust model loads no other.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hazemap.trust.cohorts import Cohort, Sampling
    from hazemap.trust.curator import Curator
    from hazemap.trust.local import LocalReports
    from hazemap.trust.prices import SecureSumPrices
    from hazemap.trust.randomisers import Asymmetric, Symmetric
    from hazemap.trust.secure_sum import SecureSum
    from hazemap.trust.simulated import SimulatedSecureSum
    from hazemap.trust.tasks import Task, check, terms_for
    from hazemap.trust.turnout import Turnout

__all__ = [
    "Asymmetric",
    "Cohort",
    "Curator",
    "LocalReports",
    "Sampling",
    "SecureSum",
    "SecureSumPrices",
    "SimulatedSecureSum",
    "Symmetric",
    "Task",
    "Turnout",
    "check",
    "terms_for",
]

_HOMES = {
    "cohorts": ("Cohort", "Sampling"),
    "curator": ("Curator",),
    "local": ("LocalReports",),
    "prices": ("SecureSumPrices",),
    "randomisers": ("Asymmetric", "Symmetric"),
    "secure_sum": ("SecureSum",),
    "simulated": ("SimulatedSecureSum",),
    "tasks": ("Task", "check", "terms_for"),
    "turnout": ("Turnout",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A name above, from the module it lives in."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
