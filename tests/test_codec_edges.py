"""What is read, up to the last digit and the last depth that may be, and refused one beyond."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap.codec import from_json
from hazemap.codec.limits import FILE
from hazemap.codec.parsing import parsed
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
    with pytest.raises(CodecError, match="an array is its type and its numbers"):
        from_json({"array": fields})
    assert from_json({"array": ["int64", [1, 2]]}).tolist() == [1, 2]


@dataclass(frozen=True)
class Large:
    number: int
    travels_once = True


def test_what_comes_again_is_the_thing_that_came_before_named_by_its_number():
    one, other = {"Large": {"number": 3}}, {"Large": {"number": 4}}
    found = from_json([one, other, {"again": 1}, {"again": 0}], known=(Large,))
    assert found == (Large(3), Large(4), Large(4), Large(3)) and found[2] is found[1] and found[3] is found[0]
    for number in (2, -1, True, 0.0, "0", None, [0]):
        with pytest.raises(CodecError, match="named by its number"):
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
