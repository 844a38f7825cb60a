"""Three tabs of Debian's Chromium as devices beside sixty of ours: one is closed in the middle."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.federated.device.serving import listening
from tests.federated.device.tab.recorded_traffic import betrayed, recording, requests, traces
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.algorithms import Flat
from hazemap.codec import dumps
from hazemap.federated.device.tab import device_page
from hazemap.federated.device.tab.device_page import PAGE, DevicePage
from hazemap.federated.protocols.secure_aggregation.messages import decode
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign, Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import PureDP
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

TAB = Path(__file__).parents[4] / "web" / "tab"
MODULES = TAB.parent / "node_modules"
BUILT = Path(device_page.__file__).with_name(PAGE)
OURS, CLOSED = 60, 2
TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)
ELSEWHERE = (13.5, 52.58)
THEIRS = [
    [(13.2537219, 52.4219847), (13.2537421, 52.4219533)],
    [(13.5731864, 52.4318275), (13.5731997, 52.4318461)],
    [(13.3871532, 52.5127743), (13.3871811, 52.5127429)],
]
"""Each visitor's places, in one cell."""
STAGES = ["Keys", "Picks", "Sealed", "Masked", "Assent", "Unmask"]
SAID = ["keys", "choice of neighbours", "sealed shares", "masked counts", "assent to who is in the sum"]
SAID.append("shares to open the sum")
POLICY = """[budget]
campaign = 2000
period = 9000
[cohort]
people = 40
survivors = 40
[question]
finest = 0
"""
RULES = {"people": "40", "survivors": "40", "campaign": "2000", "period": "9000"}


def need(*paths):
    missing = [path for path in paths if not path.exists()]
    if missing or shutil.which("node") is None:
        pytest.skip(f"`make studio` and `make system` install what is missing: {missing or 'node'}")


def files(folder):
    """The visitors' places as GPX, as Takeout's records, and as its timeline."""
    gpx, records, timeline = (folder / name for name in ("walk.gpx", "Records.json", "Timeline.json"))
    points = "".join(f'<trkpt lat="{lat}" lon="{lon}"><ele>34</ele></trkpt>' for lon, lat in THEIRS[0])
    gpx.write_text(f'<?xml version="1.0"?><gpx version="1.1"><trk><trkseg>{points}</trkseg></trk></gpx>')
    e7 = [{"latitudeE7": round(lat * 1e7), "longitudeE7": round(lon * 1e7)} for lon, lat in THEIRS[1]]
    records.write_text(json.dumps({"locations": e7}))
    path = [{"point": f"{lat}°, {lon}°"} for lon, lat in THEIRS[2]]
    timeline.write_text(json.dumps({"semanticSegments": [{"timelinePath": path}]}))
    return [str(gpx), str(records), str(timeline)]


def cells(points, level=2):
    lon, lat = np.array(points).T
    return TREE.cell_at({"lon": lon, "lat": lat}, level).tolist()


def test_the_search_for_places_finds_each_way_of_writing_one():
    wanted = traces(THEIRS[0], cells(THEIRS[0], 5))
    lon, lat = THEIRS[0][0]
    number = np.array([lon, lat])
    for planted in (
        f'{{"lon": {lon}}}'.encode(),
        str(int(lat * 1e7)).encode(),
        number.tobytes(),
        number[1:].astype(">f8").tobytes(),
        number.astype("<f4").tobytes(),
        number.tobytes().hex().encode(),
        b"x" + base64.b64encode(b"some " + number[:1].tobytes() + b" more"),
    ):
        assert betrayed([b"POST / HTTP/1.1\r\n\r\n" + planted], wanted), planted
    assert betrayed([np.random.default_rng(1).bytes(1_000_000)], wanted) == []


