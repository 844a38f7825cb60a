"""Maps with marks in slots: made, kept, opened, asked, exported, drawn."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hazemap
from hazemap.cli.main import main
from hazemap.draw import encode
from hazemap.errors import FileError, InputError
from hazemap.estimate.marked_counts import MarkedShares
from hazemap.federated.planning.trust_plan import planned_trusts
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Session
from hazemap.releases import MarkedRelease, MarkedTimedRelease, Release
from hazemap.studio import release_review
from hazemap.trust.curator import CentralPrices

from .test_timed_release import of_each, relabelled, same_tables

BOX = hazemap.Box(13.0, 52.3, 13.8, 52.7)
WEST = hazemap.Box(13.0, 52.3, 13.4, 52.7)
THREE, MINUTES = ["a", "b", "c"], "clock:" + ",".join(f"{at // 60}:{at % 60:02}" for at in range(1440))
PAGE = "<title><!--title--></title><!--summary--><!--release-->"
YEARS = {"since": "2023-01-01", "until": "2025-01-01"}
MARKS, SLOTS = ["ill", "status=2"], ("06:00-14:00", "14:00-22:00", "22:00-06:00")


def rows(people=6_000, seed=3):
    """A row each; the ill are more in the west and by day, and few are there at night."""
    rng = np.random.default_rng(seed)
    lon, lat = 13.4 + rng.normal(0, 0.12, people), 52.5 + rng.normal(0, 0.06, people)
    hour = np.where(rng.random(people) < 0.05, 23, rng.integers(6, 22, people))
    ill = rng.random(people) < np.where(lon < 13.4, 0.6, 0.2) * np.where(hour < 14, 1, 0.5)
    columns = {"user": np.arange(people), "lon": lon, "lat": lat, "ill": ill, "status": rng.integers(0, 3, people)}
    return pa.table(columns | {"ts": pa.array(hour * 3_600_000_000, pa.timestamp("us"))})


def released(folder, **more):
    asked = {"epsilon": 2, "box": BOX, "mark": MARKS, "slots": "clock:6,14,22", "person": "user", **more}
    return hazemap.release(rows(), stream=Stream.fixed(b"both"), ledger=hazemap.Ledger(folder / "l.sqlite"), **asked)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    return released(folder, output=folder / "m.parquet"), folder / "m.parquet"


@pytest.fixture(scope="module")
def made(kept) -> MarkedTimedRelease:
    return kept[0]


def test_it_is_opened_as_it_was_made(kept, tmp_path):
    made, path = kept
    again = hazemap.open(path)
    assert isinstance(again, MarkedTimedRelease) and isinstance(Release.open(path), MarkedRelease)
    assert again.marks == tuple(MARKS) and again.slots == SLOTS and again.statement == made.statement
    assert np.array_equal(again.by_mark.numbers, made.by_mark.numbers)
    assert again.to_dataframe().equals(made.to_dataframe())
    replayed = again.replay(CentralPrices(again.statement.budget))
    assert np.array_equal(replayed.by_mark.numbers, made.by_mark.numbers)
    assert np.array_equal(replayed.map.unbiased, made.map.unbiased) and replayed.counts is replayed.by_mark.total
    again.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    with pytest.raises(FileError, match=r"marks and time can be saved as \.parquet"):
        made.save(tmp_path / "m.tif")


def test_the_statement_says_marks_and_slots_and_one_price(made):
    public, charged = made.statement.public, made.statement.charged
    assert "the marks that are counted: ill, status=2" in public
    assert any("parts of the day (06:00-14:00" in said for said in public)
    assert "every number of those with marks and without, in every cell and slot" in charged
    assert made.statement.budget == hazemap.PureDP(2)
    assert sum(exchange.question.share for exchange in made.transcript) == 1


def test_slots_add_up_to_the_total_and_shares_are_near_the_truth(made):
    table = rows().to_pandas()
    table = table[table.lon.between(13, 13.8) & table.lat.between(52.3, 52.7)]
    hour = table.ts.dt.hour
    when = {"06:00-14:00": hour.between(6, 13), "14:00-22:00": hour.between(14, 21), 2: hour == 23, "0-1": hour < 22}
    for slots, some in when.items():
        part = made.during(slots)
        for where, inside in ((None, some), (WEST, some & (table.lon < 13.4))):
            found, people = part.share(where), table[inside]
            assert abs(found.people.unbiased - len(people)) < 60  # the map is a square around the box
            for share, true in zip(found.shares, (people.ill.mean(), (people.status == 2).mean()), strict=True):
                assert 0 <= share.low <= share.value <= share.high <= 1
                assert share.value == pytest.approx(true, abs=0.05 if slots != 2 else 0.2)
    parts = [made.during(slot) for slot in SLOTS]
    assert np.array_equal(sum(part.counts.sides for part in parts), made.counts.sides)
    assert sum(part.total().unbiased for part in parts) == made.total().unbiased
    assert made.during("0-2").share() == made.share()
    widths = [part.share().shares[0].high - part.share().shares[0].low for part in parts]
    assert widths[2] > 3 * max(widths[:2])  # few are there at night
    with pytest.raises(InputError, match="no slot 'noon'"):
        made.during("noon")


def test_the_table_has_the_shares_of_the_total_and_of_every_slot(made):
    frame, total = made.to_dataframe(), made.total_release.to_dataframe()
    cells = made.cells.size
    assert len(frame) == 3 * cells and made.told == 4 * cells and list(frame.slot[:3]) == list(SLOTS)
    assert frame["unbiased"].sum() == pytest.approx(made.total().unbiased), "a sum over the table counts all once"
    night = frame[frame.slot == SLOTS[2]]
    for column in ("unbiased", "ill_unbiased", "status=2_unbiased"):
        each = frame.groupby("cell", sort=False)[column].sum()
        assert np.allclose(each.to_numpy(), total[column])
    for mark in MARKS:
        share, low, high = (frame[f"{mark}_{what}"] for what in ("share", "low", "high"))
        known = share.notna()
        assert ((low <= share) & (share <= high))[known].all() and (low >= 0).all() and (high <= 1).all()
    alone = made.during(2).to_dataframe()
    assert np.array_equal(night["ill_low"], alone["ill_low"]) and np.array_equal(night["stddev"], alone["stddev"])


def test_the_file_is_read_by_other_tools(kept):
    import geopandas

    made, path = kept
    stored = geopandas.read_parquet(path)
    assert (stored[stored.slot == "all"]["ill_share"].to_numpy() == made.counts.shares("ill").values).all()
    stored = stored[stored.slot != "all"].reset_index(drop=True)
    frame = made.to_geodataframe()
    assert stored[["cell", "slot", "ill_share"]].equals(frame[["cell", "slot", "ill_share"]])
    assert stored.geometry.to_wkb().equals(frame.geometry.to_wkb())


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg", ".csv", ".tif"])
def test_exports_carry_slots_and_shares(made, tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    made.export(path, **({"column": "ill_high"} if suffix == ".tif" else {}))
    if suffix == ".tif":
        import rasterio

        with rasterio.open(path) as raster:
            assert raster.descriptions == SLOTS and 0 <= np.nanmin(raster.read()) <= np.nanmax(raster.read()) <= 1
    elif suffix == ".csv":
        assert path.read_text().splitlines()[0].startswith("cell,slot,level,best_guess")
    else:
        import geopandas

        assert set(geopandas.read_file(path, layer=0)["slot"]) == set(SLOTS)
        assert "slot" not in geopandas.read_file(tmp_path / f"m.total{suffix}", layer=0)


def test_bands_are_of_every_slot_and_styles_too(made):
    assert made.bands(None).names[:2] == (f"ill_share {SLOTS[0]}", f"status=2_share {SLOTS[0]}")
    names = [style.name for style in made.layer_styles()]
    shares = [f"share {mark}" for mark in MARKS]
    assert names == [f"{what} {slot}" for what in (*shares, "density") for slot in SLOTS]
    assert [style.name for style in made.total_release.layer_styles()] == [*shares, "density"]
    assert "22:00-06:00: ill: " in "\n".join(made.summary())


def test_it_is_drawn_for_every_slot_in_one_scale(made):
    figure = made.plot(width=6, title="Who is ill?", base=False)
    labels = [axes.get_label() for axes in figure.axes]
    assert {f"{mark}, {slot}" for mark in MARKS for slot in SLOTS} <= set(labels) and "value legend" in labels
    assert encode(figure, ".svg")
    with pytest.raises(InputError, match="some slots together"):
        made.page_data()
    assert made.during(1).page_data()["kind"] and "<img" in made._repr_html_()


def test_commands_answer_of_a_slot(kept, tmp_path, capsys):
    _, path = kept
    for asked in (["--slot", "0-1"], ["--slot", SLOTS[2], "--mark", "ill"], ["--at", "13.4,52.5", "--slot", "1"], []):
        assert main(["ask", str(path), *asked, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert all(0 <= each["low"] <= each["high"] <= 1 for each in found["shares"])
    assert main(["inspect", str(path), "--replay"]) == 0 and "exactly these numbers" in capsys.readouterr().out
    for more, why in (
        (["--beside", "density"], "nothing beside them"),
        (["--slot", "9"], "no slot"),
        (["--blur", "100", "-o", str(tmp_path / "c.gif")], "shows cells"),
    ):
        assert main(["show", str(path), *more]) != 0 and why in capsys.readouterr().err


@pytest.mark.slow
def test_commands_draw_slots_one_or_all_or_one_after_another(kept, tmp_path):
    from PIL import Image

    for goal, more in (("a.png", []), ("b.png", ["--slot", "1", "--beside", "density"]), ("c.gif", [])):
        assert main(["show", str(kept[1]), "-o", str(tmp_path / goal), "--no-base", "--width", "5", *more]) == 0
    with Image.open(tmp_path / "c.gif") as moving:
        assert moving.n_frames == 6


def test_a_page_is_of_the_slots_that_are_named(kept, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hazemap.releases.page.page_file.template", lambda: PAGE)
    path, goal = str(kept[1]), tmp_path / "page.html"
    assert main(["show", path, "-o", str(goal), "--slot", "0-1"]) == 0
    assert "<title>memory, 0-1</title>" in goal.read_text()
    goal.unlink()
    capsys.readouterr()
    assert main(["show", path, "-o", str(goal)]) != 0 and "some slots together" in capsys.readouterr().err
    assert not goal.exists()
    assert b"m.parquet, all slots together</title>" in release_review.page(kept[1])
    assert release_review.facts(kept[1])["slots"] == list(SLOTS)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"slots": ["<b>morning</b>", "noon", "night"]}, "other slots"),
        ({"slots": None}, "damaged"),
        ({"marks": ["ill", "status=1"]}, "other marks"),
        ({"marks": ["status=2", "ill"]}, "another order"),
        ({"marks": 7}, "damaged"),
        ({"kind": "marks"}, "whatever marks"),
        ({"kind": "slots", "day": 1}, "cannot read it|damaged"),
        ({"kind": "values"}, "cannot read it|damaged|newer"),
        ({"kind": None}, "damaged"),
        ({"format": 5}, "newer hazemap"),
        ({"format": 0}, "damaged"),
    ],
)
def test_a_label_that_says_something_else_is_refused(kept, tmp_path, changes, why):
    path = tmp_path / "m.parquet"
    path.write_bytes(kept[1].read_bytes())
    relabelled(path)
    assert isinstance(hazemap.open(path), MarkedTimedRelease)
    relabelled(path, **changes)
    with pytest.raises(FileError, match=why):
        hazemap.open(path)


def test_noise_whose_sums_are_no_number_is_refused(made, tmp_path):
    question, answer = made.transcript[-1]
    loud = replace(answer, stddev=np.array([1e200]))
    forged = replace(made, transcript=(*made.transcript[:-1], type(made.transcript[-1])(question, loud)))
    forged.save(tmp_path / "loud.parquet")
    with pytest.raises(FileError, match=r"damaged.*no number|no number"):
        hazemap.open(tmp_path / "loud.parquet")


def test_names_of_slots_are_worked_out_once_however_many_slots_there_are(kept, monkeypatch):
    """Else a file of 4,320 hours takes minutes and one of 65,536 hours, all of it after the charge."""
    made, asked, names = hazemap.open(kept[1]), [], type(kept[0].by_mark.slots).names
    monkeypatch.setattr(type(made.by_mark.slots), "names", property(lambda own: asked.append(1) or names.fget(own)))
    assert made.summary() and made.columns() and len(made.by_slot) == len(SLOTS)
    assert len(asked) <= 1


def test_damage_is_found(kept, tmp_path):
    content = bytearray(kept[1].read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "bad.parquet").write_bytes(bytes(content))
    with pytest.raises(FileError):
        hazemap.open(tmp_path / "bad.parquet")


def test_a_share_that_was_changed_for_other_tools_is_found(kept, tmp_path, capsys):
    path = tmp_path / "m.parquet"
    path.write_bytes(kept[1].read_bytes())
    file = pq.ParquetFile(path)
    said = file.metadata.metadata
    table = file.read().replace_schema_metadata(None)
    at = table.column_names.index("ill_share")
    changed = table["ill_share"].to_numpy().copy()
    changed[-1] = 0.123
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table.set_column(at, table.schema.field(at), pa.array(changed)))
        writer.add_key_value_metadata({key: text for key, text in said.items() if key != b"hazemap.bytes"})
    relabelled(path)
    capsys.readouterr()
    assert main(["inspect", str(path), "--replay"]) != 0 and "'ill_share'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "flat:4"}, "one method"),
        ({"outside": "people"}, "on the map"),
        ({"slots": "hour"}, "--since"),
        ({"slots": "hourly"}, "hour-of-day"),
        ({"mark": THREE, "slots": MINUTES, "cells": "h3:5", "box": "-30,30,30,60"}, "fewer marks"),
        ({"mark": THREE, "slots": "hour-of-day", "cells": "h3:8", "box": None}, "declare the box"),
        ({"mark": THREE, "slots": "hour", **YEARS, "cells": "quadtree:24"}, "63 bits"),
        ({"prior": "map.parquet"}, "leave the marks or the prior out"),
    ],
)
def test_what_cannot_be_made_is_refused_before_it_costs_anything(tmp_path, options, why):
    with pytest.raises(InputError, match=why):
        released(tmp_path, **options)
    assert not hazemap.Ledger(tmp_path / "l.sqlite").history()


def test_devices_and_plans_refuse_marks_in_slots_at_once():
    both = {"epsilon": 1, "mark": "ill", "slots": "hour-of-day", "box": "13.2,52.4,13.6,52.6"}
    spec = hazemap.ReleaseSpec.of(None, dataset="town", **both)
    cohort = Cohort(2_000, 1_000, sampling=Sampling.ONE)
    own = {"name": "berlin", "purpose": "a map", "cohort": cohort}
    with pytest.raises(InputError, match="not yet for marks in slots"):
        Campaign.of(spec, most_numbers=20_000, **own)
    with pytest.raises(InputError, match="not yet for marks in slots"):
        Campaign(dataset="town", algorithm=spec.algorithm, budget=spec.budget, **own)
    with pytest.raises(InputError, match="of maps, not of shares in slots"):
        hazemap.plan(both.pop("box"), people=10_000, **both)
    with pytest.raises(InputError, match="of maps, not of shares in slots"):
        planned_trusts(spec, 10_000, ("curator",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        {"cells": "h3:4-8", "box": None},
        {"box": None},
        {"rho": "0.5", "epsilon": None},
        {"bounding": "cells:4"},
        {"bounding": "one vote", "goal": "width:0.3"},
        {"slots": "day", "since": "1970-01-01", "until": "1970-01-03", "time_zone": "UTC"},
    ],
)
def test_other_cells_boxes_budgets_rules_and_slots(tmp_path, more):
    made = released(tmp_path, **more)
    made.save(tmp_path / "other.parquet")
    back = hazemap.open(tmp_path / "other.parquet")
    assert back.to_dataframe().equals(made.to_dataframe())
    assert main(["inspect", str(tmp_path / "other.parquet"), "--replay"]) == 0


@pytest.mark.parametrize(("of", "method"), [(Session, "receive"), (MarkedTimedRelease, "save")])
def test_a_run_that_dies_after_its_charge_ends_at_no_further_price(tmp_path, monkeypatch, of, method):
    def full(*_):
        raise FileError("the disk is full")

    pq.write_table(rows(), tmp_path / "rows.parquet")
    ledger, goal = hazemap.Ledger(tmp_path / "l.sqlite"), tmp_path / "m.parquet"
    asked = {"person": "user", "epsilon": 2, "box": BOX, "mark": MARKS, "slots": "clock:6,14,22", "output": goal}
    with monkeypatch.context() as patched:
        patched.setattr(of, method, full)
        with pytest.raises(FileError, match="the charge stands"):
            hazemap.release(tmp_path / "rows.parquet", ledger=ledger, **asked)
    made = hazemap.recover(1, ledger=ledger)
    assert isinstance(made, MarkedTimedRelease) and hazemap.open(goal).to_dataframe().equals(made.to_dataframe())
    assert [record.charge.price for record in ledger.history()] == [hazemap.PureDP(2)]


def test_a_specification_keeps_both():
    spec = hazemap.ReleaseSpec.of("rows.parquet", epsilon=1, mark=MARKS, slots="hour-of-day", time_zone="Europe/Berlin")
    assert hazemap.ReleaseSpec.from_toml(spec.to_toml()) == spec


def test_the_rows_of_all_slots_are_those_of_each_and_made_at_once(made, monkeypatch):
    places = made.ground.places[::-1]
    each = of_each([slot.columns(places) for slot in made.by_slot], made.slots)
    intervals, calls = MarkedShares.interval, []
    monkeypatch.setattr(MarkedShares, "interval", lambda *given: calls.append(given) or intervals(*given))
    found = made._of_slots(places, 0.95)
    assert same_tables(found, each)
    assert len(calls) == len(MARKS)  # of each mark once, however many slots there are
