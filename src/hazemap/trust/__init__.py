"""Who answers: the only side that sees rows, and the only one that adds noise."""

from hazemap.trust.cohorts import Cohort, Sampling
from hazemap.trust.curator import Curator
from hazemap.trust.prices import SecureSumPrices
from hazemap.trust.secure_sum import SecureSum
from hazemap.trust.simulated import SimulatedSecureSum
from hazemap.trust.tasks import Task, check, terms_for
from hazemap.trust.turnout import Turnout

__all__ = [
    "Cohort",
    "Curator",
    "Sampling",
    "SecureSum",
    "SecureSumPrices",
    "SimulatedSecureSum",
    "Task",
    "Turnout",
    "check",
    "terms_for",
]
