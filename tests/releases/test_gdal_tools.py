"""GDAL's own command-line tools open what is written (Debian's build has no Parquet driver, so not that one)."""

import shutil
import subprocess

import pytest

from .conftest import flat, released

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("ogrinfo"), reason="GDAL's tools are not here: apt-get install gdal-bin"),
]


def said(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("suffix", [".gpkg", ".geojson", ".fgb"])
def test_ogrinfo_counts_the_cells_and_knows_the_columns(tmp_path, suffix):
    path = tmp_path / f"map{suffix}"
    released(flat()).export(path)
    text = said("ogrinfo", "-al", "-so", path)
    assert "Feature Count: 256" in text
    assert "best_guess: Real" in text and "stddev: Real" in text


def test_gdalinfo_sees_an_optimised_picture_with_its_statement(tmp_path):
    path = tmp_path / "map.tif"
    released(flat()).save(path)
    text = said("gdalinfo", path)
    assert "LAYOUT=COG" in text and "EPSG" in text and "Size is 16, 16" in text


def test_ogrinfo_opens_the_release_itself_where_it_knows_parquet(tmp_path):
    if "Parquet" not in said("ogrinfo", "--formats"):
        pytest.skip("this build of GDAL has no Parquet driver")
    path = tmp_path / "map.parquet"
    released(flat()).save(path)
    assert "Feature Count: 256" in said("ogrinfo", "-al", "-so", path)
