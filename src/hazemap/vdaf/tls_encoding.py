"""How messages are written: the presentation language of TLS (RFC 8446, section 3).

Numbers are big-endian uint8, uint16, uint32; `opaque` is bytes after their length. Each value has one encoding, and
a reader refuses everything else with `CodecError`: bytes that are missing, bytes left over, lengths that do not fit.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import IntEnum
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self, get_type_hints

from hazemap.vdaf.errors import CodecError, InputError

_NUMBERS = {1: struct.Struct(">B"), 2: struct.Struct(">H"), 4: struct.Struct(">I"), 8: struct.Struct(">Q")}


class TlsWriter:
    """Puts one value after another.

    >>> TlsWriter().number(7, 2).opaque(b"abc", 1).done().hex()
    '000703616263'
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def number(self, value: int, width: int) -> "TlsWriter":
        """A whole number in `width` bytes: 1, 2, 4 or 8."""
        try:
            self._parts.append(_NUMBERS[width].pack(value))
        except struct.error:
            raise InputError(f"{value} is not a number of {width} bytes") from None
        return self

    def fixed(self, data: bytes, length: int) -> "TlsWriter":
        """Bytes whose length is known to both sides."""
        if len(data) != length:
            raise InputError(f"a field of {length} bytes cannot hold {len(data)}")
        self._parts.append(data)
        return self

    def opaque(self, data: bytes, width: int) -> "TlsWriter":
        """Bytes after their length, which is a number of `width` bytes."""
        try:
            self._parts += (_NUMBERS[width].pack(len(data)), data)
        except struct.error:
            raise InputError(f"{len(data)} is not a number of {width} bytes") from None
        return self

    def numbered(self, items: Mapping[int, bytes], length: int) -> "TlsWriter":
        """Items of `length` bytes each with its number (uint32), ascending, after how many there are (uint32)."""
        self.number(len(items), 4)
        if any(len(item) != length for item in items.values()):
            raise InputError(f"an item of {length} bytes has another length")
        both = struct.Struct(f">I{length}s")
        self._parts.extend(both.pack(number, items[number]) for number in sorted(items))
        return self

    def numbers(self, values: tuple[int, ...]) -> "TlsWriter":
        """Ascending numbers (uint32) after how many there are (uint32)."""
        self.number(len(values), 4)
        _ascending(values, InputError)
        self._parts.append(struct.pack(f">{len(values)}I", *values))
        return self

    def done(self) -> bytes:
        """Everything written."""
        return b"".join(self._parts)


class TlsReader:
    """Takes one value after another, in the order they were written.

    >>> reader = TlsReader(bytes.fromhex("000703616263"))
    >>> reader.number(2), reader.opaque(1), reader.end()
    (7, b'abc', None)
    """

    __slots__ = ("_data", "_place")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def fixed(self, length: int) -> bytes:
        """The next `length` bytes."""
        start, self._place = self._place, self._place + length
        if self._place > len(self._data):
            raise CodecError(f"a message ends {self._place - len(self._data)} bytes early")
        return self._data[start : self._place]

    def number(self, width: int) -> int:
        """A whole number of `width` bytes."""
        return int.from_bytes(self.fixed(width), "big")

    def opaque(self, width: int) -> bytes:
        """Bytes after their length."""
        start = self._place + width
        end = self._place = start + int.from_bytes(self._data[self._place : start], "big")
        if end > len(self._data):
            raise CodecError(f"a message ends {end - len(self._data)} bytes early")
        return self._data[start:end]

    def numbered(self, length: int) -> dict[int, bytes]:
        """Items of `length` bytes by their numbers, which must ascend: no number comes twice."""
        count = self.number(4)
        items = dict(struct.iter_unpack(f">I{length}s", self.fixed(count * (4 + length))))
        if len(items) != count:
            raise CodecError("a number comes twice in a list of ascending numbers")
        _ascending(tuple(items), CodecError)
        return items

    def numbers(self) -> tuple[int, ...]:
        """Ascending numbers."""
        count = self.number(4)
        values = struct.unpack(f">{count}I", self.fixed(4 * count))
        _ascending(values, CodecError)
        return values

    @property
    def left(self) -> int:
        """How many bytes are not read yet."""
        return len(self._data) - self._place

    def end(self) -> None:
        """CodecError unless everything was read."""
        if self._place != len(self._data):
            raise CodecError(f"a message has {len(self._data) - self._place} bytes too many")


def _ascending(values: tuple[int, ...], error: type[CodecError | InputError]) -> None:
    if any(left >= right for left, right in pairwise(values)):
        raise error("numbers that must ascend do not")


