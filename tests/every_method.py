"""The names of all of hazemap's methods over squares: with a level of their own choice, and with one that is given."""

from hazemap.algorithms.comparators import every_method
from hazemap.algorithms.named_methods import LEVEL, CellKind

EVERY = every_method()
WHOLE = [each.name for each in EVERY.values() if not each.levelled and CellKind.SQUARES in each.cells]
LEVELLED = [each.name for each in EVERY.values() if each.parameter == LEVEL]
PRICED = [each.name for each in EVERY.values() if each.priced]
