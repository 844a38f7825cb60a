"""The machine code that reads CSV, against plain Python at every edge: bytes, letters, numbers, fields and blocks."""

import math
import random
from itertools import pairwise, product

import numpy as np
import pytest

from hazemap.errors import HazemapError
from hazemap.readers import csv_files, csv_parser
from hazemap.readers import csv_files as csv_text
from hazemap.readers.csv_files import CsvDialect, fields, from_utf16, read_header, widened
from hazemap.readers.csv_parser import _utf8, numbers_in, read_fields
from hazemap.readers.stored_file import LocalFile

EDGES = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)


def as_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=np.uint8)


def is_utf8(data: bytes) -> bool:
    try:
        return bool(data.decode()) or True
    except UnicodeDecodeError:
        return False


def test_utf8_is_told_from_what_is_none_at_every_edge_of_its_table():
    """Every first byte with every second, third and fourth at an end of a range; alone, cut off, and followed."""
    every = [bytes([one, *rest]) for size in (0, 1, 2) for one in range(256) for rest in product(EDGES, repeat=size)]
    every += [bytes([first, *rest, 0x80]) for first in range(0xE8, 0x100) for rest in product(EDGES, repeat=2)]
    every += [bytes([0xF1, 0x80, 0x80, last]) for last in range(256)] + [each.encode() for each in ("aé€😀z", "é" * 9)]
    block = as_bytes(b"\x80".join(every))
    at = 0
    for data in every:
        assert _utf8(block, at, at + len(data)) == is_utf8(data), data
        at += len(data) + 1


def slowly(units: list[int], odd: bool) -> bytes:
    """UTF-16 in UTF-8, with 0xFF for what has no partner."""
    found, at = b"", 0
    while at < len(units):
        if 0xD800 <= units[at] < 0xDC00 and at + 1 < len(units) and 0xDC00 <= units[at + 1] < 0xE000:
            found += chr(0x10000 + (units[at] - 0xD800) * 1024 + units[at + 1] - 0xDC00).encode()
            at += 1
        else:
            found += b"\xff" if 0xD800 <= units[at] < 0xE000 else chr(units[at]).encode()
        at += 1
    return found + b"\xff" * odd


@pytest.mark.parametrize("big", [False, True])
def test_utf16_is_utf8_for_every_letter_and_every_half_wherever_it_is_cut(big):
    order, chance = "big" if big else "little", random.Random(3)
    whole = b"".join(unit.to_bytes(2, order) for unit in range(1 << 16))
    assert from_utf16(as_bytes(whole), big, True)[0].tobytes() == slowly(list(range(1 << 16)), False)
    halves = product((0xD800, 0xD801, 0xDA5A, 0xDBFF), (0xDC00, 0xDC01, 0xDE5A, 0xDFFF))
    pairs = [half for pair in halves for half in pair]
    whole = b"".join(half.to_bytes(2, order) for half in pairs)
    assert from_utf16(as_bytes(whole), big, True)[0].tobytes() == slowly(pairs, False)
    edges = (0, 0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFFFF)
    for _ in range(600):
        units, odd = chance.choices(edges, k=chance.randrange(7)), chance.random() < 0.3
        data = b"".join(unit.to_bytes(2, order) for unit in units) + b"\xd8" * odd
        text, used = from_utf16(as_bytes(data), big, True)
        assert (text.tobytes(), used) == (slowly(units, odd), len(data))
        left = 1 if units and 0xD800 <= units[-1] < 0xDC00 else 0
        text, used = from_utf16(as_bytes(data), big, False)
        assert (text.tobytes(), used) == (slowly(units[: len(units) - left], False), 2 * (len(units) - left))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_letters_of_one_byte_are_utf8_and_a_byte_without_one_is_0xff(encoding):
    letters, lengths = csv_text._single_bytes(encoding)
    for data in (bytes(range(256)), b"", b"a", bytes(range(255, 0, -3)) * 3):
        each = [bytes([byte]).decode(encoding, "ignore").encode() or b"\xff" for byte in data]
        wanted = b"".join(each)
        assert widened(as_bytes(data), letters, lengths).tobytes() == wanted


# Numbers ---------------------------------------------------------------------------------------------------------


def is_hard(text: str) -> bool:
    """Whether a number is left to the standard library: many digits, or a great exponent."""
    digits, _, power = text.strip().lstrip("+-").lower().partition("e")
    before, _, after = digits.partition(".")
    significant, shift = (before + after).lstrip("0"), int(power or 0) - len(after)
    easy = len(significant) <= 19 and ((int(significant or 0) <= 2**53 and abs(shift) <= 22) or -18 <= shift <= 0)
    return bool(significant) and not easy


