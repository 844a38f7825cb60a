"""The page in Debian's Chromium, without a network; and its build, which is the same on every machine."""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.releases.test_marked_release import BOX as MARKED_BOX
from tests.releases.test_marked_release import rows as marked_rows
from tests.releases.test_release_difference import BOX as CHANGED_BOX
from tests.releases.test_release_difference import releases
from tests.releases.test_timed_release import BERLIN
from tests.releases.test_timed_release import released as released_with_time
from tests.releases.test_timed_release import table as timed_rows

import hazemap
from hazemap.releases.base_release import BaseRelease
from hazemap.releases.page import page_file
from hazemap.releases.release_difference import ReleaseDifference

PAGE = Path(__file__).parents[3] / "web" / "page"
MODULES = PAGE.parent / "node_modules"
CHROMIUM = "/usr/bin/chromium"
LARGEST = 1_500_000
"""Bytes of the page beside a release's data, gzipped."""


def need(*paths: Path) -> None:
    missing = [path for path in paths if not path.exists()]
    if missing or shutil.which("node") is None:
        pytest.skip(f"`make studio` and `make system` install what is missing: {missing or 'node'}")


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=PAGE, check=False, capture_output=True, text=True, timeout=1200, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["squares", "hexagons"])
def test_a_page_works_without_a_network_by_mouse_and_by_keyboard(kind, release, hexagon_release, tmp_path):
    need(Path(CHROMIUM), MODULES / "playwright-core", Path(page_file.__file__).with_name("page.html"))
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


def used(kind: str, made: BaseRelease | ReleaseDifference, folder: Path, box: hazemap.Box) -> dict[str, Any]:
    """What was found while a page of a kind was used; nothing of it is an error."""
    need(Path(CHROMIUM), MODULES / "playwright-core", Path(page_file.__file__).with_name("page.html"))
    (folder / "page.html").write_text(made.to_html(title='<img src=x onerror="alert(1)"> & a title'))
    done = run("node", "browser/check_kinds.mjs", kind, str(folder / "page.html"), str(folder), str(box))
    found: dict[str, Any] = json.loads(done)
    assert (found["requests"], found["errors"], found["violations"]) == ([], [], [])
    facts = found["facts"]
    assert (facts["overflow"], facts["paper"], facts["pressed"]) == (False, False, 0)
    assert facts["pdf"] > 10_000
    assert len({facts[language] for language in ("de", "fr", "es")}) == 3
    return found


def has_slots(facts: dict[str, Any], slots: tuple[str, ...]) -> None:
    """The slider went by keys, played and stopped; with less motion it goes on by a press at a time."""
    assert (facts["slid"], facts["next"]) == (slots[1], slots[2 % len(slots)])
    assert (facts["playing"], facts["stopped"]) == ("Pause", "Play the time slots")
    assert facts["calm"] == "Next time slot"
    first, second, still = facts["steps"]
    assert first != second == still
    assert facts["link"] == facts["linked"]


@pytest.mark.slow
def test_a_page_of_a_map_with_time_shows_and_counts_each_slot(tmp_path):
    made = released_with_time(tmp_path)
    box = hazemap.Box(13.25, 52.42, 13.45, 52.55)
    facts = used("slots", made, tmp_path, box)["facts"]
    has_slots(facts, made.slots)
    assert facts["asked"] == [f"{made.count(box)}."]
    assert facts["during"] == [f"{made.slots[2]}: {made.during(2).count(box)}."]
    assert facts["again"] == [f"{made.slots[1]}: {made.during(1).count(box)}."]
    assert facts["together"] == "true"
    assert facts["aloud"].startswith(f"{made.slots[2]}: Best guess: ")
    assert facts["steps"][:2] == [made.slots[0], made.slots[1]]


@pytest.mark.slow
def test_a_page_of_a_map_with_marks_tells_shares(tmp_path):
    asked = {"person": "user", "epsilon": 2, "box": MARKED_BOX, "mark": ["ill", "status=2"]}
    made = hazemap.release(marked_rows(), ledger=hazemap.Ledger(tmp_path / "ledger.sqlite"), **asked)
    box = hazemap.Box(13.3, 52.4, 13.6, 52.6)
    found = used("marks", made, tmp_path, box)
    wanted = made.share(box)
    assert found["facts"]["asked"][:3] == [*map(str, wanted.shares), f"of {wanted.people}."]
    assert f": {wanted.cells:,}. The border cuts {wanted.inside} of them" in found["facts"]["asked"][3]
    marks = ["share:ill", "share:status=2", "width:ill", "width:status=2"]
    assert found["layers"] == [*marks, "density", "count", "certainty"]
    assert "ill: " in found["facts"]["hover share:ill"] and "Best guess: " in found["facts"]["hover density"]


@pytest.mark.slow
def test_a_page_of_statistics_shows_each_of_them_over_time(tmp_path):
    asked = {"person": "person", "value": "speed", "low": 0, "high": 60, "cells": "quadtree:3", "box": BERLIN}
    rows = timed_rows()
    rows = rows.append_column("speed", [np.random.default_rng(2).uniform(10, 40, rows.num_rows)])
    more = {"slots": "clock:0,6,12,18", "epsilon": 20, "variance": True, "quantiles": [0.1, 0.5], "bins": 16}
    made = hazemap.stats(rows, ledger=hazemap.Ledger(tmp_path / "ledger.sqlite"), **asked, **more)
    found = used("values", made, tmp_path, BERLIN)
    has_slots(found["facts"], made.slots)
    assert found["layers"] == ["mean", "guess", "variance", "q0.1", "q0.5", "certainty", "people"]
    assert found["facts"]["hover mean"].startswith("Mean of speed: ")
    assert found["facts"]["hover q0.5"].startswith("Median of speed: ")
    said = found["facts"]["hover people"].split("\n")[0]
    assert said.startswith("Here: ") and "people counted, at most 8 places each" in said


@pytest.mark.slow
def test_a_page_of_a_difference_tells_what_is_more_than_noise_explains(tmp_path):
    before, after = releases(tmp_path, moved=2_000, method="flat:4")
    found = used("difference", after.since(before), tmp_path, CHANGED_BOX)
    assert found["layers"] == ["changeDensity", "change"]
    assert found["facts"]["hover change"].startswith("Change: ")
    assert "noise explains" in found["facts"]["hover change"]


@pytest.mark.slow
def test_the_page_is_small_built_the_same_twice_and_says_what_is_in_it(tmp_path):
    need(MODULES / "vite")
    digests = []
    for name in ("one", "two"):
        run("npm", "run", "bundle", OUT=str(tmp_path / name))
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
    need(MODULES / "typescript")
    run("npm", "test")
