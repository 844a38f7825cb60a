"""What a method asks, as the question that two servers answer from one report of each person."""

from fractions import Fraction

import numpy as np

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Concatenation, Counts, Encoder
from hazemap.errors import Unanswerable
from hazemap.federated.protocols.dap.prefix_question import PrefixCells, PrefixQuestion
from hazemap.federated.trust.cell_strings import CellStrings
from hazemap.federated.trust.prefix_walk import PrefixWalk
from hazemap.spatial.whole_domain import WholeDomain


def prefix_question(walk: PrefixWalk, number: int, encoder: Encoder, share: Fraction) -> PrefixQuestion:
    """The `number`-th question (from 0) of a walk that has taken it; its sums come in the encoder's order.

    >>> from hazemap import AtMostRows, Quadtree
    >>> walk, quarters = PrefixWalk(levels=1), Counts(Leaves.at_level(Quadtree.world(depth=2), 1), AtMostRows(1))
    >>> walk.take(quarters)
    >>> question = prefix_question(walk, 0, quarters, Fraction(1, 3))
    >>> question.size, question.sensitivity == quarters.sensitivity, len(question.to_bytes())
    (4, True, 77)
    """
    if walk.where is None:
        raise Unanswerable("nothing was asked")
    level, cells = walk.candidates[-1]
    strings = CellStrings(walk.where[0])
    parameter, _ = strings.parameter(level, cells)
    return PrefixQuestion.of(number, parameter.to_bytes(), share, _parts(strings, encoder, 1))


def _parts(strings: CellStrings, encoder: Encoder, weight: int) -> tuple[PrefixCells, ...]:
    if isinstance(encoder, Concatenation):
        pairs = zip(encoder.weights, encoder.parts, strict=True)
        return tuple(part for own, each in pairs for part in _parts(strings, each, weight * own))
    if isinstance(encoder, Counts) and isinstance(encoder.cells, WholeDomain):
        return (PrefixCells.of(np.zeros(1, dtype=np.uint64), [1], weight),)  # all whose first bit says: somewhere
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves):
        raise Unanswerable("one report answers counts of listed cells")
    asked = encoder.cells
    prefixes, lengths = np.ones(asked.size, dtype=np.uint64), np.ones(asked.size, dtype=np.int64)
    real = asked.cells != NOWHERE
    for level in np.unique(asked.levels[real]).tolist():
        here = real & (asked.levels == level)
        prefixes[here] = strings.of_cells(asked.cells[here], level)
        lengths[here] = strings.length(level)
    return (PrefixCells.of(prefixes, lengths, weight),)
