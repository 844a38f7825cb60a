"""Statistics as a file: what is written, what is read back, what is refused."""

import html
import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import rasterio

import hazemap
from hazemap.algorithms import CellStatistics
from hazemap.cells import Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import FileError, InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Release, Statistics
from hazemap.releases.notebook_card import thumbnail
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.release_spec import ASSUMPTIONS
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Clock
from hazemap.trust.curator import CentralPrices, Curator
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

SQUARE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 2)
VALUE_ENCODING = ValueEncoding(0, 60, 2, (8, 4), (10, 9, 2))
SLOTS = Clock("Europe/Berlin", (0, 43200))


@pytest.fixture
def made() -> Statistics:
    rng = np.random.default_rng(3)
    columns = {"lon": rng.normal(13.4, 0.05, 5000), "lat": rng.normal(52.5, 0.02, 5000)}
    values = {"value": rng.normal(30, 8, 5000), "time": rng.uniform(0, 1e8, 5000)}
    method = CellStatistics(SQUARE, 2, SLOTS, VALUE_ENCODING, OwnMeans(2, scale=VALUE_ENCODING.scale))
    trust = Curator(MemoryTable(np.arange(5000) % 2500, columns | values), Stream.fixed(b"file"))
    done = run(method, trust, PureDP(2), Unrecorded())
    statement = Statement(
        dataset="town",
        unit=A_PERSON,
        neighbours="one of them added or removed",
        budget=PureDP(2),
        bounding=method.bounding,
        trust="curator",
        assumptions=ASSUMPTIONS,
        noise="discrete Laplace",
        public=("the box",),
        charged=("every number",),
        method="values",
        created="2026-01-02",
        version="0.1.0",
    )
    return Statistics(done.value, "speed", (0.1, 0.5), statement, method, done.transcript)


def test_what_was_written_is_read_back(made, tmp_path):
    made.save(tmp_path / "speed.parquet")
    back = Statistics.open(tmp_path / "speed.parquet")
    assert back.to_dataframe().equals(made.to_dataframe())
    assert (back.statement, back.algorithm, back.ranks, back.value) == (
        made.statement,
        made.algorithm,
        made.ranks,
        made.value,
    )
    assert back.transcript == made.transcript
    back.save(tmp_path / "again.parquet")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "speed.parquet").read_bytes()


def test_other_tools_read_a_row_for_every_cell_and_slot_with_its_polygon(made, tmp_path):
    made.save(tmp_path / "speed.parquet")
    frame = gpd.read_parquet(tmp_path / "speed.parquet")
    assert len(frame) == 32
    assert {"cell", "slot", "people", "value", "stddev", "low", "high", "too_few", "variance", "q0.5_low"} <= set(frame)
    assert frame.too_few.dtype == bool and frame.too_few.any() and not frame.too_few.all()
    assert frame.value.isna().equals(frame.too_few)
    assert (frame.low <= frame.high).all()
    assert frame.geometry.iloc[3].equals(SQUARE.outlines(made.measurements.tree.cells.cells[1:2])[0])
    table = made.to_geodataframe()
    assert all(a.equals(b) for a, b in zip(table.geometry, frame.geometry, strict=True))


def test_a_place_is_asked_for_by_name_and_slot(made):
    known = made.to_dataframe().query("not too_few").iloc[0]
    told = made.ask(known.cell, known.slot)
    assert [each.statistic for each in told] == ["mean", "variance", "q0.1", "q0.5"]
    assert told[0].value == known.value and told[0].low == known.low
    assert made.ask(known.cell, str(made.slots.index(known.slot))) == told
    assert len(made.ask(known.cell)) == 8
    wider = made.ask(known.cell, known.slot, confidence=0.999)[0]
    assert wider.low < told[0].low and wider.high > told[0].high


def test_too_few_people_is_said(made):
    unknown = made.to_dataframe().query("too_few").iloc[0]
    told = made.ask(unknown.cell, unknown.slot)[0]
    assert told.value is None and told.stddev is None
    assert "too few people to say" in str(told)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (("nonsense",), "no cell of this file"),
        (("root-00", "25:00"), "no slot of this file is called '25:00'"),
        (("root-00", "2"), "0 to 1"),
    ],
)
def test_questions_about_what_is_not_there_are_refused(ask, words, made):
    name = made.names[0] if ask[0] != "nonsense" else ask[0]
    with pytest.raises(InputError, match=words):
        made.ask(name, *ask[1:])
    with pytest.raises(InputError, match="a statistic is"):
        made.found("median")


def test_a_changed_file_is_noticed(made, tmp_path):
    path = tmp_path / "speed.parquet"
    made.save(path)
    table = pq.read_table(path)
    forged = table.set_column(3, "value", [np.full(len(table), 20.0)])
    pq.write_table(forged, path)
    with pytest.raises(FileError, match="damaged"):
        Statistics.open(path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileError):
        Statistics.open(path)


def test_files_of_another_kind_are_told_apart(made, tmp_path):
    made.save(tmp_path / "speed.parquet")
    assert isinstance(hazemap.open(tmp_path / "speed.parquet"), Statistics)
    with pytest.raises(FileError, match=r"Statistics\.open"):
        Release.open(tmp_path / "speed.parquet")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(FileError, match="neither Parquet nor TIFF"):
        Statistics.open(tmp_path / "text.parquet")
    made.to_dataframe().to_parquet(tmp_path / "foreign.parquet")
    with pytest.raises(FileError, match="no release of hazemap"):
        Statistics.open(tmp_path / "foreign.parquet")
    with pytest.raises(FileError, match="no file"):
        Statistics.open(tmp_path / "none.parquet")
    with pytest.raises(FileError, match=r"saved as \.parquet"):
        made.save(tmp_path / "speed.csv")


def test_a_file_of_a_newer_format_says_so(made, tmp_path):
    from hazemap.releases.geoparquet import LABEL

    path = tmp_path / "speed.parquet"
    made.save(path)
    table = pq.read_table(path)
    label = json.loads(table.schema.metadata[LABEL]) | {"format": 3}
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, LABEL: json.dumps(label)}), path)
    with pytest.raises(FileError, match="newer hazemap"):
        Statistics.open(path)


def test_measured_cells_may_be_any_leaves(made):
    """The places of a file are those of the question, in its order."""
    tree = made.measurements.tree
    assert isinstance(tree, CellTimeSlots) and isinstance(tree.cells, Leaves)
    assert made.to_dataframe().slot.tolist()[:3] == ["00:00-12:00", "12:00-00:00", "00:00-12:00"]


def test_either_kind_is_opened_by_what_it_holds(made, tmp_path):
    made.save(tmp_path / "speed.parquet")
    back = hazemap.open(tmp_path / "speed.parquet")
    assert isinstance(back, Statistics) and back.to_dataframe().equals(made.to_dataframe())
    again = back.replay(CentralPrices(made.statement.budget))
    assert again.to_dataframe().equals(made.to_dataframe())
    with pytest.raises(FileError, match=r"statistics of a value, not a map: open it with hazemap\.Statistics\.open"):
        Release.open(tmp_path / "speed.parquet")


def test_a_notebook_shows_the_best_guess_and_what_is_published(made):
    text = made._repr_html_().partition("<details>")[0]  # the page behind it is there where its bundle was built
    known = int((~made.found("mean").too_few).sum())
    assert f"16 cells × 2 slots; mean of speed in {known} of 32 places" in text
    assert made.statement.line() in html.unescape(text) and len(text) < 30_000
    seen = thumbnail(made)
    assert seen.max() == 15 and (seen == 0).any()  # cells without a value stay white


def test_an_export_holds_every_row_and_the_statement(made, tmp_path):
    made.export(tmp_path / "speed.csv")
    frame = pd.read_csv(tmp_path / "speed.csv")
    table = made.to_dataframe()
    assert np.allclose(frame[["people", "value", "low"]], table[["people", "value", "low"]], equal_nan=True)
    inside = gpd.GeoSeries.from_wkt(frame.geometry).contains(gpd.GeoSeries.from_xy(frame.lon, frame.lat))
    assert inside.all()
    said = json.loads((tmp_path / "speed.csv.statement.json").read_text())
    assert said == made.statement.to_json()
    made.export(tmp_path / "speed.geojson")
    assert json.loads((tmp_path / "speed.geojson").read_text())["statement"] == said


@pytest.mark.parametrize("column", [None, "guess", "q0.5_high"])
def test_a_raster_has_a_band_for_every_slot_and_the_number_of_a_cell_in_all_its_pixels(column, made, tmp_path):
    made.export(tmp_path / "speed.tif", column=column)
    cells, slots = made.measurements.tree.cells, len(made.slots)
    numbers = made.columns()[column or "value"].reshape(-1, slots).astype(np.float32)
    with rasterio.open(tmp_path / "speed.tif") as picture:
        assert picture.descriptions == made.slots
        assert picture.tags()["COLUMN"] == (column or "value") and "STATEMENT" in picture.tags()
        assert picture.read().shape == (slots, 4, 4)
        for cell, outline in zip(numbers, cells.tree.outlines(cells.cells), strict=True):
            point = gpd.GeoSeries([outline.centroid], crs=4326).to_crs(3857).iloc[0]
            [seen] = picture.sample([(point.x, point.y)])
            assert np.array_equal(seen, cell, equal_nan=True)


def test_rasters_and_columns_that_cannot_be_are_refused(made, release, tmp_path):
    with pytest.raises(FileError, match=r"one of the columns value, stddev.*found 'people'"):
        made.export(tmp_path / "speed.tif", column="people")
    with pytest.raises(FileError, match="a pixel of statistics must lie in one cell: choose smaller"):
        made.export(tmp_path / "speed.tif", pixel=1e5)
    with pytest.raises(FileError, match=r"only a \.tif holds one column"):
        made.export(tmp_path / "speed.csv", column="value")
    with pytest.raises(FileError, match="holds its counts"):
        release.export(tmp_path / "map.tif", column="value")


def test_a_picture_shows_how_sure_its_cells_are(made):
    assert "uncertainty" in [axes.get_label() for axes in made.plot().axes]
    assert "uncertainty" not in [axes.get_label() for axes in made.plot("variance", uncertainty=False).axes]


def test_a_gis_draws_the_mean_of_each_slot_as_pictures_and_answers_have_it(made):
    styles = made.layer_styles()
    assert [style.name for style in styles] == [f"mean of {made.value} {slot}" for slot in made.slots]
    columns = made.columns()
    named = {each.column for rule in styles[0].rules for each in rule.conditions}
    assert named == {"slot", "value"} <= columns.keys()
    assert (np.isnan(columns["value"]) == columns["too_few"]).all()
