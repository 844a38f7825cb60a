"""The page in Debian's Chromium, without a network; and its build, which is the same on every machine."""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import hazemap
from hazemap.releases.page import page_file

PAGE = Path(__file__).parents[3] / "studio" / "page"
CHROMIUM = "/usr/bin/chromium"
LARGEST = 1_500_000
"""Bytes of the page beside a release's data, gzipped."""


def need(*paths: Path) -> None:
    missing = [path for path in paths if not path.exists()]
    if missing or shutil.which("node") is None:
        pytest.skip(f"`make studio` and `make system` install what is missing: {missing or 'node'}")


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=PAGE, check=False, capture_output=True, text=True, timeout=500, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squares", "hexagons"])
def test_a_page_works_without_a_network_by_mouse_and_by_keyboard(kind, release, hexagon_release, tmp_path):
    need(Path(CHROMIUM), PAGE / "node_modules" / "playwright-core", Path(page_file.__file__).with_name("page.html"))
    made = {"squares": release, "hexagons": hexagon_release}[kind]
    (tmp_path / "map.html").write_text(made.to_html(title='<img src=x onerror="alert(1)"> & a title'))
    box = hazemap.Box(13.3, 52.42, 13.5, 52.55)
    found = json.loads(run("node", "browser/check_page.mjs", str(tmp_path / "map.html"), str(tmp_path), str(box)))
    assert found["requests"] == []
    assert found["errors"] == []
    assert found["violations"] == []
    assert found["checked"] == 11
    facts = found["facts"]
    assert "Best guess: " in facts["hover"]
    assert "95 % certainty" in facts["aloud"]
    assert facts["statement"] == made.statement.text()
    assert facts["typed"] == f"{made.count(box)}."
    assert facts["outside"] == "This area lies outside the map."
    assert all("95 % interval" in facts[name] for name in ("drawn", "polygon"))
    assert (facts["dialog"], facts["closed"], facts["layer"]) == (True, True, "count")
    assert facts["link"] == facts["linked"]
    assert len(found["words"]) == 4
    assert len({str(words) for words in found["words"].values()}) == 4


@pytest.mark.slow
def test_the_page_is_small_built_the_same_twice_and_says_what_is_in_it(tmp_path):
    need(PAGE / "node_modules" / "vite")
    digests = []
    for name in ("one", "two"):
        run("npm", "run", "build", OUT=str(tmp_path / name))
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((tmp_path / name).iterdir())])
    assert digests[0] == digests[1]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["licences.txt", "page.html"]
    page = (tmp_path / "one" / "page.html").read_bytes()
    assert len(gzip.compress(page)) < LARGEST
    assert page.count(b"<script") == 2
    assert b"Content-Security-Policy" in page
    assert "Apache License 2.0" in (tmp_path / "one" / "licences.txt").read_text()


@pytest.mark.slow
def test_what_needs_no_browser_is_tested_in_node():
    need(PAGE / "node_modules" / "typescript")
    run("npm", "test")