class Form(NamedTuple):
    """How a value is written, and how it is read."""

    write: Callable[[TlsWriter, Any], object]
    read: Callable[[TlsReader], Any]


def number(width: int) -> Form:
    """A whole number in `width` bytes."""
    return Form(
        lambda writer, value: writer.number(value, width), lambda reader: int.from_bytes(reader.fixed(width), "big")
    )


def fixed(length: int) -> Form:
    """Bytes whose length is known to both sides."""
    return Form(lambda writer, data: writer.fixed(data, length), lambda reader: reader.fixed(length))


def opaque(width: int, least: int = 0) -> Form:
    """Bytes after their length, which is a number of `width` bytes and not below `least`."""

    def write(writer: TlsWriter, data: bytes) -> TlsWriter:
        if len(data) < least:
            raise InputError(f"a field has at least {least} bytes, not {len(data)}")
        return writer.opaque(data, width)

    def read(reader: TlsReader) -> bytes:
        data = reader.opaque(width)
        if len(data) < least:
            raise CodecError(f"a field has at least {least} bytes, not {len(data)}")
        return data

    return Form(write, read)


def code(names: type[IntEnum], width: int) -> Form:
    """One of the numbers that have a name, in `width` bytes; CodecError for any other."""

    def read(reader: TlsReader) -> IntEnum:
        value = reader.number(width)
        try:
            return names(value)
        except ValueError:
            raise CodecError(f"{value} is no {names.__name__}") from None

    return Form(lambda writer, value: writer.number(names(value), width), read)


def numbered(length: int) -> Form:
    """Items of `length` bytes by ascending numbers."""
    return Form(lambda writer, items: writer.numbered(items, length), lambda reader: reader.numbered(length))


class Structure:
    """A dataclass whose fields say how they are written: `Annotated[bytes, fixed(32)]`, one after another.

    >>> from dataclasses import dataclass
    >>> from typing import Annotated
    >>> @dataclass(frozen=True)
    ... class Letter(Structure):
    ...     number: Annotated[int, number(2)]
    ...     text: Annotated[bytes, opaque(1)]
    >>> Letter(7, b"abc").to_bytes().hex(), Letter.from_bytes(bytes.fromhex("000703616263"))
    ('000703616263', Letter(number=7, text=b'abc'))
    """

    @classmethod
    @cache
    def _forms(cls) -> tuple[tuple[str, Form], ...]:
        hints = get_type_hints(cls, include_extras=True)
        return tuple((each.name, hints[each.name].__metadata__[0]) for each in fields(cls))  # type: ignore[arg-type]

    def write(self, writer: TlsWriter) -> TlsWriter:
        """Write every field."""
        for name, form in type(self)._forms():
            form.write(writer, getattr(self, name))
        return writer

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote."""
        return cls(*[form.read(reader) for _, form in cls._forms()])

    def to_bytes(self) -> bytes:
        """Its one encoding."""
        return self.write(TlsWriter()).done()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` wrote; CodecError for anything else, and for values that its class does not take."""
        reader = TlsReader(data)
        try:
            found = cls.read(reader)
        except InputError as error:
            raise CodecError(str(error)) from error
        reader.end()
        return found


class Written(Protocol):
    """What writes itself, and whose class reads it."""

    def write(self, writer: TlsWriter) -> object:
        """Put it after what is written."""

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote."""


def vector(class_: type[Written], width: int) -> Form:
    """Values one after another, after how many bytes they are together (a number of `width` bytes)."""

    def write(writer: TlsWriter, values: tuple[Written, ...]) -> TlsWriter:
        inner = TlsWriter()
        for value in values:
            value.write(inner)
        return writer.opaque(inner.done(), width)

    return Form(write, lambda reader: _all(class_, TlsReader(reader.opaque(width))))


def rest(class_: type[Written], most: int) -> Form:
    """At most `most` values one after another to the end of the message: it must be the last field."""

    def write(writer: TlsWriter, values: tuple[Written, ...]) -> TlsWriter:
        if len(values) > most:
            raise InputError(f"a message has at most {most} of {class_.__name__}, not {len(values)}")
        for value in values:
            value.write(writer)
        return writer

    return Form(write, lambda reader: _all(class_, reader, most))


def _all(class_: type[Written], reader: TlsReader, most: int | None = None) -> tuple[Written, ...]:
    found: list[Written] = []
    while reader.left:
        if len(found) == most:
            raise CodecError(f"a message has at most {most} of {class_.__name__}")
        found.append(class_.read(reader))
    return tuple(found)


def part(class_: type[Written]) -> Form:
    """A structure within another."""
    return Form(lambda writer, value: value.write(writer), class_.read)
