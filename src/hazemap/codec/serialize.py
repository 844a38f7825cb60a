"""Encodes objects as canonical JSON: equal objects give equal text."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.codec.allowed_types import RENAMED, YOUNGER, written_name
from hazemap.errors import CodecError
from hazemap.tables.contribution_bounding import Outside


def to_json(thing: Any) -> Any:
    """Anything on the closed list as JSON values.

    >>> from hazemap.spatial.bounding_box import Box
    >>> to_json(Fraction(1, 20)), to_json(Box(0, 0, 1, 1))
    ({'fraction': '1/20'}, {'Box': {'east': 1, 'north': 1, 'south': 0, 'west': 0}})
    """
    return _write(thing, {})


ASIDE = 64
"""Arrays of so many numbers and more, in rows or not, are written beside a text, where there is a place for them."""


def _write(thing: Any, once: dict[Any, int], beside: list[NDArray[Any]] | None = None) -> Any:  # noqa: PLR0911 - one answer a kind
    """`to_json`; `once` are the numbers of what need not be written again, `beside` takes long arrays."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        large = getattr(thing, "travels_once", False)
        if large and thing in once:
            return {"again": once[thing]}
        own = written_name(type(thing))
        left_out = {name for name in YOUNGER.get(own, ()) if getattr(thing, name) is None}
        names = sorted({f.name for f in dataclasses.fields(thing)} - left_out)  # the order of the text, and of reading
        fields = {RENAMED.get(name, name): _write(getattr(thing, name), once, beside) for name in names}
        written = {own: fields}
        if large:
            once[thing] = len(once)
        return written
    if isinstance(thing, np.ndarray):
        if beside is not None and thing.ndim in (1, 2) and thing.size >= ASIDE:
            beside.append(thing.ravel())
            return {"array": [str(thing.dtype), len(beside) - 1, *thing.shape[1:]]}
        return {"array": [str(thing.dtype), thing.tolist()]}
    if isinstance(thing, Outside):
        return thing.written
    if isinstance(thing, Enum):
        return {written_name(type(thing)): thing.value}
    if isinstance(thing, Fraction):
        return {"fraction": str(thing)}
    if isinstance(thing, tuple):
        return [_write(item, once, beside) for item in thing]
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    raise CodecError(f"a {type(thing).__name__} is not on the closed list of what may travel")


def dumps(thing: Any) -> str:
    """Canonical text: equal things give equal text."""
    return json.dumps(to_json(thing), sort_keys=True, separators=(",", ":"), allow_nan=False)


def pieces(things: Iterable[Any], beside: list[NDArray[Any]] | None = None) -> Iterator[str]:
    """`dumps` of a tuple, a piece at a time: what is large is never whole in memory.

    Where a list `beside` is given, long arrays are added to it, and the text has their places in it instead: it is
    then read by `loads` together with them. Of an array of rows that is how many numbers a row has, too.
    """
    once: dict[Any, int] = {}
    yield "["
    for number, thing in enumerate(things):
        text = json.dumps(_write(thing, once, beside), sort_keys=True, separators=(",", ":"), allow_nan=False)
        yield f",{text}" if number else text
    yield "]"


def digest(thing: Any) -> str:
    """SHA-256 of the canonical text: two queries are the same iff their digests are."""
    return hashlib.sha256(dumps(thing).encode()).hexdigest()
