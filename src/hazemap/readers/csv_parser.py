"""Parses lines of CSV into columns of text and numbers, in machine code; each line depends on itself alone.

A record is fields between delimiters. A field is bare, with no quote in it, or stands in quotes, with every quote
inside written twice (RFC 4180); blanks around a field in quotes do not matter. A record ends at its newline whatever
quotes are open, unless records may go on over lines. A line counts if it is UTF-8 without a NUL, no longer than
`LONGEST`, and has as many fields as the header; any other is dropped, and nothing is remembered of it.

A number is blanks, perhaps a sign, digits with perhaps one decimal sign among or beside them, perhaps e and a whole
number, and blanks. Anything else is no number. It is rounded correctly, whatever its digits.

This module imports numba; import it inside the function that uses it.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.vdaf.compiled_loops import compiled

LONGEST = 1 << 20
"""Bytes of a record in UTF-8, without its newline; longer ones are dropped, so that memory is bounded."""

NEWLINE, RETURN, QUOTE, BLANK = 10, 13, 34, 32
_HIGH, _NUL, _NEWLINE, _QUOTE, _DELIMITER = 1, 2, 3, 4, 5


class ParsedFields(NamedTuple):
    """The columns of a block: field i of column c is `letters[c, ends[c, i]:ends[c, i + 1]]`.

    `consumed` bytes of the block were read; `skipping` says that it ended within a record that is too long, so that
    reading goes on after the first newline of the next block. How many lines did not count is not reported.
    """

    letters: NDArray[np.uint8]
    ends: NDArray[np.int32]
    rows: int
    consumed: int
    skipping: bool


def read_fields(
    block: NDArray[np.uint8], delimiter: int, wanted: NDArray[np.int64], multiline: bool, last: bool
) -> ParsedFields:
    """The wanted columns of the records that end in a block of UTF-8; O(bytes), at most three looks at each.

    `wanted` holds for each column of the header its place among the columns to read, or -1. A record that the block
    does not end is left over, unless it is the `last` block.
    """
    width = max(1, int(wanted.max(initial=-1)) + 1)
    letters = np.empty((width, len(block)), dtype=np.uint8)  # pages of memory that are never written cost nothing
    ends = np.empty((width, len(block) // len(wanted) + 2), dtype=np.int32)  # a line that counts has that many bytes
    kinds = np.where(np.arange(256) < 128, 0, _HIGH).astype(np.uint8)
    kinds[[0, NEWLINE, QUOTE, delimiter]] = _NUL, _NEWLINE, _QUOTE, _DELIMITER
    read = _read(block, delimiter, wanted, np.flatnonzero(wanted >= 0), multiline, last, LONGEST, kinds, letters, ends)
    return ParsedFields(letters, ends, *read)


@compiled
def _read(block, delimiter, wanted, chosen, multiline, last, longest, kinds, letters, ends) -> Any:  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915 - one loop  # pragma: no cover
    stop, columns, width = block.size, wanted.size, letters.shape[0]
    written, marks = np.zeros(width, np.int64), np.empty(columns + 1, np.int64)
    for place in range(width):
        ends[place, 0] = 0
    rows, start = 0, np.int64(0)  # a number of no type of its own, or the loops it is handed to are compiled twice
    while start < stop:
        at, divided, high, nul, quoted, hard = start, 0, False, False, False, False
        marks[0] = start - 1
        while at < stop:  # most lines have plain quotes or none, and are divided here; hard ones are looked at again
            kind = kinds[block[at]]
            if kind != 0:
                if kind == _NEWLINE:
                    break
                if kind == _DELIMITER:
                    divided += 1
                    if divided < columns:
                        marks[divided] = at
                elif kind == _HIGH:
                    high = True
                elif kind == _NUL:
                    nul = True
                elif multiline:
                    hard = True
                    break
                elif hard or divided >= columns or at != marks[divided] + 1:
                    hard = True
                else:
                    quoted = True
                    at += 1
                    while at < stop and block[at] != QUOTE and block[at] != NEWLINE:
                        high |= block[at] >= 128
                        nul |= block[at] == 0
                        at += 1
                    if at == stop or block[at] == NEWLINE:
                        hard = True
                        break
                    after = at + 1
                    if after < stop and block[after] == RETURN:
                        after += 1 if after + 1 == stop or block[after + 1] == NEWLINE else 0
                    hard = after < stop and block[after] != delimiter and block[after] != NEWLINE
            at += 1
        if hard and multiline:
            at, high, nul = _end(block, start, delimiter, longest)
        end = at
        if end == stop and not last:
            return rows, (stop if end - start > longest else start), end - start > longest
        until = end - 1 if end > start and block[end - 1] == RETURN else end
        if until > start:
            good = end - start <= longest and not nul and (not high or _utf8(block, start, until))
            if good and hard:
                good = _split(block, start, until, delimiter, wanted, letters, written) == columns
            elif good:
                good = divided == columns - 1
                if good:
                    marks[columns] = until
                    for column in chosen:
                        place = wanted[column]
                        size = written[place]
                        begin, close = marks[column] + 1, marks[column + 1]
                        if quoted and begin < close and block[begin] == QUOTE:
                            begin, close = begin + 1, close - 1
                        for i in range(begin, close):
                            letters[place, size] = block[i]
                            size += 1
                        written[place] = size
            if good:
                rows += 1
            for column in range(width):
                if good:
                    ends[column, rows] = written[column]
                else:
                    written[column] = ends[column, rows]
        start = end + 1
    return rows, stop, False


@compiled
def _end(block, start, delimiter, longest) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The end of a record over several lines, whether a byte is beyond ASCII, and whether one is 0."""
    at, stop, bits, nul = start, block.size, np.uint8(0), False
    quoted, fresh = False, True  # fresh: only blanks since the delimiter
    while at < stop:
        byte = block[at]
        if quoted:
            if byte == QUOTE:
                if at + 1 < stop and block[at + 1] == QUOTE:
                    at += 1
                else:
                    quoted = False
            elif byte == NEWLINE and at - start > longest:
                break  # a quote that is never closed takes this much with it, and no more
        elif byte == NEWLINE:
            break
        elif byte == QUOTE:
            quoted, fresh = fresh, False
        elif byte == delimiter:
            fresh = True
        elif byte != BLANK:
            fresh = False
        bits |= byte
        nul |= byte == 0
        at += 1
    return min(at, stop), bits >= 128, nul