@contextmanager
def visitors(folder, links, rules=RULES, closed=CLOSED, recipes=None):
    """The process of people in a browser, who have joined; it is ended in the end."""
    pictures = os.environ.get("HAZEMAP_SCREENSHOTS")
    orders = {"links": links, "rules": rules, "files": files(folder), "closed": closed, "pictures": pictures}
    orders |= {"recipes": recipes} if recipes else {}
    (folder / "orders.json").write_text(json.dumps(orders))
    command, pipe = ["node", "browser/visitors.mjs", str(folder / "orders.json")], subprocess.PIPE
    process = subprocess.Popen(command, cwd=TAB, text=True, stdin=pipe, stdout=pipe, stderr=pipe)
    patience = threading.Timer(1500, process.kill)
    patience.start()
    try:
        assert process.stdout.readline() == "answering\n", process.communicate(timeout=600)
        yield process
    finally:
        patience.cancel()
        process.kill()
        process.wait()


def mapped(server):
    """The last status of a campaign among all devices, and its counts."""
    people = OURS + len(THEIRS)
    cohort = Cohort(people, people, Fraction(1, 10), Fraction(1, 10), Sampling.ONE, Mode.MALICIOUS)
    # At ε = 1000 noise is 0 but for a probability of e^−1000 a cell and share: the counts are the truth.
    deadlines = Deadlines.all(600, quiet=60)
    budget, method = PureDP(1_000), Flat(TREE, 2)
    ordered = Campaign("tabs", "a test", "town", method, budget, cohort=cohort, deadlines=deadlines, wait=600)
    assert server.answered("/v1/campaigns", dumps(ordered).encode()).status_code == 201
    end = time.monotonic() + 600
    while (status := server.answered("/v1/campaigns/tabs").json())["state"] == "running":
        assert time.monotonic() < end, status
        time.sleep(0.1)
    release = Release.open(server.folder / "releases" / "tabs.parquet")
    counts = zip(release.map.cells.cells.tolist(), release.map.unbiased.round().tolist(), strict=True)
    return status, Counter({cell: count for cell, count in counts if count})


