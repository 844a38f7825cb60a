"""What a page needs to count people in regions in some slots of a map with time, as `TimedRelease.during` does."""

from typing import TYPE_CHECKING, Any

from hazemap.cells import Leaves
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.estimate.tree_least_squares import ConsistentEstimate
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.page.asking_payload import (
    asking_of,
    packed_floats,
    packed_ground,
    packed_noise,
    packed_steps,
)

if TYPE_CHECKING:
    from hazemap.releases.timed_release import TimedRelease


def asking_slots_of(release: "TimedRelease") -> dict[str, Any] | None:
    """What questions about all slots need (`asking_of`), and with it what those about some of them need (`slots`)."""
    maps, asking = release.maps, asking_of(release)
    if asking is None:
        return None
    ground = CellGeometry(maps.cells)
    slots = {
        "names": list(release.slots),
        "ground": packed_ground(ground),
        "extent": list(ground.extent),
        "unbiased": packed_floats(maps.unbiased.ravel()),
        "values": packed_floats(maps.guess.ravel()),
        "day": _least_squares(maps.day),
        "slot": _least_squares(maps.slot),
        "generations": _generations(maps.cells),
    }
    return {**asking, "slots": slots}


def _least_squares(found: ConsistentEstimate) -> dict[str, Any]:
    return {"stddev": packed_floats(found.stddev), "noise": packed_noise(found)}


def _generations(cells: Leaves) -> list[dict[str, Any]] | None:
    """The cells and all around them, from the coarsest cell of the map down, which tell how unevenly people lie."""
    if cells.nested:
        return None
    levels = TreeLevels(cells).levels
    coarsest = next((level for level, here in enumerate(levels) if (here.leaf >= 0).any()), 0)
    return [
        {"parent": packed_steps(here.parent), "leaf": packed_steps(here.leaf), "area": packed_floats(here.area)}
        for here in levels[coarsest:]
    ]
