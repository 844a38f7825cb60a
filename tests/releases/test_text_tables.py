"""Tables as text run nothing in a spreadsheet, and say all else as it is."""

import ast
import csv
import io
from pathlib import Path

import geopandas
import pandas as pd
import pytest
import shapely

from hazemap.cells import Leaves
from hazemap.releases.text_tables import csv_of, plain_text
from hazemap.spatial.districts import Districts

PACKAGE = Path(__file__).parents[2] / "src" / "hazemap"
RUN = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")


@pytest.mark.parametrize("between", ["", ";", ",", "\t", "|", "\n", "\r", " ", "; "])
@pytest.mark.parametrize("start", RUN)
def test_no_text_begins_as_a_formula_wherever_a_spreadsheet_divides_it(start, between):
    for text in (
        f"{start}cmd|' /C calc'!A0",
        f'{start}HYPERLINK("https://a.example")',
        f"{start}1+cmd",
        f"{start}SUM(A1)",
    ):
        written = plain_text((f"north{between}" if between.strip(" ") else between) + text)
        for sign in ",;|\n\r\t":
            assert not any(piece.strip().startswith(RUN[:4] + RUN[6:]) for piece in written.split(sign))
        assert not written.startswith(RUN)


@pytest.mark.parametrize(
    "text",
    ["", "-5", "+4.25", "-1e-7", ".5", "a-b", "a=b", "Berlin", "'quoted'", "a, b", "8926a99858fffff", "a@b.example"],
)
def test_numbers_and_plain_words_stay_as_they_are(text):
    assert plain_text(text) == text


def test_a_district_s_name_runs_nothing_and_numbers_stay_numbers(make, tmp_path):
    names = ["=HYPERLINK(1)", "@SUM(A1)", "+cmd", "-12", "north"]
    boxes = [shapely.box(x, 0, x + 1, 1) for x in range(5)]
    frame = geopandas.GeoDataFrame({"name": names}, geometry=boxes, crs=4326)
    release = make(Leaves.at_level(Districts.of(frame), 1))
    release.export(tmp_path / "map.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "map.csv").read_text())))
    assert {"'=HYPERLINK(1)", "'@SUM(A1)", "'+cmd", "-12", "north"} <= {value for row in rows for value in row.values()}
    for row, wanted in zip(rows, release.to_dataframe()["unbiased"], strict=True):
        assert float(row["unbiased"]) == wanted
        assert shapely.from_wkt(row["geometry"]).area > 0


def test_names_of_columns_run_nothing_and_a_missing_text_stays_missing():
    frame = pd.DataFrame({"=a": ["=b", None], "n": [-1.5, 2.0], "flag": [True, False]})
    assert csv_of(frame).decode() == "'=a,n,flag\n'=b,-1.5,True\n,2.0,False\n"


def test_all_tables_of_text_are_written_in_one_place():
    calls = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "to_csv" in (text := path.read_text()) or "csv" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in {"to_csv", "DictWriter", "writer", "write_csv"}
        if not isinstance(node.value, ast.Name) or node.value.id in {"csv", "frame", "pyarrow"}
    }
    assert calls == {"releases/text_tables.py", "lab/audit/audited_settings.py"}  # the audit makes up tables to read
