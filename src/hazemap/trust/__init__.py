"""Who answers: the only side that sees rows, and the only one that adds noise."""

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
