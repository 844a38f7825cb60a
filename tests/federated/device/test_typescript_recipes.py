"""Recipes in the TypeScript device: the verdicts of ours, and a round of a study beside fifty of ours."""

import hashlib
import json
import os
import re
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime
from fractions import Fraction
from random import SystemRandom

import numpy as np
import pytest
from tests.federated.device import recipe_vectors
from tests.federated.device.test_typescript_device import COMPILED, DEVICE, _built, _killed_after, _started
from tests.federated.server.left_behind import rows
from tests.federated.server.processes import Crowd, Parent, Server
from tests.ports import free_port

from hazemap.cells import Leaves
from hazemap.codec import dumps, loads
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog, RecipeLogEntry
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.features import Feature, MapCells
from hazemap.federated.recipes.policy_document import SignedPolicy, from_toml
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.recipe_terms import randomiser_of
from hazemap.privacy.local_randomisers import UnaryEncoding
from hazemap.privacy.signing_identities import Identity
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons

OURS = 50
PURPOSE = "where people are"
POLICY = from_toml(f"""
name = "town"
version = 1
days = 30
[[limits]]
days = 365
epsilon = 100
delta = 1e-3
reports = 100
[streams.places]
keep = 90
fields = [
  {{ name = "time", type = "time", optional = true }},
  {{ name = "lon", type = "real" }}, {{ name = "lat", type = "real" }},
  {{ name = "weight", type = "real" }}, {{ name = "mark", type = "real", optional = true }},
]
[fields."places.lon"]
local_epsilon = 20
epsilon = 40
delta = 1e-4
reports = 20
[fields."places.lat"]
local_epsilon = 20
epsilon = 40
delta = 1e-4
reports = 20
[analyses.town]
purpose = "{PURPOSE}"
epsilon = 20
delta = 1e-5
reports = 5
minimum_cohort = 40
carriers = ["secure sums"]
[analyses.town.queries]
fields = ["places.lon", "places.lat"]
""")
RULES = """[budget]
campaign = 100
period = 100
[cohort]
people = 40
survivors = 40
[recipes]
local = 20
"""
HEXAGONS = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 7)
PLACE = {"lon": 13.25, "lat": 52.42}
LAW = UnaryEncoding(Fraction(19_999, 20_000), Fraction(1, 20_000))
RECIPE = Recipe(
    "town",
    1,
    "town",
    PURPOSE,
    SqlQuery("SELECT lon, lat FROM places WHERE lat < 52.5"),
    (),
    (Feature("place", MapCells(Leaves(HEXAGONS, HEXAGONS.root))),),
    local_epsilon=Fraction(20),
    epsilon=Fraction(20),
    delta=Fraction(1, 10**6),
    minimum_cohort=40,
    randomiser=LAW,
)


def test_the_vectors_of_recipes_are_what_the_code_says_today():
    kept, made = recipe_vectors.FILE.read_bytes(), recipe_vectors.text().encode()
    assert hashlib.sha256(kept).digest() == hashlib.sha256(made).digest()


