"""What files hold of which all numbers follow from the stored answers: statistics, maps with marks, with time, or both.

Their digest was right, so that a fault in them is of whoever wrote the file.
"""

from math import isfinite
from typing import TYPE_CHECKING, Any

from hazemap.cells import Leaves
from hazemap.encoders import KnownCountValues, Values
from hazemap.errors import FileError
from hazemap.privacy.statement import Statement
from hazemap.queries.algorithm_session import Transcript
from hazemap.queries.noisy_queries import Choice, Measure, Query
from hazemap.releases.file_metadata import (
    MarkedContents,
    MarkedSlotsContents,
    StatisticsContents,
    TimedContents,
    method_of,
    unpack,
)
from hazemap.values.marks import Marks

if TYPE_CHECKING:
    from hazemap.estimate.marked_counts import MarkedCounts
    from hazemap.estimate.published_values import PublishedValues
    from hazemap.estimate.value_estimates import KnownPeople, Measurements


def statistics_contents(label: dict[str, Any], packed: str) -> StatisticsContents:
    """Statistics from the parts of a file whose digest was right: all numbers follow from the transcript."""
    transcript, statement, value = unpack(packed), Statement.from_json(label["statement"]), str(label["value"])
    if statement.method.startswith("values of ") and not statement.method.startswith(f"values of {value}, "):
        raise ValueError("its label names another value than its statement")
    return StatisticsContents(
        _measured(transcript),
        value,
        tuple(float(rank) for rank in label["ranks"]),
        statement,
        method_of(label["method"]),
        transcript,
    )


def marked_contents(label: dict[str, Any], packed: str) -> MarkedContents:
    """A map with marks from the parts of a file whose digest was right: all numbers follow from the last answer."""
    from hazemap.estimate.marked_counts import MarkedCounts

    transcript, stated = unpack(packed), Statement.from_json(label["statement"])
    counts = _told(MarkedCounts.of(*transcript[-1], _marks(label, stated)))
    return MarkedContents(counts.map, stated, method_of(label["method"]), transcript, counts)


def marked_slots_contents(label: dict[str, Any], packed: str) -> MarkedSlotsContents:
    """A map with marks and time from such parts of a file: all numbers follow from the last answer."""
    from hazemap.estimate.marked_counts import MarkedSlots

    transcript, stated = unpack(packed), Statement.from_json(label["statement"])
    found = MarkedSlots.of(*transcript[-1], _marks(label, stated))
    if label["slots"] != list(found.slots.names):
        raise ValueError("its label names other slots than its questions")
    counts, method = _told(found.total), method_of(label["method"])
    return MarkedSlotsContents(counts.map, stated, method, transcript, counts, found)


def _told(counts: "MarkedCounts") -> "MarkedCounts":
    """The same, if sums of them have an error that is a number."""
    if not isfinite(counts.stddev * counts.stddev * counts.sides.size):
        raise ValueError("the noise of its counts is no number")
    return counts


def _marks(label: dict[str, Any], stated: Statement) -> "Marks":
    """The marks that a label names, if its statement names them too."""
    marks = Marks.of(*label["marks"])
    if not any(marks.named_by(said) for said in stated.public):
        raise ValueError("its label names other marks than its statement, or in another order")
    return marks


def timed_contents(label: dict[str, Any], packed: str) -> TimedContents:
    """A map with time from the parts of a file whose digest was right: all numbers follow from the transcript."""
    from hazemap.estimate.slot_maps import read_slots

    transcript, day = unpack(packed), label["day"]
    if type(day) is not int or not 0 <= day < len(transcript):
        raise ValueError("no question has the number of the one that names its cells")
    asked: Any = transcript[day].question
    cells, slots = asked.encoder.cells.cells, asked.encoder.cells.tree.slots
    if not isinstance(cells, Leaves):
        raise FileError("the question that names the cells of this file is not about cells")
    if label["slots"] != list(slots.names):
        raise ValueError("its label names other slots than its questions")
    maps = read_slots(transcript, cells, slots)
    statement = Statement.from_json(label["statement"])
    return TimedContents(maps.total, statement, method_of(label["method"]), transcript, maps)


def _measured(transcript: Transcript) -> "Measurements | KnownPeople | PublishedValues":
    """What the last answer says: the question before it names cells, slots and value encoding."""
    from hazemap.estimate.published_values import PublishedValues
    from hazemap.estimate.value_estimates import KnownPeople, Measurements

    question, answer = transcript[-1]
    if isinstance(question, Measure | Choice):
        return PublishedValues.of(transcript)
    if isinstance(question, Query) and isinstance(question.encoder, KnownCountValues):
        return KnownPeople.of(question.encoder, answer)
    if not isinstance(question, Query) or not isinstance(question.encoder, Values):
        raise FileError("the last question of this file is not about values")
    return Measurements.of(question.encoder, answer)
