"""Sizes of pictures, as people write them."""

import pytest

from hazemap import draw
from hazemap.draw.figure_layout import PageSize
from hazemap.errors import InputError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10x7", (10, 7)),
        (" 10 X 7in ", (10, 7)),
        ("1600x900px", (8, 4.5)),
        ("25.4x12.7cm", (10, 5)),
        ("254×127mm", (10, 5)),
    ],
)
def test_a_size_is_read_with_its_unit(text: str, size: tuple[float, float]):
    found = PageSize.parse(text)
    assert (found.width, found.height) == pytest.approx(size)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10",
        "x",
        "10x",
        "10x7x3",
        "10x7pt",
        "-10x7",
        "1e3x7",
        "nanx7",
        "infx7",
        "10,7",
        "١٠x٧",
        "9" * 5000 + "x7",
        "10.x7",
    ],
)
def test_what_is_no_size_is_refused_in_words(text: str):
    with pytest.raises(InputError, match="WIDTHxHEIGHT") as refused:
        PageSize.parse(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("text", ["4x7", "10x2", "25x7", "10x30", "100x100px", "99999x99999", "0x0"])
def test_a_size_is_bounded(text: str):
    with pytest.raises(InputError, match=r"inches (wide|high)"):
        PageSize.parse(text)


@pytest.mark.parametrize("size", ["10x7", 10, (10,), (10, 7, 3), (10, "7"), (10, float("nan")), (True, None)])
def test_a_size_in_python_is_two_numbers_of_inches(town, size: object):
    with pytest.raises(InputError):
        draw.draw_map(town, size=size)


def test_a_picture_has_the_size_that_it_was_given(town):
    for size in ((16, 9), (6, 10), (7, 7)):
        figure = draw.draw_map(town, title="A town", caption="ε = 1 per person", size=size)
        assert tuple(figure.get_size_inches()) == size


def test_a_size_without_room_for_a_map_is_refused(town):
    with pytest.raises(InputError, match="beside its words; make it"):
        draw.draw_map(town, title="A town", caption="word " * 600, size=(6, 4))
    with pytest.raises(InputError, match="no room for"):
        draw.draw_map(town, size=(5, 3))
    with pytest.raises(InputError, match="no room for 48 maps"):
        draw.draw_small_maps([(f"{hour}", town) for hour in range(48)], size=(5, 3))
