import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.colour_scales import (
    DensityScale,
    ErrorClasses,
    error_classes,
    error_colours,
    error_labels,
    quantile,
    short,
)
from hazemap.draw.viewport import Viewport
from hazemap.spatial.bounding_box import Box


def lightness(colours: np.ndarray) -> np.ndarray:
    """CIE L* of 0..255 sRGB."""
    share = colours[..., :3] / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    y = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


def everything(surface: DensitySurface) -> Viewport:
    return Viewport.around(surface.shapes.bounds, *np.zeros((2, len(surface.values))))


def test_denser_is_darker_all_the_way_in_even_steps():
    scale = DensityScale(10, 10_000, 10_000)
    density = scale.low * np.sinh(np.linspace(0, 1, 101) * np.arcsinh(1000))
    steps = np.diff(lightness(scale.colours(density)))
    assert (steps < 0).all()
    assert steps.min() > 2.5 * steps.mean()  # no step is much larger than the others


def test_colours_of_errors_get_paler_the_less_sure():
    assert (np.diff(lightness(error_colours(np.arange(5.0)))) > 10).all()


def test_nothing_looks_like_paper():
    assert lightness(DensityScale(10, 1000, 1000).colours(np.array([0.0])))[0] > 95


@given(st.floats(1e-6, 1e6), st.floats(0.7, 3))
def test_ticks_are_round_ascending_and_apart(low: float, decades: float):
    scale = DensityScale(low, low * 10**decades, low * 10**decades)
    values = [value for value, _ in scale.ticks()]
    places = scale.position(np.array(values))
    assert values[0] == 0
    assert len(values) >= 2
    assert (np.diff(places) >= 0.14 - 1e-9).all()
    assert all(f"{value:e}"[0] in "125" for value in values[1:])


def test_one_crowded_square_does_not_leave_a_city_pale(make, tree):
    values = np.full(4096, 50.0)
    values[0] = 50_000.0  # a fifth of all people
    surface = DensitySurface.of(make(tree, tree.grid(6).ravel(), values))
    scale = DensityScale.of([surface], everything(surface))
    assert scale.position(surface.density)[100] > 0.2
    assert scale.densest == surface.density.max()


def test_a_scale_does_not_shade_the_noise_of_empty_ground(make, tree):
    values = np.random.default_rng(3).normal(0, 10, 4096)
    values[2000:2400] += 2000
    surface = DensitySurface.of(make(tree, tree.grid(6).ravel(), values, 10.0))
    scale = DensityScale.of([surface], everything(surface))
    assert np.median(scale.position(surface.density)[:1000]) < 0.05


def test_a_number_without_people_is_unsure_unless_it_is_exact(make, tree):
    cells = tree.grid(1).ravel()
    assert np.isinf(DensitySurface.of(make(tree, cells, 0.0, 2.0)).relative).all()
    assert (DensitySurface.of(make(tree, cells, 0.0, 0.0)).relative == 0).all()
    assert DensitySurface.of(make(tree, cells, 8.0, 2.0)).relative == pytest.approx(0.25)


def test_every_class_of_errors_has_a_label():
    assert len(error_labels()) == error_classes(np.array([np.inf]))[0] + 1
    assert error_labels()[1] == "± 5–20 %"


def test_numbers_are_short():
    assert [short(v) for v in (0.5, 20, 1000, 53_210, 1.31e6, 999_999)] == ["0.5", "20", "1k", "53k", "1.3M", "1M"]


def test_a_quantile_weighs():
    assert quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 8.0]), 0.5) == 3
    assert quantile(np.array([3.0, 1.0]), np.array([1.0, 0.0]), 0.0) in (1.0, 3.0)


def test_errors_are_shares_where_something_is_known_and_per_area_where_nothing_is(make, tree):
    cells = tree.grid(4).ravel()
    view = Viewport.of(Box(10.3, 59.8, 11.1, 60.2))
    unsure = DensitySurface.of(make(tree, cells, 0.1, 3.0))
    per_area = ErrorClasses.of(unsure, view, "km²")
    assert per_area.question == "standard error per 1,000 km²"
    assert per_area.breaks[1] <= np.median(unsure.noise) <= per_area.breaks[2]
    assert set(per_area.classes(unsure)) <= {1.0, 2.0, 3.0}
    assert per_area.labels()[0].endswith("or less")
    some = np.where(np.arange(len(cells)) % 4 == 0, 50.0, 0.1)
    assert ErrorClasses.of(DensitySurface.of(make(tree, cells, some, 3.0)), view, "km²") == ErrorClasses()
    exact = DensitySurface.of(make(tree, cells, 0.0, 0.0))
    assert ErrorClasses.of(exact, view, "km²") == ErrorClasses()
    city = DensitySurface.of(
        make(tree, fine := tree.grid(7).ravel(), np.where(np.arange(len(fine)) == 9, 1e7, 0.1), 3.0)
    )
    assert ErrorClasses.of(city, view, "km²").unit == "km²"  # a speck of the picture is known, which nobody sees
    unknown = DensitySurface.of(make(tree, cells, 5.0, np.inf))
    assert ErrorClasses.of(unknown, view, "km²") == ErrorClasses()


def test_an_error_lies_in_the_middle_class_whatever_its_size():
    for middle in (1e-9, 0.999, 1.0, 2.0, 3.7, 9.99, 5e8):
        low, below, above, high = ErrorClasses.around(middle, "km²").breaks
        assert low < below <= middle < above < high


def test_densities_are_per_area_that_people_know():
    assert DensityScale(0.001, 0.1, 0.3).per("km²")[1] == "1,000 km²"
    assert DensityScale(1, 100, 300).per("km²") == (DensityScale(1, 100, 300), "km²")
    assert DensityScale(1e4, 1e6, 3e6).per("km²") == (DensityScale(100, 1e4, 3e4), "ha")
    assert DensityScale(0.1, 2, 3).per("px²") == (DensityScale(0.1, 2, 3), "px²")
    assert DensityScale(1e-5, 2e-4, 3e-4).per("px²")[1] == "100 × 100 px"
    assert DensityScale(1e-30, 2e-30, 3e-30).per("m²")[1] == "10,000 × 10,000 m"
    assert DensityScale(1.0, 10.0, 0.0).per("km²")[1] == "km²"
    sparse = ErrorClasses.around(0.003, "km²")
    assert sparse.question == "standard error per 1,000 km²"
    assert sparse.labels() == ["± 1 or less", "± 1–2", "± 2–5", "± 5–10", "over ± 10"]
