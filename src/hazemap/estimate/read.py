"""How the numbers of a map are read off its answers.

An adaptive method cuts a cell because its noisy number was high. That number cannot then speak for the cells
without bias: with all rounds, least squares put the total of a map 3 to 5 standard errors too high, and 95 %
intervals of large unions held the truth 75 % of the time. So the unbiased estimate, and every interval, comes from
the answers that were given once the cells were fixed: from the first query that asks for exactly these cells on.
Their noise is fresh, so it is unbiased for every union of cells, whatever the noise before has chosen.

The best guess that a picture shows may use all rounds: it has no interval, and keeps the unbiased total.

Answers of devices say over how many people they are. Numbers and intervals are then of the people who answered, and
intervals are about noise alone. The best guess is of everybody from whom they were drawn: it weighs rounds by noise
and sampling error together (as if every round drew afresh), and neighbouring cells help each other.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.estimate.consistent import Measurement, consistent
from hazemap.estimate.nonnegative import nonnegative
from hazemap.estimate.sampling import with_sampling
from hazemap.estimate.shrink import shrunk
from hazemap.estimate.surroundings import drawn_together
from hazemap.estimate.transcripts import measurements
from hazemap.rounds import Answer, Question


def read(transcript: Iterable[tuple[Question, Answer]], cells: Leaves, reading: Reading) -> CellMap:
    """A map of these cells from all answers: O(cells asked · depth). `InputError` if they were never asked for."""
    asked = measurements(transcript, cells)
    wanted = np.sort(cells.cells)
    fixed = next((turn for turn, part in enumerate(asked) if np.array_equal(np.sort(part.cells.cells), wanted)), None)
    if fixed is None:
        raise InputError("the cells of the result were never asked for, so nothing is known of them")
    plain = consistent(asked[fixed:], cells)
    values = plain.numbers
    if reading is not Reading.UNBIASED:
        values = nonnegative(cells, _guessed(asked, cells, float(plain.numbers[cells.levels >= 0].sum()), reading))
    return CellMap(cells, values, plain.numbers, plain.stddev, plain)


def _guessed(asked: list[Measurement], cells: Leaves, total: float, reading: Reading) -> NDArray[np.float64]:
    """The best guess of each cell before minus signs are removed."""
    guess = consistent(asked, cells, total)
    samples = any(part.sample is not None for part in asked)
    if samples:
        guess = consistent(with_sampling(asked, guess), cells, total)
    if reading is not Reading.SHRUNK:
        return guess.numbers
    values = shrunk(guess)
    return drawn_together(cells, guess.numbers, guess.stddev**2, values) if samples else values
