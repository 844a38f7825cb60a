"""A device that was written from the documentation, in another language: `web/device`, beside fifty of ours."""

import hashlib
import json
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.device import hexagon_vectors, slot_vectors, vectors
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.algorithms import Flat
from hazemap.codec import dumps
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

DEVICE = Path(__file__).parents[3] / "web" / "device"
COMPILED = DEVICE / "dist" / "node" / "device" / "src"
OURS = 50
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)
HERE, ELSEWHERE = (13.25, 52.42), (13.5, 52.58)
POLICY = """[budget]
campaign = 2000
period = 9000
[cohort]
people = 40
survivors = 40
modes = ["malicious", "semi-honest"]
[question]
finest = 0
"""


@pytest.mark.parametrize("made", [vectors, hexagon_vectors, slot_vectors], ids=["tasks", "hexagons", "slots"])
def test_the_vectors_of_tasks_are_what_the_code_says_today(made):
    assert hashlib.sha256(made.FILE.read_bytes()).digest() == hashlib.sha256(made.text().encode()).digest()


def _npm(*words: str) -> None:
    done = subprocess.run(["npm", *words], cwd=DEVICE, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr


def _built() -> Path:
    """Its program; skips where nothing can build it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed: the TypeScript device is not tested here")
    if not (DEVICE.parent / "node_modules" / "@noble" / "ciphers").exists():
        pytest.skip("the TypeScript device is not installed: `make studio` does it")
    _npm("run", "build")
    return COMPILED / "main.js"


@pytest.mark.slow
def test_the_typescript_device_passes_its_own_tests():
    _built()
    _npm("test")


def _started(program: Path, options: dict[str, object]) -> subprocess.Popen[str]:
    words = [str(word) for option in options.items() for word in option]
    return subprocess.Popen(["node", str(program), *words], stderr=subprocess.PIPE, text=True)


def _killed_after(device: subprocess.Popen[str], answers: int) -> str:
    """What a device said until it had sent so many answers; then it is killed, without a warning."""
    said = []
    for line in device.stderr:
        said.append(line)
        if sum("sent" in each for each in said) == answers:
            break
    device.kill()
    device.wait()
    device.stderr.close()
    return "".join(said)


def _campaign(name: str, mode: Mode) -> Campaign:
    people = OURS + 1
    cohort = Cohort(people, people, Fraction(1, 10), Fraction(1, 10), Sampling.ONE, mode)
    # At ε = 1000 noise is 0 but for a probability of e^−1000 a cell and share: counts are compared with the truth.
    return Campaign(
        name, "a test", name, Flat(TREE, 2), PureDP(1_000), cohort=cohort, deadlines=Deadlines.all(600), wait=600
    )


def _order(server: Server, ordered: Campaign) -> None:
    answer = server.answered("/v1/campaigns", dumps(ordered).encode())
    assert answer is not None, "the server is gone"
    assert answer.status_code == 201, answer.text


def _done(server: Server, ordered: Campaign) -> tuple[dict, Counter]:
    """The last status of a campaign that was ordered, and its counts."""
    until = time.monotonic() + 600
    while (status := server.answered(f"/v1/campaigns/{ordered.name}").json())["state"] == "running":
        assert time.monotonic() < until, status
        time.sleep(0.1)
    release = Release.open(server.folder / "releases" / f"{ordered.name}.parquet")
    counts = zip(release.map.cells.cells.tolist(), release.map.unbiased.round().tolist(), strict=True)
    return status, Counter(dict(counts))


def _cells(points: list[tuple[float, float]]) -> Counter:
    lon, lat = np.array(points).T
    return Counter(TREE.cell_at({"lon": lon, "lat": lat}, 2).tolist())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_typescript_device_refuses_to_trust_a_server_and_is_counted_in_a_malicious_sum_after_it_was_killed(tmp_path):
    program = _built()
    port = free_port()
    (tmp_path / "policy.toml").write_text(POLICY)
    lon, lat = (np.full(OURS, at) for at in ELSEWHERE)
    pq.write_table(pa.table({"person": np.arange(OURS), "lon": lon, "lat": lat}), tmp_path / "people.parquet")
    (tmp_path / "rows.json").write_text(json.dumps([{"lon": HERE[0], "lat": HERE[1]}]))
    (tmp_path / "policy.json").write_text('{"people": 40, "survivors": 40, "campaign": 2000, "period": 9000}')
    with Parent() as parent:
        server = Server(parent, tmp_path / "server", port)
        ours = Crowd(parent, tmp_path, "ours", server, OURS, tmp_path / "people.parquet", tmp_path / "policy.toml")
        server.start()
        assert server.answered("/v1/campaigns") is not None
        code = (server.folder / "enrolment.token").read_text().strip()
        options = {
            "--server": server.url,
            "--code": code,
            "--rows": tmp_path / "rows.json",
            "--policy": tmp_path / "policy.json",
            "--file": tmp_path / "device.json",
        }
        theirs = _started(program, options)
        try:
            ours.start()
            until = time.monotonic() + 600
            while server.answered("/v1/campaigns").json()["devices"]["recent"] < OURS + 1:
                assert time.monotonic() < until, "the devices do not come"
                time.sleep(0.05)
            trusted, hostile = _campaign("trusted", Mode.SEMI_HONEST), _campaign("hostile", Mode.MALICIOUS)
            _order(server, trusted)
            status, counts = _done(server, trusted)
            assert counts == _cells([ELSEWHERE] * OURS), status
            _order(server, hostile)
            before = _killed_after(theirs, answers=4)  # its vector, for which it was charged
            theirs = _started(program, options)
            status, counts = _done(server, hostile)
            assert counts == _cells([ELSEWHERE] * OURS + [HERE]), status
            _, said = theirs.communicate(timeout=600)
        finally:
            theirs.kill()
            theirs.wait()
            for process in (ours, server):
                if process.child:
                    process.kill()
    with sqlite3.connect(server.folder / "server.sqlite") as database:
        [heads] = database.execute("SELECT count(DISTINCT head) FROM devices WHERE length(head) = 24").fetchone()
    assert heads == OURS + 1, "each device has deposited how far its account has come"
    assert theirs.returncode == 0, said
    assert "not in semi-honest ones" in before
    assert "the campaign has ended for this device" in said
    kept = json.loads((tmp_path / "device.json").read_text())
    assert [charge["campaign"] for charge in kept["charges"]] == ["hostile"]
    assert all(session is None for _, session in kept["sessions"]), "nothing of a session is left"
