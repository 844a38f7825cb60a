"""The adaptive method cuts the cells in which somebody is, by exact counts: who is alone somewhere makes it smaller."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.audit.planted_faults.exact_votes_probe import watched
from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.cells import Leaves


@contextmanager
def planted() -> Iterator[None]:
    """Whatever the noisy answers say, cells with people are cut once and others are not."""
    with watched() as seen:

        def cut(self: Adaptive, known: Any, *_: Any) -> Leaves:
            leaves: Leaves = known.leaves
            exact = leaves.total(seen[-1].cells, seen[-1].weights)
            fine = self.tree.level(leaves.cells) >= self.tree.depth
            split = (exact > 0) & ~fine
            return Leaves(self.tree, np.concatenate([leaves.cells[~split], self.tree.children(leaves.cells[split])]))

        with replaced(Adaptive, "_cut", cut):
            yield
