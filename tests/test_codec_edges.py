"""What is read, up to the last digit and the last depth that may be, and refused one beyond."""

import json
import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hazemap.codec import from_json, loads
from hazemap.codec.allowed_types import written_name
from hazemap.codec.json_parser import FILE, MESSAGE, Limits, _Scan, parsed
from hazemap.errors import CodecError


def test_a_fraction_has_as_many_digits_as_the_limit_and_not_one_more():
    most = "7" * FILE.digits
    for text in (most, f"-{most}", f"1/{most}", f"-{most[:-1]}8/{most}"):
        assert from_json({"fraction": text}) == Fraction(text)
    for text in (most + "1", f"-{most}1", f"1/{most}1", f"{most}1/2"):
        with pytest.raises(CodecError, match="digits"):
            from_json({"fraction": text})


def test_tuples_of_stated_items_are_nested_no_deeper_than_the_limit():
    kind, data = int, 1
    for _ in range(FILE.depth):
        kind, data = tuple[kind], [data]
    assert np.ravel(from_json(data, wanted=kind)).tolist() == [1]
    with pytest.raises(CodecError, match="nested more than"):
        from_json([data], wanted=tuple[kind])


@pytest.mark.parametrize(
    "fields", [[], ["int64"], ["int64", [1], 2], "ab", {"int64": [1], "b": 2}, 7, None, ["int64", 1]]
)
def test_an_array_is_a_type_and_a_list_and_nothing_else(fields):
    with pytest.raises(CodecError, match="an array must be a type and its numbers"):
        from_json({"array": fields})
    assert from_json({"array": ["int64", [1, 2]]}).tolist() == [1, 2]


@dataclass(frozen=True)
class Large:
    number: int
    travels_once = True


def test_what_comes_again_is_the_thing_that_came_before_named_by_its_number():
    one, other = {written_name(Large): {"number": 3}}, {written_name(Large): {"number": 4}}
    found = from_json([one, other, {"again": 1}, {"again": 0}], known=(Large,))
    assert found == (Large(3), Large(4), Large(4), Large(3)) and found[2] is found[1] and found[3] is found[0]
    for number in (2, -1, True, 0.0, "0", None, [0]):
        with pytest.raises(CodecError, match="a repeated item must be given by the number of an earlier"):
            from_json([one, other, {"again": number}], known=(Large,))


def test_a_text_holds_as_many_objects_and_items_as_the_limit_and_not_one_more():
    few = replace(FILE, things=3, items=6)
    assert parsed("[{},{},{}]", few) == [{}, {}, {}]
    with pytest.raises(CodecError, match="more than 3 objects"):
        parsed("[{},{},{},{}]", few)
    assert parsed("[0,0,0,0,0,0]", few) == [0] * 6
    with pytest.raises(CodecError, match="more than 6 items"):
        parsed("[0,0,0,0,0,0,0]", few)


def test_commas_in_texts_are_no_items_however_near_the_limit_is():
    limits = replace(FILE, items=3)
    assert parsed('["a,b,c","d"]', limits) == ["a,b,c", "d"]
    with pytest.raises(CodecError, match="more than 3 items"):
        parsed('["a,b,c","d","e","f"]', limits)


@dataclass(frozen=True)
class Around:
    inner: Any


@dataclass(frozen=True)
class Number:
    whole: int
    real: float


def test_things_and_lists_of_anything_are_nested_no_deeper_than_the_limit():
    """A list is one deeper than what holds it, a field of an object two."""
    for depth in (0, 1, 2, 3, 4, 5):
        limits = replace(FILE, depth=depth)
        for data, needed in (
            (1, 0),
            ([[1], 1], 2),
            ([1, [[[]]]], 3),
            ({written_name(Around): {"inner": 1}}, 2),
            ({written_name(Around): {"inner": {written_name(Around): {"inner": 1}}}}, 4),
            ([{written_name(Around): {"inner": [1]}}], 4),
            ({written_name(Around): {"inner": [[[1]]]}}, 5),
        ):
            try:
                from_json(data, known=(Around,), limits=limits)
                read = True
            except CodecError:
                read = False
            assert read == (needed <= depth)
    with pytest.raises(CodecError, match="nested"):
        from_json([[1]], wanted=tuple[tuple[int, ...], ...], limits=replace(FILE, depth=1))
    assert from_json([[1]], wanted=tuple[tuple[int, ...], ...], limits=replace(FILE, depth=2)) == ((1,),)


@pytest.mark.parametrize(
    ("whole", "real", "read"),
    [
        *((number, 1, True) for number in (2**64, -(2**64), 2**64 - 1, 0)),
        *((number, 1, False) for number in (2**64 + 1, -(2**64) - 1, 2**64 * 3, True, 1.0, "1", None)),
        *((1, number, True) for number in (2**53, 2**53 + 2, -(2**63), 2**64 - 2**11, 1 - 2**53, 0.5, -1e308, 3)),
        *((1, number, False) for number in (2**53 + 1, 2**64, -(2**64), 2**64 - 1, float("inf"), float("nan"), True)),
    ],
)
def test_numbers_are_read_up_to_two_to_the_64_and_whole_ones_as_reals_where_nothing_is_rounded(whole, real, read):
    data = {written_name(Number): {"whole": whole, "real": real}}
    if read:
        assert from_json(data, known=(Number,)) == Number(whole, real)
    else:
        with pytest.raises(CodecError):
            from_json(data, known=(Number,))


