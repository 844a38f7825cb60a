"""What specifications of maps and statistics share: made from keywords, saved as TOML and JSON, read back.

A file is a flat document: names, and texts, numbers, flags or lists of numbers. A name that is left out has its
default; a name that is not known, and a value of another type, are refused in words.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, Self, get_origin, get_type_hints

from hazemap.errors import InputError
from hazemap.files.text_files import toml_table
from hazemap.privacy.budget import Budget
from hazemap.sources.source import Frame, parse_source
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import PlaneBox
from hazemap.specs.parsing import budget as parsed_budget
from hazemap.specs.parsing import budget_texts, refuse_absurd
from hazemap.specs.spec_fields import Field, Value
from hazemap.specs.table_spec import TableSpec
from hazemap.temporal.time_slots import Slots

ASSUMPTIONS = (
    "the curator sees every row, and keeps the table and the noise to itself",
    "the table gives each person one id",
    "nobody who reads the release also watches the run (its time, its memory)",
)


class Specification:
    """Something that somebody asks for; all of it is public. `NAMES` are those that a file and a call may hold."""

    NAMES: ClassVar[Mapping[str, Field]]

    table: TableSpec
    budget: Budget
    dataset: str
    output: str | None

    @property
    def timeslots(self) -> Slots:
        """The slots that are named, or one of all times."""
        raise NotImplementedError

    @property
    def timed(self) -> bool:
        """Whether the times of rows matter."""
        return self.timeslots.timed or self.table.window != (None, None)

    @property
    def times(self) -> tuple[str, ...]:
        """How times are read, for a statement; nothing where they do not matter."""
        return (f"the times: {self.table.times}",) if self.timed else ()

    @classmethod
    def of(cls, source: Any = None, known: Any = None, **asked: Any) -> Self:
        """From the keywords of `hazemap.release` or `hazemap.stats`; None is as good as left out.

        `source` is a path, or a table in memory, which is not kept. `known` is the algorithm, where a journal holds it.
        """
        if asked.get("crs") is not None and "plane" in cls.NAMES:
            if asked.get("plane") is not None:
                raise InputError("crs is another name of plane: pass one of them")
            asked["plane"] = crs_text(own_value(asked["crs"]))
        if "plane" in cls.NAMES:
            asked.pop("crs", None)
        if unknown := asked.keys() - cls.NAMES.keys() - {"dialect"}:
            raise TypeError(f"{cls.__name__} got an unexpected keyword argument {sorted(unknown)[0]!r}")
        given = {
            name: value if name in ("epsilon", "delta", "rho") else own_value(value)  # exact numbers stay exact
            for name, value in asked.items()
            if value is not None
        }
        place = parse_source(source)
        table = TableSpec.taken(None if isinstance(place, Frame) else str(place), given)
        money = parsed_budget(*(given.pop(name, None) for name in ("epsilon", "delta", "rho")))
        given.setdefault("dataset", place.dataset)
        if "output" in given:
            given["output"] = os.fspath(given["output"])
        if isinstance(given.get("box"), str):
            given["box"] = (PlaneBox if "plane" in given else Box).parse(given["box"])
        return cls(table=table, budget=money, known=known, **cls.read(given))  # type: ignore[call-arg]  # dataclasses

    @classmethod
    def read(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The fields that only this kind has, understood where they are texts."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise `InputError` for a field of another type than its own, or an absurd budget; name the data set."""
        hints = get_type_hints(type(self))
        for each in fields(self):  # type: ignore[arg-type]  # both kinds are dataclasses
            found, kind = getattr(self, each.name), hints[each.name]
            if each.name == "known":
                continue
            kind = int | kind if kind == float | None else get_origin(kind) if get_origin(kind) is tuple else kind
            if each.name == "box" and found is not None and not isinstance(found, Box | PlaneBox):
                raise InputError(
                    'write a box as text, "west,south,east,north", or as hazemap.Box(west, south, east, north); found '
                    f"a {type(found).__name__}"
                )
            if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
                raise InputError(f"{each.name} of a specification cannot be a {type(found).__name__}")
        refuse_absurd(self.budget)
        if not self.dataset:
            object.__setattr__(self, "dataset", self.table.dataset)

    @classmethod
    def from_json(cls, data: object, known: object = None) -> Self:
        """What `to_json` wrote; `InputError` for anything else."""
        return cls.of(**checked_fields(checked(data), cls.NAMES), known=known)

    def to_json(self) -> dict[str, Value]:
        """A flat document with the names of `hazemap.release` or `hazemap.stats`; what is None is left out.

        So is the data set where it is called like its file: a specification may be used for another file.
        """
        document = {**self.table.document, **budget_texts(self.budget), **self.written()}
        found = {name: document.get(name, getattr(self, name, None)) for name in self.NAMES}
        if self.dataset == self.table.dataset:
            del found["dataset"]
        return {name: value for name, value in found.items() if value is not None}

    def written(self) -> dict[str, Any]:
        """The fields that are no text, number or flag already, as a file has them."""
        raise NotImplementedError

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """What `to_toml` wrote, or somebody by hand."""
        return cls.from_json(from_toml(text))

    def to_toml(self) -> str:
        """The specification as a file that people can read, keep and change."""
        return to_toml(self.to_json())


def crs_text(crs: Any) -> Any:
    """A reference system as a specification has it: its text, its number at EPSG, or one of EPSG's in pyproj.

    >>> crs_text(25833)
    'EPSG:25833'
    """
    if isinstance(crs, int) and not isinstance(crs, bool):
        return f"EPSG:{crs}"
    number = crs.to_epsg() if hasattr(crs, "to_epsg") else None
    return crs if number is None else f"EPSG:{number}"


def own_value(value: Any) -> Any:
    """A number, text, truth or time of NumPy, a decimal or a date, as Python's own or as text; others as they are.

    >>> own_value(Decimal("0.5")), own_value(Decimal(3)), own_value(date(2026, 5, 31))
    (0.5, 3, '2026-05-31')
    """
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if type(value).__module__ != "numpy":
        return type(value)(map(own_value, value)) if type(value) in (list, tuple) else value
    if value.dtype.kind == "M":
        return own_value(value.astype("datetime64[us]").item() or "NaT")
    return own_value(value.tolist())


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
    return checked(toml_table(text, "the specification", LONGEST))


def checked(data: object) -> dict[str, Value]:
    """A flat document of names and plain values; `InputError` for anything else."""
    if not isinstance(data, Mapping):
        raise InputError("a specification must be a table of names and values")
    for name, value in data.items():
        if not isinstance(name, str):
            raise InputError("the names in a specification must be text")
        items = value if isinstance(value, list) else [value]
        texts = isinstance(value, list) and {type(item) for item in value} == {str}
        for item in items:
            plain = (str, int, float, bool) if texts or not isinstance(value, list) else (int, float)
            if type(item) not in plain:
                raise InputError(
                    f"{name} of a specification is a text, a number, true or false, or a list of numbers or of texts"
                )
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
        elif names[name].texts and isinstance(value, str):
            read[name] = [value]
        elif type(value) is kind and (not isinstance(value, list) or _is_texts(value) == names[name].texts):
            read[name] = value
        else:
            said = "a list of texts" if names[name].texts else _SAID[kind]
            raise InputError(f"{name} of a specification is {said}; found {json.dumps(value)[:80]}")
    return read


def _is_texts(value: Sequence[object]) -> bool:
    return bool(value) and all(isinstance(item, str) for item in value)


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
            raise InputError(f"{name} is not valid text, and TOML cannot hold it: rename the file") from None
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(_written(name, item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, bool) else repr(value)
