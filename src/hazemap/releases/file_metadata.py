"""What every file of a release carries beside its numbers, whichever its format: label and transcript.

The *label* is JSON that people can read: format, statement, method, tree. The transcript is the codec's text,
compressed.
"""

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hazemap import codec
from hazemap.arrays import Floats
from hazemap.cellmap import CellMap, Noise, Reading, Spread
from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.errors import CodecError, FileError, TranscriptMismatch
from hazemap.privacy.statement import Statement
from hazemap.session import Exchange, Transcript

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release


@dataclass(frozen=True)
class UnknownMethod:
    """A method of a newer version, as its file names it: its numbers can be read, but it cannot be run."""

    data: Any


class MapContents(NamedTuple):
    """What a file of a map holds: the fields of a `Release`."""

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript


FORMAT, NEWEST = 1, 2
"""The formats in which this version writes maps, and statistics of values; it reads none that are newer."""

LARGEST = 1 << 33
"""No transcript is longer than this many bytes; a damaged length must not fill the memory."""


MANY = 1 << 22
"""Transcripts of more numbers are compressed in a hurry: a fifth of the time for a fifth more bytes."""


def describe(release: "Release") -> dict[str, Any]:
    """The label of a release; numbers of `NOWHERE` stand here, since it is no place on a map."""
    cellmap = release.map
    nowhere = None
    for at in np.flatnonzero(~cellmap.places).tolist():
        numbers = [float(array[at]) for array in (cellmap.values, cellmap.unbiased, cellmap.stddev)]
        nowhere = dict(zip(("position", "count", "unbiased", "stddev"), [at, *numbers], strict=True))
    method = release.algorithm
    return {
        "format": FORMAT,
        "statement": release.statement.to_json(),
        "line": release.statement.line(),
        "counted": release.statement.bounding.counted,
        "method": method.data if isinstance(method, UnknownMethod) else codec.to_json(method),
        "tree": codec.to_json(cellmap.cells.tree),
        "nowhere": nowhere,
        "reading": cellmap.reading.value,
    }


def pack(transcript: Transcript) -> str:
    """A transcript as text of few bytes."""
    length, squeezed = 0, []
    squeeze = zlib.compressobj(1 if _numbers(transcript) > MANY else 6)
    for piece in codec.pieces(transcript):
        text = piece.encode()
        length += len(text)
        squeezed.append(squeeze.compress(text))
    return f"{length}:" + base64.b64encode(b"".join([*squeezed, squeeze.flush()])).decode()


def _numbers(transcript: Transcript) -> int:
    return sum(exchange.answer.sums.size for exchange in transcript)


def unpack(packed: str) -> Transcript:
    """What `pack` wrote."""
    length, _, content = packed.partition(":")
    if not 0 < int(length) < LARGEST:
        raise ValueError("a transcript of impossible length")
    text = zlib.decompressobj().decompress(base64.b64decode(content), int(length))
    exchanges = codec.loads(text, plug_ins=plug_in_type)
    return tuple(Exchange(question, answer) for question, answer in exchanges)


def parse(path: Path, text: str | bytes) -> dict[str, Any]:
    """The label of a file; `FileError` if a newer version of hazemap wrote it."""
    label = json.loads(text)
    if not isinstance(label, dict) or type(label.get("format")) is not int:
        raise ValueError("its label does not name a format")
    if label["format"] < 1:
        raise ValueError(f"no format has the number {label['format']}")
    newest = NEWEST if label.get("kind") else FORMAT
    if label["format"] > newest:
        raise FileError(
            f"{path} has format {label['format']}; this hazemap reads formats up to {newest}:"
            " open it with a newer hazemap"
        )
    return label


def assemble(label: dict[str, Any], packed: str, places: Cells, columns: Floats) -> MapContents:
    """A release from the parts of a file whose digest was right; columns are count, unbiased and stddev."""
    transcript = unpack(packed)
    tree = tree_of(label)
    if label["nowhere"] is not None:
        at = int(label["nowhere"]["position"])
        places = np.insert(places, at, NOWHERE)
        extra = [float(label["nowhere"][name]) for name in ("count", "unbiased", "stddev")]
        columns = np.insert(columns, at, extra, axis=1)
    values, unbiased, stddev = columns
    leaves = Leaves(tree, places)
    return MapContents(
        CellMap(leaves, values, unbiased, stddev, Remembered(transcript, leaves, stddev), _reading(label)),
        Statement.from_json(label["statement"]),
        method_of(label["method"]),
        transcript,
    )


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
    from hazemap.algorithms import METHODS, OF_VALUES

    try:
        return codec.from_json(data, (*METHODS, *OF_VALUES), plug_ins=plug_in_type)
    except CodecError:  # of a newer version: it cannot be replayed here, but the numbers can be read
        return UnknownMethod(data)


@dataclass(frozen=True, eq=False)
class Remembered:
    """The noise of a stored map, worked out from its transcript when it is first asked for.

    It must give the standard errors that are stored beside it.
    """

    transcript: Transcript
    leaves: Leaves
    stddev: Floats

    @cached_property
    def _noise(self) -> Noise:
        from hazemap.estimate import from_transcript

        found = from_transcript(self.transcript, self.leaves)
        if np.allclose(found.stddev, self.stddev, rtol=1e-6, atol=0):
            return found.noise
        raise TranscriptMismatch(
            "the answers in this file do not give the error bars in it: another version of hazemap estimated"
            " them in another way; open it with the version in its statement"
        )

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · unbiased."""
        return self._noise.of(weights)
