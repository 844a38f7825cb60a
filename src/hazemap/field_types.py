"""Exact types of dataclass fields: one definition of what an annotation admits, for decoders and constructors.

`1`, `True`, `1.0` and `Fraction(1)` are equal to Python, and hash alike, so a number of the wrong type passes every
comparison and every cache. What a person may contribute is computed from such fields: they are exact, or refused.
"""

import types
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from hazemap.errors import InputError

_PLAIN = (bool, int, float, str, Fraction, type(None))
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Fraction: "a fraction"}


@dataclass(frozen=True)
class AdmittedTypes:
    """What an annotation admits: a union of plain types, classes, protocols, one type of array and one of tuple.

    `items` are the kinds of a tuple's items, `repeated` whether there is one for all of them.

    >>> kind_of(int | None).plain == frozenset({int, type(None)}), kind_of(tuple[int, ...]).repeated
    (True, True)
    """

    plain: frozenset[type] = frozenset()
    classes: tuple[type, ...] = ()
    protocols: tuple[type, ...] = ()
    array: str | None = None
    items: "tuple[AdmittedTypes, ...] | None" = None
    repeated: bool = False
    anything: bool = False

    def __or__(self, other: "AdmittedTypes") -> "AdmittedTypes":
        """What either admits."""
        if (self.items is not None and other.items is not None) or (self.array and other.array):
            raise TypeError("an annotation has one type of tuple and one type of array")
        return AdmittedTypes(
            self.plain | other.plain,
            self.classes + other.classes,
            self.protocols + other.protocols,
            self.array or other.array,
            other.items if self.items is None else self.items,
            self.repeated or other.repeated,
            self.anything or other.anything,
        )

    def __str__(self) -> str:
        """In words, for an error."""
        words = [_NAMES[plain] for plain in _PLAIN if plain in self.plain and plain in _NAMES]
        words += [each.__name__ for each in (*self.classes, *self.protocols)]
        words += [f"an array of {self.array}"] * bool(self.array) + ["a tuple"] * (self.items is not None)
        words += ["nothing"] * (type(None) in self.plain)
        return " or ".join(words) or "anything"


ANYTHING = AdmittedTypes(anything=True)


@cache
def kind_of(annotation: Any) -> AdmittedTypes:
    """What an annotation admits; `TypeError` for one that nothing could be decoded by."""
    if annotation is Any:
        return ANYTHING
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        kind = kind_of(arguments[0])
        for each in arguments[1:]:
            kind |= kind_of(each)
        return kind
    if origin is tuple:
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        return AdmittedTypes(
            items=tuple(kind_of(each) for each in arguments[: 1 if repeated else None]), repeated=repeated
        )
    if origin is np.ndarray:
        return AdmittedTypes(array=np.dtype(get_args(arguments[1])[0]).name)
    return _of_class(annotation if origin is None else origin)


def _of_class(annotation: Any) -> AdmittedTypes:
    if annotation in _PLAIN:
        return AdmittedTypes(plain=frozenset({annotation}))
    if getattr(annotation, "_is_protocol", False):
        return AdmittedTypes(protocols=(annotation,))
    if isinstance(annotation, type) and (is_dataclass(annotation) or issubclass(annotation, Enum)):
        return AdmittedTypes(classes=(annotation,))
    raise TypeError(f"nothing is decoded as {annotation!r}")


@cache
def kinds_of(class_: Any) -> dict[str, AdmittedTypes]:
    """What each field of a dataclass admits, by name in ascending order."""
    hints = get_type_hints(class_)
    return {name: kind_of(hints[name]) for name in sorted(field.name for field in fields(class_))}


def check_fields(thing: Any) -> None:
    """`InputError` unless every field of a dataclass has exactly the type it is annotated with; O(items of tuples).

    An int is no bool, and neither is a float or a Fraction; a float may be an int. Arrays and protocols are left to
    the class: it converts the ones, and asks the others what they are.
    """
    class_: Any = type(thing)
    for name, kind in kinds_of(class_).items():
        value = getattr(thing, name)
        if not _fits(value, kind):
            raise InputError(
                f"{name} of {type(thing).__name__} is {kind}; found a {type(value).__name__}: {value!r:.60}"
            )


def _fits(value: Any, kind: AdmittedTypes) -> bool:
    if kind.anything or kind.array or kind.protocols or type(value) in kind.plain:
        return True
    if float in kind.plain and isinstance(value, float | int) and not isinstance(value, bool):
        return True
    if kind.items is not None and type(value) is tuple:
        if kind.repeated:
            return all(_fits(item, kind.items[0]) for item in value)
        return len(value) == len(kind.items) and all(map(_fits, value, kind.items))
    return bool(kind.classes) and isinstance(value, kind.classes)


def own_array(thing: Any, name: str, dtype: Any) -> None:
    """Let a field of a frozen dataclass hold a copy of its array, of numbers of this type, that nobody can write."""
    array = np.array(getattr(thing, name), dtype=dtype)
    array.setflags(write=False)
    object.__setattr__(thing, name, array)


class EqualByFields:
    """A frozen dataclass with arrays (and `eq=False`) that is equal to another where all of their fields are."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            for mine, theirs in zip(_values(self), _values(other), strict=True)
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(each.tobytes() if isinstance(each, np.ndarray) else each for each in _values(self)))


def _values(thing: Any) -> list[Any]:
    return [getattr(thing, field.name) for field in fields(thing)]
