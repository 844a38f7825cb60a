import numpy as np
import pytest

from hazemap import draw
from hazemap.errors import InputError

SIDES = np.array([100.0, 200.0, 400.0, 800.0])
CURVE = draw.ErrorCurve("a typical place", SIDES, np.array([1.6, 0.4, 0.1, 0.025]))


def test_the_chosen_size_is_marked_on_the_first_curve():
    figure = draw.draw_plan([CURVE, draw.ErrorCurve("a busy place", SIDES, CURVE.errors / 10)], chosen=400.0)
    (axes,) = figure.axes
    (mark,) = [line for line in axes.lines if line.get_gid() == "chosen"]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == pytest.approx((400, 0.1))
    assert "chosen: 400 m, ± 10 %" in [text.get_text() for text in axes.texts]


def test_between_two_sizes_the_error_is_on_the_line_in_logarithms():
    assert CURVE.error_at(np.sqrt(200 * 400)) == pytest.approx(0.2)


def test_curves_are_drawn_from_fine_to_coarse_whatever_their_order():
    shuffled = draw.ErrorCurve("", SIDES[[2, 0, 3, 1]], CURVE.errors[[2, 0, 3, 1]])
    line = draw.draw_plan([shuffled]).axes[0].lines[0]
    assert np.array_equal(line.get_xdata(), SIDES)
    assert np.array_equal(line.get_ydata(), CURVE.errors)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1, 1e3, 1e6])
def test_part_of_every_curve_is_in_the_picture(scale: float):
    curve = draw.ErrorCurve("far", SIDES, CURVE.errors * scale)
    axes = draw.draw_plan([curve]).axes[0]
    low, high = axes.get_ylim()
    assert ((low < curve.errors) & (curve.errors < high)).any()
    assert 2 <= len(axes.get_xticks()) <= 10


def test_the_words_are_whole():
    figure = draw.draw_plan([CURVE], title="A plan for $5", caption="No data was touched. " * 20)
    words = {text.get_gid(): text.get_text().split() for text in figure.texts}
    assert words["title"] == ["A", "plan", "for", "$5"]
    assert words["caption"] == ("No data was touched. " * 20).split()


@pytest.mark.parametrize(
    ("sides", "errors"),
    [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [-1.0]), ([1.0], [np.nan]), ([np.inf], [1.0])],
)
def test_a_curve_needs_positive_numbers(sides: list[float], errors: list[float]):
    with pytest.raises(InputError):
        draw.ErrorCurve("", np.array(sides), np.array(errors))


@pytest.mark.parametrize(("count", "chosen"), [(0, None), (5, None), (1, 0.0), (1, -3.0)])
def test_a_chart_of_nothing_or_too_much_is_refused(count: int, chosen: float | None):
    with pytest.raises(InputError):
        draw.draw_plan([CURVE] * count, chosen=chosen)
