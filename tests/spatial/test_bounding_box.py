"""Boxes: what they refuse, and how far points are from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.errors import InputError, TableError
from hazemap.spatial.bounding_box import Box, coordinates


def test_a_box_is_written_as_it_is_read() -> None:
    assert str(Box.parse(" -74.02, 40.70,-73.93,40.80")) == "-74.02,40.7,-73.93,40.8"


def test_a_box_is_written_with_every_digit_it_has() -> None:
    box = Box(-74.0212345678, 40.70000001, -73.93, 40.8)
    assert Box.parse(str(box)) == box


@pytest.mark.parametrize("text", ["", "1,2,3", "1,2,3,4,5", "a,b,c,d", "0,0,nan,1", "1,0,1,1", "0,1,1,0", "0,0,190,1"])
def test_what_is_no_box_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a box "):
        Box.parse(text)


def test_a_box_with_swapped_coordinates_gets_a_hint() -> None:
    with pytest.raises(InputError, match="swapped"):
        Box(40.7, -174.0, 40.8, -173.9)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_distance_to_a_box_is_that_of_its_nearest_point(data: st.DataObject) -> None:
    """Against a fine grid over the box: never more than to any of its points, and hardly less."""
    west, south = data.draw(st.floats(-180, 170)), data.draw(st.floats(-90, 80))
    east, north = data.draw(st.floats(west + 1, 180)), data.draw(st.floats(south + 1, 90))
    lon, lat = data.draw(st.floats(-180, 180)), data.draw(st.floats(-90, 90))
    found = Box(west, south, east, north).distance(np.array([lon]), np.array([lat]))[0]
    xs, ys = np.radians(np.linspace(west, east, 361)), np.radians(np.linspace(south, north, 361))[:, None]
    x, y = np.radians(lon), np.radians(lat)
    haversine = np.sin((ys - y) / 2) ** 2 + np.cos(y) * np.cos(ys) * np.sin((xs - x) / 2) ** 2
    nearest = 2 * np.arcsin(np.sqrt(haversine.clip(0, 1))).min()
    assert found <= nearest + 1e-9
    assert found >= nearest - np.radians(1)  # half the diagonal of the grid's largest piece


def test_coordinates_are_found_or_refused() -> None:
    lon, lat = coordinates({"lon": np.arange(3), "lat": np.zeros(3, dtype=np.float32), "name": np.zeros(1)})
    assert lon.dtype == lat.dtype == np.float64
    masked = np.ma.masked_array([1, 2, 3], mask=[False, True, False])  # how DuckDB hands over NULL
    assert np.isnan(coordinates({"lon": masked, "lat": np.zeros(3)})[0]).tolist() == [False, True, False]
    assert masked.data[1] == 2
    with pytest.raises(TableError, match="lon, lat"):
        coordinates({"longitude": np.zeros(1)})
    with pytest.raises(TableError, match="one-dimensional"):
        coordinates({"lon": np.zeros((2, 2)), "lat": np.zeros((2, 2))})
    with pytest.raises(TableError, match="numbers"):
        coordinates({"lon": np.array(["a"]), "lat": np.zeros(1)})
