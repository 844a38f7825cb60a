"""GeoParquet: what is saved comes back, and nothing else is taken for it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cpu_time import within

from hazemap.errors import FileError, HazemapError, TranscriptMismatch
from hazemap.releases import Release, check_whole
from hazemap.releases import file_metadata as contents
from hazemap.releases.file_metadata import UnknownMethod

from .conftest import flat, nested, released


def same(one: Release, other: Release) -> bool:
    return (
        one.map.cells == other.map.cells
        and all(np.array_equal(getattr(one.map, n), getattr(other.map, n)) for n in ("values", "unbiased", "stddev"))
        and one.statement == other.statement
        and one.algorithm == other.algorithm
        and one.transcript == other.transcript
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "map.parquet"


def test_everything_comes_back(any_release, path):
    any_release.save(path)
    opened = Release.open(path)
    assert same(any_release, opened)
    assert opened.total() == any_release.total()
    assert opened.nowhere == any_release.nowhere


def test_the_same_release_gives_the_same_bytes(any_release, path, tmp_path):
    any_release.save(path)
    Release.open(path).save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()


def test_many_row_groups_come_back_as_one_map(make, path, monkeypatch):
    monkeypatch.setattr("hazemap.releases.geoparquet.ROWS", 100)
    monkeypatch.setattr("hazemap.releases.geoparquet.PIECE", 100)
    release = make(flat())
    release.save(path)
    assert pq.ParquetFile(path).num_row_groups == 3
    assert {b"hazemap.transcript.1", b"hazemap.arrays.1"} <= pq.read_metadata(path).metadata.keys()
    assert same(release, Release.open(path))


def test_geopandas_opens_it(any_release, path):
    import geopandas as gpd

    any_release.save(path)
    frame = gpd.read_parquet(path)
    wanted = any_release.to_geodataframe()
    assert list(frame.columns) == list(wanted.columns)
    assert frame.crs == "OGC:CRS84"
    assert frame["best_guess"].sum() == pytest.approx(any_release.total().best_guess)
    assert frame.geometry.geom_equals(wanted.geometry.set_crs(frame.crs, allow_override=True)).all()
    west, south, east, north = any_release.ground.extent
    corner = (west, south, west + 0.3 * (east - west), south + 0.3 * (north - south))
    assert 0 < len(gpd.read_parquet(path, bbox=corner)) < len(frame)


def test_duckdb_reads_it_without_any_extension(any_release, path):
    import duckdb

    any_release.save(path)
    with duckdb.connect() as con:
        [(cells, total)] = con.execute("select count(*), sum(best_guess) from read_parquet(?)", [str(path)]).fetchall()
        rows = con.execute("select key, value from parquet_kv_metadata(?)", [str(path)]).fetchall()
    assert cells == any_release.map.places.sum()
    assert total == pytest.approx(any_release.total().best_guess)
    label = json.loads(dict(rows)[b"hazemap"])
    assert label["line"] == any_release.statement.line()


def test_its_metadata_are_those_of_geoparquet_1_1(any_release, path):
    any_release.save(path)
    geo = json.loads(pq.read_metadata(path).metadata[b"geo"])
    column = geo["columns"][geo["primary_column"]]
    assert geo["version"] == "1.1.0"
    assert column["encoding"] == "WKB"
    assert set(column["geometry_types"]) <= {"Polygon", "MultiPolygon"}
    assert column["bbox"] == pytest.approx(any_release.ground.extent)
    assert column["covering"]["bbox"]["xmin"] == ["bbox", "xmin"]


def test_polygons_lie_side_by_side_and_have_the_area_that_is_said(nested_release):
    import shapely

    from hazemap.releases.cell_geometry import equal_area

    frame = nested_release.to_geodataframe()
    shapes = shapely.transform(frame.geometry.values, equal_area)
    assert shapely.area(shapes) / 1e6 == pytest.approx(frame["area_km2"].values)
    assert shapely.area(shapely.union_all(shapes)) == pytest.approx(shapely.area(shapes).sum())


@pytest.mark.parametrize("content", [b"", b"PAR1", b"hello, I am a text", bytes(100), b"PAR1" * 50])
def test_bytes_that_are_nothing_are_a_clear_error(path, content):
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"map\.parquet"):
        Release.open(path)


def test_a_file_that_is_not_there_is_said_to_be_missing(path):
    with pytest.raises(FileError, match="there is no file"):
        Release.open(path)
    with pytest.raises(FileError, match="cannot be read"):
        Release.open(path.parent)


def test_a_parquet_file_of_others_is_said_to_be_foreign(path):
    pq.write_table(pa.table({"lon": [1.0]}), path)
    with pytest.raises(FileError, match="no release of hazemap"):
        Release.open(path)


def test_a_file_that_another_tool_rewrote_is_said_to_be_foreign(release, path):
    import geopandas as gpd

    release.save(path)
    gpd.read_parquet(path).to_parquet(path)
    with pytest.raises(FileError, match="rewrite"):
        Release.open(path)


def rewritten(path: Path, table: pa.Table, metadata: dict[bytes, bytes]) -> None:
    """A file with other numbers or another label, and no other damage."""
    with pq.ParquetWriter(path, table.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(metadata)


def relabelled(path: Path, change: Callable[[dict], object]) -> None:
    table, metadata = pq.read_table(path), dict(pq.read_metadata(path).metadata)
    label = json.loads(metadata[b"hazemap"])
    change(label)
    rewritten(path, table, {**metadata, b"hazemap": json.dumps(label).encode()})


def test_a_file_of_a_newer_format_is_not_guessed_at(release, path):
    release.save(path)
    relabelled(path, lambda label: label.update(format=6, surprise=1))
    with pytest.raises(FileError, match=r"format 6.*newer hazemap"):
        Release.open(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda label: label["statement"].update(dataset="other"),
        lambda label: label["statement"]["budget"].update(epsilon="1/100"),
        lambda label: label.update(format=0),
        lambda label: label.update(format="1"),
        lambda label: label.update(format=2),
        lambda label: label.pop("integrity"),
        lambda label: label.pop("tree"),
        lambda label: label.pop("digest"),
    ],
)
def test_a_label_that_was_changed_is_noticed(release, path, change):
    release.save(path)
    relabelled(path, dict.copy)
    assert same(release, Release.open(path))
    relabelled(path, change)
    with pytest.raises(FileError, match="damaged"):
        Release.open(path)


def with_another(path: Path, column: str) -> None:
    """The file with one number of a column changed."""
    table, metadata = pq.read_table(path), pq.read_metadata(path).metadata
    values = table[column].to_numpy().copy()
    values[7] += 1e-9
    at = table.schema.get_field_index(column)
    rewritten(path, table.set_column(at, table.schema.field(at), [values]), metadata)


@pytest.mark.parametrize("column", ["best_guess", "unbiased", "stddev"])
def test_a_number_that_was_changed_is_noticed(release, path, column):
    release.save(path)
    with_another(path, column)
    with pytest.raises(FileError, match="digest"):
        Release.open(path)


def test_a_changed_number_that_no_question_needs_is_noticed_by_who_checks_the_whole_file(release, path):
    release.save(path)
    check_whole(path)
    with_another(path, "per_km2")
    assert same(Release.open(path), release)
    with pytest.raises(FileError, match="digest"):
        check_whole(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damaged_byte_is_noticed_or_changes_nothing(data, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    whole = folder / "whole.parquet"
    release = released(nested())
    if not whole.exists():
        release.save(whole)
    content = bytearray(whole.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    damaged = folder / "damaged.parquet"
    damaged.write_bytes(content)
    try:
        alike = same(Release.open(damaged), release)
    except FileError:
        return
    assert alike


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(part=st.floats(0, 0.9999))
def test_a_file_that_ends_too_early_is_noticed(part, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    released(nested()).save(folder / "whole.parquet")
    content = (folder / "whole.parquet").read_bytes()
    (folder / "short.parquet").write_bytes(content[: int(part * len(content))])
    with pytest.raises(FileError):
        Release.open(folder / "short.parquet")


def test_a_method_of_a_newer_version_does_not_hide_the_numbers(release, path, tmp_path):
    data = {"Clairvoyant": {"depth": 7}}
    newer = Release(release.map, release.statement, UnknownMethod(data), release.transcript)
    newer.save(path)
    opened = Release.open(path)
    assert opened.algorithm == UnknownMethod(data)
    assert opened.total() == release.total()
    opened.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    with pytest.raises(FileError, match="does not know"):
        opened.replay(None)


def test_answers_that_do_not_give_the_stored_error_bars_are_refused(make, path):
    release, other = make(flat()), make(flat())
    wrong = type(release.map)(
        release.map.cells, release.map.values, release.map.unbiased, release.map.stddev * 1.1, release.map.noise
    )
    Release(wrong, other.statement, other.algorithm, other.transcript).save(path)
    with pytest.raises(TranscriptMismatch, match="error bars"):
        Release.open(path).total()


def test_a_transcript_of_absurd_length_is_refused():
    packed = contents.pack(())
    _, _, content = packed.partition(":")
    assert contents.unpack(packed) == ()
    for lie in ("0", "-1", str(1 << 60), "1", "many"):
        with pytest.raises((ValueError, HazemapError)):
            contents.unpack(f"{lie}:{content}")


def test_saving_as_something_else_names_what_there_is(release, tmp_path):
    with pytest.raises(FileError, match=r"\.parquet or \.tif.*export"):
        release.save(tmp_path / "map.shp")


SAVER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.releases.conftest import flat, released
releases = [released(flat(), seed) for seed in (1, 2)]
print("ready", flush=True)
number = 0
while True:
    number = 1 - number
    releases[number].save(sys.argv[1])
"""


