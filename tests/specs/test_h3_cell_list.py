"""Lists of H3 cells, as people keep them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError, InputError
from hazemap.specs.h3_cell_list import listed

CELLS = ("871f18b24ffffff", "871f18b25ffffff")


@pytest.mark.parametrize(
    "text",
    [
        "871f18b25ffffff\n871f18b24ffffff\n",
        "871F18B25FFFFFF\n\n871f18b24ffffff\n871f18b24ffffff",
        "\ufeffh3\n871f18b25ffffff\n871f18b24ffffff\n",
        "# our area\n871f18b25ffffff\n871f18b24ffffff\n",
        "name,H3,people\nA,871f18b25ffffff,3\nB,871f18b24ffffff,4\nC,,5\n",
    ],
)
def test_text_and_csv_list_cells(text, tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text(text, encoding="utf-8")
    assert listed(path) == CELLS


@pytest.mark.parametrize(
    "columns",
    [
        {"any": CELLS},
        {"name": ["a", "b"], "hex": CELLS},
        {"h3": pa.array([int(cell, 16) for cell in CELLS], pa.uint64())},
    ],
)
def test_parquet_lists_cells(columns, tmp_path):
    pq.write_table(pa.table(columns), tmp_path / "cells.parquet")
    assert listed(tmp_path / "cells.parquet") == CELLS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no cells"),
        ("h3\n", "lists no cells"),
        ("871f18b24ffffff\nBerlin\n", "'berlin'; an H3 cell has 15 hexadecimal digits"),
        ("871f18b24ffffff\n861f18b27ffffff\n", "resolutions 6 to 7: list one"),
        ("a,b\n1,2\n", "which of them lists cells"),
    ],
)
def test_what_is_no_list_is_refused(text, words, tmp_path):
    path = tmp_path / "cells.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        listed(path)


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "cells.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "cells.parquet").write_bytes(b"no parquet")
    for name in ("cells.txt", "cells.parquet", "none.txt"):
        with pytest.raises(FileError, match="cannot be read"):
            listed(tmp_path / name)
