"""Tests at both ends of what may be installed: the lowest versions that are allowed, and the newest that there are."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "distribution"))

import dependency_ends  # noqa: E402

PRIVATE = ("numba.core", "llvmlite")
SUBSET = [
    *(f"tests/{name}" for name in ("gdal", "test_cells.py", "test_codec.py", "files/test_atomic_write.py")),
    *(f"tests/releases/test_{name}.py" for name in ("format_rules", "geotiff", "geoparquet", "text_tables")),
    *(f"tests/readers/test_{name}.py" for name in ("geopackage_points", "odd_values")),
    *(f"tests/spatial/test_{name}.py" for name in ("h3_hexagons", "quadtree")),
    *(f"tests/vdaf/test_{name}.py" for name in ("aes128", "keccak_permutation", "idpf", "published_prio3")),
    *("tests/draw/test_overlay_lines.py", "tests/privacy/test_ledger_file.py"),
]
"""Files that reach every library we depend on, and every loop that uses private names of one."""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["lowest", "newest"])
def test_the_versions_at_either_end_of_what_is_allowed_work(end, tmp_path):
    python = ROOT / f".venv-{end}" / "bin" / "python"
    if not (ROOT / f".venv-{end}" / "ready").exists():
        pytest.skip(f"the environment of the {end} versions is not here, as without PyPI: make .venv-{end}/ready")
    options = ["-q", "-n", "2", "-m", "not slow", "-p", "no:cacheprovider", "-o", "filterwarnings=default"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-m", "pytest", *options, "--basetemp", str(tmp_path / "tests"), *SUBSET]
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_files_that_run_at_either_end_are_there():
    assert not [name for name in SUBSET if not (ROOT / name).exists()]


def test_every_dependency_has_a_lowest_version():
    asked, lowest = dependency_ends.requirements("newest"), dependency_ends.requirements("lowest")
    assert len(lowest) == len(asked) and all(re.fullmatch(r"[\w.\[\],-]+==[\d.]+", each) for each in lowest)


def test_libraries_of_which_private_names_are_used_have_a_highest_version():
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    used = {name.partition(".")[0] for name in PRIVATE if any(f"from {name}" in text for text in sources)}
    assert used == {"numba", "llvmlite"}
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounded = {re.split("[<>=]", each)[0] for each in asked if ",<" in each}
    assert used | {"duckdb"} <= bounded
