"""Decodes JSON: every field by the exact type that its class declares, and nothing else."""

import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from fractions import Fraction
from itertools import chain
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.codec.allowed_types import CLOSED_LIST, RENAMED, UNIONS, YOUNGER, written_name
from hazemap.codec.json_parser import FILE, Limits, counted
from hazemap.codec.serialize import ASIDE
from hazemap.errors import CodecError, HazemapError, PlugInError
from hazemap.field_types import ANYTHING, AdmittedTypes, kind_of, kinds_of
from hazemap.tables.contribution_bounding import Outside

_WHOLE = 1 << 64
"""Whole numbers of a field lie between −2⁶⁴ and 2⁶⁴; those of an array in the range of its type."""

_CODES = {"uint64": "Q", "int64": "q", "int8": "b", "float64": "d"}
_FRACTION = re.compile(r"(0|-?[1-9][0-9]*)(?:/([1-9][0-9]*))?", re.ASCII)


PlugIns = Callable[[str], type | None]
"""Gives the class of a plug-in by its name in texts."""


def loads(
    text: str | bytes,
    known: Iterable[type] = (),
    wanted: Any = Any,
    limits: Limits = FILE,
    plug_ins: PlugIns | None = None,
    beside: Sequence[NDArray[Any]] | None = None,
) -> Any:
    """What `dumps` wrote: see `from_json`. The text is within the `limits`, or not parsed.

    `beside` are the long arrays of a text that `pieces` wrote with them: each has one place in it, in their order.
    """
    data, literals = counted(text, limits)
    return _Reader(known, limits, literals, plug_ins, beside).whole(data, wanted)


def from_json(
    data: Any,
    known: Iterable[type] = (),
    wanted: Any = Any,
    limits: Limits = FILE,
    plug_ins: PlugIns | None = None,
) -> Any:
    """What `to_json` wrote, as the type `wanted`; `known` are types beyond the closed list.

    Where `plug_ins` is given, it is asked for a name that is not known. Whatever comes over a network to a device is
    read without it.

    `CodecError` for anything else: every field is read as its class annotates it (`hazemap.field_types`), integers are
    never rounded, cut or taken from booleans, and no array is converted. O(items), and what making the things costs.
    """
    return _Reader(known, limits, None, plug_ins).whole(data, wanted)


def returns(thing: Any, known: Iterable[type] = ()) -> bool:
    """Whether a thing can be read back as what it is: what cannot must not be stored."""
    from hazemap.codec.serialize import dumps

    try:
        return bool(loads(dumps(thing), known) == thing)
    except (CodecError, ValueError):  # a float that is not finite is no JSON
        return False


