"""Maps with marks: made, kept, opened, asked, exported, drawn."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.draw import Beside, encode
from hazemap.errors import FileError, InputError
from hazemap.estimate.marked_counts import MarkedCounts, people_of
from hazemap.releases import MarkedRelease, Release
from hazemap.trust.curator import CentralPrices

BOX = hazemap.Box(13.0, 52.3, 13.8, 52.7)
WEST = hazemap.Box(13.0, 52.3, 13.4, 52.7)


def rows(people=6_000, seed=3):
    rng = np.random.default_rng(seed)
    lon, lat = 13.4 + rng.normal(0, 0.12, people), 52.5 + rng.normal(0, 0.06, people)
    ill = rng.random(people) < np.where(lon < 13.4, 0.6, 0.2)
    return pa.table(
        {"user": np.arange(people), "lon": lon, "lat": lat, "ill": ill, "status": rng.integers(0, 3, people)}
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marks")
    ledger = hazemap.Ledger(folder / "ledger.sqlite")
    marks = ["ill", "status=2"]
    done = hazemap.release(
        rows(), person="user", epsilon=2, box=BOX, mark=marks, ledger=ledger, output=folder / "m.parquet"
    )
    return done, folder / "m.parquet", ledger


def test_it_is_opened_as_it_was_made(made):
    done, path, _ = made
    again = hazemap.open(path)
    assert isinstance(again, MarkedRelease) and isinstance(Release.open(path), MarkedRelease)
    assert again.marks == ("ill", "status=2") and again.statement == done.statement
    assert np.array_equal(again.counts.sides, done.counts.sides)
    assert np.array_equal(again.map.unbiased, done.map.unbiased)
    assert again.to_dataframe().equals(done.to_dataframe())
    replayed = again.replay(CentralPrices(again.statement.budget))
    assert np.array_equal(replayed.counts.sides, done.counts.sides) and np.array_equal(
        replayed.map.values, done.map.values
    )


def test_the_statement_names_the_marks(made):
    assert "the marks that are counted: ill, status=2" in made[0].statement.public
    assert made[0].statement.bounding.outside is hazemap.Outside.DROP


def test_shares_are_near_the_truth_and_intervals_say_how_near(made):
    done, table = made[0], rows().to_pandas()
    inside = table[table.lon.between(13, 13.8) & table.lat.between(52.3, 52.7)]
    for region, people in ((None, table), (WEST, inside[inside.lon < 13.4])):
        found = done.share(region)
        true = (people.ill.mean(), (people.status == 2).mean())
        for share, mean in zip(found.shares, true, strict=True):
            assert 0 <= share.low <= share.value <= share.high <= 1
            assert share.value == pytest.approx(mean, abs=0.03)
        assert found.people.unbiased == pytest.approx(done.count(region or BOX).unbiased, abs=200)


def test_a_region_is_of_whole_cells(made):
    done = made[0]
    name = done.to_dataframe().iloc[3, 0]
    one = done.share(name, ["ill"])
    assert (one.cells, one.said, len(one.shares)) == (1, "These shares are of 1 cell.", 1)
    cut = done.share(hazemap.Box(13.11, 52.41, 13.52, 52.55))
    assert cut.inside + cut.outside > 0 and "half of their area" in cut.said
    with pytest.raises(InputError, match="half of its area"):
        done.share(hazemap.Box(13.0001, 52.5001, 13.0002, 52.5002))
    with pytest.raises(InputError, match="the marks are ill, status=2"):
        done.share(None, ["fever"])


def test_every_row_of_the_table_has_its_shares(made):
    frame = made[0].to_dataframe()
    for mark in ("ill", "status=2"):
        share, low, high = (frame[f"{mark}_{what}"] for what in ("share", "low", "high"))
        known = share.notna()
        assert ((low <= share) & (share <= high))[known].all() and (low >= 0).all() and (high <= 1).all()
    assert frame["unbiased"].sum() == pytest.approx(made[0].total().unbiased)


@pytest.mark.parametrize("suffix", ["geojson", "gpkg", "csv", "tif"])
def test_it_is_exported(made, tmp_path, suffix):
    made[0].export(tmp_path / f"m.{suffix}")
    assert (tmp_path / f"m.{suffix}").stat().st_size > 1_000


def test_a_picture_of_pixels_holds_shares(made, tmp_path):
    import rasterio

    made[0].export(tmp_path / "m.tif", column="ill_high")
    with rasterio.open(tmp_path / "m.tif") as picture:
        assert picture.descriptions == ("ill_high",)
        assert 0 <= np.nanmin(picture.read()) <= np.nanmax(picture.read()) <= 1
    with pytest.raises(FileError, match="one of the columns ill_share"):
        made[0].export(tmp_path / "n.tif", column="count")
    with pytest.raises(FileError, match=r"can be saved as \.parquet"):
        made[0].save(tmp_path / "n.tif")


@pytest.mark.parametrize(
    "beside", [Beside.WIDTH, *(pytest.param(each, marks=pytest.mark.slow) for each in (Beside.DENSITY, Beside.NOTHING))]
)
def test_it_is_drawn(made, beside):
    figure = made[0].plot(beside=beside, title="Who is ill", width=6)
    labels = [axes.get_label() for axes in figure.axes]
    assert {"ill share", "status=2 share"} <= set(labels)
    assert ("ill width" in labels) == (beside is Beside.WIDTH)
    assert ("density" in labels) == (beside is Beside.DENSITY)
    assert encode(figure, ".svg")


def test_a_file_whose_numbers_were_changed_is_refused(made, tmp_path):
    content = bytearray(made[1].read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "bad.parquet").write_bytes(bytes(content))
    with pytest.raises(FileError):
        hazemap.open(tmp_path / "bad.parquet")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"method": "flat:4"}, "one method"),
        ({"outside": "people"}, "on the map"),
        ({"goal": "wide"}, "a goal is one of"),
        ({"goal": "width:0"}, "wider than 0"),
        ({"mark": "ill,,"}, "'ill,,'"),
        ({"mark": None, "goal": "density"}, "name a mark"),
        ({"mark": ["a", "b", "c", "d"]}, "16 counts"),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_costs_anything(made, options, why):
    ledger = made[2]
    before = ledger.history("memory")
    with pytest.raises((InputError, hazemap.HazemapError), match=why):
        hazemap.release(rows(), person="user", epsilon=2, box=BOX, ledger=ledger, **{"mark": "ill", **options})
    assert ledger.history("memory") == before


def test_a_specification_keeps_its_marks():
    table = hazemap.TableSpec("rows.parquet")
    spec = hazemap.ReleaseSpec.of("rows.parquet", epsilon=1, mark=["ill", "status=2"], goal="width:0.1", box=BOX)
    assert hazemap.ReleaseSpec.from_toml(spec.to_toml()) == spec and spec.table == table
    assert hazemap.ReleaseSpec.from_json({"source": "rows.parquet", "epsilon": "1", "mark": "ill"}).mark == ("ill",)
    for wrong in ({"mark": 3}, {"mark": [3]}, {"mark": []}):
        with pytest.raises(InputError, match="mark of a specification"):
            hazemap.ReleaseSpec.from_json({"source": "rows.parquet", "epsilon": "1", **wrong})


def test_marks_begin_with_cells_of_their_own_on_the_ground():
    for word, other in (("prior", {"prior": "map.parquet"}), ("plane", {"plane": "100,50"})):
        with pytest.raises(InputError, match=f"leave the marks or the {word} out"):
            hazemap.ReleaseSpec.of("rows.parquet", epsilon=1, mark="ill", **other)


def test_people_of_an_answer_are_those_on_all_sides(made):
    done = made[0]
    found = people_of(*done.transcript[-1])
    assert np.array_equal(found.unbiased, done.map.unbiased) and np.array_equal(found.stddev, done.map.stddev)
    plain = hazemap.Query(hazemap.Counts(done.cells), 1)
    with pytest.raises(InputError, match="whatever marks"):
        people_of(plain, done.transcript[-1].answer)
    with pytest.raises(InputError, match="hold a number for each side"):
        MarkedCounts(done.cells, done.counts.marks, done.counts.sides[:2], 1.0)
    assert replace(done.counts, stddev=1.0).map.stddev[0] == 2.0


def test_a_gis_draws_shares_and_greys_what_is_not_known(made):
    made, _, _ = made
    first, *rest = made.layer_styles()
    assert first.name == f"share {made.marks[0]}"
    assert [style.name for style in rest] == [*(f"share {mark}" for mark in made.marks[1:]), "density"]
    [wide] = first.rules[-1].conditions
    assert (wide.column, wide.number, wide.times, wide.other) == (
        *(f"{made.marks[0]}_high", 0.5, 1.0),
        f"{made.marks[0]}_low",
    )
