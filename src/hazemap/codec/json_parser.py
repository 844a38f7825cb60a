"""Parses JSON from outside into lists and dictionaries, after bounding what that would cost."""

import json
import re
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError


@dataclass(frozen=True)
class Limits:
    """What is checked before work is done; all are inclusive.

    `length` is in bytes, `items` are brackets and commas, `things` are objects, `lists` lists (each costs as much as
    ten numbers), `digits` those of one numerator or denominator, and `work` is about the bytes of memory that making
    the things may need beyond the text (`decoding_work` of their classes).
    """

    length: int
    items: int
    work: int
    depth: int = 64
    digits: int = 640
    things: int = 1 << 14
    lists: int = 1 << 16


MESSAGE = Limits(length=1 << 25, items=1 << 21, work=1 << 26)
"""What a device is sent, and what a server takes from outside: a million numbers, well below a second."""

FILE = Limits(length=1 << 33, items=1 << 31, work=1 << 33, things=1 << 31, lists=1 << 31)
"""A release: files of many millions of numbers, which somebody chose to open."""


_HALVES = re.compile(rb"\\u[dD][89a-fA-F]")
"""How half of a letter is written: alone it is no text."""

PIECE = 1 << 20
"""Bytes that are looked at together."""

_QUOTE, _BACKSLASH, _COMMA, _BRACKET, _BRACE, _LAST_DIGIT = (ord(letter) for letter in '"\\,[{9')


def parsed(text: str | bytes, limits: Limits) -> Any:
    """The values of a JSON text; `CodecError` for any other text, and for one that is beyond the limits.

    Length, depth and the number of items are counted before anything is parsed: about 1 ns a byte, beside 10 to 20 for
    parsing. `NaN`, `Infinity`, half of a letter and a name that comes twice in one object are refused; so is a number
    that is not finite, but of files.
    """
    return counted(text, limits)[0]


def counted(text: str | bytes, limits: Limits) -> tuple[Any, int]:
    """As `parsed`, with how many `true`, `false` and `null` the text holds."""
    if len(text) > limits.length:
        raise CodecError(f"this JSON is longer than {limits.length:,} bytes")
    try:
        content = text.encode() if isinstance(text, str) else text
        scan = _Scan(limits)
        for start in range(0, len(content), PIECE):
            scan.read(np.frombuffer(content, np.uint8, min(PIECE, len(content) - start), start))
        plain = text if isinstance(text, str) else content.decode()
        finite = _finite if limits.length < FILE.length else None  # files hold millions, and what reads them looks
        found = json.loads(plain, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=finite)
        if _HALVES.search(content):
            json.dumps(found, ensure_ascii=False).encode()
        return found, scan.literals
    except CodecError:
        raise
    except UnicodeError as error:
        raise CodecError("this is not JSON: its text is not UTF-8, or holds half of a letter") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodecError(f"this is not JSON: {error!s:.200}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise CodecError("an object of this JSON has two fields of one name")
    return found


def _finite(digits: str) -> float:
    found = float(digits)
    if not isfinite(found):
        raise CodecError("a number of this JSON is not finite")
    return found


def _no_number(name: str) -> Any:
    raise CodecError(f"{name} is not a JSON number")


class _Scan:
    """Counts brackets, braces and commas as a parser would meet them, up to the first place where it would stop.

    Whatever stands behind that place does not matter: nobody parses it.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.depth = self.items = self.things = self.lists = self.literals = 0
        self.quoted = self.escaping = False

    def read(self, piece: NDArray[np.uint8]) -> None:
        """Go on with these bytes."""
        comma, quote = piece == _COMMA, piece == _QUOTE
        at = np.flatnonzero((piece > _LAST_DIGIT) | quote)  # numbers and what is between them are passed over
        commas = int(np.count_nonzero(comma))
        if not quote.any():
            self.items += 0 if self.quoted else commas
        elif self.items + len(piece) > self.limits.items:  # perhaps too many: commas in texts do not count
            at = np.flatnonzero((piece > _LAST_DIGIT) | quote | comma)
        else:
            self.items += commas
        marks = _MARKS[piece[at]]
        at, marks = at[marks != 0], marks[marks != 0]
        escaped = self._escaped(at, marks, len(piece))
        turns = (marks == _QUOTE) & ~escaped
        inside = (np.cumsum(turns) + self.quoted) % 2 == 1  # an opening quote is inside, a closing one is not
        outside = ~(inside | turns)
        self.literals += int(np.count_nonzero(outside & (marks == _LITERAL)))
        steps = np.where(outside, _STEPS[marks], 0)
        depths = self.depth + np.cumsum(steps)
        self.things += int(np.count_nonzero(outside & (marks == _BRACE)))
        if self.things > self.limits.things:
            raise CodecError(f"this JSON holds more than {self.limits.things:,} objects")
        self.lists += int(np.count_nonzero(outside & (marks == _BRACKET)))
        if self.lists > self.limits.lists:
            raise CodecError(f"this JSON holds more than {self.limits.lists:,} lists")
        self.items += int(np.count_nonzero(steps > 0)) + int(np.count_nonzero(outside & (marks == _COMMA)))
        if len(at):
            self.quoted, self.depth = bool(inside[-1]), int(depths[-1])
        if depths.max(initial=0) > self.limits.depth:
            raise CodecError(f"this JSON is nested more than {self.limits.depth} deep")
        if self.items > self.limits.items:
            raise CodecError(f"this JSON holds more than {self.limits.items:,} items")

    def _escaped(self, at: NDArray[np.int64], marks: NDArray[np.uint8], length: int) -> NDArray[np.bool_]:
        """Which marks a backslash stands before that is not itself escaped."""
        escaped = np.zeros(len(at), dtype=np.bool_)
        slashes = at[marks == _BACKSLASH]
        if not len(slashes):
            if self.escaping and len(at) and at[0] == 0:
                escaped[0] = True
            self.escaping = False if length else self.escaping
            return escaped
        begins = np.concatenate([[True], np.diff(slashes) != 1])
        first = np.flatnonzero(begins)[np.cumsum(begins) - 1]
        rank = np.arange(len(slashes)) - first
        if self.escaping and slashes[0] == 0:  # the first run goes on from the piece before
            rank[: np.count_nonzero(first == 0)] += 1
        escaping = slashes[rank % 2 == 0]
        escaped = np.isin(at - 1, escaping)
        if self.escaping and len(at) and at[0] == 0:
            escaped[0] = True
        self.escaping = bool(len(escaping) and escaping[-1] == length - 1)
        return escaped


_LITERAL = 1
_MARKS = np.zeros(256, dtype=np.uint8)
for _letter in '"\\,[]{}':
    _MARKS[ord(_letter)] = ord(_letter)
for _letter in "tfn":  # how true, false and null begin
    _MARKS[ord(_letter)] = _LITERAL
_STEPS = np.zeros(256, dtype=np.int64)
for _letter, _step in (("[", 1), ("{", 1), ("]", -1), ("}", -1)):
    _STEPS[ord(_letter)] = _step