def test_numbers_are_read_to_the_last_bit_and_only_hard_ones_are_left_to_the_standard_library(monkeypatch):
    chance = random.Random(4)
    wholes = [0, 1, 9, 10, 12, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 3, 2**62 + 1, 10**18 - 1, 10**18 + 1, 10**19 - 1]
    wholes += [10**19, 2**63 - 1, 2**63 + 513, 2**64 - 1, 2**64, 999_999_999_999_999_487]
    wholes += [chance.randrange(10**19) for _ in range(60)]
    written = [f"{whole}{power}" for whole in wholes for power in ("", "e0", "E22", "e23", "e+5", "e-0")]
    written += [f"{whole}e-{power}" for whole in wholes for power in (1, 2, 9, 17, 18, 19, 21, 22, 23, 330)]
    written += [f"{digits[:at]}.{digits[at:]}" for digits in map(str, wholes) for at in (0, 1, len(digits))]
    written += ["-0", "+0", "-0.0", "0e99999", "-.5", "+5.", "007.250", f"0.{'0' * 20}1", "  1", "1  ", "  -1.5e1  "]
    written += ["1e99999", "1e100000", "1e999999999999999999999", "-1e-999999999999", "1.e2", ".1e1"]
    written += ["0" * 30 + "1", "1" + "0" * 30]
    asked: list[bytes] = []
    rounded = csv_parser._rounded
    monkeypatch.setattr(csv_parser, "_rounded", lambda texts, decimal: asked.extend(texts) or rounded(texts, decimal))
    for text in written:
        [found] = numbers_in(as_bytes(text.encode()), np.array([0, len(text)], np.int32), ".")
        wanted = float(text)
        assert (found, math.copysign(1, found)) == (wanted, math.copysign(1, wanted)), text
    assert [text.decode() for text in asked] == [text for text in written if is_hard(text)]


NONE = ["", " ", "-", "+", ".", "-.", "1e", "1e+", "1e-", "e1", ".e1", "1 2", "1-", "--1", "+-1", "1..2", "1.2.3"]
NONE += [
    "1e1.0",
    "1e1e1",
    "/",
    ":",
    "1:",
    "1/",
    "12a",
    "a12",
    "1e5:",
    "1e/",
    "\t1",
    "1\0",
    "1,5",
    "1.5e2 x",
    "- 1",
    "inf",
]


def test_what_is_no_number_is_nan_beside_others():
    texts = [each for text in NONE for each in (text, "7")]
    ends = np.cumsum([0, *(len(text) for text in texts)]).astype(np.int32)
    found = numbers_in(as_bytes("".join(texts).encode()), ends, ".")
    assert np.isnan(found[::2]).all() and (found[1::2] == 7).all()


# Fields ----------------------------------------------------------------------------------------------------------


def end_of(block: bytes, start: int, delimiter: int, longest: int) -> int:
    """Where a record ends that may go on over lines."""
    at, quoted, fresh = start, False, True
    while at < len(block):
        sign = block[at : at + 1]
        if quoted and sign == b'"':
            doubled = block[at + 1 : at + 2] == b'"'
            at, quoted = at + doubled, doubled
        elif sign == b"\n" and (not quoted or at - start > longest):
            return at
        elif not quoted:
            quoted = fresh and sign == b'"'
            fresh = sign[0] == delimiter or (fresh and sign == b" ")
        at += 1
    return min(at, len(block))


def records(block: bytes, delimiter: int, columns: int, multiline: bool, last: bool, longest: int) -> tuple:
    found, start = [], 0
    while start < len(block):
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        if multiline:
            end = end_of(block, start, delimiter, longest)
        too_long = end - start > longest
        if end == len(block) and not last:
            return found, len(block) if too_long else start, too_long
        line = block[start:end]
        text = line.removesuffix(b"\r")
        if text and not too_long and b"\0" not in line and is_utf8(text):
            record = fields(text.decode(), chr(delimiter))
            found += [record] if record is not None and len(record) == columns else []
        start = end + 1
    return found, len(block), False


@pytest.mark.parametrize("multiline", [False, True])
def test_fields_are_those_of_plain_python_in_blocks_that_end_anywhere(multiline, monkeypatch):
    chance = random.Random(8 + multiline)
    signs = ['"', '""', ",", "\n", "\r\n", "\r", " ", "a", "bc", "é", "\udcc3", "\0", ";", '"a"', ',"b\n"', '" ,', "😀"]
    weights = [4, 2, 7, 4, 2, 1, 2, 5, 3, 1, 0.3, 0.3, 1, 3, 2, 1, 0.3]
    for number in range(2_500):
        data = "".join(chance.choices(signs, weights, k=chance.randrange(14))).encode(errors="surrogateescape")
        longest, delimiter, last = chance.choice((3, 8, 99)), ord(chance.choice(",,,;")), chance.random() < 0.6
        wanted = chance.choice(([0], [0, 1], [1, 0], [-1, 0], [0, -1], [2, -1, 0, 1], [-1, -1], [0, 1, 2]))
        monkeypatch.setattr(csv_parser, "LONGEST", longest)
        found = read_fields(as_bytes(data), delimiter, np.array(wanted), multiline, last)
        rows, consumed, skipping = records(data, delimiter, len(wanted), multiline, last, longest)
        assert (found.rows, found.consumed, found.skipping) == (len(rows), consumed, skipping), (number, data)
        for place in range(max(wanted) + 1):
            ends = found.ends[place, : found.rows + 1]
            each = [found.letters[place, a:b].tobytes().decode() for a, b in pairwise(ends)]
            assert each == [row[wanted.index(place)] for row in rows], (number, data)