class _Reader:
    """One text being read. `literals` is how many true, false and null it holds, if that is known."""

    def __init__(
        self,
        known: Iterable[type],
        limits: Limits,
        literals: int | None,
        plug_ins: PlugIns | None = None,
        beside: Sequence[NDArray[Any]] | None = None,
    ) -> None:
        self.beside, self.taken = beside, 0
        self.known, self.plug_ins, self.plugged = tuple(known), plug_ins, set[type]()
        self.names = {written_name(each): each for each in (*CLOSED_LIST, *self.known)}
        self.limits, self.literals, self.met, self.work = limits, literals, 0, 0
        self.once: list[Any] = []

    def whole(self, data: Any, wanted: Any) -> Any:
        """All of it."""
        try:
            found = self.read(data, kind_of(wanted), "this JSON", 0)
        except (CodecError, PlugInError):
            raise
        except HazemapError as error:
            raise CodecError(f"this JSON describes something impossible: {error!s:.500}") from error
        except Exception as error:  # whatever a class says of fields that it was not made for
            raise CodecError(f"this JSON is not one of hazemap's: {type(error).__name__}") from error
        if self.beside is not None and self.taken != len(self.beside):
            raise CodecError("beside this JSON stand arrays that are no part of it")
        if self.literals not in (None, self.met):
            raise CodecError("an array in this JSON holds something other than numbers")
        return found

    def read(self, data: Any, kind: AdmittedTypes, where: str, depth: int) -> Any:
        """One value; `where` it stands, for an error."""
        if depth > self.limits.depth:
            raise CodecError(f"this JSON is nested more than {self.limits.depth} deep")
        if isinstance(data, dict):
            return self._object(data, kind, where, depth)
        if isinstance(data, list):
            return self._tuple(data, kind, where, depth)
        self.met += data is None or isinstance(data, bool)
        if Outside in kind.classes:
            return Outside.read(data)
        if _admitted(data, kind):
            return data
        raise _other(data, kind, where)

    def _tuple(self, data: list[Any], kind: AdmittedTypes, where: str, depth: int) -> tuple[Any, ...]:
        if kind.anything:
            return tuple(self.read(item, ANYTHING, where, depth + 1) for item in data)
        if kind.items is None:
            raise _other(data, kind, where)
        if kind.repeated:
            return tuple(self.read(item, kind.items[0], where, depth + 1) for item in data)
        if len(data) != len(kind.items):
            raise CodecError(f"{where} has {len(kind.items)} items, not {len(data)}")
        return tuple(self.read(item, own, where, depth + 1) for item, own in zip(data, kind.items, strict=True))

    def _object(self, data: dict[str, Any], kind: AdmittedTypes, where: str, depth: int) -> Any:
        if len(data) != 1:
            raise CodecError("each object must name exactly one type")
        [(name, fields)] = data.items()
        if name == "array":
            return self._array(fields, kind, where)
        if name == "fraction":
            if not kind.anything and Fraction not in kind.plain:
                raise _other(Fraction(), kind, where)
            return self._fraction(fields)
        if name == "again":
            found = self._again(fields)
            if not kind.anything and not self._admits(type(found), kind):
                raise _other(found, kind, where)
            return found
        class_ = self.names.get(name) or self._of_a_plug_in(name)
        if class_ is None:
            raise CodecError(f"{name!r:.80} is not on the closed list of what may travel")
        if not kind.anything and not self._admits(class_, kind):
            raise CodecError(f"{where} is to be {kind}, not a {name}")
        return self._made(class_, fields, depth)

    def _of_a_plug_in(self, name: str) -> type | None:
        class_ = self.plug_ins(name) if self.plug_ins else None
        if class_ is not None:
            self.names[name] = class_
            self.plugged.add(class_)
        return class_

    def _made(self, class_: Any, fields: Any, depth: int) -> Any:
        name = written_name(class_)
        if issubclass(class_, Enum):
            known = {each.value: each for each in class_}
            if type(fields) not in {type(value) for value in known} or fields not in known:
                raise CodecError(f"{fields!r:.40} is no {name}")
            return known[fields]
        kinds = {key: (RENAMED.get(key, key), kind) for key, kind in kinds_of(class_).items()}
        absent = set[str]()
        if isinstance(fields, dict):
            for key in YOUNGER.get(name, ()):
                if key not in fields:
                    del kinds[key]
                    absent.add(key)
                elif fields[key] is None:
                    raise CodecError(f"{name}.{key} is left out where it is None: a thing has one text")
        if not isinstance(fields, dict) or fields.keys() != {key for key, _ in kinds.values()}:
            found = sorted(fields) if isinstance(fields, dict) else fields
            raise CodecError(f"{name} has the fields {sorted(key for key, _ in kinds.values())}, not {found!r:.200}")
        found = {own: self.read(fields[key], kind, f"{name}.{key}", depth + 2) for own, (key, kind) in kinds.items()}
        cost = getattr(class_, "decoding_work", None)
        if cost is not None:
            self.work += cost(found)
            if self.work > self.limits.work:
                raise CodecError(f"{name} would take more than {self.limits.work:,} bytes: this text asks for too much")
        thing = class_(**found, **dict.fromkeys(absent))  # None, whatever a newer default is
        if any(_rewritten(value, getattr(thing, own, value)) for own, value in found.items()):
            raise CodecError(f"{name} keeps its numbers in another form than this text: a thing has one text")
        if getattr(thing, "travels_once", False):
            self.once.append(thing)
        return thing

    def _again(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self.once):
            raise CodecError("a repeated item must be given by the number of an earlier one")
        return self.once[number]

    def _fraction(self, text: Any) -> Fraction:
        limit = self.limits.digits
        if not isinstance(text, str) or len(text) > 2 * limit + 2 or not (match := _FRACTION.fullmatch(text)):
            raise CodecError(f"a fraction is a text such as '1/20', of {limit} digits at most")
        if max(len(match[1].lstrip("-")), len(match[2] or "")) > limit:
            raise CodecError(f"a fraction has at most {limit} digits above and below")
        found = Fraction(int(match[1]), int(match[2] or 1))
        if str(found) != text:
            raise CodecError("a fraction must be in lowest terms")
        return found

    def _array(self, fields: Any, kind: AdmittedTypes, where: str) -> NDArray[Any]:
        if self.beside is not None and isinstance(fields, list) and len(fields) in (2, 3) and type(fields[1]) is int:
            return self._array_beside(fields[0], fields[1], fields[2:], kind, where)
        if not isinstance(fields, list) or len(fields) != 2 or not isinstance(fields[1], list):
            raise CodecError("an array must be a type and its numbers")
        name, values = fields
        if not isinstance(name, str) or name not in _CODES:
            raise CodecError(f"arrays hold one of {sorted(_CODES)}, not {name!r:.40}")
        if not kind.anything and name != kind.array:
            raise CodecError(f"{where} is to be {kind}, not an array of {name}")
        shape = [len(values)]
        while values and isinstance(values[0], list):
            widths = {len(row) if isinstance(row, list) else -1 for row in values}
            if len(widths) != 1 or len(shape) == 3:
                raise CodecError("the rows of an array must have equal length, in at most three dimensions")
            shape.append(widths.pop())
            values = list(chain.from_iterable(values))
        try:
            numbers = array(_CODES[name], values)
        except (TypeError, OverflowError):
            raise CodecError(f"an array of {name} holds numbers of this type alone") from None
        if (name == "float64" or self.literals is None) and not _exactly(values, name):
            raise CodecError(f"an array of {name} holds numbers of this type alone")
        found = np.frombuffer(numbers, dtype=name).reshape(shape).copy()
        if name == "float64" and not np.isfinite(found).all():
            raise CodecError("an array holds a number that is not finite")
        return found

    def _array_beside(self, name: Any, number: int, width: list[Any], kind: AdmittedTypes, where: str) -> NDArray[Any]:
        """An array that stands beside the text: every one once, in order, so that a thing has one text. One in rows
        has the `width` of a row there.
        """
        found = self.beside[number] if self.beside and number == self.taken < len(self.beside) else None
        if found is None or name not in _CODES or found.dtype.name != name or found.ndim != 1 or len(found) < ASIDE:
            raise CodecError(f"{where} names an array that is not beside this JSON")
        if not kind.anything and name != kind.array:
            raise CodecError(f"{where} is to be {kind}, not an array of {name}")
        if name == "float64" and not np.isfinite(found).all():
            raise CodecError("an array holds a number that is not finite")
        if width and (type(width[0]) is not int or width[0] < 1 or len(found) % width[0]):
            raise CodecError(f"{where} names an array beside this JSON that has no rows of that length")
        self.taken += 1
        return found.reshape(-1, *width)

    def _admits(self, class_: type, kind: AdmittedTypes) -> bool:
        if class_ in kind.classes:
            return True
        return any(self._stands_for(class_, protocol) for protocol in kind.protocols)

    def _stands_for(self, class_: type, protocol: type) -> bool:
        if class_ in UNIONS.get(protocol, ()):
            return True
        return (class_ in self.known or class_ in self.plugged) and _keeps(class_, protocol)


