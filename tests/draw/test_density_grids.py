"""Grids of densities as plain pictures."""

import io

import numpy as np
import pytest
from matplotlib.image import imread

from hazemap.draw import draw_grids
from hazemap.errors import InputError


def pixels(content):
    return np.rint(255 * imread(io.BytesIO(content))).astype(int)


def test_a_plot_is_a_pixel_darker_where_more_people_are_and_what_is_not_known_is_cut_off():
    grid = np.full((6, 5), np.nan)
    grid[1:4, 2:4] = [[0, 1], [10, 100], [1000, np.nan]]
    first, second = map(pixels, draw_grids([grid, grid / 10], 1.0, 1000.0))
    assert first.shape == second.shape == (3, 2, 4)
    light = first[..., :3].sum(axis=2)
    assert light[0, 0] > light[0, 1] > light[1, 0] > light[1, 1] > light[2, 0]
    assert (first[2, 1, 3], first[2, 0, 3]) == (0, 255)
    assert (second[2, 0] == first[1, 1]).all()  # one scale for both


@pytest.mark.parametrize(
    ("grids", "low", "high"),
    [
        ([], 1, 2),
        ([np.zeros((2, 2)), np.zeros((3, 2))], 1, 2),
        ([np.zeros(4)], 1, 2),
        ([np.full((2, 2), np.nan)], 1, 2),
        ([np.zeros((2, 2))], 0, 2),
        ([np.zeros((2, 2))], 2, 2),
        ([np.zeros((2, 2))], 1, np.inf),
    ],
)
def test_what_has_no_picture_is_refused(grids, low, high):
    with pytest.raises(InputError):
        draw_grids(grids, low, high)
