"""The headers of a Parquet file's pages (Thrift's compact protocol): what each page comes to, before it is unpacked."""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

DATA, INDEX, DICTIONARY, DATA_2 = range(4)
"""Kinds of pages."""

HEADER = 1 << 16
"""Bytes of a page's header, at most: statistics of its texts stand in it."""

FIRST = 1 << 9
"""Bytes of a page's header that are read at first: most are shorter."""


class Page(NamedTuple):
    """What a page's header says: its kind, bytes before and after compression, and how its numbers are encoded.

    `values` is how many it holds, those that are missing too.
    """

    kind: int
    whole: int
    stored: int
    encoding: int
    values: int


def pages_of(content: bytes) -> list[Page]:
    """The pages of a column in a row group, which take exactly these bytes."""
    found, at = list[Page](), 0
    while at < len(content):
        page, after = _header(content, at)
        if page.whole < 0 or page.stored < 0 or page.kind not in (DATA, DICTIONARY, DATA_2):
            raise ValueError("a page of no known kind")
        at = after + page.stored
        found.append(page)
    if at != len(content):
        raise ValueError("a page is cut off")
    return found


def pages_in(file: int, start: int, length: int) -> Iterator[Page]:
    """The pages of a column in a row group, which are these bytes of an open file: two short readings a page."""
    at, end = start, start + length
    while at < end:
        content = os.pread(file, FIRST, at)
        try:
            page, after = _header(content, 0)
        except ValueError:
            page, after = _header(os.pread(file, HEADER, at), 0)
        if page.whole < 0 or page.stored < 0:
            raise ValueError("a page of negative length")
        yield page
        at += after + page.stored


def _header(content: bytes, at: int) -> tuple[Page, int]:
    """A page's header, and where it ends."""
    fields, after = _Thrift(content[at : at + HEADER]).fields()
    kind = fields.get(1, -1)
    place, encoding = {DATA: (5, 2), DICTIONARY: (7, 2), DATA_2: (8, 4)}.get(kind, (0, 0))
    own = fields.get(place)
    own = own if isinstance(own, dict) else {}
    return Page(kind, fields.get(2, -1), fields.get(3, -1), own.get(encoding, -1), own.get(1, 0)), at + after


class _Thrift:
    """A struct of Thrift's compact protocol being read: numbers and structs by the numbers of their fields.

    Fields stand in the order of their numbers, each once: of a field that came twice, readers might take either.
    """

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def fields(self, depth: int = 0) -> tuple[dict[int, Any], int]:
        """The fields of a struct, and where it ends."""
        found, last = dict[int, Any](), 0
        while head := self._byte():
            number = last + (head >> 4) if head >> 4 else self._number()
            if number <= last or depth > 3:
                raise ValueError("a page's header is out of order")
            found[number], last = self._value(head & 15, depth), number
        return found, self.at

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):  # a truth value is its own type
            return kind == 1
        if kind in (4, 5, 6):
            number = self._number()
            if not -(1 << 31) <= number < 1 << 31:
                raise ValueError("a page's header holds too large a number")
            return number
        if kind == 8:
            length = self._unsigned()
            self.at += length
            return None
        if kind == 12:
            return self.fields(depth + 1)[0]
        raise ValueError("a page's header holds what none has")

    def _number(self) -> int:
        found = self._unsigned()
        return (found >> 1) ^ -(found & 1)

    def _unsigned(self) -> int:
        found, shift = 0, 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found
            if shift > 63:
                raise ValueError("a page's header holds too large a number")

    def _byte(self) -> int:
        if self.at >= len(self.content):
            raise ValueError("a page's header is cut off")
        self.at += 1
        return self.content[self.at - 1]
