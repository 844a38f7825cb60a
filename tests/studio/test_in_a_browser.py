"""The studio as a process, and a steward at work in Debian's Chromium: from a table to a map, by keyboard."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from hazemap.planning.synthetic_city import DemoCity
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.studio import app_files

APP = Path(__file__).parents[2] / "studio" / "app"
CHROMIUM = Path("/usr/bin/chromium")
BUILT = Path(app_files.__file__).with_name("app") / "index.html"


def need(*paths):
    missing = [path for path in paths if not path.exists()]
    if missing or shutil.which("node") is None:
        pytest.skip(f"`make studio` and `make system` install what is missing: {missing or 'node'}")


def node(*command, **environment):
    done = subprocess.run(
        command, cwd=APP, check=False, capture_output=True, text=True, timeout=500, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def served(tmp_path):
    """A studio over a made-up city, and the link that it prints."""
    root, book = tmp_path / "data", Ledger(tmp_path / "ledger.sqlite")
    root.mkdir()
    DemoCity(3_000, 1).write(root / "city.parquet")
    book.cap("city", PureDP(1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = (str(root), "--ledger", str(book.path), "--port", str(port), "--no-browser")
    started = "from hazemap.cli.main import run; run()"
    log = tmp_path / "studio.log"
    with log.open("w") as said:
        running = subprocess.Popen([sys.executable, "-c", started, "studio", *words], stderr=said)
    try:
        until = time.monotonic() + 120
        while True:
            assert time.monotonic() < until and running.poll() is None, log.read_text()
            try:
                httpx.get(f"http://127.0.0.1:{port}/").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/#link=" + log.read_text().partition("#link=")[2].split()[0], book, root
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0, log.read_text()


@pytest.mark.slow
def test_a_steward_goes_from_a_table_to_a_map_by_keyboard_and_spends_once(served, tmp_path):
    need(CHROMIUM, APP / "node_modules" / "playwright-core", BUILT)
    link, book, root = served
    pictures = Path(os.environ.get("HAZEMAP_SCREENSHOTS") or tmp_path / "pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    found = json.loads(node("node", "browser/steward.mjs", link, str(pictures)))
    facts = found["facts"]
    assert found["requests"] == [] and found["errors"] == [] and found["violations"] == []
    assert found["checked"] == 10
    assert "link=" not in facts["address"]
    assert "has ε = 1 left of its cap ε = 1" in facts["refused"]
    assert "ε = 0.5" in facts["cost"] and facts["done"] == "city-map.parquet is there. The data set has ε = 0.5 left."
    assert "--epsilon 0.5" in facts["command"]
    assert "changed since you looked" in facts["second"]
    assert facts["framed"]["origin"] == "null" and facts["framed"]["parent"] == "SecurityError"
    assert facts["framed"]["cookie"] in ("", "SecurityError")
    assert facts["saved"] == "city-map.geojson" and "ε = 0.5" in facts["ledger"]
    assert len(set(facts["words"].values())) == 4
    assert book.status("city", "full").charges == 1
    assert {path.name for path in root.iterdir()} == {"city.parquet", "city-map.parquet"}


@pytest.mark.slow
def test_the_page_is_built_the_same_twice_and_holds_no_script_in_its_markup(tmp_path):
    need(APP / "node_modules" / "vite")
    digests = []
    for name in ("one", "two"):
        node("npm", "run", "build", OUT=str(tmp_path / name))
        digests.append(
            {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / name).iterdir()}
        )
    assert digests[0] == digests[1] and set(digests[0]) == {"index.html", "studio.css", "studio.js"}
    page, script = ((tmp_path / "one" / name).read_text() for name in ("index.html", "studio.js"))
    assert "<style" not in page and page.count("<script") == 1 and "></script>" in page
    assert "innerHTML" not in script and "http://" not in script and "https://" not in script
