"""The law over bytes: whatever lines one person has in a file, nobody else's rows, ids and positions are others.

A line is what stands between two newlines. Lines of the person are rows of theirs and lines that are no rows: stray
quotes, odd bytes, wrong numbers of fields. The twin that must fail is the reader that sniffs how a file is written.
"""

import gzip
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hazemap.errors import HazemapError
from hazemap.readers.csv_files import CsvDialect, fields
from hazemap.readers.open_table import open_table
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows

WORLD = Quadtree.world(depth=12)
COLUMNS = ("user", "lon", "lat", "note")
DELIMITERS = (",", ";", "\t", "|")
ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
PEOPLE = ["u0", "0", "00", "7", "7.0", "ann", 'o"neill', "a,b", "x;y", "ä", "é é", "a\tb", "p|q", " ann", "Ann"]
VICTIM = "zed"
NOTES = ["", "hi", 'say "hi"', "''", "a,b;c\td|e", "ñ", "\\", "\\n", "#", "1,5", "  "]


class Writer:
    """How one file is written: its dialect, its columns and its newline."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.delimiter, encoding = chance.choice(DELIMITERS), chance.choice(ENCODINGS)
        declared = chance.choice([None, self.delimiter])
        self.decimal = chance.choice(".,")
        self.dialect = CsvDialect(declared, encoding, self.decimal)
        self.columns = chance.sample(COLUMNS, len(COLUMNS))
        self.codec = {"utf-16": "utf-16-le"}.get(encoding, encoding)
        self.newline = chance.choice(["\n", "\r\n"])
        self.start = (
            self.encoded("\ufeff") if encoding == "utf-16" or (self.codec == "utf-8" and chance.random() < 0.2) else b""
        )

    def encoded(self, text: str) -> bytes:
        return text.encode(self.codec)

    def line(self, who: str) -> bytes:
        chance = self.chance
        row = {"user": who, "note": chance.choice(NOTES)}
        for name in ("lon", "lat"):
            number = f"{chance.uniform(-80, 80):.{chance.randrange(0, 15)}f}"
            row[name] = number.replace(".", self.decimal)
        return self.encoded(self.delimiter.join(self.field(row[name]) for name in self.columns))

    def field(self, text: str) -> str:
        if any(sign in text for sign in (self.delimiter, '"', "\n")) or self.chance.random() < 0.2:
            doubled = text.replace('"', '""')
            return f'"{doubled}"'
        return text

    def damaged(self, who: str) -> bytes:
        """Any bytes without a newline, most of them nearly a row."""
        chance, line = self.chance, bytearray(self.line(who))
        unit = 2 if self.codec.startswith("utf-16") else 1
        if chance.random() < 0.2:
            line = bytearray(chance.randbytes(chance.randrange(60) * unit))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(line) // unit + 1) * unit
            signs = ['"', '""', '"""', self.delimiter, "\0", "\r", "'", "\\", *DELIMITERS]
            odd = self.encoded(chance.choice(signs)) if chance.random() < 0.6 else chance.randbytes(unit)
            line[at : at + chance.choice([0, 0, unit])] = odd
        return (
            bytes(line).replace(self.encoded("\n"), self.encoded("x")) if unit == 1 else self.whole_units(bytes(line))
        )

    def whole_units(self, line: bytes) -> bytes:
        newline, other = self.encoded("\n"), self.encoded("x")
        units = [line[i : i + 2] for i in range(0, len(line), 2)]
        return b"".join(other if each == newline else each for each in units)

    def file(self, lines: list[bytes], ended: bool) -> bytes:
        newline = self.encoded(self.newline)
        header = self.encoded(self.delimiter.join(self.columns))
        return self.start + newline.join([header, *lines]) + (newline if ended else b"")

    def whose(self, line: bytes) -> str | None:
        """Whose row a line is, by the rule, read in plain Python; None if nobody's."""
        try:
            text = line.decode(self.codec)
            text.encode()
        except UnicodeError:
            return None
        found = fields(text.removesuffix("\r"), self.delimiter)
        if found is None or len(found) != len(COLUMNS) or "\0" in text:
            return None
        return found[self.columns.index("user")] or None


