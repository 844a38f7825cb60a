"""How CSV is read: by rule, each line by itself."""

import gzip
import random

import numpy as np
import pyarrow as pa
import pytest

from hazemap.errors import HazemapError, TableError
from hazemap.readers import csv_files as csv_text
from hazemap.readers import csv_parser
from hazemap.readers.csv_files import CsvDialect, CsvFiles, fields, read_header
from hazemap.readers.csv_parser import numbers_in, read_fields
from hazemap.readers.open_table import open_table
from hazemap.readers.stored_file import LocalFile
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside, RowIsPerson

WORLD = Quadtree.world(depth=3)


def texts(path, dialect=None, columns=("user", "lon", "lat")) -> list[tuple]:
    lines = CsvFiles.opened([LocalFile(str(path))], dialect or CsvDialect(), 2)
    return [row for batch in lines.batches(columns) for row in zip(*(c.to_pylist() for c in batch), strict=True)]


def plainly(data: bytes, delimiter: str, columns: int) -> list[list[str]]:
    """The records of UTF-8 text, in plain Python."""
    found = []
    for line in data.split(b"\n"):
        try:
            text = line.decode().removesuffix("\r")
        except UnicodeDecodeError:
            continue
        record = fields(text, delimiter)
        if text and "\0" not in text and record is not None and len(record) == columns:
            found.append(record)
    return found


def test_machine_code_reads_what_plain_python_reads():
    chance = random.Random(1)
    signs = [
        b'"',
        b'"',
        b",",
        b",",
        b"\n",
        b"\n",
        b"\r",
        b" ",
        b"a",
        b"\0",
        b"\xc3\xa9",
        b"\xc3",
        b"\xff",
        b"\xed\xa0\x80",
    ]
    signs += [b"\xf0\x9f\x98\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\xc0\xaf", b"b", b";"]
    for _ in range(400):
        data = b"".join(chance.choices(signs, weights=[4] * 9 + [1] * 11, k=chance.randrange(60)))
        block = np.frombuffer(data, dtype=np.uint8)
        for columns in (1, 2, 3):
            found = read_fields(block, ord(","), np.arange(columns), False, True)
            rows = [
                [found.letters[c, found.ends[c, i] : found.ends[c, i + 1]].tobytes().decode() for c in range(columns)]
                for i in range(found.rows)
            ]
            assert rows == plainly(data, ",", columns), data


def test_numbers_are_rounded_as_python_rounds_them():
    chance = random.Random(2)
    written = [repr(chance.uniform(-180, 180)) for _ in range(5_000)]
    for _ in range(20_000):
        digits = str(chance.randrange(10 ** chance.randrange(1, 25)))
        at = chance.randrange(len(digits) + 1)
        power = chance.choice(["", "", f"e{chance.randrange(-340, 320)}", f"E+{chance.randrange(40)}"])
        written.append(chance.choice(["", "-", "+", "  "]) + digits[:at] + "." + digits[at:] + power)
    written += [f"{2**53 + i}.{half}" for i in range(64) for half in ("0", "5", "4999", "50001")]  # halfway cases
    found = numbers_of(written, ".")
    assert np.array_equal(found, [float(text) for text in written])
    assert np.array_equal(numbers_of([text.replace(".", ",") for text in written], ","), found)


def numbers_of(written: list[str], decimal: str) -> np.ndarray:
    encoded = [text.encode() for text in written]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return numbers_in(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends, decimal)


@pytest.mark.parametrize("text", ["", " ", "-", ".", "1e", "e5", "1_0", "0x1", "1,5", "1.5.2", "1 2", "١", "nan"])
def test_what_is_no_number_is_nan(text):
    assert np.isnan(numbers_of([text, "1"], ".")).tolist() == [True, False]


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("user,lon,lat", ","),
        ("user;lon;lat", ";"),
        ("user\tlon\tlat", "\t"),
        ("user|lon|lat", "|"),
        ('"a,b";lon;lat', ";"),
    ],
)
def test_the_header_alone_says_what_divides_fields(tmp_path, header, delimiter):
    (tmp_path / "rows.csv").write_text(header + "\n" + "1,2;3\t4|5,6;7,8;9,0\n" * 100)
    assert read_header(LocalFile(str(tmp_path / "rows.csv")), CsvDialect()).delimiter == delimiter