@compiled
def _split(block, start, end, delimiter, wanted, letters, written) -> int:  # type: ignore[no-untyped-def]  # noqa: PLR0912 - one loop  # pragma: no cover
    """Write the wanted fields of a record; how many fields it has, -1 for a quote where none may be."""
    at, field = start, 0
    while True:
        place = wanted[field] if field < wanted.size else -1
        begin = at
        while begin < end and block[begin] == BLANK:
            begin += 1
        if begin < end and block[begin] == QUOTE:
            at, closed = begin + 1, False
            while at < end and not closed:
                if block[at] == QUOTE:
                    at += 1
                    closed = at == end or block[at] != QUOTE
                    if closed:
                        break
                if place >= 0:
                    letters[place, written[place]] = block[at]
                    written[place] += 1
                at += 1
            if not closed:
                return -1
            while at < end and block[at] == BLANK:
                at += 1
        else:
            begin = at
            while at < end and block[at] != delimiter and block[at] != QUOTE:
                at += 1
            if place >= 0:
                for i in range(begin, at):
                    letters[place, written[place] + i - begin] = block[i]
                written[place] += at - begin
        field += 1
        if at == end:
            return field
        if block[at] != delimiter:
            return -1
        at += 1


@compiled
def _utf8(block, start, stop) -> bool:  # type: ignore[no-untyped-def]  # noqa: PLR0912 - one loop  # pragma: no cover
    """Whether these bytes are well-formed UTF-8 (Unicode 15, table 3-7)."""
    at = start
    while at < stop:
        first = block[at]
        if first < 0x80:
            at += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if at + more >= stop:
            return False
        for i in range(1, more + 1):
            byte = block[at + i]
            if byte < low or byte > high:
                return False
            low, high = 0x80, 0xBF
        at += more + 1
    return True


_EXACT = 22
"""10²² is the largest power of ten that float64 holds; times or by a whole number up to 2⁵³ it rounds once."""

_POWERS = 10.0 ** np.arange(_EXACT + 1)


