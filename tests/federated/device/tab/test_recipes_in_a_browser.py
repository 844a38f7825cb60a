"""A tab of Debian's Chromium answers a recipe beside fifty of our devices: SQLite runs under the page's own rules."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.federated.device import test_typescript_recipes as scene
from tests.federated.device.serving import listening
from tests.federated.device.tab.recorded_traffic import betrayed, recording, traces
from tests.federated.device.tab.test_in_a_browser import BUILT, MODULES, THEIRS, need, visitors
from tests.federated.server.left_behind import rows
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.codec import loads
from hazemap.federated.device.tab.device_page import DevicePage
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.privacy.signing_identities import Identity

RULES = {"people": "40", "survivors": "40", "campaign": "100", "period": "100", "local": "20"}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_tab_answers_a_recipe_that_its_policy_allows_and_no_place_leaves_it(tmp_path):
    need(Path("/usr/bin/chromium"), MODULES / "playwright-core", BUILT)
    signed = SignedPolicy.sign(scene.POLICY, Identity.create())
    scene.written(tmp_path, signed)
    port = free_port()
    with listening(DevicePage.built().application()) as tab, Parent() as parent, recording(port, 1) as [wire]:
        server = Server(parent, tmp_path / "server", port, pages=(tab,))
        ours = Crowd(parent, tmp_path, "ours", server, scene.OURS, None, tmp_path / "rules.toml")
        server.start()
        try:
            assert server.answered("/v1/policies", signed.to_json().encode()).status_code == 201
            code = server.answered("/v1/codes", b'{"number": 1, "days": 1}').json()["codes"][0]
            ours.start()
            recipes = {"policy": str(tmp_path / "signed.json"), "key": signed.key.hex()}
            links = [f"{tab}/#server={wire.url}&code={code}"]
            with visitors(tmp_path, links, RULES, closed=None, recipes=recipes) as tabs:
                scene.asked(server)
                told = scene.answered(server)
                said, wrong = tabs.communicate("done\n", timeout=600)
        finally:
            for process in (ours, server):
                if process.child:
                    process.kill()
        sent = wire.sent()
    assert said, wrong
    found = json.loads(said)
    assert told["state"] == "done", (told, found["logs"])
    assert found["requests"] == [] and found["errors"] == [] and found["violations"] == []
    [log] = [[line[20:] for line in lines] for lines in found["logs"]]
    [paid] = [line for line in log if line.startswith("pays ε = 20 and δ = 0.000001 for the recipe town (ε₀ = 20)")]
    assert "its query reads places.lat, places.lon;" in paid
    report = np.zeros(scene.RECIPE.size, dtype=np.int64)
    ones = re.search(r"numbers set(?:: ([\d, ]+))?", paid)
    report[[int(each) for each in (ones[1] or "").split(", ") if each]] = 1
    [(answer,)] = rows(server.folder / "server.sqlite", "SELECT answer FROM exchanges WHERE round = 1")
    exact = randomiser_of(scene.RECIPE).unbiased(scene.ours_said(tmp_path / "ours.sqlite") + report, scene.OURS + 1)
    assert (np.abs(loads(answer).sums - exact) < 1).all(), "the answer is not the sum of the reports, rounded at random"
    base = scene.HEXAGONS.cell_at(dict(zip(("lon", "lat"), np.array(THEIRS[0]).T, strict=True)), scene.HEXAGONS.depth)
    assert betrayed(sent, traces(THEIRS[0], base.tolist())) == []
    assert b"GET /v1/recipes?after=0" in b"".join(sent), "the public log was read first"
