"""A private tree, grown from exact counts by whoever holds the rows."""

from fractions import Fraction

import numpy as np

from hazemap.cells import Cells, Leaves
from hazemap.privacy.growth import GrowthNoise
from hazemap.privacy.samplers import discrete_laplace
from hazemap.privacy.samplers.laplace import LARGEST_SCALE
from hazemap.privacy.stream import Stream
from hazemap.rounds import Growth
from hazemap.tables import Table


def grown(table: Table, stream: Stream, question: Growth, epsilon: Fraction) -> Cells:
    """The cells that were not split, in the order of their spans: ε-differentially private (`privacy.growth`).

    O(depth · votes + cells).
    """
    tree = question.tree
    law = GrowthNoise.within(epsilon, question.bounding.sensitivity.l1, question.fan, tree.depth)
    if law.scale > LARGEST_SCALE:  # noise does not fit 64 bits: then nothing of the rows decides
        return tree.root
    votes = table.votes(tree, question.bounding)
    kept, todo = [], tree.root
    for depth in range(tree.depth):
        counts = Leaves(tree, todo).total(votes.cells, votes.weights)
        biased = np.maximum(counts - depth * law.decay, question.threshold - law.decay)
        split = biased + discrete_laplace(stream, law.scale, len(todo)) > question.threshold
        kept.append(todo[~split])
        todo = tree.children(todo[split])
    cells = np.concatenate([*kept, todo])
    ordered: Cells = cells[np.argsort(tree.span(cells)[0])]
    return ordered
