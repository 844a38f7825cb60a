"""Pictures of plans: the requested method, tried on the made-up city, beside the truth.

No table is opened: the picture is of a city that does not exist, with as many people and at the real price.
"""

from dataclasses import dataclass, replace

import numpy as np

from hazemap.algorithms import Adaptive
from hazemap.machine_code.arrays import Floats
from hazemap.planning.release_plan import method_for_trial, trial_for
from hazemap.planning.synthetic_city import DETAIL
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import Outside
from hazemap.trust.curator import Curator


@dataclass(frozen=True, eq=False)
class SimulatedMap:
    """People per km² on the plots of the made-up city, float64[side, side], north at the top; NaN outside of the box.

    `truth` is how they live there, `shown` what the map tells of it, in so many `cells`.

    >>> made = simulated(ReleaseSpec.of(box="2.2,48.8,2.5,48.95", epsilon=1), people=10_000)
    >>> made.truth.shape == made.shown.shape == (512, 512), made.cells > 100
    (True, True)
    """

    truth: Floats
    shown: Floats
    cells: int

    @property
    def scale(self) -> tuple[float, float]:
        """Densities between which colours change: from where a tenth of the people live less densely, to the top 1 %.

        It is that of the truth, whatever the map shows, so that pictures at two prices can be compared.
        """
        density = np.sort(self.truth[self.truth > 0])
        until = np.cumsum(density)
        low, high = (float(density[np.searchsorted(until, share * until[-1])]) for share in (0.1, 0.99))
        return low, high


def simulated(spec: ReleaseSpec, people: int) -> SimulatedMap:
    """Simulate the map of a specification on the made-up city with this many people; the same every time.

    Errors are those of `hazemap.planning.release_plan.planned`.
    """
    trial = trial_for(spec, people)
    rule = replace(spec.bounding, outside=Outside.DROP)
    method = Adaptive(trial.tree, rule) if spec.method == "auto" else method_for_trial(spec, trial, rule)
    trust = Curator(trial, Stream.fixed(b"the noise of a picture"))
    made = run(method, trust, spec.budget, Unrecorded()).value
    at = made.cells.locate(trial.base_in(made.cells.tree))
    km2 = _plot_area(trial.box)
    plots = np.bincount(at, minlength=made.cells.size)[at]  # a cell's people lie evenly on its plots
    shown = np.maximum(made.values, 0)[at] / (rule.sensitivity.l1 / rule.unit) / plots
    return SimulatedMap(_grid(trial.box, trial.density * people / km2), _grid(trial.box, shown / km2), made.cells.size)


def _plot_area(box: Box) -> float:
    """The km² of a plot in the middle of the box."""
    square = Quadtree.around(box, DETAIL)
    plots = square.grid(DETAIL)
    return float(square.area(plots[len(plots) // 2, len(plots) // 2 : len(plots) // 2 + 1])[0]) / 1e6


def _grid(box: Box, numbers: Floats) -> Floats:
    """Numbers of the plots inside a box, as they lie on the ground."""
    square = Quadtree.around(box, DETAIL)
    plots = square.grid(DETAIL)
    west, south, east, north = square.bounds(plots.ravel())
    inside = box.holds((west + east) / 2, (south + north) / 2)
    found = np.full(plots.size, np.nan)
    found[inside] = numbers
    return found.reshape(plots.shape)
