"""Metadata that every file of a release carries, whatever its format: label, transcript and digest.

The *label* is JSON that people can read: format, statement, method, and what the kind of release adds. The transcript
is the codec's text, compressed. The digest covers everything, so damage is noticed; errors name the file.
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.cellmap import CellMap, Noise, Reading, Spread
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.errors import CodecError, FileError, HazemapError, PlugInError, TranscriptMismatch
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.statement import Statement
from hazemap.queries.algorithm_session import Exchange, Transcript

if TYPE_CHECKING:
    from hazemap.estimate.marked_counts import MarkedCounts, MarkedSlots
    from hazemap.estimate.published_values import PublishedValues
    from hazemap.estimate.slot_maps import SlotMaps
    from hazemap.estimate.value_estimates import KnownPeople, Measurements
    from hazemap.releases.base_release import BaseRelease


@dataclass(frozen=True)
class UnknownMethod:
    """A method of a newer version, as its file names it: its numbers can be read, but it cannot be run."""

    data: Any


@dataclass(frozen=True, eq=False)
class Later:
    """What is in a file, and is read when it is asked for; `make(*of)` makes it."""

    make: Callable[..., Any]
    of: tuple[Any, ...]

    @cached_property
    def value(self) -> Any:
        """What it is."""
        return self.make(*self.of)


class MapContents(NamedTuple):
    """What a file of a map holds: the fields of a `Release`, of which some are read when they are asked for."""

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript | Later


class StatisticsContents(NamedTuple):
    """What a file of statistics holds: the fields of `Statistics`."""

    measurements: "Measurements | KnownPeople | PublishedValues"
    value: str
    ranks: tuple[float, ...]
    statement: Statement
    algorithm: object
    transcript: Transcript


class MarkedContents(NamedTuple):
    """What a file of a map with marks holds: the fields of a `MarkedRelease`."""

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript
    counts: "MarkedCounts"


class TimedContents(NamedTuple):
    """What a file of a map with time holds: the fields of a `TimedRelease`."""

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript
    maps: "SlotMaps"


class MarkedSlotsContents(NamedTuple):
    """What a file of a map with marks and time holds: the fields of a `MarkedTimedRelease`."""

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript
    counts: "MarkedCounts"
    by_mark: "MarkedSlots"


FORMAT, NEWEST = 1, 2
"""The formats in which this version writes maps (as .tif), and statistics of values; it reads none that are newer."""

BY_COLUMN = 5
"""The format in which this version writes maps as .parquet: each column has a digest of its own."""

OF_VALUES, OF_RECIPES = "values", "answers"
"""The kinds of a file with statistics of a value, and of one with answers of a study; maps have none."""

STUDIES, MARKED = 3, 4
"""The formats in which this version writes answers of a study, and maps with marks."""

OF_MARKS = "marks"
"""The kind of a file with a map of which marks are counted too."""

OF_SLOTS, SLOTTED = "slots", 4
"""The kind of a file with a map in slots, and the format in which this version writes one."""

OF_MARKS_IN_SLOTS = "marks in slots"
"""The kind of a file with a map in slots of which marks are counted too; its format is that of marks."""

LARGEST = 1 << 33
"""No transcript is longer than this many bytes; a damaged length must not fill the memory."""

FREE, MOST_TIMES = 1 << 27, 100
"""Beyond so many bytes, a transcript is at most so many times as long as what it was compressed to: noise is not. Zeros
would be 1,000 times as long, and a small file made on purpose would fill the memory."""


MANY = 1 << 22
"""Transcripts of more numbers are compressed in a hurry: a fifth of the time for a fifth more bytes."""


def describe(release: "BaseRelease") -> dict[str, Any]:
    """The label of a release."""
    method = release.algorithm
    return {
        "statement": release.statement.to_json(),
        "line": release.statement.line(),
        "counted": release.counted,
        "method": method.data if isinstance(method, UnknownMethod) else codec.to_json(method),
        **release.label(),
    }


def pack(transcript: Transcript, beside: list[NDArray[Any]] | None = None) -> str:
    """A transcript as text of few bytes; where a list `beside` is given, without its long arrays, which it takes."""
    length, squeezed = 0, []
    numbers = sum(exchange.answer.sums.size for exchange in transcript)
    squeeze = zlib.compressobj(1 if numbers > MANY and beside is None else 6)
    for piece in codec.pieces(transcript, beside):
        text = piece.encode()
        length += len(text)
        squeezed.append(squeeze.compress(text))
    return f"{length}:" + base64.b64encode(b"".join([*squeezed, squeeze.flush()])).decode()


def unpack(packed: str, beside: Sequence[NDArray[Any]] | None = None) -> Transcript:
    """What `pack` wrote."""
    exchanges = codec.loads(inflated(packed), plug_ins=plug_in_type, beside=beside)
    return tuple(Exchange(question, answer) for question, answer in exchanges)


def inflated(packed: str) -> bytes:
    """The text of a transcript; `ValueError` where it is longer than one can be."""
    length, _, content = packed.partition(":")
    squeezed = base64.b64decode(content)
    if not 0 < int(length) < min(max(FREE, MOST_TIMES * len(squeezed)), LARGEST):
        raise ValueError("a transcript of impossible length")
    return zlib.decompressobj().decompress(squeezed, int(length))


def parse_label(path: Path, text: str | bytes) -> dict[str, Any]:
    """The label of a file; `FileError` if a newer version of hazemap wrote it."""
    label = json.loads(text)
    if not isinstance(label, dict) or type(label.get("format")) is not int:
        raise ValueError("its label does not name a format")
    if label["format"] < 1:
        raise ValueError(f"no format has the number {label['format']}")
    kind = label.get("kind")
    newest = {
        None: BY_COLUMN,
        OF_RECIPES: STUDIES,
        OF_MARKS: MARKED,
        OF_SLOTS: SLOTTED,
        OF_MARKS_IN_SLOTS: MARKED,
    }.get(kind, NEWEST)
    if label["format"] > newest:
        raise FileError(
            f"{path} has format {label['format']}; this hazemap reads formats up to {newest}:"
            " open it with a newer hazemap"
        )
    if kind is None and label["format"] not in (FORMAT, BY_COLUMN):
        raise ValueError(f"no map has the format {label['format']}")
    return label


def map_contents(
    label: dict[str, Any], transcript: Later, places: Cells, columns: list[Floats], tree: Tree | None = None
) -> MapContents:
    """A map from the parts of a file whose digest was right; columns are count, unbiased and stddev."""
    tree = tree_of(label) if tree is None else tree
    if label["nowhere"] is not None:
        at = int(label["nowhere"]["position"])
        places = np.insert(places, at, NOWHERE)
        extra = [float(label["nowhere"][name]) for name in ("best_guess", "unbiased", "stddev")]
        columns = [np.insert(column, at, number) for column, number in zip(columns, extra, strict=True)]
    values, unbiased, stddev = columns
    leaves = Leaves(tree, places)
    return MapContents(
        CellMap(leaves, values, unbiased, stddev, Remembered(transcript, leaves, stddev), _reading(label)),
        Statement.from_json(label["statement"]),
        Later(method_of, (label["method"],)),
        transcript,
    )


def read_later(read: Callable[..., Transcript], path: Path, label: dict[str, Any], *of: Any) -> Later:
    """A transcript, `read(*of)`, when it is asked for; what cannot be read of it is an error that names the file."""
    return Later(_read, (read, path, label, *of))


def _read(read: Callable[..., Transcript], path: Path, label: dict[str, Any], *of: Any) -> Transcript:
    with reading(path), understood(path, label):
        return read(*of)


def _reading(label: dict[str, Any]) -> Reading:
    """How the best guess was read; files of the first version do not say, and have no guess that is uneven inside."""
    return Reading(label.get("reading", Reading.UNBIASED.value))


def tree_of(label: dict[str, Any]) -> Tree:
    """The tree that the cells of a file are of."""
    tree: Tree = codec.from_json(label["tree"], wanted=Tree, plug_ins=plug_in_type)
    return tree


def plug_in_type(written: str) -> type | None:
    """A class of a plug-in by its name in the file; algorithms are loaded only now."""
    from hazemap.algorithms import plug_ins

    return plug_ins.plug_in_type(written)


def method_of(data: Any) -> object:
    """The algorithm of a label; `UnknownMethod` where this version does not know it."""
    from hazemap.algorithms import READABLE

    try:
        return codec.from_json(data, READABLE, plug_ins=plug_in_type)
    except CodecError:  # of a newer version: it cannot be replayed here, but the numbers can be read
        return UnknownMethod(data)


@dataclass(frozen=True, eq=False)
class Remembered:
    """The noise of a stored map, worked out from its transcript when it is first asked for.

    It must give the standard errors that are stored beside it.
    """

    transcript: Later
    leaves: Leaves
    stddev: Floats

    @cached_property
    def found(self) -> Noise:
        """The noise itself."""
        from hazemap.estimate import from_transcript

        found = from_transcript(self.transcript.value, self.leaves)
        same = np.array_equal(found.stddev, self.stddev)  # as a rule, and known in a tenth of the time
        if same or np.allclose(found.stddev, self.stddev, rtol=1e-6, atol=0):
            return found.noise
        raise TranscriptMismatch(
            "the answers in this file do not give the error bars in it: another version of hazemap estimated"
            " them in another way; open it with the version in its statement"
        )

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · unbiased."""
        return self.found.of(weights)


@contextmanager
def understood(path: Path, label: dict[str, Any]) -> Iterator[None]:
    """Whatever cannot be read of a file with the right digest is not damage: this version does not know it."""
    try:
        yield
    except PlugInError as error:
        raise FileError(f"{path} cannot be opened: {error}") from error
    except (HazemapError, LookupError) as error:
        version = label.get("statement", {}).get("version", "of another version")
        raise FileError(
            f"{path} is whole, but this hazemap cannot read it ({error}); open it with hazemap {version} or a newer one"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong while a file is taken apart is a `FileError` that names the file."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"there is no file {path}; look at its name and folder") from None
    except (PermissionError, IsADirectoryError) as error:
        raise FileError(f"{path} cannot be read: {error.strerror}; ask for a file that can be") from error
    except (HazemapError, *_DAMAGE) as error:
        raise FileError(
            f"{path} is damaged ({type(error).__name__}: {str(error)[:200]});"
            " fetch it again from where it was published"
        ) from error


_DAMAGE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(NotImplementedError, MemoryError, RecursionError, zlib.error),
)
"""What the libraries raise that take a file apart, when its bytes make no sense."""