def _admitted(data: Any, kind: AdmittedTypes) -> bool:
    """Whether a number, a text, true, false or null may stand here, and is one that can be dealt with."""
    type_ = type(data)
    if type_ is int:
        exactly = int in kind.plain or (float in kind.plain and abs(data) < _WHOLE and int(float(data)) == data)
        return (kind.anything or exactly) and -_WHOLE <= data <= _WHOLE
    if type_ is float and not isfinite(data):
        return False
    if type_ is str and not data.isascii():
        data.encode()  # half of a pair of surrogates is no text: UnicodeError
    return type_ in (bool, float, str, type(None)) and (kind.anything or type_ in kind.plain)


def _rewritten(read: Any, kept: Any) -> bool:
    """Whether numbers became others when their class was made, if only 2 became 2.0 or −0.0 became 0.0."""
    if type(read) is not tuple or type(kept) is not tuple or not read or type(read[0]) not in (int, float):
        return type(read) in (int, float) and type(kept) in (int, float) and repr(read) != repr(kept)
    return repr(read) != repr(kept)


def _exactly(values: list[Any], name: str) -> bool:
    """Whether the items are numbers of this type, as they are written: 1 is no float."""
    return set(map(type, values)) <= {float if name == "float64" else int}


def _members(protocol: type) -> list[str]:
    """What a protocol asks of a class."""
    return [name for name in (*vars(protocol), *getattr(protocol, "__annotations__", ())) if not name.startswith("_")]


def _keeps(class_: type, protocol: type) -> bool:
    """Whether a class has all that a protocol asks for; fields without a default are no attributes of it."""
    own = getattr(class_, "__dataclass_fields__", {})
    return all(hasattr(class_, name) or name in own for name in _members(protocol))


def _other(data: Any, kind: AdmittedTypes, where: str) -> CodecError:
    return CodecError(f"{where} is to be {kind}, not a {type(data).__name__}")
