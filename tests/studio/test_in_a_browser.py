"""The studio as a process, and a steward at work in Debian's Chromium: from a table to a map, by keyboard."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.federated.server.asking_studies import SIGNED, Typist, recipe
from tests.federated.server.fleet import OPERATOR
from tests.ports import free_port

import hazemap
from hazemap.codec import dumps
from hazemap.federated.recipes.recipe_file import recipe_to_toml
from hazemap.federated.server.campaign_spec import CampaignOrder
from hazemap.federated.service.operator_line import operator
from hazemap.planning.synthetic_city import DemoCity
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.studio import studio_process

from .coordinator_scene import coordinator, people, token_in
from .scene import write_table

APP = Path(__file__).parents[2] / "web" / "studio"
MODULES = APP.parent / "node_modules"
CHROMIUM = Path("/usr/bin/chromium")
BUILT = Path(studio_process.__file__).with_name("app") / "index.html"


def need(*paths):
    missing = [path for path in paths if not path.exists()]
    if missing or shutil.which("node") is None:
        pytest.skip(f"`make studio` and `make system` install what is missing: {missing or 'node'}")


def node(*command, **environment):
    done = subprocess.run(
        command, cwd=APP, check=False, capture_output=True, text=True, timeout=1200, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def studio(folder, root, book, *options, before="", ends=0):
    """A studio as a process, and the link that it prints; `before` is run in it first, and it `ends` with a code."""
    port = free_port()
    words = (str(root), "--ledger", str(book.path), "--port", str(port), "--no-browser", *options)
    started = f"{before}\nfrom hazemap.cli.main import run; run()"
    log = folder / "studio.log"
    with log.open("w") as said:
        running = subprocess.Popen([sys.executable, "-c", started, "studio", *words], stderr=said)
    try:
        until = time.monotonic() + 600
        while True:
            assert time.monotonic() < until and running.poll() is None, log.read_text()
            try:
                httpx.get(f"http://127.0.0.1:{port}/").raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/#link=" + log.read_text().partition("#link=")[2].split()[0]
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(600) == ends, log.read_text()


def city(folder):
    """The folder of a made-up city, and a ledger that lets it spend ε = 1."""
    root, book = folder / "data", Ledger(folder / "ledger.sqlite")
    root.mkdir()
    DemoCity(3_000, 1).write(root / "city.parquet")
    book.cap("city", PureDP(1))
    return root, book


@pytest.fixture
def served(tmp_path):
    """A studio over a made-up city, and the link that it prints."""
    root, book = city(tmp_path)
    with studio(tmp_path, root, book) as link:
        yield link, book, root


def played(script, tmp_path, *words):
    """What a script of the browser has seen; nothing was fetched from elsewhere, and axe has nothing to say."""
    need(CHROMIUM, MODULES / "playwright-core", BUILT)
    pictures = Path(os.environ.get("HAZEMAP_SCREENSHOTS") or tmp_path / "pictures")
    pictures.mkdir(parents=True, exist_ok=True)
    found = json.loads(node("node", f"browser/{script}.mjs", *words, str(pictures)))
    assert found["requests"] == [] and found["errors"] == [] and found["violations"] == []
    return found


def speaks_four_languages(other):
    """Each view in each language: no English but what is marked as such, and nothing wider than a telephone."""
    assert len(set(other["words"].values())) == 4
    assert (other["english"], other["wide"]) == ([], [])


@pytest.mark.slow
def test_a_steward_goes_from_a_table_to_a_map_by_keyboard_and_spends_once(served, tmp_path):
    link, book, root = served
    asked = {"person": "person", "epsilon": 1, "box": "2.1,54.65,2.5,54.881", "output": root / "earlier.parquet"}
    hazemap.release(root / "city.parquet", ledger=Ledger(tmp_path / "other.sqlite"), **asked)
    found = played("steward", tmp_path, link)
    facts = found["facts"]
    assert found["checked"] == 21 and "--rho 0.02" in facts["rho"] and "--epsilon" not in facts["rho"]
    assert "link=" not in facts["address"]
    assert "has ε = 1 left of its cap ε = 1" in facts["refused"]
    assert "ε = 0.5" in facts["cost"] and facts["done"] == "city-map.parquet is there. The data set has ε = 0.5 left."
    assert "--epsilon 0.5" in facts["command"]
    assert "changed since you looked" in facts["second"]
    assert facts["framed"]["origin"] == "null" and facts["framed"]["parent"] == "SecurityError"
    assert facts["framed"]["cookie"] in ("", "SecurityError")
    assert facts["saved"] == "city-map.geojson" and "ε = 0.5" in facts["ledger"]
    speaks_four_languages(facts["other"])
    assert book.status("city", "full").charges == 2, "the look, and the rest"
    assert {path.name for path in root.iterdir()} == {"city.parquet", "city-map.parquet", "earlier.parquet"}


SLOW = """
import time
from hazemap.execution import run as slow
read = slow.opened

