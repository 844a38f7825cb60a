import json
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely

from hazemap import draw
from hazemap.draw.overlay_lines import lines_in
from hazemap.draw.viewport import Viewport
from hazemap.errors import FileError, HazemapWarning, InputError
from hazemap.spatial.bounding_box import Box

VIEW = Viewport.of(Box(10, 59, 11, 60))
SQUARE = shapely.box(10.2, 59.2, 10.8, 59.8)


def frame(*shapes: object, crs: str | None = "OGC:CRS84") -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(geometry=list(shapes), crs=crs)


def length(lines: list[np.ndarray]) -> float:
    return sum(float(np.hypot(*np.diff(line, axis=0).T).sum()) for line in lines)


def edge() -> float:
    return length(lines_in(frame(SQUARE), VIEW))


@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:25832", "EPSG:4326"])
def test_any_coordinate_system_lands_on_the_same_lines(crs: str):
    assert length(lines_in(frame(shapely.segmentize(SQUARE, 0.01)).to_crs(crs), VIEW)) == pytest.approx(
        edge(), rel=1e-4
    )


def test_lines_are_clipped_to_the_view():
    world = shapely.LineString([(-100, 59.5), (100, 59.5)])
    (line,) = lines_in(frame(world), VIEW)
    assert VIEW.width <= length([line]) <= 1.1 * VIEW.width


def test_an_area_larger_than_the_view_leaves_no_line_along_its_edge():
    with pytest.warns(HazemapWarning, match="no line of the outlines"):
        assert lines_in(frame(shapely.box(-20, 0, 40, 80)), VIEW) == []


def test_points_missing_and_empty_shapes_are_left_out():
    nested = shapely.GeometryCollection([shapely.MultiPolygon([SQUARE]), shapely.Point(10, 59)])
    mixed = frame(nested, None, shapely.Point(10.5, 59.5), shapely.Polygon(), SQUARE.exterior)
    assert length(lines_in(mixed, VIEW)) == pytest.approx(2 * edge())


def test_holes_have_lines_too():
    ring = SQUARE.difference(shapely.box(10.4, 59.4, 10.6, 59.6))
    assert length(lines_in(frame(ring), VIEW)) > 1.2 * edge()


def test_metres_without_a_coordinate_system_are_refused():
    with pytest.raises(InputError, match="store the coordinate system"):
        lines_in(frame(shapely.box(6e5, 6e6, 6.1e5, 6.1e6), crs=None), VIEW)


def test_degrees_need_no_coordinate_system():
    assert length(lines_in(frame(SQUARE, crs=None), VIEW)) == pytest.approx(edge())


def test_a_geojson_file_is_read(tmp_path: Path):
    file = tmp_path / "square.geojson"
    feature = {"type": "Feature", "properties": {}, "geometry": shapely.geometry.mapping(SQUARE)}
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    assert length(lines_in(file, VIEW)) == pytest.approx(edge())


@pytest.mark.parametrize("content", [None, b"", b"not json", b'{"type": "FeatureCollection", "features": 3}'])
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, content: bytes | None):
    file = tmp_path / "lines.geojson"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(FileError, match=r"lines\.geojson"):
        lines_in(file, VIEW)


def test_a_table_without_geometry_is_refused(tmp_path: Path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match=r"ends in none of \.geojson"):
        lines_in(file, VIEW)


def test_lines_are_drawn_on_every_panel(town):
    figure = draw.draw_map(town, outlines=frame(shapely.box(10.5, 59.9, 10.9, 60.1)))
    for panel in ("density", "uncertainty"):
        axes = next(a for a in figure.axes if a.get_label() == panel)
        assert sum(c.get_gid() == "outlines" for c in axes.collections) == 2  # a halo and a line