# Blocks ----------------------------------------------------------------------------------------------------------


def test_blocks_are_cut_after_their_last_newline_and_lines_too_long_are_cut_short(monkeypatch):
    monkeypatch.setattr(csv_parser, "LONGEST", 5)
    chance = random.Random(2)
    for _ in range(300):
        data = "".join(chance.choices("ab\n", (5, 3, 2), k=chance.randrange(40))).encode()
        cuts = sorted(chance.choices(range(len(data) + 1), k=chance.randrange(6)))
        chunks = [as_bytes(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]
        blocks = [block.tobytes() for block in csv_files._lines(iter(chunks))]
        short = [line for block in blocks for line in block.split(b"\n") if line and len(line) <= 5]
        assert short == [line for line in data.split(b"\n") if line and len(line) <= 5]
        assert all(block.endswith(b"\n") or len(block) == 6 or block == blocks[-1] for block in blocks)
        size = chance.randrange(12)
        assert b"".join(each.tobytes() for each in csv_files._after(iter(chunks), size)) == data[size:]
    for size in (1, 1 << 10, (1 << 10) + 1, 1 << 16, (1 << 16) + 1, 1 << 17):
        for at in {-1, 0, 1, size - (1 << 16) - 1, size - (1 << 16), size - (1 << 10) - 1, size - (1 << 10), size - 1}:
            chunk = np.full(size, 97, np.uint8)
            if 0 <= at < size:
                chunk[at] = 10
                chunk[: at // 2] = 10
            assert csv_files._last_newline(chunk) == (at if 0 <= at < size else -1)


@pytest.mark.parametrize("chunk", [2, 6, 1 << 10])
def test_a_header_has_as_many_bytes_as_a_record_and_not_one_more(tmp_path, chunk, monkeypatch):
    monkeypatch.setattr(csv_parser, "LONGEST", 20)
    monkeypatch.setattr(csv_text, "CHUNK", chunk)
    file = tmp_path / "rows.csv"
    for ending in (b"\n1,2\n", b"\n", b""):
        for size in (19, 20, 21, 22, 23, 40):
            file.write_bytes(b"lon," + b"x" * (size - 4) + ending)
            if size <= 20:
                found = read_header(LocalFile(str(file)), CsvDialect())
                assert (found.names, found.delimiter, found.size) == (("lon", "x" * (size - 4)), ",", size + 1)
            else:
                with pytest.raises(HazemapError, match="longer than 20 bytes"):
                    read_header(LocalFile(str(file)), CsvDialect())


@pytest.mark.parametrize(
    ("header", "names", "delimiter"),
    [
        ("a;b,c;d", ["a", "b,c", "d"], ";"),
        ("a", ["a"], ","),
        (' "a" , b ,"c""d"', ["a", "b", 'c"d'], ","),
        ("a,,", ["a", "", ""], ","),
        ("1x,2-,-,3.4.5,1e5", ["1x", "2-", "-", "3.4.5", "1e5"], ","),
        ("a\tb|c\td", ["a", "b|c", "d"], "\t"),
    ],
)
def test_a_header_is_divided_by_what_makes_most_columns(tmp_path, header, names, delimiter):
    (tmp_path / "rows.csv").write_text(header + "\r\n1;2;3\n", newline="")
    found = read_header(LocalFile(str(tmp_path / "rows.csv")), CsvDialect())
    assert (list(found.names), found.delimiter) == (names, delimiter)
    assert found.places(["b", "a"]).tolist() == [{"b": 0, "a": 1}.get(name, -1) for name in names]


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("a;b|c", "divided by"),
        ("a,7", "is data"),
        ("-1.5", "is data"),
        ("a;+1,5;b", "is data"),
        (",", "is empty"),
        ("a,b,a", "called 'a'"),
        ("a, a ", "called 'a'"),
    ],
)
def test_a_header_that_no_rule_makes_out_is_refused(tmp_path, header, says):
    (tmp_path / "rows.csv").write_text(header + "\n")
    with pytest.raises(HazemapError, match=says):
        read_header(LocalFile(str(tmp_path / "rows.csv")), CsvDialect())


def test_a_header_of_several_lines_ends_where_its_quotes_are_closed():
    for start, end in ((b'a,"b\nc",d\n1,2,3', 9), (b'"a\n\nb"\n"c\n', 6), (b'a"\n', 3), (b"ab", 2), (b'"\n"\n', 3)):
        assert csv_files._end(start, CsvDialect(multiline=True)) == end
        first = start.find(b"\n")
        assert csv_files._end(start, CsvDialect()) == (first if first >= 0 else len(start))
