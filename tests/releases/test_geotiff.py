"""Grids as GeoTIFF: one pixel a cell to save, pixels of one size to look at."""

import json

import numpy as np
import pytest
import rasterio
import rasterio.warp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.errors import FileError
from hazemap.releases import Release, byte_digest
from hazemap.releases.column_digests import Digest
from hazemap.spatial.quadtree import Quadtree

from .conftest import BERLIN, flat, nested, released, with_nowhere
from .test_geoparquet import same


@pytest.fixture
def path(tmp_path):
    return tmp_path / "map.tif"


def patch() -> Leaves:
    """An uneven patch of one level, in no order."""
    tree = Quadtree.around(BERLIN, 12)
    cells = tree.children(tree.children(tree.root)[[0, 3]])
    cells = np.concatenate([tree.children(cells[2:]), tree.children(cells[:1])[1:3]])
    return Leaves(tree, np.random.default_rng(2).permutation(cells))


@pytest.mark.parametrize("leaves", [flat(), with_nowhere(), patch()])
def test_a_grid_comes_back_with_its_cells_in_ascending_order(leaves, path):
    release = released(leaves)
    release.save(path)
    opened = Release.open(path)
    places = opened.map.cells.cells[opened.map.places]
    assert places.tolist() == np.sort(leaves.cells[release.map.places]).tolist()
    assert opened.statement == release.statement
    assert opened.transcript == release.transcript
    assert opened.algorithm == release.algorithm
    for cell in leaves.cells:
        [here], [there] = np.flatnonzero(leaves.cells == cell), np.flatnonzero(opened.map.cells.cells == cell)
        for name in ("values", "unbiased", "stddev"):
            assert getattr(release.map, name)[here] == getattr(opened.map, name)[there]
    assert opened.total().unbiased == pytest.approx(release.total().unbiased)
    assert opened.total().stddev == pytest.approx(release.total().stddev)


def test_gdal_opens_it_as_a_cloud_optimised_grid_in_the_right_place(release, path):
    release.save(path)
    with rasterio.open(path) as picture:
        assert picture.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        assert picture.descriptions == ("best_guess", "unbiased", "stddev")
        assert picture.crs.to_epsg() == 3857
        assert picture.tags()["TIFFTAG_IMAGEDESCRIPTION"] == release.statement.line()
        lon, lat = 13.31, 52.47
        [x], [y] = rasterio.warp.transform("EPSG:4326", picture.crs, [lon], [lat])
        [sampled] = picture.sample([(x, y)])
    leaves = release.map.cells
    base = leaves.tree.cell_at({"lon": np.array([lon]), "lat": np.array([lat])}, leaves.tree.depth)
    at = leaves.locate(base)[0]
    assert sampled.tolist() == [release.map.values[at], release.map.unbiased[at], release.map.stddev[at]]


def test_a_saved_grid_gives_the_same_bytes_again(release, path, tmp_path):
    release.save(path)
    release.save(tmp_path / "again.tif")
    assert (tmp_path / "again.tif").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("kind", "found"), [("nested_release", "levels 1 to 4"), ("hexagon_release", "hexagons")])
def test_what_is_no_regular_grid_is_not_saved_as_one(request, kind, found, path):
    with pytest.raises(FileError, match=found):
        request.getfixturevalue(kind).save(path)
    assert not path.exists()


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_a_tiff_of_others_is_said_to_be_foreign(path):
    with rasterio.open(path, "w", driver="GTiff", width=2, height=2, count=1, dtype="uint8") as picture:
        picture.write(np.ones((1, 2, 2), dtype=np.uint8))
    with pytest.raises(FileError, match="no release of hazemap"):
        Release.open(path)


def test_a_grid_that_was_moved_is_noticed(release, path):
    """Whoever moves it on purpose makes the digest of its bytes anew."""
    release.save(path)
    with rasterio.open(path, "r+", IGNORE_COG_LAYOUT_BREAK="YES") as picture:
        picture.transform = rasterio.Affine.translation(5, 0) @ picture.transform
        picture.update_tags(HAZEMAP_BYTES=byte_digest.UNKNOWN.decode())
    byte_digest.fill(path, byte_digest.GEOTIFF)
    with pytest.raises(FileError, match="not where its label says"):
        Release.open(path)


