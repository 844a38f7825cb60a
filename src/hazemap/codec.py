"""Queries, answers and methods as JSON: what a device is sent, what a release stores.

Everything that travels is a frozen dataclass of plain data, so one rule writes it all: `{"Name": {field:
value}}`. The names are a closed list; whoever reads refuses a name it does not know, and a name with other
fields than its own. Rationals are written as text, arrays with their type, so nothing is rounded.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from hazemap.cellmap import Reading
from hazemap.cells import Leaves
from hazemap.domains import Box, Cuts, Grids, Hexagons, Marked, Quadtree, Sides
from hazemap.encoders import Counts, Medians, Quantiles, Sketch, Stack, Wavelet
from hazemap.errors import CodecError, HazemapError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.rounds import Answer, Choice, Growth, Query
from hazemap.tables.bounding import AtMostCells, AtMostRows, OneVote, RowIsPerson

CLOSED_LIST: tuple[type, ...] = (
    *(Query, Choice, Growth, Answer, Counts, Stack, Sketch, Wavelet, Medians, Quantiles),
    *(Leaves, Quadtree, Hexagons, Grids, Cuts, Marked, Sides, Box),
    *(AtMostRows, AtMostCells, OneVote, RowIsPerson, PureDP, ZCDP, ApproxDP, Reading),
)
"""Every type that may travel. Methods are added by whoever stores them (`known` below)."""

_ARRAYS = {"uint64", "int64", "int8", "float64"}


def to_json(thing: Any) -> Any:
    """Anything on the closed list as JSON values.

    >>> to_json(Fraction(1, 20)), to_json(Box(0, 0, 1, 1))
    ({'fraction': '1/20'}, {'Box': {'west': 0, 'south': 0, 'east': 1, 'north': 1}})
    """
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return {type(thing).__name__: {f.name: to_json(getattr(thing, f.name)) for f in dataclasses.fields(thing)}}
    if isinstance(thing, np.ndarray):
        return {"array": [str(thing.dtype), thing.tolist()]}
    if isinstance(thing, Enum):
        return {type(thing).__name__: thing.value}
    if isinstance(thing, Fraction):
        return {"fraction": str(thing)}
    if isinstance(thing, tuple):
        return [to_json(item) for item in thing]
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    raise CodecError(f"a {type(thing).__name__} is not on the closed list of what may travel")


def from_json(data: Any, known: Iterable[type] = ()) -> Any:
    """What `to_json` wrote; `known` are types beyond the closed list. `CodecError` for anything else."""
    names = {t.__name__: t for t in (*CLOSED_LIST, *known)}
    try:
        return _read(data, names)
    except HazemapError as error:
        raise CodecError(f"this JSON describes something impossible: {error}") from error
    except (TypeError, ValueError, KeyError, OverflowError, AttributeError, ZeroDivisionError) as error:
        raise CodecError(f"this JSON is not one of hazemap's: {type(error).__name__}") from error


def _read(data: Any, names: dict[str, type]) -> Any:
    if isinstance(data, list):
        return tuple(_read(item, names) for item in data)
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
    if name not in names:
        raise CodecError(f"{name!r} is not on the closed list of what may travel")
    if issubclass(names[name], Enum):
        return names[name](fields)
    wanted = {f.name for f in dataclasses.fields(names[name])}
    if set(fields) != wanted:
        raise CodecError(f"{name} has the fields {sorted(wanted)}, not {sorted(fields)}")
    return names[name](**{key: _read(value, names) for key, value in fields.items()})


def dumps(thing: Any) -> str:
    """Canonical text: equal things give equal text."""
    return json.dumps(to_json(thing), sort_keys=True, separators=(",", ":"), allow_nan=False)


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
