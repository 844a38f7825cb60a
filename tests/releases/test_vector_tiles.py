"""Vector tiles: what GDAL reads of them is what was written, and coarse zooms leave out only what is tiny."""

import json

import numpy as np
import pyogrio
import pytest
import shapely

from hazemap.releases.pmtiles_archive import MapTile, archive, number_of, unsqueezed, varint
from hazemap.releases.vector_tiles import EXTENT, tiles, varints

SQUARE = shapely.box(13.3, 52.4, 13.35, 52.43)
HOLED = shapely.Polygon(shapely.box(13.0, 52.0, 13.2, 52.2).exterior, [shapely.box(13.05, 52.05, 13.1, 52.1).exterior])
SEVERAL = shapely.MultiPolygon([shapely.box(14, 53, 14.1, 53.1), shapely.box(14.2, 53.2, 14.25, 53.25)])
WIDE = shapely.box(-30, -20, 40, 60)
TINY = shapely.box(2.0, 48.0, 2.0000001, 48.0000001)


def table(size: int) -> dict:
    return {
        "cell": np.array([f"c{number}" for number in range(size)], dtype=object),
        "level": np.arange(size, dtype=np.int16) - 2,
        "count": np.where(np.arange(size) == 1, np.nan, np.arange(size) * 1.25),
        "too_few": np.arange(size) % 2 == 0,
    }


def read(path, shapes, zoom: int):
    fields = {"cell": "String", "level": "Number", "count": "Number", "too_few": "Boolean"}
    layers = [{"id": "hazemap", "fields": fields, "minzoom": 0, "maxzoom": zoom}]
    made = tiles("hazemap", np.array(shapes), table(len(shapes)), zoom)
    path.write_bytes(archive(list(made), {"vector_layers": layers}, (-180, -85, 180, 85)))
    return pyogrio.read_dataframe(path, layer="hazemap")


def test_gdal_reads_back_geometry_and_every_type_of_column(tmp_path):
    shapes = [SQUARE, HOLED, SEVERAL, WIDE, TINY]
    frame = read(tmp_path / "map.pmtiles", shapes, 6)
    joined = {name: shapely.union_all(part.values) for name, part in frame.to_crs(4326).groupby("cell")["geometry"]}
    assert joined.keys() == {f"c{number}" for number in range(5)}
    unit = 360 / 2**6 / EXTENT
    for number, shape in enumerate(shapes[:4]):
        assert shapely.hausdorff_distance(joined[f"c{number}"], shape) < 3 * unit or number == 3
        assert joined[f"c{number}"].area == pytest.approx(shape.area, rel=0.05)
    assert joined["c4"].distance(TINY) < 2 * unit
    first = frame.drop_duplicates("cell").set_index("cell")
    assert first["level"].to_dict() == {f"c{number}": number - 2 for number in range(5)}
    assert first["count"].drop("c1").to_dict() == {f"c{number}": 1.25 * number for number in (0, 2, 3, 4)}
    assert np.isnan(first["count"]["c1"])
    assert first["too_few"].astype(bool).tolist() == [int(name[1]) % 2 == 0 for name in first.index]


def contents(shapes, zoom: int) -> list[MapTile]:
    return list(tiles("hazemap", np.array(shapes), table(len(shapes)), zoom))


def test_the_deepest_zoom_has_all_cells_and_coarser_ones_those_that_can_be_seen():
    made = contents([TINY, SQUARE], 8)
    assert [tile.zoom for tile in made if b"c0" in tile.content] == [8]
    seen = {tile.zoom for tile in made if b"c1" in tile.content}
    assert seen == set(range(min(seen), 9))
    assert 0.05 / 360 * EXTENT * 2 ** min(seen) >= 4 > 0.05 / 360 * EXTENT * 2 ** (min(seen) - 1)


def test_a_cell_stands_in_every_tile_that_it_reaches_and_in_no_other():
    for tile in contents([WIDE], 5):
        west, east = tile.column / 2**tile.zoom * 360 - 180, (tile.column + 1) / 2**tile.zoom * 360 - 180
        assert west < 40
        assert east > -30
    deepest = [tile for tile in contents([WIDE], 5) if tile.zoom == 5]
    assert len({tile[:3] for tile in deepest}) == len(deepest) == 7 * 9


def test_the_same_cells_give_the_same_bytes():
    made = [archive(contents([SQUARE, WIDE], 7), {"name": "ü"}, (-30, -20, 40, 60)) for _ in range(2)]
    assert made[0] == made[1]


@pytest.mark.slow
def test_many_tiles_have_leaf_directories_that_gdal_follows(tmp_path):
    shapes = [shapely.box(x, y, x + 0.9, y + 0.9) for x in range(-170, 170, 2) for y in range(-60, 60, 2)]
    frame = read(tmp_path / "map.pmtiles", shapes, 9)
    content = (tmp_path / "map.pmtiles").read_bytes()
    assert int.from_bytes(content[48:56], "little") > 0  # bytes of leaf directories
    assert int.from_bytes(content[16:24], "little") <= 16_384 - 127
    assert frame["cell"].nunique() == len(shapes)


def test_the_header_says_where_everything_stands():
    content = archive(contents([SQUARE], 3), {"name": "map"}, (13.3, 52.4, 13.35, 52.43))
    place = [int.from_bytes(content[at : at + 8], "little") for at in range(8, 72, 8)]
    assert content[:8] == b"PMTiles\3"
    assert json.loads(unsqueezed(content[place[2] : place[2] + place[3]])) == {"name": "map"}
    assert place[6] + place[7] == len(content)
    corners = [int.from_bytes(content[at : at + 4], "little", signed=True) / 1e7 for at in range(102, 118, 4)]
    assert corners == [13.3, 52.4, 13.35, 52.43]


def test_neighbours_on_the_curve_are_neighbours_on_the_map():
    for zoom in range(1, 6):
        place = {number_of(zoom, column, row): (column, row) for column in range(1 << zoom) for row in range(1 << zoom)}
        first = (4**zoom - 1) // 3
        assert sorted(place) == list(range(first, first + 4**zoom))
        steps = [np.abs(np.subtract(place[at], place[at + 1])).sum() for at in range(first, first + 4**zoom - 1)]
        assert set(steps) == {1}


def test_varints_of_many_are_those_of_each():
    numbers = np.array([0, 1, 127, 128, 300, 16_383, 16_384, 2**34, 2**62])
    text, ends = varints(numbers)
    assert text == b"".join(map(varint, numbers.tolist()))
    assert ends.tolist() == np.cumsum([len(varint(each)) for each in numbers.tolist()]).tolist()
    assert varints(numbers[:0])[0] == b""
