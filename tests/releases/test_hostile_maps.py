"""Files of maps that somebody made on purpose: refused in words, or answered as their rows say."""

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError, HazemapError
from hazemap.releases import Release, check_whole
from hazemap.releases.column_digests import Digest, column_digests, parts
from hazemap.releases.file_metadata import pack, unpack
from hazemap.releases.geoparquet import digests_of, pieces
from hazemap.releases.transcript_arrays import packed_arrays, unpacked_arrays
from hazemap.spatial.bounding_box import Box

from .conftest import flat, released
from .test_geoparquet import rewritten, same

BOX = Box(13.31, 52.43, 13.52, 52.55)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "map.parquet"


def forged(
    path: Path,
    table: Callable[[pa.Table], pa.Table] = lambda table: table,
    metadata: Callable[[dict[bytes, bytes]], object] = lambda _: None,
    label: Callable[[dict[str, Any]], object] = lambda _: None,
) -> None:
    """A file with another content, and all digests made anew: what somebody can do who knows how."""
    made, said = table(pq.read_table(path)), dict(pq.read_metadata(path).metadata)
    metadata(said)
    text = json.loads(said[b"hazemap"])
    text.pop("digest")
    whole = made if not any(each.null_count for each in made.columns) else pq.read_table(path)
    columns = {name: [digest] for name, digest in column_digests(whole).items()}
    arrays = said.get(b"hazemap.arrays.0", b"")
    text["integrity"] = {"columns": columns, **digests_of(said[b"geo"], said[b"hazemap.transcript.0"], arrays)}
    label(text)
    rewritten(path, made, {**said, b"hazemap": Digest().seal(text).encode()})


def test_a_file_of_the_first_format_is_read_as_before(any_release, path):
    any_release.save(path)
    table, metadata = pq.read_table(path), dict(pq.read_metadata(path).metadata)
    packed, digest = pack(any_release.transcript).encode(), Digest()
    digest.add(*parts(table), metadata[b"geo"], packed)
    label = json.loads(metadata[b"hazemap"])
    for younger in ("digest", "integrity"):
        del label[younger]
    sealed = digest.seal({**label, "format": 1}).encode()
    rewritten(path, table, {b"geo": metadata[b"geo"], b"hazemap": sealed, **pieces(packed)})
    opened = Release.open(path)
    assert same(opened, any_release)
    west, south, east, north = any_release.ground.extent
    box = Box(west + 0.3 * (east - west), south + 0.3 * (north - south), east, north)
    assert opened.count(box) == any_release.count(box)


def test_rows_in_another_order_with_honest_digests_give_the_same_answers(release, path):
    """Sums over cells that stand in another order may differ in their last digits."""
    release.save(path)
    order = np.random.default_rng(1).permutation(release.cells.size)
    forged(path, lambda table: table.take(order))
    opened = Release.open(path)
    assert opened.cells.cells.tolist() == release.cells.cells[order].tolist()
    for region in (BOX, release.cells.tree.names(release.cells.cells[3:5])):
        found, wanted = opened.count(region), release.count(region)
        assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
        assert (found.unbiased, found.stddev) == pytest.approx((wanted.unbiased, wanted.stddev))
        assert found.best_guess == pytest.approx(wanted.best_guess)


def test_statistics_of_row_groups_are_not_believed(release, path):
    """Another writer, other row groups, no statistics at all: the numbers of the rows are the numbers."""
    release.save(path)
    table, metadata = pq.read_table(path), pq.read_metadata(path).metadata
    with pq.ParquetWriter(path, table.schema.remove_metadata(), store_schema=False, write_statistics=False) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(metadata)
    assert Release.open(path).count(BOX) == release.count(BOX)


def twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table.slice(0, 1)])