def numbers_in(letters: NDArray[np.uint8], ends: NDArray[np.int32], decimal: str) -> NDArray[np.float64]:
    """The number in each text `letters[ends[i]:ends[i + 1]]` as float64, NaN for none. O(bytes).

    `decimal` is the sign before its fraction; of two signs, each text has one or the other.

    >>> numbers_in(np.frombuffer(b"1,5-7x2e0", np.uint8), np.array([0, 3, 5, 6, 9], np.int32), ",")
    array([ 1.5, -7. ,  nan,  2. ])
    """
    values = np.empty(len(ends) - 1, dtype=np.float64)
    hard = np.zeros(len(values), dtype=np.bool_)
    if _parse(letters, ends, ord(decimal[0]), ord(decimal[-1]), _POWERS, values, hard):
        rows = np.flatnonzero(hard)
        values[rows] = _rounded([letters[ends[i] : ends[i + 1]].tobytes() for i in rows], decimal)
    return values


def _rounded(texts: list[bytes], decimal: str) -> NDArray[np.float64]:
    """Numbers of many digits or great exponents: the standard library rounds them correctly."""
    pointed = bytes.maketrans(decimal.encode(), b"." * len(decimal))
    return np.array([float(text.translate(pointed)) for text in texts], dtype=np.float64)


@compiled
def _divided(whole, divisor) -> float:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The float64 nearest to a quotient, ties to even, by long division to 55 binary digits; divisor < 2⁶³."""
    quotient, rest, exponent, more = whole // divisor, whole % divisor, 0, False
    while quotient < np.uint64(1 << 54):
        rest <<= np.uint64(1)
        quotient <<= np.uint64(1)
        exponent -= 1
        if rest >= divisor:
            rest -= divisor
            quotient |= np.uint64(1)
    while quotient >= np.uint64(1 << 55):
        more |= quotient & np.uint64(1) == np.uint64(1)
        quotient >>= np.uint64(1)
        exponent += 1
    low = quotient & np.uint64(3)
    quotient >>= np.uint64(2)
    if low == np.uint64(3) or (
        low == np.uint64(2) and (more or rest != np.uint64(0) or quotient & np.uint64(1) == np.uint64(1))
    ):
        quotient += np.uint64(1)
    return math.ldexp(np.float64(quotient), exponent + 2)


@compiled
def _parse(letters, ends, decimal, other, powers, values, hard) -> Any:  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915 - one loop  # pragma: no cover
    some = False
    for row in range(values.size):
        at, end = np.int64(ends[row]), np.int64(ends[row + 1])
        values[row] = np.nan
        while at < end and letters[at] == 32:
            at += 1
        while end > at and letters[end - 1] == 32:
            end -= 1
        negative = at < end and letters[at] == 45
        if at < end and (letters[at] == 45 or letters[at] == 43):
            at += 1
        whole, digits, significant, shift, pointed = np.uint64(0), 0, 0, np.int64(0), False
        while at < end:
            byte = letters[at]
            if 48 <= byte <= 57:
                digits += 1
                if significant or byte != 48:
                    significant += 1
                    if significant <= 19:
                        whole = whole * np.uint64(10) + np.uint64(byte - 48)
                if pointed:
                    shift -= 1
            elif byte in (decimal, other) and not pointed:
                pointed = True
            else:
                break
            at += 1
        if digits == 0:
            continue
        if at < end and (letters[at] == 101 or letters[at] == 69):
            at += 1
            minus = at < end and letters[at] == 45
            if at < end and (letters[at] == 45 or letters[at] == 43):
                at += 1
            power, first = np.int64(0), at
            while at < end and 48 <= letters[at] <= 57:
                if power < 100000:
                    power = 10 * power + np.int64(letters[at] - 48)
                at += 1
            if at == first:
                continue
            shift += -power if minus else power
        if at < end:
            continue
        if significant == 0:
            value = 0.0
        elif significant <= 19 and whole <= np.uint64(1 << 53) and -22 <= shift <= 22:
            value = np.float64(whole)
            value = value / powers[-shift] if shift < 0 else value * powers[shift]
        elif significant <= 19 and -18 <= shift <= 0:
            value = _divided(whole, np.uint64(10) ** np.uint64(-shift))
        else:
            hard[row] = some = True
            continue
        values[row] = -value if negative else value
    return some
