"""Specifications as flat documents, in TOML and JSON: names, and texts, numbers, flags or lists of numbers.

A name that is left out has its default; a name that is not known, and a value of another type, are refused in words.
"""

import json
import math
import tomllib
from collections.abc import Mapping
from typing import Any

from hazemap.errors import InputError
from hazemap.specs.spec_fields import Field, Value

_LARGEST = (1 << 63) - 1  # what TOML promises of whole numbers

LONGEST = 1 << 20
"""Characters of a document: far more than any specification needs."""


def to_toml(document: Mapping[str, Value]) -> str:
    r"""TOML of a flat document, a line for each name; `tomllib` reads the same values.

    >>> to_toml({"method": "flat:6", "overwrite": True})
    'method = "flat:6"\noverwrite = true\n'
    """
    return "".join(f"{name} = {_written(name, value)}\n" for name, value in document.items())


def from_toml(text: str) -> dict[str, Value]:
    """What `to_toml` wrote, or somebody by hand."""
    if len(text) > LONGEST:
        raise InputError(f"a specification has at most {LONGEST:,} characters; this has {len(text):,}")
    try:
        return checked(tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # of TOML itself, and of numbers with thousands of digits
        raise InputError(f"this is not TOML: {error}") from error


def checked(data: object) -> dict[str, Value]:
    """A flat document of names and plain values; `InputError` for anything else."""
    if not isinstance(data, Mapping):
        raise InputError("a specification has names with a value each")
    for name, value in data.items():
        if not isinstance(name, str):
            raise InputError("the names of a specification are texts")
        items = value if isinstance(value, list) else [value]
        numbers = isinstance(value, list)
        for item in items:
            if type(item) not in ((int, float) if numbers else (str, int, float, bool)):
                raise InputError(f"{name} of a specification is a text, a number, true or false, or a list of numbers")
            if isinstance(item, float) and not math.isfinite(item):
                raise InputError(f"{name} of a specification must be finite")
            if isinstance(item, int) and not -_LARGEST <= item <= _LARGEST:
                raise InputError(f"{name} of a specification is a number of more than 64 bits")
    return dict(data)


def checked_fields(document: Mapping[str, Value], names: Mapping[str, Field]) -> dict[str, Any]:
    """The values of a document, of the names and types that it may have; a whole number may stand for a float.

    >>> from hazemap.specs.spec_fields import STATISTICS
    >>> checked_fields({"low": 0}, STATISTICS)
    {'low': 0.0}
    """
    unknown = sorted(document.keys() - names.keys())
    if unknown:
        raise InputError(
            f"a specification of this kind has no {', '.join(map(repr, unknown))[:200]}; it has {', '.join(names)}"
        )
    read: dict[str, Value] = {}
    for name, value in document.items():
        kind = names[name].kind
        if kind is float and type(value) is int:
            read[name] = float(value)
        elif type(value) is kind:
            read[name] = value
        else:
            raise InputError(f"{name} of a specification is {_SAID[kind]}; found {json.dumps(value)[:80]}")
    return read


_SAID: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of numbers",
}


def shortest(number: float) -> str:
    """The fewest digits that mean this number and no other.

    >>> shortest(1234567.5), shortest(65)
    ('1234567.5', '65')
    """
    return repr(float(number)).removesuffix(".0")


def _written(name: str, value: Value) -> str:
    """A value as TOML, of which JSON's texts are a part but for one character."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} holds bytes that are no text, which TOML cannot hold: rename the file") from None
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(repr(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, bool) else repr(value)
