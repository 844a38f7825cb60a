"""What a page is told of a map with time: the map of all slots together, and the numbers of each slot."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.draw.cell_densities import DensitySurface
from hazemap.errors import InputError
from hazemap.releases.page.asking_slots_payload import asking_slots_of
from hazemap.releases.page.cell_places import names, painted, places
from hazemap.releases.page.map_payload import counts_payload, densest, floats, interval, scales
from hazemap.releases.page.packed_arrays import pack
from hazemap.spatial.plane import ground_unit

if TYPE_CHECKING:
    from hazemap.releases.timed_release import TimedRelease

MOST_NUMBERS = 1 << 22
"""Of one page, a number for every cell in every slot: some hundred megabytes of a browser's memory."""


def slots_payload(release: "TimedRelease", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a map with time; `InputError` for one of more numbers than a page can hold."""
    numbers = release.maps.cells.size * len(release.slots)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"a page shows at most {MOST_NUMBERS:,} numbers, and this map has {numbers:,} of its"
            f" {len(release.slots):,} slots: draw a picture of some slots with `hazemap show --slot`"
        )
    facts = counts_payload(release, "slots", title)
    return {**facts, "slots": _slots(release), "asking": asking_slots_of(release)}


def _slots(release: "TimedRelease") -> dict[str, Any]:
    """The cells that are counted in every slot, and their numbers, one slot after another.

    A slot is painted as finely as it was counted; `holder` says which of its cells each of the total's lies in.
    """
    maps, each = release.maps, release.by_slot
    leaves, total = maps.cells, painted(release.cells)
    positions = painted(leaves)
    at = np.full(leaves.size, -1)
    at[positions] = np.arange(len(positions))
    tables = [made.columns(positions) for made in each]
    surfaces = [DensitySurface.of(made.map) for made in each]
    area = tables[0][f"area_{ground_unit(leaves.tree).column}"]
    numbers = {name: floats([table[name] for table in tables]) for name in ("best_guess", "unbiased", "low", "high")}
    return {
        "names": list(release.slots),
        "cells": {
            "places": places(leaves, positions),
            "names": names(leaves, positions),
            "area": floats(area),
            "stddev": floats(tables[0]["stddev"]),
            **numbers,
        },
        "holder": pack(at[maps.holder[total]].astype(np.int32)),
        "totals": [interval(made.total()) for made in each],
        "densest": [densest(made) for made in each],
        "scales": scales(surfaces, surfaces),
    }
