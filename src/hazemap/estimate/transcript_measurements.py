"""From the answers of a run to measurements of the regions that were asked for."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Growing, Leaves, Tree, WholeDomain
from hazemap.encoders import Concatenation, Counts, Encoder
from hazemap.estimate.tree_least_squares import ConsistentEstimate, Measurement, MeasurementSample
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.values.cells_in_slots import AllSlots

LEAST_VARIANCE = 1e-9
"""People²: a smaller variance is taken for this one. Doubles cannot weigh surer numbers against others."""


class MeasuredPart(NamedTuple):
    """Counts that were asked for, where they begin in the vector, and how many times they were added to it."""

    counts: Counts
    start: int
    weight: int


def measurements(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> list[Measurement]:
    """What a transcript says about the tree of `cells`, or before it grew to that, oldest first.

    Counts in a `Concatenation` are measurements of their own, in its order, each less noisy by its weight. Answers that
    say over how many people they are (in every round other people answer) are scaled to the people of one of them: of
    the first that is about `cells` themselves, or else of the last. So rounds can be combined, and the numbers of a
    map are of the people who first answered for its cells.
    """
    found = _found(transcript, cells)
    reference = _reference(found, cells)
    return [_scaled(*one, reference) for one in found]


def measured_people(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> int | None:
    """Over how many people the numbers of `measurements` are; None where answers do not say."""
    return _reference(_found(transcript, cells), cells)


def _found(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> list[tuple[Measurement, int | None, float]]:
    """Every measurement of the tree of `cells`, over how many people it is, and how much one of them may add."""
    found: list[tuple[Measurement, int | None, float]] = []
    for question, answer in transcript:
        if not isinstance(question, Query):
            continue
        for counts, start, weight in parts(question.encoder):
            asked = counts.cells.cells if isinstance(counts.cells, AllSlots) else counts.cells
            if isinstance(asked, Leaves | WholeDomain) and _same(asked.tree, cells.tree):
                unit, own = weight * counts.bounding.unit, slice(start, start + counts.size)
                numbers = answer.sums[own] / unit
                variance = np.maximum((answer.stddev / unit) ** 2, LEAST_VARIANCE)
                variances = np.broadcast_to(variance, answer.sums.shape)[own]
                measurement = Measurement(_now(asked, cells.tree), numbers, variances, answer.kurtosis)
                found.append((measurement, answer.people, counts.bounding.sensitivity.l1 / counts.bounding.unit))
    return found


def _same(asked: Tree, now: Tree) -> bool:
    """Whether cells of the one tree are the same cells of the other: it is the same, or has grown."""
    return asked == now or (isinstance(now, Growing) and now.extends(asked))


def _now(asked: Leaves | WholeDomain, tree: Tree) -> Leaves | WholeDomain:
    """The same cells in the tree as it is now."""
    if asked.tree == tree:
        return asked
    return Leaves(tree, asked.cells) if isinstance(asked, Leaves) else WholeDomain(tree)


def _reference(found: Sequence[tuple[Measurement, int | None, float]], cells: Leaves) -> int | None:
    """The number of people that all are scaled to; None if none is known."""
    known = [(measurement, people) for measurement, people, _ in found if people]
    own = (people for measurement, people in known if _of_these(measurement, cells))
    return next(own, known[-1][1] if known else None)


def _of_these(measurement: Measurement, cells: Leaves) -> bool:
    return isinstance(measurement.cells, Leaves) and measurement.cells.same_cells(cells)


def _scaled(measurement: Measurement, people: int | None, most: float, reference: int | None) -> Measurement:
    if not people or not reference:
        return measurement
    factor = reference / people
    return measurement._replace(
        numbers=measurement.numbers * factor,
        variances=measurement.variances * factor**2,
        sample=MeasurementSample(reference, most, factor),
    )


def parts(encoder: Encoder, start: int = 0, weight: int = 1) -> Iterator[MeasuredPart]:
    """All counts in an encoder, those in stacks included."""
    if isinstance(encoder, Counts):
        yield MeasuredPart(encoder, start, weight)
    if isinstance(encoder, Concatenation):
        for part, times in zip(encoder.parts, encoder.weights, strict=True):
            yield from parts(part, start, weight * times)
            start += part.size


def with_sampling(measurements: Sequence[Measurement], guess: ConsistentEstimate) -> list[Measurement]:
    """The same measurements, each variance raised by what a sample errs as a picture of everybody.

    Of n people drawn, each adds x to a region's number, 0 ≤ x ≤ m, with mean c/n and variance at most c/n · (m − c/n):
    the number has at most n times that. c is read off `guess`, one estimate from all rounds, so that what the noise
    of one round did to its own number does not decide how much that number is believed. Measurements that do not say
    over how many people they are stay as they are. `guess` must come from the same measurements.
    """
    row = guess.regions.forest.row
    numbers = np.zeros(row.max() + 1)
    numbers[row] = guess.whole
    found, start = [], 0
    for part in measurements:
        own = numbers[-1:]  # the last row of a forest is everything
        if isinstance(part.cells, Leaves):
            own, start = numbers[start : start + part.cells.size], start + part.cells.size
        found.append(part if part.sample is None else _raised(part, part.sample, own))
    return found


def _raised(part: Measurement, sample: MeasurementSample, numbers: NDArray[np.float64]) -> Measurement:
    count = np.clip(numbers, 0, sample.most * sample.people)
    return part._replace(variances=part.variances + sample.factor * count * (sample.most - count / sample.people))
