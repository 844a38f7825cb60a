"""Where the maps of a page stand."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.draw.tidy import assert_tidy, filled

from hazemap import draw
from hazemap.draw.figure_layout import FigureLayout, PageSize
from hazemap.draw.panel_layout import Layout, Room, grid, grown, one, two
from hazemap.draw.value_charts import draw_histogram, draw_profile
from hazemap.draw.viewport import NARROWEST, WIDEST, Viewport
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

ASPECTS = st.floats(NARROWEST, WIDEST)
ROOMS = st.one_of(
    st.builds(Room, st.floats(4.4, 23.4), st.floats(1.4, 22), st.just(True)),
    st.floats(5, 24).map(lambda width: Room(width - 0.6, width, given=False)),
)


def inside(layout: Layout, aspect: float, room: Room) -> None:
    """All panels lie in the layout, and none on another; the layout lies in a room of a given size."""
    assert layout.width <= room.wide + 1e-9
    assert layout.height <= room.high + 1e-9 or not room.given
    boxes = [(s.left, s.top, s.left + s.across, s.top + s.across / aspect) for s in layout.spots]
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= layout.width + 1e-9
        assert 0 <= top < bottom <= layout.height + 1e-9
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@given(ASPECTS, ROOMS, st.sampled_from([(0.22, 0.98), (0.22, 0.0), (1.1, 0.0)]))
def test_two_maps_fit_and_the_first_is_larger(aspect: float, room: Room, below: tuple[float, float]):
    try:
        layout = two(aspect, room, left=0.22, above=0.73, below=below, gap=0.35, beside=1.75)
    except InputError:
        assert room.given
        return
    inside(layout, aspect, room)
    first, second = layout.spots
    assert first.across > second.across


@given(st.integers(1, 60), ASPECTS, ROOMS, st.floats(0.3, 2))
def test_a_grid_fits_and_no_row_of_it_is_empty(count: int, aspect: float, room: Room, least: float):
    try:
        layout = grid(count, aspect, room, gap=0.12, above=0.2, below=0.12, least=least)
    except InputError:
        assert room.given
        return
    inside(layout, aspect, room)
    assert len(layout.spots) == count
    assert layout.across >= min(least, room.wide / count) - 1e-9 or not room.given
    rows = -(-count // layout.columns)
    assert count > (rows - 1) * layout.columns


@given(ASPECTS, ROOMS)
def test_one_map_takes_all_the_room(aspect: float, room: Room):
    try:
        layout = one(aspect, room, left=0.22, above=0.73, below=0.22)
    except InputError:
        assert room.given
        return
    inside(layout, aspect, room)
    assert layout.width == pytest.approx(room.wide) or layout.height == pytest.approx(room.high)


def test_side_by_side_both_columns_end_at_one_height():
    for aspect in (0.55, 1.0, 2.0):
        first, second = two(
            aspect, Room(9.4, 10, given=False), left=0.2, above=0.7, below=(0.2, 1.0), gap=0.3, beside=1.7
        ).spots
        assert first.across / aspect + 0.2 == pytest.approx(second.across / aspect + 1.0)


@given(st.integers(1, 6), st.floats(4.4, 23.4), st.floats(4, 22))
def test_more_ground_fills_the_page_and_shows_no_place_smaller(count: int, wide: float, high: float):
    def layout(aspect: float) -> Layout:
        return grid(count, aspect, Room(wide, high, given=True), gap=0.12, above=0.2, below=0.12)

    view = Viewport.of(Box(10, 50, 12, 51))
    try:
        before = layout(view.aspect)
    except InputError:
        return
    more = grown(view, layout)
    assert more.holds(view, 1e-12)
    made = layout(more.aspect)
    assert made.across / more.width >= 0.98 * before.across / view.width
    assert made.across**2 / more.aspect >= before.across**2 / view.aspect


CAPTION = "ε = 1 per person, pure differential privacy · at most 10 rows a person · a curator · " * 2
BOXES = {"square": None, "tower": Box(10.4, 59.8, 10.41, 60.2), "ribbon": Box(10.3, 60.0, 11.1, 60.001)}
SIZES = [None, (16, 9), (6, 10), (8, 5.5)]


def pictures(town, number: int, **look):
    """Every kind of picture that is made of cells that are counted."""
    yield draw.draw_map(town, **look)
    yield draw.draw_map(town, panels=[draw.MapPanel.DENSITY], **look)
    yield draw.draw_side_by_side([(f"The method {at} with a long name", town) for at in range(2)], **look)
    yield draw.draw_small_maps([(f"{hour:02}:00", town) for hour in range(number)], **look)


@pytest.mark.slow
@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_words_overlap_nor_leave_the_page_whatever_its_shape(town, box: str, size):
    look = {
        "title": "A town that nobody lives in",
        "caption": CAPTION,
        "box": BOXES[box],
        "size": size,
        "theme": "dark",
    }
    for figure in pictures(town, 3, **look):
        assert_tidy(figure)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_no_page_of_a_whole_map_is_half_empty(town, size):
    for figure in pictures(town, 6, title="A town", caption=CAPTION, size=size):
        assert filled(figure) > 0.6


def test_a_page_with_a_hole_counts_as_empty():
    page = FigureLayout.ruled(6.6, 1.0, "A heading", "", size=PageSize(10, 10))
    page.axes(page.left, page.top, 6, 1, "small")
    assert filled(page.figure) < 0.4


def test_charts_fill_the_page_that_they_are_given():
    import numpy as np

    numbers = np.arange(5.0)
    for size in ((12, 5), (5, 9)):
        for figure in (
            draw_profile(
                [*"abcde"], numbers, numbers - 1, numbers + 1, bounds=(-5, 9), size=size, theme="dark", caption="ε"
            ),
            draw_histogram(np.arange(6.0), numbers, numbers - 1, numbers + 1, unit="km", size=size, caption="ε"),
        ):
            assert tuple(figure.get_size_inches()) == size
            assert figure.axes[0].get_position().height > 0.6
            assert_tidy(figure)
