"""The names of all of hazemap's methods over squares: with a level of their own choice, and with one that is given."""

from hazemap.algorithms.built_in_methods import BUILT_IN
from hazemap.algorithms.named_methods import LEVEL, CellKind

WHOLE = [each.name for each in BUILT_IN.values() if not each.levelled and CellKind.SQUARES in each.cells]
LEVELLED = [each.name for each in BUILT_IN.values() if each.parameter == LEVEL]
PRICED = [each.name for each in BUILT_IN.values() if each.priced]