@pytest.mark.parametrize(
    ("content", "dialect", "says"),
    [
        (b"user,lon;lat\n", {}, "--delimiter"),
        (b"us\xe9r,lon,lat\n", {}, "--encoding"),
        ("user,lon,lat\n".encode("utf-16"), {}, "--encoding utf-16"),
        ("user,lon,lat\n".encode("utf-16-le"), {}, "--encoding"),
        (b"user,lon,lat\n", {"encoding": "utf-16"}, "--encoding utf-16"),
        (b"\xff\xfeu\0", {"encoding": "utf-16-be"}, "--encoding utf-16"),
        (b"\xef\xbb\xbfuser,lon,lat\n", {"encoding": "latin-1"}, "--encoding"),
        (b"us\x81r,lon,lat\n", {"encoding": "cp1252"}, "--encoding"),
        (b'us"er,lon,lat\n', {"delimiter": ","}, "quote"),
        (b"user,lon,lat,lon\n", {}, "two columns called 'lon'"),
        (b"\nuser,lon,lat\n", {}, "is empty"),
        (b"7,13.3,52.5\n", {}, "is data"),
        (b"user," + b"x" * (1 << 20) + b"\n", {}, "longer than"),
    ],
)
def test_a_header_that_is_written_otherwise_is_refused_by_the_name_of_the_option(tmp_path, content, dialect, says):
    (tmp_path / "rows.csv").write_bytes(content)
    with pytest.raises(HazemapError, match=says):
        open_table(tmp_path / "rows.csv", dialect=CsvDialect(**dialect))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("chunk", [16, 1 << 22])
def test_every_encoding_says_the_same(tmp_path, encoding, chunk, monkeypatch):
    monkeypatch.setattr(csv_text, "CHUNK", chunk)
    text = "üser;lon;lat\n" + "é;13,3;52,5\n" * 50 + ("😀;1,5;2\n" if "utf" in encoding else "ÿ;1,5;2\n")
    (tmp_path / "rows.csv").write_bytes(text.encode(encoding))
    dialect = CsvDialect(encoding=encoding.removesuffix("-sig"), decimal=",")
    table = open_table(tmp_path / "rows.csv", person="üser", dialect=dialect)
    assert table.votes(WORLD, AtMostRows(100)).weights.sum() == 51
    assert table.votes(WORLD, AtMostRows(1)).weights.sum() == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "x"])
def test_newlines_of_all_systems_and_a_last_line_without_one(tmp_path, newline, end):
    lines = ["user,lon,lat", "a,1,2", "", 'b,"3",4'] + ([] if end else [""])
    (tmp_path / "rows.csv").write_bytes(newline.join(lines).encode())
    assert texts(tmp_path / "rows.csv") == [("a", "1", "2"), ("b", "3", "4")]


@pytest.mark.parametrize(
    "line",
    [
        "b,1",
        "b,1,2,3",
        'b",1,2',
        '"b,1,2',
        'b,1,"2"x',
        "b\0,1,2",
        "b," + "1" * (1 << 20) + ",2",
        "b" * (3 << 20),
        '"b\n",1,2',
    ],
    ids=range(9),
)
@pytest.mark.parametrize("chunk", [1 << 10, 1 << 22])
def test_a_line_that_is_no_record_is_dropped_alone_and_without_a_word(tmp_path, line, chunk, monkeypatch):
    monkeypatch.setattr(csv_text, "CHUNK", chunk)
    (tmp_path / "rows.csv").write_text(f"user,lon,lat\na,1,2\n{line}\nc,3,4\n")
    table = open_table(tmp_path / "rows.csv")
    assert texts(tmp_path / "rows.csv") == [("a", "1", "2"), ("c", "3", "4")]
    assert table.votes(WORLD, RowIsPerson(Outside.COUNT)).weights.sum() == 2


def test_an_empty_field_is_missing_quoted_or_not(tmp_path):
    (tmp_path / "rows.csv").write_text('user,lon,lat\n"",1,2\n,1,2\n" ",1,2\n')
    assert texts(tmp_path / "rows.csv") == [(None, "1", "2"), (None, "1", "2"), (" ", "1", "2")]


def test_a_quote_that_is_never_closed_takes_little_with_it_where_records_go_on_over_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_parser, "LONGEST", 100)
    for chunk in (64, 1 << 22):
        monkeypatch.setattr(csv_text, "CHUNK", chunk)
        (tmp_path / "rows.csv").write_text('user,lon,lat\na,1,2\n"b\nb",1,2\n"open,1,2\n' + "c,3,4\n" * 500)
        found = texts(tmp_path / "rows.csv", CsvDialect(multiline=True))
        assert found[:2] == [("a", "1", "2"), ("b\nb", "1", "2")]
        assert 470 < len(found) < 490