def set_to(name: str, values: Any, type_: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        column = pa.array([values(each) for each in table[name].to_pylist()], type_)
        return table.set_column(table.schema.get_field_index(name), name, column)

    return change


@pytest.mark.parametrize(
    "change",
    [
        twice,
        set_to("best_guess", lambda _: None, pa.float64()),
        set_to("best_guess", lambda _: float("nan"), pa.float64()),
        set_to("stddev", lambda _: float("inf"), pa.float64()),
        set_to("unbiased", lambda each: each, pa.float32()),
        set_to("unbiased", str, pa.string()),
        set_to("cell", lambda _: None, pa.string()),
        set_to("cell", lambda each: each.replace("-", "+"), pa.string()),
        set_to("cell", lambda each: each + "9", pa.string()),
        set_to("cell", lambda each: each + "0" * 30, pa.string()),
        set_to("cell", lambda _: "root", pa.string()),
        set_to("cell", len, pa.int64()),
        lambda table: table.drop_columns("stddev"),
        lambda table: table.slice(0, 0),
    ],
)
def test_columns_that_are_none_are_refused_in_words(release, path, change):
    release.save(path)
    forged(path, change)
    with pytest.raises(FileError, match=r"map\.parquet"):
        Release.open(path).count(BOX)


@pytest.mark.parametrize(
    "change",
    [
        lambda label: label["integrity"]["columns"]["best_guess"].append("00"),
        lambda label: label["integrity"]["columns"].update(best_guess=[]),
        lambda label: label["integrity"]["columns"].pop("stddev"),
        lambda label: label["integrity"].update(columns=3),
        lambda label: label.update(integrity=None),
        lambda label: label["integrity"].update(arrays="00"),
        lambda label: label["integrity"].pop("transcript"),
    ],
)
def test_digests_that_do_not_fit_the_file_are_refused_in_words(release, path, change):
    release.save(path)
    forged(path, label=change)
    with pytest.raises(FileError, match="damaged"):
        Release.open(path).count(BOX)


def others(change: Callable[[list[Any]], list[Any]]) -> Callable[[dict[bytes, bytes]], None]:
    def put(metadata: dict[bytes, bytes]) -> None:
        metadata[b"hazemap.arrays.0"] = packed_arrays(change(unpacked_arrays(metadata[b"hazemap.arrays.0"])))

    return put


@pytest.mark.parametrize(
    "change",
    [
        others(lambda arrays: arrays[:-1]),
        others(lambda arrays: [*arrays, arrays[0]]),
        others(lambda arrays: arrays[::-1]),
        others(lambda arrays: [each[:-1] for each in arrays]),
        others(lambda arrays: [each.astype(float) for each in arrays]),
        others(lambda arrays: [each[:10] for each in arrays]),
        lambda metadata: metadata.update({b"hazemap.arrays.0": b"[]\n"}),
        lambda metadata: metadata.update({b"hazemap.arrays.0": b'[["int64",99999999999,8]]\nAAAAAAAAAAA='}),
        lambda metadata: metadata.update({b"hazemap.arrays.0": b'[["int64",-1,-1]]\n'}),
        lambda metadata: metadata.update({b"hazemap.arrays.0": b'[["object",1,1]]\nAA=='}),
        lambda metadata: metadata.update({b"hazemap.arrays.0": b"{"}),
        lambda metadata: metadata.pop(b"hazemap.arrays.0"),
    ],
)
def test_arrays_that_are_not_those_of_the_transcript_are_refused_in_words(release, path, change):
    release.save(path)
    forged(path, metadata=change)
    with pytest.raises(HazemapError):
        Release.open(path).count(BOX)


def test_error_bars_that_the_answers_do_not_give_are_refused(release, path):
    release.save(path)
    forged(path, set_to("stddev", lambda each: each / 2, pa.float64()))
    with pytest.raises(HazemapError, match="error bars"):
        Release.open(path).total()


def test_what_is_read_later_is_read_once_and_travels_with_a_copy(release, path):
    import copy
    import pickle

    release.save(path)
    opened = Release.open(path)
    assert "transcript" not in vars(opened)
    assert "algorithm" not in vars(opened)
    for twin in (copy.copy(opened), pickle.loads(pickle.dumps(opened)), opened):
        assert twin.transcript == release.transcript
        assert twin.algorithm == release.algorithm
        assert twin.count(BOX) == release.count(BOX)
    assert opened.transcript is opened.transcript
    with pytest.raises(AttributeError, match="has no 'colour'"):
        _ = opened.colour


def test_a_map_of_one_cell_comes_back(path):
    one = released(flat(0))
    one.save(path)
    assert same(Release.open(path), one)
    assert Release.open(path).count(BOX) == one.count(BOX)


def test_whoever_checks_a_file_finds_every_changed_byte(release, path, tmp_path):
    """Statistics, by which other tools skip rows, names of types, indexes of pages: none is a number of the map."""
    release.save(path)
    check_whole(path)
    content, other = path.read_bytes(), tmp_path / "other.parquet"
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rng = np.random.default_rng(1)
    places = np.concatenate([rng.integers(0, footer, 20), rng.integers(footer, len(content), 100)])
    for at in places.tolist():
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        other.write_bytes(changed)
        with pytest.raises(FileError):
            check_whole(other)


def test_statistics_that_lie_are_found_by_who_checks_the_file(release, path):
    release.save(path)
    most = pq.read_metadata(path).row_group(0).column(2).statistics.max
    content, said = path.read_bytes(), np.float64(most).tobytes()
    path.write_bytes(content.replace(said, np.float64(most * 2).tobytes()).replace(said, said))
    assert pq.read_metadata(path).row_group(0).column(2).statistics.max == 2 * most
    with pytest.raises(FileError, match="damaged"):
        check_whole(path)


@pytest.mark.parametrize("times", [(1 << 27) + 1, 1 << 40])
def test_a_small_file_does_not_become_gigabytes_of_arrays(times):
    squeezed = pa.Codec("zstd").compress(bytes(1 << 20), asbytes=True)
    text = json.dumps([["int64", times, len(squeezed)]]).encode() + b"\n" + base64.b64encode(squeezed)
    with pytest.raises(ValueError, match="impossible length"):
        unpacked_arrays(text)


def test_a_small_file_does_not_become_gigabytes_of_text():
    squeeze = zlib.compressobj(1)
    text = b"".join(squeeze.compress(b"[],") for _ in range(1_000)) + squeeze.flush()
    with pytest.raises(ValueError, match="impossible length"):
        unpack(f"{1 << 31}:" + base64.b64encode(text).decode())


def test_few_bytes_that_say_many_rows_are_not_read(release, path, monkeypatch):
    release.save(path)
    monkeypatch.setattr("hazemap.releases.page_sizes.ROWS", release.cells.size - 1)
    with pytest.raises(FileError, match="row group holds more"):
        Release.open(path)
