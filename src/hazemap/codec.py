"""Queries, answers and methods as JSON: what a device is sent, what a release stores.

Everything that travels is a frozen dataclass of plain data, so one rule writes it all: `{"Name": {field:
value}}`. The names are a closed list; whoever reads refuses a name it does not know, and a name with other
fields than its own. Rationals are written as text, arrays with their type, so nothing is rounded. What is large and
comes again and again (`travels_once`: the polygons of districts) is written where it comes first in the text, and is
`{"again": n}` afterwards, the n-th of its kind.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from hazemap.cellmap import Reading
from hazemap.cells import Leaves
from hazemap.domains import (
    Always,
    Box,
    Clock,
    CutDistricts,
    Cuts,
    Districts,
    Gauge,
    Grids,
    Hexagons,
    Magnitudes,
    Marked,
    Measured,
    Octaves,
    Parcels,
    Quadtree,
    Sides,
    Spans,
    Stretches,
    Valued,
    Weekdays,
)
from hazemap.encoders import Counts, CutCosts, KeptValues, Medians, Presences, Quantiles, Sketch, Stack, Values, Wavelet
from hazemap.errors import CodecError, HazemapError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.rounds import Answer, Choice, Growth, Measure, Query
from hazemap.tables.bounding import AtMostCells, AtMostRows, OneVote, OwnMeans, RowIsPerson

CLOSED_LIST: tuple[type, ...] = (
    *(Query, Choice, Growth, Measure, Answer, Counts, CutCosts, Stack, Sketch, Wavelet, Medians, Quantiles),
    *(Leaves, Quadtree, Hexagons, Grids, Cuts, Districts, Parcels, CutDistricts, Marked, Sides, Box),
    *(Values, KeptValues, Measured, Gauge, Always, Clock, Weekdays, Spans, OwnMeans),
    *(Magnitudes, Octaves, Stretches, Valued, Presences),
    *(AtMostRows, AtMostCells, OneVote, RowIsPerson, PureDP, ZCDP, ApproxDP, Reading),
)
"""Every type that may travel. Methods are added by whoever stores them (`known` below)."""

_ARRAYS = {"uint64", "int64", "int8", "float64"}


def to_json(thing: Any) -> Any:
    """Anything on the closed list as JSON values.

    >>> to_json(Fraction(1, 20)), to_json(Box(0, 0, 1, 1))
    ({'fraction': '1/20'}, {'Box': {'east': 1, 'north': 1, 'south': 0, 'west': 0}})
    """
    return _write(thing, {})


def _write(thing: Any, once: dict[Any, int]) -> Any:  # noqa: PLR0911 - one answer a kind
    """`to_json`; `once` are the numbers of what need not be written again."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        large = getattr(thing, "travels_once", False)
        if large and thing in once:
            return {"again": once[thing]}
        names = sorted(f.name for f in dataclasses.fields(thing))  # the order of the text, and of reading
        written = {type(thing).__name__: {name: _write(getattr(thing, name), once) for name in names}}
        if large:
            once[thing] = len(once)
        return written
    if isinstance(thing, np.ndarray):
        return {"array": [str(thing.dtype), thing.tolist()]}
    if isinstance(thing, Enum):
        return {type(thing).__name__: thing.value}
    if isinstance(thing, Fraction):
        return {"fraction": str(thing)}
    if isinstance(thing, tuple):
        return [_write(item, once) for item in thing]
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    raise CodecError(f"a {type(thing).__name__} is not on the closed list of what may travel")


def from_json(data: Any, known: Iterable[type] = ()) -> Any:
    """What `to_json` wrote; `known` are types beyond the closed list. `CodecError` for anything else."""
    names = {t.__name__: t for t in (*CLOSED_LIST, *known)}
    try:
        return _read(data, names, [])
    except HazemapError as error:
        raise CodecError(f"this JSON describes something impossible: {error}") from error
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError, ZeroDivisionError) as error:
        raise CodecError(f"this JSON is not one of hazemap's: {type(error).__name__}") from error


def _read(data: Any, names: dict[str, type], once: list[Any]) -> Any:  # noqa: PLR0911 - one answer a kind
    if isinstance(data, list):
        return tuple(_read(item, names, once) for item in data)
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise CodecError("an object names one type; this one has none, or several")
    [(name, fields)] = data.items()
    if name == "array":
        kind, values = fields
        if kind not in _ARRAYS:
            raise CodecError(f"arrays hold one of {sorted(_ARRAYS)}, not {kind!r}")
        return np.array(values, dtype=kind)
    if name == "fraction":
        return Fraction(fields)
    if name == "again":
        if type(fields) is not int or fields < 0:
            raise CodecError("what comes again is named by its number")
        return once[fields]
    if name not in names:
        raise CodecError(f"{name!r} is not on the closed list of what may travel")
    if issubclass(names[name], Enum):
        return names[name](fields)
    wanted = {f.name for f in dataclasses.fields(names[name])}
    if set(fields) != wanted:
        raise CodecError(f"{name} has the fields {sorted(wanted)}, not {sorted(fields)}")
    thing = names[name](**{key: _read(value, names, once) for key, value in fields.items()})
    if getattr(thing, "travels_once", False):
        once.append(thing)
    return thing


def dumps(thing: Any) -> str:
    """Canonical text: equal things give equal text."""
    return json.dumps(to_json(thing), sort_keys=True, separators=(",", ":"), allow_nan=False)


def pieces(things: Iterable[Any]) -> Iterator[str]:
    """`dumps` of a tuple, a piece at a time: what is large is never whole in memory."""
    once: dict[Any, int] = {}
    yield "["
    for number, thing in enumerate(things):
        text = json.dumps(_write(thing, once), sort_keys=True, separators=(",", ":"), allow_nan=False)
        yield f",{text}" if number else text
    yield "]"


def loads(text: str | bytes, known: Iterable[type] = ()) -> Any:
    """What `dumps` wrote."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise CodecError(f"this is not JSON: {error}") from error
    return from_json(data, known)


def digest(thing: Any) -> str:
    """SHA-256 of the canonical text: two queries are the same iff their digests are."""
    return hashlib.sha256(dumps(thing).encode()).hexdigest()