def test_many_columns_cost_little(tmp_path):
    names = [f"column{i}" for i in range(20_000)]
    row = ",".join(["x"] * 20_000)
    (tmp_path / "rows.csv").write_text(f"user,lon,{','.join(names)},lat\na,1,{row},2\nb,1,{row}\n")
    assert texts(tmp_path / "rows.csv") == [("a", "1", "2")]


def test_a_packed_file_of_several_members_is_read_to_its_end(tmp_path):
    members = [b"user,lon,lat\n", b"a,1,2\n", b"b,3,4\n"]
    (tmp_path / "rows.csv.gz").write_bytes(b"".join(gzip.compress(part) for part in members))
    assert texts(tmp_path / "rows.csv.gz") == [("a", "1", "2"), ("b", "3", "4")]


def test_files_of_a_folder_may_be_written_differently(tmp_path):
    (tmp_path / "a.csv").write_text("user,lon,lat\na,1,2\n")
    (tmp_path / "b.tsv").write_text("lat\tother\tuser\tlon\n4\tx\tb\t3\n")
    assert open_table(tmp_path).votes(WORLD, AtMostRows(1)).weights.sum() == 2


def test_rows_are_read_again_where_memory_is_short(tmp_path):
    rows = "".join(f"person{i % 3_000},{i % 90},{i % 80}\n" for i in range(60_000))
    (tmp_path / "rows.csv").write_text("user,lon,lat\n" + rows)
    tight, wide = (open_table(tmp_path / "rows.csv", key=1, memory_limit=limit) for limit in (1 << 17, 1 << 30))
    one, other = (table.votes(WORLD, AtMostRows(2)) for table in (tight, wide))
    assert tight.report.passes > 1
    assert np.array_equal(one.weights, other.weights)


def test_times_and_marks_of_csv_are_read_by_the_same_rule(tmp_path):
    rows = ["a,1,2,2024-05-31,yes", "b,1,2,2024-06-01T12:00:00+02:00,true", "c,1,2,soon,0", "d,1,2,2024-06-02,1"]
    (tmp_path / "rows.csv").write_text("user,lon,lat,time,ill\n" + "\n".join(rows))
    table = open_table(tmp_path / "rows.csv", since="2024-06-01", mark="ill")
    assert table.votes(WORLD, AtMostRows(1)).weights.sum() == 2


def test_undeclared_decimal_signs_are_either_where_semicolons_divide(tmp_path):
    (tmp_path / "excel.csv").write_bytes("\ufeffuser;lon;lat\na;13,5;2,5\nb;1.5;2.5\nc;1.234,5;2\nd;1,2,3;2\n".encode())
    assert open_table(tmp_path / "excel.csv").votes(WORLD, AtMostRows(1)).weights.sum() == 2
    (tmp_path / "plain.csv").write_text('user,lon,lat\na,"13,5","2,5"\nb,1.5,2.5\n')
    assert open_table(tmp_path / "plain.csv").votes(WORLD, AtMostRows(1)).weights.sum() == 1
    (tmp_path / "thousands.tsv").write_text("user\tlon\tlat\na\t1,013\t2\nb\t1.5\t2.5\n")
    assert open_table(tmp_path / "thousands.tsv").votes(WORLD, AtMostRows(1)).weights.sum() == 1
    texts = ["1,5", "1.5", "0,1234567890123456789012", "0.1234567890123456789012", "1.2,3", ","]
    assert numbers_of(texts, ".,").tolist()[:4] == [1.5, 1.5, *[0.1234567890123456789012] * 2]
    assert np.isnan(numbers_of(texts, ".,")[4:]).all()


def test_the_line_that_excel_puts_before_the_names_is_refused_in_words(tmp_path):
    (tmp_path / "rows.csv").write_bytes("\ufeffsep=;\r\nuser;lon;lat\r\na;1,5;2,5\r\n".encode())
    with pytest.raises(TableError, match=r"'sep=;', which Excel alone understands: delete it"):
        open_table(tmp_path / "rows.csv")


