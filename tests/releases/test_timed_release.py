"""Maps with time as files, tables and answers."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import hazemap
from hazemap import Box, Ledger, TimedRelease
from hazemap.cli.main import main
from hazemap.errors import FileError, InputError
from hazemap.privacy.random_stream import Stream
from hazemap.releases.column_digests import Digest, parts
from hazemap.releases.estimates import PeopleOutside
from hazemap.releases.geoparquet import joined
from hazemap.trust.curator import CentralPrices

BERLIN, WEST, NIGHT = Box(13.2, 52.4, 13.6, 52.6), Box(13.25, 52.42, 13.37, 52.55), "22:00-06:00"


def table():
    """6,000 rows of 2,000 people in two clusters; in the western one nobody is at night."""
    import pyarrow as pa

    rng = np.random.default_rng(3)
    spot = np.where(rng.random(6_000) < 0.7, 0.3, 0.8)[:, None] + rng.normal(0, 0.05, (6_000, 2))
    place = {"lon": 13.2 + 0.4 * spot[:, 0], "lat": 52.4 + 0.2 * spot[:, 1]}
    hour = np.where(place["lon"] < 13.4, rng.integers(6, 22, 6_000), rng.integers(0, 24, 6_000))
    moments = pa.array(hour * 3_600_000_000 + 5, pa.timestamp("us"))
    return pa.table({"person": rng.integers(0, 2_000, 6_000), **place, "ts": moments})


def released(folder, **more):
    asked = {"slots": "clock:6,14,22", "epsilon": 2, "box": BERLIN, "bounding": "rows:3", "person": "person", **more}
    return hazemap.release(table(), stream=Stream.fixed(b"slots"), ledger=Ledger(folder / "ledger.sqlite"), **asked)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> TimedRelease:
    return released(tmp_path_factory.mktemp("timed"))


def test_a_slot_is_a_map_that_answers_like_any_other(made):
    assert made.slots == ("06:00-14:00", "14:00-22:00", NIGHT)
    night = made.during(NIGHT)
    assert abs(night.total().unbiased - made.during(2).total().unbiased) < 1e-9
    assert str(PeopleOutside.of(night)) == "Rows outside the map were counted in all slots together alone."
    for slots in (NIGHT, [0, 1], "0-1", "2-0", "06:00-14:00,2"):
        some = made.during(slots)
        inside = some.count(WEST)
        assert inside.low <= inside.best_guess <= inside.high
        assert inside.best_guess < some.total().unbiased
        assert abs(some.count(BERLIN).unbiased - some.total().unbiased) < 8 * some.total().stddev
    assert made.during("0-2").total() == made.during([0, 1, 2]).total()
    assert made.during([0, 1, 2]).total().unbiased == pytest.approx(made.total().unbiased)
    assert made.during([0, 1, 2]).total().stddev == pytest.approx(made.total().stddev)
    west = [made.during(slot).count(WEST).unbiased / made.during(slot).total().unbiased for slot in (0, 2)]
    assert west[0] > west[1] + 0.1


@pytest.mark.parametrize(
    ("slots", "numbers"), [("0", [0]), ("2-0", [2, 0]), (NIGHT, [2]), ("1,1,0-1", [1, 0]), (f"{NIGHT}-0", [2, 0])]
)
def test_slots_are_named_in_many_ways(made, slots, numbers):
    assert made.numbered(slots) == numbers


@pytest.mark.parametrize("slots", ["", "3", "noon", "0-9", "-1", -1, [], [0, 3], "0,,1"])
def test_what_is_no_slot_is_refused_in_words(made, slots):
    with pytest.raises(InputError, match="slot"):
        made.during(slots)


def test_a_file_holds_all_of_it(made, tmp_path):
    path = tmp_path / "hours.parquet"
    made.save(path)
    back = hazemap.open(path)
    assert isinstance(back, TimedRelease) and back.statement == made.statement
    assert np.array_equal(back.maps.values, made.maps.values)
    assert np.array_equal(back.maps.unbiased, made.maps.unbiased)
    assert str(back.during(1).count(WEST)) == str(made.during(1).count(WEST))
    assert str(back.count(WEST)) == str(made.count(WEST))
    again = back.replay(CentralPrices(back.statement.budget))
    assert np.array_equal(again.maps.values, made.maps.values) and again.map is again.maps.total
    made.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="damaged"):
        hazemap.open(path)
    with pytest.raises(FileError, match=r"\.parquet"):
        made.save(tmp_path / "hours.tif")


def of_each(tables, names):
    """The rows of each slot from a table of each, of the same cells in all: those of one cell follow each other."""
    (name, first), *rest = ((name, np.stack([table[name] for table in tables], 1).ravel()) for name in tables[0])
    return {name: first, "slot": np.tile(np.array(names, dtype=object), len(first) // len(names)), **dict(rest)}


def same_tables(ours, theirs) -> bool:
    """Whether two tables have the same columns, in order, and in these the same; numbers as far as sums are."""
    close = {"f": lambda one, other: np.allclose(one, other, rtol=1e-12, atol=1e-12, equal_nan=True)}
    same = (close.get(ours[name].dtype.kind, np.array_equal)(ours[name], theirs[name]) for name in ours)
    return list(ours) == list(theirs) and all(same)


def test_the_rows_of_all_slots_are_those_of_each_and_made_at_once(made, monkeypatch):
    places = np.arange(made.maps.cells.size)[::-1]
    each = of_each([slot.columns(places) for slot in made.by_slot], made.slots)
    slots = []
    monkeypatch.setattr(TimedRelease, "_during", lambda _made, chosen: slots.append(chosen))
    assert same_tables(made._of_slots(places, 0.95), each) and len(slots) <= 1


def relabelled(path, **changes) -> None:
    """A file with another label and an honest digest: what somebody can do who knows how."""
    file = pq.ParquetFile(path)
    said = {key: text for key, text in file.metadata.metadata.items() if key != b"hazemap.bytes"}
    groups = [file.read_row_group(each).replace_schema_metadata(None) for each in range(file.num_row_groups)]
    label = {**json.loads(said[b"hazemap"]), **changes}
    label.pop("digest")
    digest = Digest()
    for each in groups:
        digest.add(*parts(each))
    digest.add(said[b"geo"], joined(said))
    with pq.ParquetWriter(path, groups[0].schema, store_schema=False) as writer:
        for each in groups:
            writer.write_table(each)
        writer.add_key_value_metadata({**said, b"hazemap": digest.seal(label).encode()})


@pytest.mark.parametrize("changes", [{"day": each} for each in (-1, 10**30, "0", 1.5, True, None, [0])])
def test_a_label_that_names_no_question_is_refused(made, tmp_path, changes):
    path = tmp_path / "hours.parquet"
    made.save(path)
    relabelled(path, **changes)
    with pytest.raises(FileError, match="damaged"):
        hazemap.open(path)


def test_a_label_that_names_other_slots_or_another_question_is_found(made, tmp_path, capsys):
    path = tmp_path / "hours.parquet"
    made.save(path)
    relabelled(path)
    assert main(["inspect", str(path), "--replay"]) == 0
    relabelled(path, day=1)  # the first grid; question 0 counts everybody
    capsys.readouterr()
    assert main(["inspect", str(path), "--replay"]) != 0 and "other numbers" in capsys.readouterr().err
    relabelled(path, slots=["<b>morning</b>", "noon", "night"])
    with pytest.raises(FileError, match="other slots"):
        hazemap.open(path)


def test_the_table_has_the_total_and_every_slot(made, tmp_path):
    slots, day = made.to_geodataframe(), made.total_release.to_geodataframe()
    assert len(day) == made.ground.places.size and len(slots) == 3 * made.maps.cells.size
    assert day["unbiased"].sum() == pytest.approx(slots["unbiased"].sum()) == pytest.approx(made.total().unbiased)
    for frame in (slots, day):
        assert ((frame["low"] <= frame["best_guess"]) & (frame["best_guess"] <= frame["high"])).all()
    first = slots.iloc[:3]
    assert first["cell"].nunique() == 1 and tuple(first["slot"]) == made.slots
    one = made.during(1).columns()
    assert np.allclose(slots[slots.slot == made.slots[1]]["stddev"], one["stddev"])
    made.save(tmp_path / "hours.parquet")
    import geopandas

    stored = geopandas.read_parquet(tmp_path / "hours.parquet")
    assert np.array_equal(stored[stored.slot == "all"]["best_guess"], day["best_guess"])
    stored, frame = stored[stored.slot != "all"].reset_index(drop=True), slots
    assert stored[["cell", "slot"]].equals(frame[["cell", "slot"]])
    assert np.array_equal(stored["best_guess"], frame["best_guess"])
    assert stored.geometry.to_wkb().equals(frame.geometry.to_wkb())


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".csv", ".tif"])
def test_exports_carry_slots_and_the_total_apart_so_that_a_sum_counts_everybody_once(made, tmp_path, suffix):
    path, total = tmp_path / f"hours{suffix}", tmp_path / f"hours.total{suffix}"
    made.export(path)
    assert total.exists()
    if suffix == ".tif":
        import rasterio

        with rasterio.open(path) as raster:
            assert raster.descriptions == made.slots
            assert np.nansum(raster.read(1)) == pytest.approx(made.during(0).total().best_guess, rel=1e-3)
    elif suffix == ".csv":
        assert path.read_text().splitlines()[0].startswith("cell,slot,level,best_guess")
    else:
        import geopandas

        found = geopandas.read_file(path, layer=0)
        assert set(found["slot"]) == set(made.slots) and "slot" not in geopandas.read_file(total, layer=0)
        assert found["best_guess"].sum() == pytest.approx(geopandas.read_file(total, layer=0)["best_guess"].sum())


def test_it_says_what_it_is(made):
    text = "\n".join(made.summary())
    assert "cells in each slot" in text and NIGHT in text
    assert "the slots: parts of the day (06:00-14:00, 14:00-22:00, 22:00-06:00), as clocks of UTC show it" in (
        made.statement.public
    )
    assert "the number of people in every slot" in made.statement.charged
    assert "<img" in made._repr_html_()


def test_slots_need_times_and_the_adaptive_method(tmp_path):
    for more, words in (
        ({"method": "flat:4"}, "leave the method out"),
        ({"slots": "hour"}, "--since"),
        ({"slots": "hourly"}, "hour-of-day"),
        ({"slots": None, "time_zone": "Europe/Berlin"}, "name them too"),
        ({"time_zone": "Europe/Nowhere"}, "Europe/Berlin or UTC"),
    ):
        with pytest.raises(InputError, match=words):
            released(tmp_path, **more)
    assert not isinstance(released(tmp_path, slots="always"), TimedRelease)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [{"cells": "h3:4-8"}, {"box": None}, {"rho": "0.5", "epsilon": None}, {"bounding": "cells:4"}]
)
def test_other_cells_boxes_budgets_and_rules(tmp_path, more):
    made = released(tmp_path, **more)
    made.save(tmp_path / "other.parquet")
    back = hazemap.open(tmp_path / "other.parquet")
    assert back.during([0, 1, 2]).total().unbiased == pytest.approx(made.total().unbiased)
    assert abs(made.total().unbiased / made.during("0-1").total().unbiased) > 1


def test_a_gis_draws_every_slot_in_one_scale(made):
    slots = made.layer_styles()
    assert [style.name for style in slots] == [f"density {slot}" for slot in made.slots]
    assert {rule.conditions[0].text for rule in slots[0].rules} == {made.slots[0]}
    assert len({tuple(rule.label for rule in style.rules) for style in slots}) == 1


def test_detail_that_is_borrowed_from_the_total_is_asked_for_and_said_and_hatched(made):
    """By default a slot is painted in the cells that it was counted in, and its picture has the numbers of answers."""
    plain, borrowing = made.during(0), made.borrowing(0)
    assert plain.shown is plain.map and plain.borrowed is None
    assert borrowing.total() == plain.total() and borrowing.count(WEST) == plain.count(WEST)
    assert borrowing.borrowed.cells.size > made.maps.cells.size
    pictures = [each.plot(width=5, base=False) for each in (plain, borrowing)]
    hatched = [each.findobj(lambda one: one.get_gid() == "hatched") for each in pictures]
    notes = [each.findobj(lambda one: one.get_gid() == "note")[0].get_label() for each in pictures]
    assert hatched[0] == [] and len(hatched[1]) == 1 and ["borrowed" in each for each in notes] == [False, True]
    assert len(hatched[1][0].get_paths()) == borrowing.maybe_empty.sum() == (borrowing.intervals().low <= 0).sum()
    assert pictures[0]._repr_png_().startswith(b"\x89PNG"), "a fresh notebook shows it"