def test_a_pixel_that_was_changed_is_noticed(release, path):
    release.save(path)
    with rasterio.open(path, "r+", IGNORE_COG_LAYOUT_BREAK="YES") as picture:
        picture.write(picture.read(1) + 1, 1)
    with pytest.raises(FileError, match="damaged"):
        Release.open(path)


def test_any_damaged_byte_is_noticed(tmp_path):
    """Those of overviews, georeferencing and tags of other tools too: the digest covers all bytes."""
    whole, other = tmp_path / "whole.tif", tmp_path / "other.tif"
    released(flat(3)).save(whole)
    content, rng = whole.read_bytes(), np.random.default_rng(1)
    for at in rng.integers(0, len(content), 60).tolist():
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        other.write_bytes(changed)
        with pytest.raises(FileError):
            Release.open(other)


def rewritten(path, others: dict[str, str]) -> None:
    """The same pixels with other tags and no other damage, by another writer."""
    with rasterio.open(path) as picture:
        pixels, place = picture.read(), {"crs": picture.crs, "transform": picture.transform, "nodata": np.nan}
        tags = {"HAZEMAP_TRANSCRIPT": picture.tags()["HAZEMAP_TRANSCRIPT"], **others}
    size = {"count": 3, "height": pixels.shape[1], "width": pixels.shape[2], "dtype": "float64"}
    with rasterio.open(path, "w", driver="GTiff", **size, **place) as picture:
        picture.write(pixels)
        picture.update_tags(**tags)


@pytest.mark.parametrize("older", [True, False])
def test_only_a_grid_of_an_older_version_may_lack_the_digest_of_its_bytes(older, release, path):
    release.save(path)
    with rasterio.open(path) as picture:
        label, packed, pixels = (
            json.loads(picture.tags()["HAZEMAP"]),
            picture.tags()["HAZEMAP_TRANSCRIPT"],
            picture.read(),
        )
    for name in ("digest", *(("integrity",) if older else ())):
        del label[name]
    digest = Digest()
    digest.add(repr(pixels.shape).encode(), pixels.astype("<f8").tobytes(), packed.encode())
    rewritten(path, {"HAZEMAP": digest.seal(label)})
    if older:
        assert same(Release.open(path), release)
    else:
        with pytest.raises(FileError, match="damaged"):
            Release.open(path)