@pytest.mark.parametrize("name", ["uint64", "int64", "int8", "float64"])
def test_arrays_have_rows_of_one_length_in_three_dimensions_at_most_and_numbers_of_their_type(name):
    one = 1.5 if name == "float64" else 1
    for values in ([], [one], [[one, one]], [[[one], [one]], [[one], [one]]], [[], []]):
        found = from_json({"array": [name, values]})
        assert found.dtype == name and found.tolist() == values
    ends = {"uint64": (0, 2**64 - 1), "int64": (-(2**63), 2**63 - 1), "int8": (-128, 127), "float64": (-1e308, 1e308)}
    assert from_json({"array": [name, list(ends[name])]}).tolist() == list(ends[name])
    wrong = [[[[[one]]]], [[one], [one, one]], [[one], one], [one, [one]], [True], ["1"], [None], [[one], []]]
    wrong += [[1 if name == "float64" else 1.0], [float("nan")]]
    wrong += [] if name == "float64" else [[ends[name][0] - 1], [ends[name][1] + 1]]
    for values in wrong:
        with pytest.raises(CodecError):
            from_json({"array": [name, values]})
        with pytest.raises(CodecError):
            loads(json.dumps({"array": [name, values]}))
    with pytest.raises(CodecError, match="arrays hold one of"):
        from_json({"array": ["float32", [1.0]]})


class Slow:
    """The same counts, a byte at a time."""

    def __init__(self, limits):
        self.limits = limits
        self.depth = self.items = self.things = self.literals = 0
        self.quoted = self.escaping = False

    def read(self, piece: bytes) -> None:
        whole = '"' in (text := piece.decode())
        every = (not whole and not self.quoted) or (whole and self.items + len(piece) <= self.limits.items)
        deepest, commas = 0, 0
        for letter in text:
            marked, self.escaping = self.escaping, False
            if letter == "\\":
                self.escaping = not marked
            elif letter == '"' and not marked:
                self.quoted = not self.quoted
            elif not self.quoted:
                self.depth += (letter in "[{") - (letter in "]}")
                self.items += letter in "[{"
                commas += letter == ","
                self.things += letter == "{"
                self.literals += letter in "tfn"
                deepest = max(deepest, self.depth)
        self.items += text.count(",") if every else commas
        beyond = (self.things > self.limits.things, deepest > self.limits.depth, self.items > self.limits.items)
        if any(beyond):
            raise CodecError("")


def outcome(scan, text: bytes, size: int) -> tuple[object, ...]:
    for begin in range(0, len(text), size):
        piece = text[begin : begin + size]
        try:
            scan.read(piece if isinstance(scan, Slow) else np.frombuffer(piece, np.uint8))
        except CodecError:
            return (begin,)
    return scan.depth, scan.items, scan.things, scan.literals, scan.quoted, scan.escaping


def test_a_text_is_counted_as_byte_by_byte_wherever_it_is_cut_and_whatever_is_escaped():
    """1,500 texts of marks, most of them no JSON, in pieces of 1 to 9 bytes, with limits near what they hold."""
    chance = random.Random(5)
    for _ in range(1_500):
        text = "".join(chance.choices('"\\,[]{}t0z9:', (6, 6, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1), k=chance.randrange(1, 24)))
        depth, items, things = (chance.choice(some) for some in ((1, 2, 99), (3, 6, 99), (1, 99)))
        limits = replace(FILE, depth=depth, items=items, things=things)
        size = chance.choice((1, 2, 3, 9, 99))
        assert outcome(_Scan(limits), text.encode(), size) == outcome(Slow(limits), text.encode(), size), text


def test_a_message_may_ask_for_a_little_and_a_file_for_much():
    assert Limits(33_554_432, 2_097_152, 67_108_864, 64, 640, 16_384, 65_536) == MESSAGE
    assert Limits(8_589_934_592, 2_147_483_648, 8_589_934_592, 64, 640, 2_147_483_648, 2_147_483_648) == FILE


@pytest.mark.parametrize("package", ["aardvark", "hazema", "hazemap2", "zebra", "hazemap_more"])
def test_only_types_of_our_own_are_written_without_their_package(package):
    """Whether its name comes before ours or after it, so that nobody's Quadtree is taken for this one."""
    theirs = type("Quadtree", (), {"__module__": f"{package}.trees"})
    assert written_name(theirs) == f"{package}.Quadtree"
    ours = type("WholeDomain", (), {"__module__": "hazemap.spatial.elsewhere"})
    assert written_name(ours) == "Everything"