@pytest.mark.slow
def test_hostile_recipes_and_random_queries_have_the_same_verdicts(tmp_path):
    _built()
    seed = int(os.environ.get("RECIPE_SEED") or SystemRandom().randrange(1 << 20))
    number = int(os.environ.get("RECIPES", "1000"))
    tasks = [*recipe_vectors.tasks(), *recipe_vectors.hostile(seed, number)]
    found = recipe_vectors.cases(tasks, recipe_vectors.grown(seed << 20, number))
    (tmp_path / "cases.json").write_text(json.dumps(found))
    command = ["node", "--test", "--test-name-pattern=vectors", str(COMPILED / "test" / "recipes.test.js")]
    environment = {**os.environ, "RECIPE_CASES": str(tmp_path / "cases.json")}
    done = subprocess.run(
        command, cwd=DEVICE, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, f"RECIPE_SEED={seed}\n" + done.stdout[done.stdout.find("not ok") :][:5_000]
    assert sum(each["answer"] is not None for each in tasks) > 20


def answered(server: Server) -> dict:
    until = time.monotonic() + 600
    while (found := server.answered("/v1/studies/spring/rounds/1").json())["state"] == "running":
        assert time.monotonic() < until, found
        time.sleep(0.1)
    return found


def ours_said(store_path) -> np.ndarray:
    """The sum of what the devices' own logs say they reported."""
    sums = np.zeros(RECIPE.size, dtype=np.int64)
    with EncryptedStore.opened(store_path) as store:
        for device in enrolment.devices(store):
            for line in ActivityLog(store, device).entries():
                if isinstance(line, RecipeLogEntry) and line.report:
                    sums += np.unpackbits(np.frombuffer(line.report, np.uint8))[: RECIPE.size]
    return sums


def written(folder, signed: SignedPolicy) -> None:
    """The files of both kinds of devices."""
    (folder / "rules.toml").write_text(RULES)
    (folder / "rules.json").write_text('{"people": 40, "survivors": 40, "campaign": 100, "period": 100, "local": 20}')
    (folder / "rows.json").write_text(json.dumps([PLACE]))
    (folder / "signed.json").write_text(signed.to_json())
    with EncryptedStore.opened(folder / "ours.sqlite", create=True) as store:
        ShippedPolicies(store).accept(signed, signed.key, datetime.now(UTC))
        enrolment.add(store, OURS)


def asked(server: Server) -> None:
    """The recipe is asked in a study, once all devices are there."""
    cohort = Cohort(OURS + 1, OURS + 1, Fraction(1, 10), Fraction(1, 10))
    spec = StudySpec("spring", "town", Fraction(20), Fraction(1, 10**5), 1, cohort, Deadlines.all(600), wait=600)
    assert server.answered("/v1/studies", dumps(spec).encode()).status_code == 201
    until = time.monotonic() + 600
    while server.answered("/v1/campaigns").json()["devices"]["recent"] < OURS + 1:
        assert time.monotonic() < until, "the devices do not come"
        time.sleep(0.05)
    reply = server.answered("/v1/studies/spring/rounds", dumps(RECIPE).encode())
    assert reply.status_code == 201, reply.text


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_typescript_device_answers_a_recipe_and_counts_once_after_it_was_killed(tmp_path):
    program, key = _built(), Identity.create()
    signed = SignedPolicy.sign(POLICY, key)
    port = free_port()
    written(tmp_path, signed)
    with Parent() as parent:
        server = Server(parent, tmp_path / "server", port)
        ours = Crowd(parent, tmp_path, "ours", server, OURS, None, tmp_path / "rules.toml")
        server.start()
        assert server.answered("/v1/policies", signed.to_json().encode()).status_code == 201
        code = (server.folder / "enrolment.token").read_text().strip()
        files = {"--rows": "rows.json", "--policy": "rules.json", "--file": "device.json", "--recipes": "signed.json"}
        options = {name: tmp_path / file for name, file in files.items()}
        options |= {"--server": server.url, "--code": code, "--key": key.public.hex()}
        theirs = _started(program, options)
        try:
            ours.start()
            asked(server)
            said = _killed_after(theirs, answers=4)  # its report, for which it was charged
            theirs = _started(program, options)
            told = answered(server)
            _, more = theirs.communicate(timeout=600)
        finally:
            theirs.kill()
            theirs.wait()
            for process in (ours, server):
                if process.child:
                    process.kill()
    assert told["state"] == "done", (told, said, more)
    report = np.zeros(RECIPE.size, dtype=np.int64)
    ones = re.search(r"numbers set(?:: ([\d, ]+))?", said)
    report[[int(each) for each in (ones[1] or "").split(", ") if each]] = 1
    [(answer,)] = rows(server.folder / "server.sqlite", "SELECT answer FROM exchanges WHERE round = 1")
    found = loads(answer)
    exact = randomiser_of(RECIPE).unbiased(ours_said(ours.store) + report, OURS + 1)
    assert found.people == OURS + 1
    assert (np.abs(found.sums - exact) < 1).all(), "the answer is not the sum of the reports, rounded at random"
    kept = json.loads((tmp_path / "device.json").read_text())
    [charge] = kept["charges"]
    assert charge["recipe"]["fields"] == ["places.lat", "places.lon"]
    assert (charge["epsilon"], charge["recipe"]["delta"], kept["log"]["entries"]) == ("20", "1/1000000", 2)
    assert Counter(str(PLACE[name]) in json.dumps(kept) for name in PLACE) == Counter({False: 2})
