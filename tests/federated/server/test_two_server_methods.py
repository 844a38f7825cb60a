"""Methods other than adaptive maps as campaigns over two servers, by processes and HTTP: they run, or are refused."""

from dataclasses import replace

import numpy as np
import pytest
from tests.federated.server.processes import Parent
from tests.federated.server.test_two_server_campaign import PEOPLE, TREE, ordered
from tests.federated.server.two_server_scene import Scene

from hazemap.algorithms import Flat, Pyramid
from hazemap.codec import dumps
from hazemap.engines.memory import MemoryTable
from hazemap.lab.methods import CountMin, Geometric
from hazemap.releases import Release
from hazemap.tables.contribution_bounding import AtMostRows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ONE = AtMostRows(1)
METHODS = {
    "flat": Flat(TREE, 3, ONE),
    "pyramid": Pyramid(TREE, ONE),
    "sketch": CountMin(TREE, bounding=ONE),
}
REFUSED = {"geometric": Geometric(TREE, 3, ONE)}
"""Its levels have other weights than 1, which reports cannot say."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    with Parent() as parent, Scene(parent, tmp_path_factory.mktemp("methods"), PEOPLE) as made:
        yield made


def order(scene, name, method):
    campaign = replace(ordered(scene), name=name, dataset=f"town {name}", algorithm=method)
    return scene.server.answered("/v1/campaigns", dumps(campaign).encode())


@pytest.mark.parametrize("name", METHODS)
def test_a_method_runs_over_two_servers_and_gets_the_sums_of_everybody(scene, name, tmp_path):
    assert order(scene, name, METHODS[name]).status_code == 201
    status = scene.ended(name)
    assert status["state"] == "done", status["reason"]
    file = tmp_path / "map.parquet"
    file.write_bytes(scene.server.answered(f"/v1/campaigns/{name}/release").content)
    made = Release.open(file)
    places = {column: np.array([getattr(each, column) for each in scene.devices]) for column in ("lon", "lat")}
    table = MemoryTable(np.arange(PEOPLE), places)
    assert made.transcript
    for question, answer in made.transcript:
        assert answer.sums.tolist() == question.encoder.total(table).tolist()
        assert answer.people == PEOPLE


@pytest.mark.parametrize("name", REFUSED)
def test_a_method_that_reports_cannot_answer_is_refused_in_words(scene, name):
    reply = order(scene, name, REFUSED[name])
    words = reply.text
    if reply.status_code == 201:
        status = scene.ended(name)
        assert status["state"] == "failed"
        words = status["reason"]
    assert "weights" in words and "choose another method" in words