def opened(spec, source, key, memory_limit, say, **more):
    for part in range(10_000):  # until it is stopped
        say("reading rows", part / 10_000)
        time.sleep(0.1)
    return read(spec, source, key, memory_limit, say, **more)

slow.opened = opened
"""


@pytest.mark.slow
def test_a_steward_stops_statistics_before_their_charge_by_keyboard_and_pays_nothing(tmp_path):
    root, book = city(tmp_path)
    with studio(tmp_path, root, book, before=SLOW) as link:
        found = played("stopping", tmp_path, link)
    facts = found["facts"]
    assert "hazemap stats city.parquet" in facts["command"] and "--low 54" in facts["command"]
    assert facts["stopped"] == "Nothing was paid." and "too few" in facts["plan"] and facts["english"] == []
    assert book.status("city", "full").charges == 0
    assert {path.name for path in root.iterdir()} == {"city.parquet"}


KILLED = """
import os, signal
from hazemap.execution import journal
keep = journal.Journal.answer

def answer(self, answered):
    keep(self, answered)
    os.kill(os.getpid(), signal.SIGKILL)

journal.Journal.answer = answer
"""

LUCK = """
from hazemap.privacy.random_stream import Stream
Stream.from_os = classmethod(lambda _: Stream.fixed(b"of nobody"))  # of looks that see nobody, 1 in 20 would go on
"""


@pytest.mark.slow
def test_a_studio_that_is_killed_in_a_run_is_started_again_and_makes_the_map_at_no_second_price(tmp_path):
    root, book = city(tmp_path)
    with studio(tmp_path, root, book, before=KILLED, ends=-signal.SIGKILL) as link:
        lost = played("recovery", tmp_path, link, "killed")
    assert "Under Ledger it offers what was paid for" in lost["facts"]["lost"]
    assert book.status("city", "full").charges == 1 and not (root / "city-map.parquet").exists()
    with studio(tmp_path, root, book, before=LUCK) as link:
        facts = played("recovery", tmp_path, link, "started")["facts"]
    assert "Recover charge" in facts["offered"] and facts["english"] == []
    assert facts["done"] == "city-map.parquet is there. The data set has ε = 0.5 left." and facts["charges"] == 2
    assert "has paid ε = 0.03 for this look" in facts["look"]
    assert book.status("city", "full").charges == 4 and str(book.status("city", "full").spent) == "ε = 0.8"
    assert {path.name for path in root.iterdir()} == {"city.parquet", "city-map.parquet", "nobody.parquet"}


@pytest.mark.slow
def test_an_operator_orders_watches_stops_and_fetches_by_keyboard(tmp_path):
    need(CHROMIUM, MODULES / "playwright-core", BUILT)
    root, book = tmp_path / "data", Ledger(tmp_path / "ledger.sqlite")
    root.mkdir()
    token = token_in(tmp_path, OPERATOR)
    with coordinator(tmp_path / "coordinator") as url, people(url, 14, declining=3):
        options = ("--server", url, "--token-file", str(token), "--aggregator", url)
        order = CampaignOrder("second", "a campaign that waits", 500)
        campaign = order.campaign(order.map_of({"epsilon": "1", "box": "13.2,52.4,13.6,52.6"}))
        with operator(url, token) as line:
            line.post("/v1/campaigns", dumps(campaign).encode())
        with studio(tmp_path, root, book, *options) as link:
            found = played("operator", tmp_path, link, OPERATOR)
    facts = found["facts"]
    assert found["checked"] == 11
    assert "2" in facts["refused"] and "people" in facts["refused"]
    assert str(token) in facts["command"] and "--epsilon 10" in facts["command"]
    assert OPERATOR not in facts["command"] + facts["python"] and not facts["kept"]
    assert "<b>not</b> me" in facts["reasons"]
    speaks_four_languages(facts["other"])
    assert "--slots hour-of-day" in facts["slots"]
    assert {path.name for path in root.iterdir()} == {"commuters.parquet"}


@pytest.mark.slow
def test_an_analyst_writes_checks_and_asks_a_recipe_by_keyboard(tmp_path):
    need(CHROMIUM, MODULES / "playwright-core", BUILT)
    root, book = tmp_path / "data", Ledger(tmp_path / "ledger.sqlite")
    root.mkdir()
    (root / "keyboard.json").write_text(SIGNED.to_json())
    token = token_in(tmp_path, OPERATOR)
    typists = [Typist(0, 0, text="hello" if place % 3 else "world") for place in range(12)]
    with coordinator(tmp_path / "coordinator") as url, people(url, 12, devices=typists):
        with operator(url, token) as line:
            line.post("/v1/policies", SIGNED.to_json().encode())
        with studio(tmp_path, root, book, "--server", url, "--token-file", str(token)) as link:
            found = played("analyst", tmp_path, link, recipe_to_toml(recipe()))
    facts = found["facts"]
    assert found["checked"] == 10
    assert "TOML" in facts["refused"] and "ngram" in facts["words"]
    assert "hello" in facts["answer"] and "3 reports" in facts["left"]
    speaks_four_languages(facts["other"])
    assert {path.name for path in root.iterdir()} == {"keyboard.json", "words.toml", "spring.parquet"}


@pytest.mark.slow
def test_a_researcher_drops_a_map_and_reads_the_points_of_figures(tmp_path):
    need(CHROMIUM, MODULES / "playwright-core", BUILT)
    root, book = tmp_path / "data", Ledger(tmp_path / "ledger.sqlite")
    root.mkdir()
    write_table(tmp_path / "town.csv", 400)
    with studio(tmp_path, root, book) as link:
        found = played("researcher", tmp_path, link, str(tmp_path / "town.csv"))
    facts = found["facts"]
    assert found["checked"] == 4 and facts["charts"] == 3
    assert "leads out" in facts["refused"]
    assert (
        "UG at ε = 0.5: " in facts["first"]
        and "UG at ε = 1: " in facts["second"]
        and "of 2 releases" in facts["second"]
    )
    assert facts["hovered"] not in (facts["first"], facts["second"])
    speaks_four_languages(facts["other"])
    assert {path.name for path in root.iterdir()} == {"my town.csv", "comparison"}


@pytest.mark.slow
def test_the_studio_holds_no_script_in_its_markup_and_no_address(tmp_path):
    need(MODULES / "vite")
    node("npm", "run", "bundle", OUT=str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"index.html", "studio.css", "studio.js", "licences.txt"}
    page, script = ((tmp_path / name).read_text() for name in ("index.html", "studio.js"))
    assert "<style" not in page and page.count("<script") == 1 and "></script>" in page
    assert "innerHTML" not in script and set(re.findall(r"https?:[^`'\"]*", script)) == {"http://www.w3.org/2000/svg"}
