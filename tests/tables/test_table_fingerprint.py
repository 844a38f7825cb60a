"""A table's fingerprint: the same for the same people and places, however they are written down; else another."""

from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from hazemap.engines.streaming.table_fingerprint import SLOTS, _unmixed
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, OneVote, RowIsPerson
from hazemap.tables.keyed_hash import mix
from hazemap.tables.table_fingerprint import FEWEST, MORE, MOST, SAME_PEOPLE, SAME_PLACES, Fingerprint
from hazemap.values.cell_slot_counters import ObservedCellSlots

KEY = b"k" * 32
TREE = Quadtree.world(depth=4)
ONE_ROW = AtMostRows(1)


def visits(people: np.ndarray, seed: int, rows: int = 3) -> pa.Table:
    """Rows of people near where each of them lives, in a city of some 100 km."""
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(2, 3, len(people)), rng.uniform(48, 49, len(people))
    near = rng.normal(0, 0.01, (2, rows * len(people)))
    return pa.table(
        {"user": np.repeat(people, rows), "lon": np.repeat(lon, rows) + near[0], "lat": np.repeat(lat, rows) + near[1]}
    )


def taken(source, rule: Bounding = ONE_ROW, key: bytes = KEY, **options) -> Fingerprint:
    table = open_table(source, person="user", **options)
    table.watch(key)
    assert table.fingerprint is None
    table.votes(TREE, rule)
    assert table.fingerprint is not None
    return table.fingerprint


@pytest.mark.parametrize("people", [4, 500, 6000])
def test_a_table_that_is_renamed_reordered_or_converted_has_the_same_fingerprint(people, tmp_path):
    table = visits(np.arange(people) * 1_000_003 - 7, seed=1)
    one = taken(table)
    shuffled = table.take(np.random.default_rng(2).permutation(len(table)))
    pc.write_csv(table, tmp_path / "table.csv")
    pq.write_table(shuffled, tmp_path / "another.parquet", row_group_size=1000)
    texts = shuffled.set_column(0, "user", table["user"].cast(pa.string()).take(pa.array(range(len(table)))))
    texts = table.set_column(0, "user", table["user"].cast(pa.string()))
    floats = table.set_column(0, "user", table["user"].cast(pa.float64()))
    for other in (tmp_path / "table.csv", tmp_path / "another.parquet", shuffled.to_pandas(), texts, floats):
        assert taken(other) == one
    assert taken(table, OneVote(), threads=1) == taken(table, threads=3) == one
    assert one.looks_like(one) and len(one.sample) == people if people <= MOST else MOST / 4 < len(one.sample) <= MOST
    rounded = {name: table[name].cast(pa.float32()).cast(pa.float64()) for name in ("lon", "lat")}
    assert people < 500 or one.looks_like(taken(pa.table({"user": table["user"], **rounded})))


def test_statistics_under_values_only_read_the_same_fingerprint():
    table = visits(np.arange(900), seed=1)
    table = table.append_column("speed", pa.array(np.ones(len(table))))
    opened = open_table(table, person="user", measured="speed")
    opened.watch(KEY)
    from hazemap.spatial.bounding_box import WORLD
    from hazemap.spatial.h3_hexagons import Hexagons
    from hazemap.temporal.time_slots import Always
    from hazemap.values.value_encoding import ValueEncoding

    opened.pairs(ObservedCellSlots(Hexagons(WORLD, 0, 5), Always(), ValueEncoding(0.0, 2.0)))
    assert opened.fingerprint == taken(table)