@pytest.mark.slow
def test_a_save_killed_at_any_instant_leaves_a_whole_release(path):
    root = Path(__file__).parents[2]
    releases = [released(flat(), seed) for seed in (1, 2)]
    releases[0].save(path)
    for attempt in range(20):
        with subprocess.Popen([sys.executable, "-c", SAVER, path, root], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.011 * attempt)
            process.kill()
        opened = Release.open(path)
        assert any(same(opened, release) for release in releases)


@pytest.mark.slow
def test_saving_100_000_cells_takes_no_longer_than_a_breath(make, path):
    """Measured: 0.8 s. The bound is wide, for machines that do other things beside."""
    release = make(flat(9, depth=9))
    with within(20):
        release.save(path)
        Release.open(path)


def test_every_column_and_key_is_documented(release, path):
    text = (Path(__file__).parents[2] / "docs" / "reference" / "files.md").read_text()
    release.save(path)
    label = json.loads(pq.read_metadata(path).metadata[b"hazemap"])
    for name in (*pq.read_schema(path).names, *pq.read_metadata(path).metadata, *label):
        assert f"`{name if isinstance(name, str) else name.decode()}`" in text


def test_a_whole_file_that_speaks_of_unknown_things_is_not_called_damaged(release, path, monkeypatch):
    described = contents.describe(release)
    monkeypatch.setattr(
        "hazemap.releases.geoparquet.describe", lambda _: {**described, "tree": {"Spheres": {"depth": 3}}}
    )
    release.save(path)
    with pytest.raises(FileError, match=r"is whole, but .*hazemap 0\.1\.0 or a newer one"):
        Release.open(path)