def writable(writer: Writer) -> list[str]:
    people = []
    for who in PEOPLE:
        try:
            writer.encoded(who)
        except UnicodeError:
            continue
        people.append(who)
    return people


def a_file(chance: random.Random) -> tuple[Writer, list[bytes], list[bytes]]:
    """How it is written, the lines of the others, and lines of one person, damaged ones among them."""
    writer = Writer(chance)
    people = writable(writer)
    lines = [writer.line(chance.choice(people)) for _ in range(chance.randrange(40))]
    lines += [writer.damaged("nobody") for _ in range(chance.randrange(4))]
    lines = [line for line in lines if writer.whose(line) != VICTIM]
    chance.shuffle(lines)
    if chance.random() < 0.05:  # more than DuckDB looks at before it makes up its mind
        lines = lines * (21_000 // (len(lines) + 1) + 1)
    own = [
        writer.line(VICTIM) if chance.random() < 0.3 else writer.damaged(VICTIM) for _ in range(chance.randrange(1, 6))
    ]
    return writer, lines, [line for line in own if writer.whose(line) in {VICTIM, None}]


def rows_of(path: Path, dialect: CsvDialect) -> list[tuple]:
    """Whose row is where, in the order of the file; rows of nobody left out."""
    table = open_table(path, dialect=dialect, key=1, threads=2)
    found = []
    for who, lon, lat in table._batches(AtMostRows(1)):
        found += zip(who.to_pylist(), lon.to_pylist(), lat.to_pylist(), strict=True)
    return [(who, repr(lon), repr(lat)) for who, lon, lat in found if who is not None]


def check(chance: random.Random, folder: Path) -> int:
    writer, lines, own = a_file(chance)
    more = list(lines)
    for line in own:
        more.insert(chance.randrange(len(more) + 1), line)
    name = chance.choice(["rows.csv", "rows.csv", "rows.csv", "rows.txt.gz"])
    found = []
    for lines_of in (lines, more):
        data = writer.file(lines_of, chance.random() < 0.8)
        (folder / name).write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
        found.append(rows_of(folder / name, writer.dialect))
    others = [row for row in found[1] if row[0] != VICTIM]
    assert found[0] == others, (writer.dialect, own)
    expected = Counter(writer.whose(line) for line in lines)
    del expected[None]
    assert Counter(row[0] for row in found[0]) == expected, "who is whose is as plain Python has it"
    return len(own)


def test_no_line_of_one_person_changes_how_another_s_is_read(tmp_path):
    chance = random.Random(11)
    assert sum(check(chance, tmp_path) for _ in range(40)) > 40


@pytest.mark.slow
def test_no_line_of_one_person_changes_how_another_s_is_read_in_2000_files(tmp_path):
    chance = random.Random(12)
    assert sum(check(chance, tmp_path) for _ in range(2_000)) > 2_000


def sniffed(path: Path) -> list[tuple]:
    """The twin that must fail: DuckDB makes up its mind about the dialect from the first 20,480 lines."""
    import duckdb

    query = "SELECT * FROM read_csv($path, header = true, all_varchar = true)"
    return duckdb.execute(query, {"path": str(path)}).fetchall()


def late_quotes(folder: Path, extra: list[str]) -> tuple[Path, Path]:
    """25,000 plain rows, then 1,000 quoted ones; and the same with the lines of one more person."""
    plain = [f"u{i},13.3,52.5,note" for i in range(25_000)]
    late = [f'"u{i}",13.3,52.5,"a note"' for i in range(1_000)]
    for name, lines in (("without.csv", plain + late), ("with.csv", [*extra, *plain, *late])):
        (folder / name).write_text("\n".join(["user,lon,lat,note", *lines]) + "\n")
    return folder / "without.csv", folder / "with.csv"


def test_fault_1_csv_dialects_are_not_sniffed_from_the_data(tmp_path):
    """Found fault 1: one person's quotes made 1,000 others two people each, at sensitivity 1."""
    without, including = late_quotes(tmp_path, ['bob,13.3,52.5,"hi"'])
    before, after = (open_table(path, key=1).votes(WORLD, AtMostRows(1)).weights.sum() for path in (without, including))
    assert (before, after) == (25_000, 25_001), 'u0 and "u0" are one person, early and late'
    names = [{row[0] for row in sniffed(path)} - {"bob"} for path in (without, including)]
    assert len(names[0] ^ names[1]) >= 1_000, "the twin must fail"


def test_an_unrelated_note_changes_nobody_s_id(tmp_path):
    without, including = late_quotes(tmp_path, ["bob,13.3,52.5,''", "bob,13.3,52.5,'", 'bob,13.3,52.5,"', "bob,13.3"])
    assert [row for row in rows_of(including, CsvDialect()) if row[0] != "bob"] == rows_of(without, CsvDialect())


def test_a_quoted_comma_that_comes_late_is_read(tmp_path):
    lines = ["user,lon,lat,note", *["u,13.3,52.5,x"] * 21_000, 'v,13.3,52.5,"late, but valid"']
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    assert len(rows_of(tmp_path / "rows.csv", CsvDialect())) == 21_001


def test_the_order_of_lines_changes_neither_who_they_are_of_nor_where(tmp_path):
    chance = random.Random(3)
    for _ in range(8):
        writer, lines, own = a_file(chance)
        found = []
        for _ in range(2):
            (tmp_path / "rows.csv").write_bytes(writer.file(lines + own, True))
            found.append(Counter(rows_of(tmp_path / "rows.csv", writer.dialect)))
            chance.shuffle(lines)
        assert found[0] == found[1]


def test_records_over_several_lines_are_read_where_that_is_declared(tmp_path):
    """With `multiline` the law holds for records that are well formed."""
    chance = random.Random(5)
    for _ in range(10):
        writer = Writer(chance)
        writer.dialect = CsvDialect(writer.delimiter, writer.dialect.encoding, writer.decimal, multiline=True)
        people = writable(writer)
        lines, own = ([writer.line(who) for who in chance.choices(names, k=30)] for names in (people, [VICTIM]))
        broken = writer.encoded('"two\nlines, ""and"" \nmore"')
        wide = [line.replace(writer.encoded("hi"), broken) for line in own if b'"' not in line.replace(b"\0", b"")]
        more = list(lines)
        for line in wide:
            more.insert(chance.randrange(len(more) + 1), line)
        found = []
        for lines_of in (lines, more):
            (tmp_path / "rows.csv").write_bytes(writer.file(lines_of, True))
            found.append(rows_of(tmp_path / "rows.csv", writer.dialect))
        assert [row for row in found[1] if row[0] != VICTIM] == found[0]
        assert len(found[1]) == len(more), "every record is a row"


# Folders of Parquet files

KINDS = {
    "BIGINT": (pa.int64(), [7, 8, -1, 2**53, 2**53 + 1, 2**62, None]),
    "INTEGER": (pa.int32(), [7, 8, -1, None]),
    "UBIGINT": (pa.uint64(), [7, 8, 2**53 + 1, 2**64 - 1, None]),
    "DOUBLE": (pa.float64(), [7.0, 8.0, -1.0, -0.0, 7.5, 2.0**53, 1e300, float("nan"), float("inf"), None]),
    "FLOAT": (pa.float32(), [7.0, 8.0, 2.0**24, 0.1, None]),
    "VARCHAR": (pa.string(), ["7", "07", "7.0", "-1", "ann", "", "9007199254740993", None]),
    "DECIMAL": (pa.decimal128(20, 2), [Decimal("7.00"), Decimal("7.50"), Decimal("-1.00"), None]),
    "ENUM": (pa.dictionary(pa.int8(), pa.string()), ["7", "ann", None]),
    "BLOB": (pa.binary(), [b"7", b"ann", b"\xff", None]),
}


def person_of(value, kind: str, texts: bool) -> object:
    """Who an id is, in plain Python: the value of a number, or its text as soon as one file holds text."""
    if kind in {"DOUBLE", "FLOAT"}:
        most = 2**53 if kind == "DOUBLE" else 2**24
        if value is None or not np.isfinite(value) or value != int(value) or abs(value) >= most:
            return None
        value = int(value)
    if value is None or not texts:
        return value
    if isinstance(value, Decimal):
        value = str(value).rstrip("0").rstrip(".")
    return value if isinstance(value, bytes) else str(value).encode()


def write_folder(folder: Path, files: list[tuple[str, list]]) -> None:
    for i, (kind, ids) in enumerate(files):
        values = pa.array(ids, KINDS[kind][0].value_type if kind == "ENUM" else KINDS[kind][0])
        ids_of = values.dictionary_encode() if kind == "ENUM" else values
        lon = pa.array(range(len(ids)), [pa.float64(), pa.int32(), pa.float32(), pa.decimal128(10, 2)][i % 4])
        table = pa.table(
            {"user": ids_of, "lat": lon, "lon": lon} if i % 2 else {"lon": lon, "lat": lon, "user": ids_of}
        )
        parquet.write_table(table, folder / f"{i}.parquet")


@pytest.mark.parametrize("seed", range(3))
def test_fault_5_ids_of_one_folder_in_several_types_are_one_person_where_they_are_equal(tmp_path, seed):
    """Found fault 5: a double in one file and a text in another made two people of one."""
    chance = random.Random(seed)
    for trial in range(4):
        folder = tmp_path / str(trial)
        folder.mkdir()
        kinds = [chance.choice(list(KINDS)) for _ in range(chance.randrange(1, 5))]
        files = [(kind, chance.choices(KINDS[kind][1], k=6)) for kind in kinds]
        write_folder(folder, files)
        texts = not set(kinds) <= {"BIGINT", "INTEGER", "DOUBLE", "FLOAT"}
        expected = [person_of(value, kind, texts) for kind, ids in files for value in ids]
        people = set(expected) - {None}
        table = open_table(folder, key=1)
        assert table.votes(WORLD, AtMostRows(1)).weights.sum() == len(people)
        read = [who for batch in table._batches(AtMostRows(1)) for who in batch[0].to_pylist()]
        groups = Counter(zip(expected, read, strict=True))
        assert len({one for one, _ in groups}) == len({other for _, other in groups}) == len(groups)


def test_rows_of_one_person_in_a_folder_change_nobody_else_s(tmp_path):
    chance = random.Random(9)
    for trial in range(6):
        kinds = [chance.choice(list(KINDS)) for _ in range(3)]
        files = [(kind, chance.choices(KINDS[kind][1], k=8)) for kind in kinds]
        victim = chance.randrange(3)
        odd = chance.choice(KINDS[kinds[victim]][1])
        found = []
        for more in (False, True):
            folder = tmp_path / f"{trial}-{more}"
            folder.mkdir()
            ids = [value for value in files[victim][1] if repr(value) != repr(odd)]
            chosen = [(kind, ids if i == victim else values) for i, (kind, values) in enumerate(files)]
            if more:
                chosen[victim] = (kinds[victim], [*ids, odd, odd])  # positions count rows, so those of others stay
            write_folder(folder, chosen)
            batches = list(open_table(folder, key=1)._batches(AtMostRows(1)))
            found.append([row for batch in batches for row in zip(*(c.to_pylist() for c in batch), strict=True)])
        own = Counter(found[1]) - Counter(found[0])
        assert sum(own.values()) == 2 and not Counter(found[0]) - Counter(found[1])


def test_types_whose_texts_differ_are_refused_by_what_the_files_declare(tmp_path):
    for name, ids in (("a", pa.array([1], pa.date32())), ("b", pa.array(["1970-01-02"]))):
        parquet.write_table(pa.table({"user": ids, "lon": [1.0], "lat": [1.0]}), tmp_path / f"{name}.parquet")
    with pytest.raises(HazemapError, match=r"in one file .* in another"):
        open_table(tmp_path, person="user")


def test_names_of_folders_are_texts_whatever_the_other_folders_are(tmp_path):
    names = ("7", "07", "bob")
    for number, name in enumerate(names):
        (tmp_path / f"user={name}").mkdir()
        parquet.write_table(pa.table({"lon": [1.0], "lat": [1.0]}), tmp_path / f"user={name}" / "rows.parquet")
        read = [
            who for batch in open_table(tmp_path, person="user")._batches(AtMostRows(1)) for who in batch[0].to_pylist()
        ]
        assert sorted(read) == sorted(names[: number + 1])