@pytest.mark.parametrize("people", [40, 700, 20_000])
def test_nine_tenths_of_a_table_look_like_it_and_half_of_it_beside_as_many_others_does_not(people):
    """Missed with probability < 1e-6 a time: see `looks_like`; the half is at 1/2 where 3/4 are needed, as unlikely."""
    everybody = visits(np.arange(people), seed=3)
    most, half = 3 * (people * 9 // 10), 3 * (people // 2)
    others = visits(np.arange(10**6, 10**6 + people), seed=4)
    whole = taken(everybody)
    assert whole.looks_like(taken(everybody.slice(0, most)))
    assert taken(everybody.slice(0, most)).looks_like(whole)
    assert whole.looks_like(taken(pa.concat_tables([others.slice(most), everybody.slice(0, most)])))
    assert not whole.looks_like(taken(pa.concat_tables([others.slice(half), everybody.slice(0, half)])))
    assert people < 700 or whole.looks_like(taken(everybody.slice(0, len(everybody) // 10)))


def test_other_people_do_not_look_alike_even_where_they_are_numbered_alike():
    one, other = (taken(visits(np.arange(5000), seed=seed)) for seed in (5, 6))
    assert {each[1] for each in one.sample} == {each[1] for each in other.sample}
    assert not one.looks_like(other)
    assert not one.looks_like(taken(visits(np.arange(5000, 10_000), seed=5)))


def test_false_alarms_are_rarer_than_one_in_a_million_where_two_of_fifty_share_no_more_than_a_place():
    """The chance that enough of n others with the same ids are at the same place, each with probability 1/50."""
    for common in range(FEWEST, MOST + 1):
        need = min(common, int(np.ceil(SAME_PLACES * common)) + MORE)
        chance = sum(comb(common, k) * 0.02**k * 0.98 ** (common - k) for k in range(need, min(common, need + 60) + 1))
        assert chance < 1e-6, common


def test_a_miss_of_nine_tenths_is_rarer_than_one_in_a_million():
    for compared in range(190, MOST + 1):
        least = int(np.ceil(SAME_PEOPLE * compared))
        assert sum(comb(compared, k) * 0.9**k * 0.1 ** (compared - k) for k in range(least)) < 1e-6, compared


def test_rows_that_are_people_of_their_own_are_told_by_their_places(tmp_path):
    table = visits(np.arange(3000), seed=7)
    pc.write_csv(table, tmp_path / "table.csv")
    one = taken(table, RowIsPerson())
    assert one.kind == "rows" and taken(tmp_path / "table.csv", RowIsPerson()) == one
    assert one.looks_like(taken(table.slice(0, 8100), RowIsPerson()))
    assert not one.looks_like(taken(visits(np.arange(3000), seed=8), RowIsPerson()))
    assert not one.looks_like(taken(table))


def test_another_key_says_nothing_and_neither_does_a_handful_of_people():
    table = visits(np.arange(600), seed=9)
    one, other = taken(table), taken(table, key=b"l" * 32)
    assert not one.looks_like(other) and not {each[1] for each in one.sample} & {each[1] for each in other.sample}
    assert not taken(table.slice(0, 9)).looks_like(taken(table.slice(0, 9)))


def test_a_box_leaves_most_of_it_to_be_seen():
    table = visits(np.arange(6000), seed=10)
    assert taken(table).looks_like(taken(table, box=Box(2.0, 48.0, 3.0, 48.7)))


def test_a_fingerprint_comes_back_from_its_bytes_and_of_anything_else_nothing_is_said():
    one = taken(visits(np.arange(2000), seed=11))
    data = one.to_bytes()
    assert Fingerprint.from_bytes(data) == one and len(data) < 14 * MOST
    for wrong in (b"", data[:-1], b"2" + data[1:], b"\n", b"\xff\0\xff\0\xff\0\xff\n", data.replace(b"people\0", b"")):
        assert Fingerprint.from_bytes(wrong) is None


def test_ids_that_are_no_numbers_as_people_write_them_are_texts():
    place = {"lon": np.linspace(2, 3, 8), "lat": np.linspace(48, 49, 8)}
    odd = ["07", "7", "+7", "-7", "-07", "7.0", "", "99999999999999999999"]
    codes = [each[1] for each in taken(pa.table({"user": odd, **place})).sample]
    assert len(set(codes)) == 8
    whole = taken(pa.table({"user": pa.array([7, -7] * 4), **place}))
    assert {each[1] for each in whole.sample} < set(codes)


def test_the_hash_of_texts_is_undone_exactly():
    words = np.random.default_rng(1).integers(0, 2**64, 100, dtype=np.uint64)
    with np.errstate(over="ignore"):
        assert [int(_unmixed(word)) for word in mix(words)] == words.tolist()
    assert SLOTS & (SLOTS - 1) == 0