def test_few_bytes_that_say_many_pixels_are_not_read(release, path, monkeypatch):
    release.save(path)
    monkeypatch.setattr("hazemap.releases.geotiff.FREE_CELLS", 0)
    assert same(Release.open(path), release)  # it has more bytes than cells
    monkeypatch.setattr("hazemap.releases.geotiff.LARGEST", release.cells.size - 1)
    with pytest.raises(FileError, match="more pixels"):
        Release.open(path)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_cells_that_are_alike_and_take_no_bytes_are_not_read(release, path, monkeypatch):
    release.save(path)
    size = {"count": 3, "height": 1024, "width": 1024, "dtype": "float64", "compress": "DEFLATE", "tiled": True}
    with rasterio.open(path) as picture:
        tags = {name: picture.tags()[name] for name in ("HAZEMAP", "HAZEMAP_TRANSCRIPT")}
    label = json.loads(tags["HAZEMAP"])
    del label["integrity"]
    with rasterio.open(path, "w", driver="GTiff", crs="EPSG:3857", **size) as picture:
        picture.write(np.ones((3, 1024, 1024)))
        picture.update_tags(HAZEMAP=json.dumps(label), HAZEMAP_TRANSCRIPT=tags["HAZEMAP_TRANSCRIPT"])
    monkeypatch.setattr("hazemap.releases.geotiff.FREE_CELLS", 1 << 19)
    with pytest.raises(FileError, match="more cells than its bytes"):
        Release.open(path)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damaged_byte_is_noticed_or_changes_nothing(data, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    whole = folder / "whole.tif"
    if not whole.exists():
        released(flat(3)).save(whole)
    content = bytearray(whole.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    (folder / "damaged.tif").write_bytes(content)
    try:
        opened = Release.open(folder / "damaged.tif")
    except FileError:
        return
    assert same(opened, Release.open(whole))


def painted(path) -> tuple[np.ndarray, rasterio.Affine]:
    with rasterio.open(path) as picture:
        return picture.read(1).astype(float), picture.transform


@pytest.mark.parametrize("leaves", [flat(), nested(), with_nowhere(), patch()])
@pytest.mark.parametrize("pixel", [None, 2_000_000, 12_000, 5_000])
def test_an_exported_picture_holds_everybody(leaves, pixel, path):
    release = released(leaves)
    if pixel == 5_000 and release.map.cells.tree.side == 1:
        pixel = 300_000
    release.export(path, pixel=pixel)
    counts, _ = painted(path)
    assert np.nansum(counts) == pytest.approx(release.total().best_guess, rel=1e-5)


def test_pixels_share_a_cell_by_their_area_on_the_ground(nested_release, path):
    """Against each base cell on its own, added up to pixels of every size."""
    leaves, tree = nested_release.map.cells, nested_release.map.cells.tree
    level = 6
    grid = tree.grid(level)
    owner = leaves.locate(tree.span(grid.ravel())[0])
    density = np.append(nested_release.map.values / nested_release.ground.km2, np.nan)
    fine = (density[owner] * tree.area(grid.ravel()) / 1e6).reshape(grid.shape)
    for up in range(5):
        pixels = 2**up
        coarse = np.nansum(fine.reshape(64 // pixels, pixels, 64 // pixels, pixels), axis=(1, 3))
        nested_release.export(path, pixel=2 * np.pi * 6378137 / 2 ** (level - up))
        counts, _ = painted(path)
        rows, columns = counts.shape
        assert np.nan_to_num(counts) == pytest.approx(coarse[:rows, :columns], rel=1e-5)
        assert not np.delete(coarse, np.s_[:rows], 0).any()


def test_a_picture_is_painted_the_same_in_strips(path, monkeypatch):
    nested_release = released(nested(depth=10))
    nested_release.export(path, pixel=70_000)
    counts, _ = painted(path)
    monkeypatch.setattr("hazemap.releases.geotiff.STRIP", 1000)
    nested_release.export(path, pixel=70_000)
    again, _ = painted(path)
    assert counts.shape[0] > 256
    assert np.array_equal(counts, again, equal_nan=True)


def test_a_picture_of_too_many_pixels_is_refused_with_a_size_that_works(make, tmp_path, path):
    tree = Quadtree.world(depth=20)
    release = make(Leaves(tree, np.append(tree.children(tree.root), np.uint64(4**20))))
    with pytest.raises(FileError, match=r"ask for pixels of .* m or more") as caught:
        release.export(path)
    assert list(tmp_path.iterdir()) == []
    advised = float(str(caught.value).split("ask for pixels of ")[1].split(" m")[0])
    assert 2 * np.pi * 6378137 / advised < 40_000


@pytest.mark.parametrize("pixel", [0, -5, float("nan")])
def test_a_pixel_has_a_size(release, path, pixel):
    with pytest.raises(FileError, match="above 0"):
        release.export(path, pixel=pixel)


def test_a_picture_that_did_not_reach_the_disk_is_noticed(release, path, monkeypatch):
    from rasterio import shutil

    def lossy(source, goal, **options):
        with rasterio.open(source, "r+") as picture:
            picture.write(np.zeros((1, *picture.shape), dtype=np.float32))
        real(source, goal, **options)

    real = shutil.copy
    monkeypatch.setattr(shutil, "copy", lossy)
    path.write_bytes(b"old")
    with pytest.raises(FileError, match="could be read back"):
        release.export(path)
    assert path.read_bytes() == b"old"
