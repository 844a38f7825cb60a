"""`hazemap statement`, and what `hazemap export` writes for catalogues and prints for other tools."""

import hashlib
import json
import shutil
import subprocess

import duckdb
import pytest


def test_a_page_names_the_file_by_its_digest(release, hazemap, tmp_path):
    done = hazemap("statement", "map.parquet", "-o", "statement.html", "--language", "fr")
    assert (done.code, done.out) == (0, "statement.html\n")
    page = (tmp_path / "statement.html").read_text()
    assert hashlib.sha256((tmp_path / "map.parquet").read_bytes()).hexdigest() in page
    assert '<html lang="fr">' in page
    again = hazemap("statement", "map.parquet", "-o", "statement.html")
    assert again.code == 2 and "exists: choose another name" in again.err


def test_the_words_alone_are_those_of_inspect(release, hazemap, tmp_path):
    shown = hazemap("statement", "map.parquet").out
    assert hazemap("inspect", "map.parquet").out.startswith(shown.rstrip("\n"))
    assert hazemap("statement", "map.parquet", "-o", "s.txt").code == 0
    assert (tmp_path / "s.txt").read_text() == shown
    assert hazemap("statement", "map.parquet", "--json").json["statement"]["dataset"]


@pytest.mark.parametrize(
    "wrong", [("map.parquet", "-o", "s.pdf"), ("visits.parquet",), ("map.parquet", "--language", "tlh")]
)
def test_what_is_no_release_page_or_language_is_refused(wrong, release, hazemap, tmp_path):
    done = hazemap("statement", *wrong)
    assert (done.code, done.out) == (2, "")


def test_a_changed_file_has_no_statement_to_print(release, hazemap, tmp_path):
    content = bytearray((tmp_path / "map.parquet").read_bytes())
    content[len(content) // 3] ^= 1
    (tmp_path / "map.parquet").write_bytes(content)
    assert hazemap("statement", "map.parquet", "-o", "s.html").code != 0
    assert not (tmp_path / "s.html").exists()


def test_records_stand_beside_the_release_and_name_it(release, hazemap, tmp_path):
    facts = ("--licence", "CC-BY-4.0", "--publisher", "City of Example", "--title", "Visits")
    assert hazemap("export", "map.parquet", "--to", "stac", *facts).out == "map.stac.json\n"
    item = json.loads((tmp_path / "map.stac.json").read_text())
    assert item["assets"]["data"]["href"] == "./map.parquet"
    assert item["properties"]["title"] == "Visits"
    (tmp_path / "portal").mkdir()
    assert hazemap("export", "map.parquet", "--to", "dcat", "-o", "portal/map.jsonld", *facts).code == 0
    made = json.loads((tmp_path / "portal" / "map.jsonld").read_text())
    assert made["distribution"][0]["contentUrl"] == "../map.parquet"
    assert hazemap("export", "map.parquet", "--to", "stac").code == 2
    assert hazemap("export", "map.parquet", "--to", "stac", "--force", "--url", "https://a.b/m.parquet").code == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ((), "say what to make"),
        (("-o", "a.csv", "--loader", "r"), "say what to make"),
        (("-o", "a.csv", "--licence", "CC0-1.0"), "--licence is for records"),
        (("--loader", "fortran"), "r and duckdb"),
        (("--to", "stac", "--licence", "as I say"), "SPDX"),
        (("--to", "stac", "--pixel", "5"), "--pixel"),
        (("--to", "oracle://x"), "postgresql://host/database?table=visits"),
        (("--to", "postgresql://u:hunter2@h/d?table=t"), "holds no password"),
        (("--to", "postgresql://h/d?table=t&password=hunter2"), "holds no secret, 'password'"),
        (("--to", "postgresql://h/d"), "name one table"),
        (("--to", "postgresql://h/d?table=a.b.c"), "is no name of a table"),
    ],
)
def test_what_cannot_be_exported_is_said_in_words(wrong, words, release, hazemap, tmp_path):
    before = set(tmp_path.iterdir())
    done = hazemap("export", "map.parquet", *wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err and "hunter2" not in done.err
    assert set(tmp_path.iterdir()) == before


def test_the_script_for_duckdb_loads_cells_with_their_outlines_and_the_statement(release, hazemap, tmp_path):
    script = hazemap("export", "map.parquet", "--loader", "duckdb").out
    base = duckdb.connect()
    base.execute(script)
    facts = hazemap("inspect", "map.parquet", "--json").json
    assert base.execute("SELECT count(*) FROM cells").fetchone() == (facts["cells"],)
    assert base.execute("SELECT ST_AsText(geometry) FROM cells LIMIT 1").fetchone()[0].startswith("POLYGON")
    line, whole = base.execute("SELECT line, whole FROM statement").fetchone()
    assert line.startswith("Differentially private") and json.loads(whole) == facts["statement"]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not here: apt-get install r-base-core r-cran-sf")
@pytest.mark.parametrize(("suffix", "needs"), [("gpkg", "sf"), ("geojson", "sf"), ("parquet", "arrow")])
def test_the_script_for_r_loads_the_release_and_its_exports(suffix, needs, release, hazemap, tmp_path):
    def r(*words):
        return subprocess.run(["Rscript", *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    if r("-e", f"library({needs})").returncode:
        pytest.skip(f"R's package {needs} is not here")
    if suffix != "parquet":
        assert hazemap("export", "map.parquet", "-o", f"map.{suffix}").code == 0
    script = hazemap("export", "map.parquet", "--loader", "r").out.replace('"map.parquet"', f'"map.{suffix}"', 1)
    more = 'cat(nrow(cells), inherits(cells, "sf"), "per_km2" %in% names(cells))'
    (tmp_path / "load.R").write_text(script + more)
    done = r("load.R")
    cells = hazemap("inspect", "map.parquet", "--json").json["cells"]
    assert done.stdout.split()[-3:] == [str(cells), "TRUE", "TRUE"], done.stderr
