"""Who answers: the only side that sees rows, and the only one that adds noise."""

from hazemap.trust.curator import Curator

__all__ = ["Curator"]
