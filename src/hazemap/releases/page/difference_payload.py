"""What a page is told of the difference of two releases: each cell's, its interval, and whether noise explains it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.releases.page.cell_places import names, painted, places
from hazemap.releases.page.map_payload import MOST_CELLS, floats
from hazemap.releases.page.packed_arrays import pack
from hazemap.releases.page.release_facts import release_facts

if TYPE_CHECKING:
    from hazemap.releases.release_difference import ReleaseDifference


def difference_payload(found: "ReleaseDifference", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a difference; `InputError` for one of more cells than a page can show.

    The colours go as far to either side as 99 % of the cells that changed.
    """
    if found.cells.size > MOST_CELLS:
        raise InputError(f"a page shows at most {MOST_CELLS:,} cells, and this difference has {found.cells.size:,}")
    positions, changed, km2 = painted(found.cells), found.changed, found.ground.km2
    low, high = found.interval
    numbers = {"difference": found.difference, "stddev": found.stddev, "low": low, "high": high}
    return {
        **release_facts(found.after, "difference", title),
        "before": {"title": found.before.statement.dataset, "line": found.before.statement.line()},
        "cells": {"places": places(found.cells, positions), "names": names(found.cells, positions)},
        **{name: floats(column[positions]) for name, column in numbers.items()},
        "area": floats(km2[positions]),
        "changed": pack(changed[positions].astype(np.uint8)),
        "most": _most(found.difference, changed),
        "most_density": _most(found.difference / np.where(km2 > 0, km2, np.inf), changed),
    }


def _most(numbers: Floats, changed: NDArray[np.bool_]) -> float:
    """Where the colours of a scale end."""
    seen = np.abs(numbers[changed] if changed.any() else numbers)
    return max(float(np.quantile(seen, 0.99)), 1e-9)
