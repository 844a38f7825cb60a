"""A map of one report of each person, by the commands of operators, over HTTP, with servers that are killed."""

import json
import os
import random
import threading
import time

import numpy as np
import pytest
from tests.federated.aggregator.test_processes import Processes

from hazemap import Quadtree
from hazemap import open as open_release
from hazemap.cli.main import main
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.spatial.bounding_box import Box

BOX, DEPTH, PEOPLE, PRECISION = Box(2.2, 48.8, 2.5, 48.9), 10, 60, 360_000


@pytest.fixture
def two(tmp_path):
    tree = Quadtree.around(BOX, DEPTH)
    asked = ("--least", str(PEOPLE - 5), "--seconds", str(PRECISION), "--epsilon", "200", "--levels", "6")
    made = Processes(tmp_path, f"prefixes:{CellStrings(tree).bits}", *asked, "--questions")
    try:
        made.wait()
        yield made
    finally:
        made.close()


def reported(two, now):
    """Sixty devices' reports of where they are."""
    rng = np.random.default_rng(3)
    tree = Quadtree.around(BOX, DEPTH)
    columns = {"lon": 2.35 + rng.normal(0, 0.02, PEOPLE), "lat": 48.85 + rng.normal(0, 0.01, PEOPLE)}
    client = two.client()
    strings = CellStrings(tree).of_people(tree.cell_at(columns, DEPTH)).tolist()
    made = [client.report(string, now, os.urandom(client.randomness_bytes)) for string in strings]
    assert two.upload(*made).status_code == 200
    return made


@pytest.mark.slow
def test_a_map_is_made_whoever_is_killed_and_the_same_again(two, tmp_path, capsys):
    now = int(time.time())
    made = reported(two, now)
    command = [
        "collector",
        "map",
        str(tmp_path / "tasks" / "collector.toml"),
        "--start",
        str(now // PRECISION * PRECISION),
    ]
    command += ["--box", str(BOX), "--cells", f"quadtree:{DEPTH}", "--wait", "600", "--json"]
    ended, killer = threading.Event(), threading.Thread(target=_killing, args=(two, random.Random(1)))
    killer.ended = ended
    killer.start()
    try:
        capsys.readouterr()
        assert main([*command, "-o", str(tmp_path / "first.parquet")]) == 0
    finally:
        ended.set()
        killer.join()
    two.wait()
    said = json.loads(capsys.readouterr().out)
    assert said["reports"] == PEOPLE
    assert main([*command, "-o", str(tmp_path / "again.parquet")]) == 0
    first, again = (open_release(tmp_path / name) for name in ("first.parquet", "again.parquet"))
    for one, other in zip(first.transcript, again.transcript, strict=True):
        assert np.array_equal(one.answer.sums, other.answer.sums)
    assert first.total().unbiased == pytest.approx(PEOPLE, abs=15)
    assert two.upload(*made).status_code == 200  # all again: they count once, and this batch takes no more
    assert main([*command, "-o", str(tmp_path / "again.parquet"), "--method", "flat:3"]) != 0
    assert "budget" in capsys.readouterr().out


def _killing(two, chance):
    """Kill one server after another, some 4 times, while the map is made."""
    ended = threading.current_thread().ended
    for _ in range(4):
        if ended.wait(0.3 + chance.random()):
            return
        role = chance.choice(["leader", "helper"])
        two.kill(role)
        two.start(role)