def check_traffic(streams, places, log, gone):
    """No place is in what a tab sent: its requests are those of a device, and its log names every answer."""
    assert betrayed(streams, traces(places, cells(places, 5))) == []
    sent = [request for stream in streams for request in requests(stream)]
    ways = {(each.method, re.sub("[0-9a-f]{64}|[0-9a-f]{48}", "…", each.path)) for each in sent}
    posts = {"/v1/challenge", "/v1/enrol", "/v1/tasks/…", "/v1/tasks/…?head=…"}
    assert ways <= {("GET", "/v1/tasks"), ("OPTIONS", "/v1/tasks")} | {
        (way, p) for way in ("POST", "OPTIONS") for p in posts
    }
    assert all(not each.body for each in sent if each.method != "POST")
    enrolling = [json.loads(each.body) for each in sent if each.path in ("/v1/challenge", "/v1/enrol") and each.body]
    words = {"version", "identity", "origin", "token", "challenge", "signature"}
    assert {name for each in enrolling for name in each} == words
    answers = [each.body for each in sent if each.path.startswith("/v1/tasks/") and each.method == "POST"]
    ready = [re.fullmatch(r"has its (.*) for round 1 ready: (\d+) bytes", line) for line in log]
    ready = [(each[1], int(each[2])) for each in ready if each]
    arrived = [int(line.split()[1]) for line in log if line.startswith("sent ") and line.endswith("(HTTP 204)")]
    assert [type(decode(body)).__name__ for body in answers] == STAGES[:gone], "its answers, and nothing else"
    assert [size for _, size in ready[:gone]] == [len(body) for body in answers] == arrived
    return [name for name, _ in ready]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_tabs_are_devices_and_one_is_closed_in_the_middle_and_no_place_leaves_a_browser(tmp_path):
    need(Path("/usr/bin/chromium"), MODULES / "playwright-core", BUILT)
    port = free_port()
    (tmp_path / "policy.toml").write_text(POLICY)
    lon, lat = (np.full(OURS, at) for at in ELSEWHERE)
    pq.write_table(pa.table({"person": np.arange(OURS), "lon": lon, "lat": lat}), tmp_path / "people.parquet")
    page = DevicePage.built().application()
    with listening(page) as tab, Parent() as parent, recording(port, len(THEIRS)) as wires:
        server = Server(parent, tmp_path / "server", port, pages=(tab,))
        ours = Crowd(parent, tmp_path, "ours", server, OURS, tmp_path / "people.parquet", tmp_path / "policy.toml")
        server.start()
        try:
            asked = json.dumps({"number": len(THEIRS), "days": 1}).encode()
            codes = server.answered("/v1/codes", asked).json()["codes"]
            ours.start()
            links = [
                f"{tab}/#server={wire.url}&code={code}&people=2&start=1"
                for wire, code in zip(wires, codes, strict=True)
            ]
            with visitors(tmp_path, links) as tabs:
                end = time.monotonic() + 600
                while server.answered("/v1/campaigns").json()["devices"]["recent"] < OURS + len(THEIRS):
                    assert time.monotonic() < end, "the devices do not come"
                    time.sleep(0.1)
                status, counts = mapped(server)
                said, wrong = tabs.communicate("done\n", timeout=600)
        finally:
            for process in (ours, server):
                if process.child:
                    process.kill()
        streams = [wire.sent() for wire in wires]
    assert said, wrong
    found = json.loads(said)
    there = [ELSEWHERE] * OURS + [places[0] for at, places in enumerate(THEIRS) if at != CLOSED]
    assert counts == Counter(cells(there)), status
    assert found["requests"] == [] and found["errors"] == [] and found["violations"] == []
    assert found["checked"] == 6
    for at, places in enumerate(THEIRS):
        log = [line[20:] for line in found["logs"][at]]
        ready = check_traffic(streams[at], places, log, gone=3 if at == CLOSED else 6)
        # The closed tab had paid and written its masked counts down when it was closed: the log says both, and no more.
        assert ready == (SAID[:4] if at == CLOSED else SAID)
        assert len([line for line in log if line.startswith("pays ε = 1000 for round 1")]) == 1
        assert any("takes part in round 1 of “tabs” (“a test”), among 63 people, at ε = 1000" in line for line in log)
    assert "this page was opened; 1 answers were under way when it was closed" in found["logs"][CLOSED][-1]
    facts = found["facts"]
    assert "Not answering" in facts["begun"][0] and facts["begun"][1] == "100", "a link starts nothing and sets no rule"
    assert facts["address"] == f"{tab}/", "the code does not stay in the address"
    assert "Another tab of this browser is your device already" in facts["second"]
    assert "stands inside another" in facts["framed"], "nobody presses a button there that they do not see"
    assert facts["bound"] == "TypeError", "no other server can be reached, not even the page's own"
    assert "Not answering" in facts["reopened"] and "1000 of ε = 9000 paid" in facts["reopened"]
    assert facts["kept"] == {
        "kinds": {"key": "CryptoKey", "device": "Uint8Array", "places": "Uint8Array", "policy": "Uint8Array"},
        "extractable": False,
    }
    assert "does not enrol this device: ask for a code" in facts["again"], "clearing what is kept wins nothing"


@pytest.mark.slow
def test_the_page_is_built_the_same_twice_and_asks_for_nothing_else(tmp_path):
    need(MODULES / "vite")
    digests = set()
    for name in ("one", "two"):
        words = ["npm", "run", "bundle"]
        done = subprocess.run(
            words, cwd=TAB, env={**os.environ, "OUT": str(tmp_path / name)}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == [PAGE, "licences.txt"]
        digests.add(hashlib.sha256((tmp_path / name / PAGE).read_bytes()).hexdigest())
    assert len(digests) == 1
    text = (tmp_path / "one" / PAGE).read_text()
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", text) and "innerHTML" not in text and "eval(" not in text
    [policy] = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">', text)
    script = re.search(r"script-src '(sha256-[\w+/=]+)' 'wasm-unsafe-eval';", policy)
    assert script and "unsafe" not in policy.replace("wasm-unsafe-eval", "", 1), "WebAssembly, and nothing else"


@pytest.mark.slow
def test_the_pages_own_tests_pass():
    need(MODULES / "typescript")
    done = subprocess.run(["npm", "test"], cwd=TAB, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr
