"""Rows that say their H3 cell in place of coordinates."""

import h3
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from hazemap.cells import NOWHERE
from hazemap.engines.coordinate_readers import CellColumn, cells_of
from hazemap.errors import InputError, TableError
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.publish import stats
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import WORLD
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.specs.statistics_spec import StatisticsSpec

HERE, THERE = h3.latlng_to_cell(52.5, 13.25, 8), h3.latlng_to_cell(52.5, 13.75, 8)


def located(names, resolution: int) -> list[str]:
    """The hexagons in which a tree finds the centres."""
    lon, lat = CellColumn(("c",), resolution).lonlat([pa.array(names)])
    cells = Hexagons(WORLD, 0, resolution).cell_at({"lon": lon, "lat": lat}, resolution)
    return [f"{cell:015x}" if cell != NOWHERE else "" for cell in cells.tolist()]


@pytest.mark.parametrize("resolution", range(16))
def test_a_cell_is_found_in_its_ancestor_everywhere_and_in_pentagons(resolution):
    rng = np.random.default_rng(resolution)
    lat, lng = np.degrees(np.arcsin(rng.uniform(-1, 1, 200))), rng.uniform(-180, 180, 200)
    finest = [h3.latlng_to_cell(*each, 15) for each in zip(lat, lng, strict=True)]
    finest += [h3.cell_to_center_child(cell, 15) for cell in h3.get_pentagons(0)]
    own = [h3.cell_to_parent(cell, resolution) for cell in finest]
    assert located(own, resolution) == own
    assert located(finest, resolution) == own


def test_cells_are_texts_or_numbers_and_all_else_is_no_cell():
    number = int(HERE, 16)
    words = [HERE, HERE.upper(), f" {HERE}\t", f"0{HERE}", str(number), None]
    assert cells_of(pa.array(words)).tolist() == [number] * 5 + [0]
    assert cells_of(pa.array([number, None, 7], pa.uint64())).tolist() == [number, 0, 7]
    odd = ["", "here", "9" * 19, "9" * 5000, f"0x{HERE}", f"-{HERE}", "٣" * 18, HERE[:-1], "\x00", "f" * 15, "8" * 64]
    assert located(odd, 8) == [""] * len(odd)
    assert cells_of(pa.array([], pa.string())).tolist() == []


def test_a_coarser_cell_says_too_little_and_edges_are_no_cells():
    assert located([h3.cell_to_parent(HERE, 7), HERE], 8) == ["", HERE]
    edge = h3.origin_to_directed_edges(HERE)[0]
    assert located([edge, HERE[:5] + "7" + HERE[6:]], 5) == ["", ""]


def rows(cells=(HERE, THERE), number: int = 300, **more) -> pa.Table:
    return pa.table(
        {"user": np.arange(2 * number) // 2, "h3": list(cells) * number, "speed": [20.0, 40] * number} | more
    )


def made(source, tmp_path, **options):
    asked = {"value": "speed", "low": 0, "high": 65, "epsilon": 5, "cells": "h3:6", "model": "values-only"} | options
    ledger = Ledger(tmp_path / "ledger.sqlite")
    return stats(source, cell_column="h3", **asked, ledger=ledger, stream=Stream.fixed(b"cells"))


def told(found) -> dict[str, float]:
    frame = found.to_dataframe().query("not too_few")
    return dict(zip(frame.h3, frame.value, strict=True))


@pytest.mark.parametrize("model", ["full", "values-only"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()])
def test_statistics_of_a_table_with_cells(tmp_path, model, kind):
    cells = [int(HERE, 16), int(THERE, 16)] if pa.types.is_integer(kind) else [HERE, THERE]
    table = rows(cells)
    table = table.set_column(1, "h3", table["h3"].cast(kind))
    found = made(table, tmp_path, model=model, **({} if model == "values-only" else {"box": "13,52.3,14,52.7"}))
    assert told(found) == pytest.approx({h3.cell_to_parent(HERE, 6): 20, h3.cell_to_parent(THERE, 6): 40}, abs=2)
    assert any("the H3 cell in its column 'h3'" in each for each in found.statement.public)


def test_files_with_cells_as_texts_and_numbers(tmp_path):
    (tmp_path / "rows").mkdir()
    table = rows()
    parquet.write_table(table.slice(0, 300), tmp_path / "rows" / "a.parquet")
    numbers = pa.array([int(cell, 16) for cell in table["h3"].to_pylist()][300:], pa.int64())
    parquet.write_table(table.slice(300).set_column(1, "h3", numbers), tmp_path / "rows" / "b.parquet")
    csv.write_csv(table, tmp_path / "rows.csv")
    for source in ("rows", "rows.csv"):
        assert len(told(made(tmp_path / source, tmp_path, dataset=source))) == 2


def test_one_bad_row_changes_nothing_of_others(tmp_path):
    table = rows()
    wild = pa.array(["no cell", *table["h3"].to_pylist()[1:]])
    found = made(table.set_column(1, "h3", wild), tmp_path)
    assert sorted(found.measurements.people.tolist()) == [299, 300]


def test_cells_that_are_coarser_than_asked_are_refused_in_words(tmp_path):
    coarse = [h3.cell_to_parent(HERE, 5), h3.cell_to_parent(THERE, 5)]
    with pytest.raises(InputError, match="'h3' holds an H3 cell of resolution 6 or finer"):
        made(rows(coarse), tmp_path)
    assert not Ledger(tmp_path / "ledger.sqlite").history()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"lon": "x"}, InputError, "name one or the other"),
        ({"cells": "quadtree:4", "box": "13,52,14,53"}, InputError, "is for hexagons"),
        ({"cell_column": "cell"}, TableError, "the H3 cell was said to be in column 'cell'"),
    ],
    ids=str,
)
def test_every_mistake_costs_nothing(tmp_path, wrong, error, words):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    asked = {"value": "speed", "low": 0, "high": 65, "epsilon": 5, "cells": "h3:6", "cell_column": "h3"} | wrong
    with pytest.raises(error, match=words):
        stats(rows(), **asked, model="values-only", ledger=ledger)
    assert not ledger.history()


def test_columns_of_other_types_are_refused():
    for wrong in (pa.array([1.0, 2.0] * 300), pa.array([1, 2] * 300, pa.int32()), pa.array([b"x", b"y"] * 300)):
        with pytest.raises(TableError, match="texts, such as 871f18b24ffffff"):
            open_table(rows().set_column(1, "h3", wrong), cell="h3", resolution=6)


def test_a_specification_keeps_the_column():
    spec = StatisticsSpec.of("a.parquet", value="speed", low=0, high=65, epsilon=1, cell_column="h3", cells="h3:6")
    assert StatisticsSpec.from_toml(spec.to_toml()) == spec and spec.resolution == 6
