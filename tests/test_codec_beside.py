"""Long arrays beside a text: each has one place in it, and everything else is refused."""

import json

import numpy as np
import pytest

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.errors import CodecError
from hazemap.queries.noisy_queries import Answer
from hazemap.spatial.quadtree import Quadtree

THINGS = (
    Leaves.at_level(Quadtree.world(4), 4),
    Answer(np.arange(256), np.array([1.5])),
    Answer(np.arange(3), np.linspace(1, 2, 100)),
)


def written() -> tuple[str, list]:
    beside: list = []
    return "".join(codec.pieces(THINGS, beside)), beside


def test_a_text_and_the_arrays_beside_it_are_what_the_text_alone_is():
    text, beside = written()
    assert len(beside) == 3
    assert codec.loads(text, beside=beside) == codec.loads(codec.dumps(THINGS)) == THINGS
    assert codec.loads("".join(codec.pieces(THINGS))) == THINGS


def test_arrays_from_64_numbers_on_are_beside_a_text_in_the_order_of_their_places():
    beside: list = []
    text = "".join(codec.pieces([np.arange(63), np.arange(64), np.arange(65)], beside))
    inside = ",".join(map(str, range(63)))
    assert text == f'[{{"array":["int64",[{inside}]]}},{{"array":["int64",0]}},{{"array":["int64",1]}}]'
    assert [len(each) for each in beside] == [64, 65]


@pytest.mark.parametrize(
    "change",
    [
        lambda beside: beside[:-1],
        lambda beside: [*beside, beside[-1]],
        lambda beside: beside[::-1],
        lambda _: [],
        lambda _: None,
        lambda beside: [each[:63] for each in beside],
        lambda beside: [each.astype(np.int32) for each in beside],
        lambda beside: [*beside[:-1], np.full(100, np.nan)],
        lambda beside: [*beside[:-1], np.ones((100, 1))],
    ],
)
def test_other_arrays_beside_a_text_are_refused(change):
    text, beside = written()
    with pytest.raises(CodecError):
        codec.loads(text, beside=change(beside))


@pytest.mark.parametrize("place", [1, 2, -1, 3, True, 0.0, "0", None, {}, [[0]]])
def test_a_place_that_is_not_the_next_is_refused(place):
    text, beside = written()
    data = json.loads(text)
    data[0]["Leaves"]["cells"]["array"][1] = place
    with pytest.raises(CodecError):
        codec.loads(json.dumps(data), beside=beside)


def test_an_array_has_one_place():
    text, beside = written()
    with pytest.raises(CodecError):
        codec.loads(text.replace('"int64",1]', '"int64",[1,2]]'), beside=beside)
    with pytest.raises(CodecError):
        codec.loads(text, beside=[*beside[:1], beside[1].astype(float), beside[2]])


@pytest.mark.parametrize("shape", [(16, 4), (64, 1), (1, 64), (15, 4), (0, 4), (70, 0), (8, 4, 2), (64,)])
def test_arrays_in_rows_come_back_in_rows(shape):
    """Those of 64 numbers and more from beside the text; in three dimensions, or of no numbers, from the text."""
    numbers, beside = np.arange(np.prod(shape)).reshape(shape), []
    text = "".join(codec.pieces([numbers, np.arange(70.0)], beside))
    assert len(beside) == 1 + (numbers.size >= 64 and len(shape) < 3) and all(each.ndim == 1 for each in beside)
    if shape != (0, 4):  # JSON has no width of no rows
        found, other = codec.loads(text, beside=beside)
        assert found.shape == shape and found.dtype == np.int64 and (found == numbers).all() and len(other) == 70


@pytest.mark.parametrize("width", [0, -4, 3, 5, 65, True, 4.0, "4", None, [4]])
def test_rows_of_another_length_than_can_be_are_refused(width):
    beside: list = []
    data = json.loads("".join(codec.pieces([np.arange(64).reshape(16, 4)], beside)))
    assert data == [{"array": ["int64", 0, 4]}]
    data[0]["array"][2] = width
    with pytest.raises(CodecError):
        codec.loads(json.dumps(data), beside=beside)
    with pytest.raises(CodecError):
        codec.loads('[{"array": ["int64", 0, 4, 4]}]', beside=beside)
    with pytest.raises(CodecError):
        codec.loads('[{"array": ["int64", 0, 4]}]')
