"""Light and dark pictures: who can read them, and whether all of a picture follows."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from hazemap import draw
from hazemap.draw.themes import DARK, LIGHT, Theme, theme_named
from hazemap.errors import InputError

SEEN_BY = {  # Machado, Oliveira and Fernandes 2009, severity 1, of linear red, green and blue
    "everybody": np.eye(3),
    "protanopes": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopes": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopes": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    value = np.array(to_rgb(colour))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str, eyes: str = "everybody") -> float:
    return float(np.array([0.2126, 0.7152, 0.0722]) @ np.clip(np.array(SEEN_BY[eyes]) @ linear(colour), 0, 1))


def contrast(one: str, other: str) -> float:
    """Of WCAG 2: (lighter + 0.05) / (darker + 0.05)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("scale", ["densities", "errors"])
def test_every_step_of_a_scale_is_lighter_or_darker_than_the_last_for_all_eyes(theme: Theme, eyes: str, scale: str):
    lightness = np.array([luminance(colour, eyes) ** (1 / 3) for colour in getattr(theme, scale)])
    steps = np.diff(lightness)
    assert (np.sign(steps) == np.sign(steps[0])).all()
    assert np.abs(steps).min() > 0.03


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_words_can_be_read_on_their_paper(theme: Theme):
    assert contrast(theme.ink, theme.paper) > 7
    assert contrast(theme.grey, theme.paper) > 4.5
    assert contrast(theme.curve, theme.paper) > 4.5
    assert contrast(theme.ink, theme.halo) > 7


def test_a_theme_is_light_or_dark(town):
    assert theme_named("dark") is DARK
    for wrong in ("Dark", "", "solarized" * 1000):
        with pytest.raises(InputError, match="light or dark") as refused:
            draw.draw_map(town, theme=wrong)
        assert len(str(refused.value)) < 200


def test_nothing_of_a_dark_picture_is_black_on_black_or_left_white(town):
    figure = draw.draw_map(town, title="A town", caption="ε = 1", note="nobody lies outside", theme="dark")
    words = list(figure.texts)
    for axes in figure.axes:
        words += [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]
    for text in words:
        if text.get_text() and text.get_gid() != "place":
            assert contrast(text.get_color(), DARK.paper) > 4.5, text.get_text()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    corner = np.asarray(canvas.buffer_rgba())[:20, :20, :3]
    assert np.allclose(corner / 255, to_rgb(DARK.paper), atol=0.01)


def test_a_theme_is_in_the_file_too(town):
    from io import BytesIO

    from PIL import Image

    made = draw.encode(draw.draw_map(town, theme="dark", panels=[draw.MapPanel.DENSITY]))
    with Image.open(BytesIO(made)) as image:
        assert image.getpixel((2, 2))[:3] == tuple(round(255 * part) for part in to_rgb(DARK.paper))