def test_a_number_with_the_other_decimal_sign_is_none(tmp_path):
    (tmp_path / "rows.csv").write_text("user;lon;lat\na;1,5;2,5\nb;1.5;2.5\nc;1.234,5;2\n")
    for decimal, people in ((",", 1), (".", 1)):
        table = open_table(tmp_path / "rows.csv", dialect=CsvDialect(decimal=decimal))
        assert table.votes(WORLD, AtMostRows(1)).weights.sum() == people


def test_rows_of_a_feed_come_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_text, "CHUNK", 1 << 12)
    (tmp_path / "rows.csv").write_text("user,lon,lat,time\n" + "".join(f"{i},1,2,2024-06-01\n" for i in range(30_000)))
    for options in ({}, {"since": "2024-05-01"}):  # as they are, and by way of DuckDB
        table = open_table(tmp_path / "rows.csv", **options)
        found = pa.chunked_array([batch[0] for batch in table._batches(AtMostRows(1))])
        assert found.to_pylist() == [str(i) for i in range(30_000)]


@pytest.mark.filterwarnings("ignore:.*next to nothing")
def test_a_statement_says_what_records_over_several_lines_need(tmp_path):
    import hazemap
    from hazemap.privacy.ledger import Ledger

    (tmp_path / "rows.csv").write_text("user,lon,lat\n" + '"a\nb",13.3,52.5\n' * 50)
    options = {"person": "user", "epsilon": 1, "box": "13,52,14,53", "ledger": Ledger(tmp_path / "ledger")}
    for multiline in (False, True):
        made = hazemap.release(tmp_path / "rows.csv", dialect=CsvDialect(multiline=multiline), **options)
        assert ("well formed" in made.statement.text()) == multiline


def test_a_packed_file_that_ends_too_early_is_said_to_be_damaged(tmp_path):
    rows = "".join(f"{i},{i % 90},{i % 80}\n" for i in range(200_000)).encode()
    packed = gzip.compress(b"user,lon,lat\n" + rows)
    (tmp_path / "rows.csv.gz").write_bytes(packed[: len(packed) // 2])
    for options in ({}, {"since": "2024-01-01", "time": "lat"}):
        with pytest.raises(HazemapError, match="damaged"):
            open_table(tmp_path / "rows.csv.gz", **options).votes(WORLD, AtMostRows(1))


@pytest.mark.parametrize("options", [{}, {"since": "2020-01-01"}, {"dialect": CsvDialect(multiline=True)}], ids=str)
def test_a_read_of_csv_that_is_broken_off_leaves_the_table_usable(tmp_path, options, monkeypatch):
    class Failing:
        depth, root, span = WORLD.depth, WORLD.root, staticmethod(WORLD.span)

        def cell_at(self, columns, level):
            raise ValueError("enough")

    monkeypatch.setattr(csv_text, "CHUNK", 1 << 14)
    rows = "".join(f"u{i},1,2,2024-06-01\n" for i in range(20_000))
    (tmp_path / "rows.csv").write_text("user,lon,lat,time\n" + rows)
    table = open_table(tmp_path / "rows.csv", **options)
    for rule in (AtMostRows(1), RowIsPerson()):
        with pytest.raises(ValueError, match="enough"):
            table.votes(Failing(), rule)
        assert table.votes(WORLD, rule).weights.sum() == 20_000


@pytest.mark.parametrize("multiline", [False, True])
def test_where_a_file_is_cut_into_blocks_changes_nothing(tmp_path, multiline, monkeypatch):
    monkeypatch.setattr(csv_parser, "LONGEST", 60)
    chance = random.Random(6)
    signs = ["a,1,2\n", "b,3,4\r\n", '"c, ""d""",5,6\n', '"e\n",7,8\n', "é,1,2\n", "x" * 80, "\n", '"', ",", "\r", "y"]
    for _ in range(60):
        data = "user,lon,lat\n" + "".join(chance.choices(signs, weights=[8] * 5 + [1] * 6, k=40))
        (tmp_path / "rows.csv").write_bytes(data.encode())
        found = []
        for chunk in (2, 14, 64, 1 << 22):
            monkeypatch.setattr(csv_text, "CHUNK", chunk)
            found.append(texts(tmp_path / "rows.csv", CsvDialect(multiline=multiline)))
        assert found[0] == found[1] == found[2] == found[3]
        if not multiline:
            short = b"\n".join(line for line in data.encode().split(b"\n")[1:] if len(line) <= 60)
            assert [list(row) for row in found[0]] == [
                [field or None for field in record] for record in plainly(short, ",", 3)
            ]
