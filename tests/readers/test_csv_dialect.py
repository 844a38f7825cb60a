"""What a CSV dialect takes and refuses, and who is told apart by which column."""

import pyarrow as pa
import pytest

from hazemap.engines.person_ids import IdColumnReader
from hazemap.errors import InputError
from hazemap.readers.csv_files import CsvDialect
from hazemap.readers.open_table import open_table


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ({"delimiter": ":"}, "--delimiter"),
        ({"delimiter": ""}, "--delimiter"),
        ({"encoding": "ebcdic"}, "--encoding"),
        ({"decimal": "'"}, "--decimal"),
        ({"multiline": "no"}, "multiline"),
    ],
)
def test_a_dialect_that_is_none_is_refused_by_the_name_of_its_option(wrong, option):
    with pytest.raises(InputError, match=option):
        CsvDialect(**wrong)


def test_a_dialect_may_be_spelled_as_people_do():
    assert CsvDialect("tab", "UTF8") == CsvDialect("\t", "utf-8")
    assert CsvDialect(encoding="Windows-1252") == CsvDialect(encoding="cp1252")


def test_a_table_says_which_column_tells_people_apart_and_whether_it_was_guessed():
    rows = pa.table({"user": [1, 2], "trip": ["a", "b"], "lon": [13.3] * 2, "lat": [52.5] * 2})
    assert open_table(rows).id_column == IdColumnReader("user", "whole numbers", guessed=True)
    assert open_table(rows, person="trip").id_column == IdColumnReader("trip", "text, letter by letter", guessed=False)
    assert open_table(rows.drop_columns("user")).id_column is None
