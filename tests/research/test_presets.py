"""The comparisons that measure papers: what they ask for is there."""

import pytest

from hazemap.lab.compare.map_scores import MEASURES
from hazemap.spatial.quadtree import Quadtree
from research.compare.evaluation_datasets import known_datasets
from research.compare.presets import PRESETS


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.noun == "map"])
def test_every_comparison_asks_for_maps_and_methods_that_there_are(name):
    preset, square = PRESETS[name], Quadtree.world(10)
    known = {entry.name for entry in known_datasets(None).values() if entry.kind == "maps"}
    assert {place.partition("@")[0].partition("/")[0] for place in preset.places} <= known
    assert set(preset.scores) <= set(MEASURES) and preset.figures and preset.what
    for method, setting, epsilon in {(each.method, each.setting, each.epsilon) for each in preset.trials()}:
        assert method in preset.practices or method.algorithm(square, setting.rule, epsilon).tree == square


def test_every_comparison_is_known_by_its_name():
    assert all(name == preset.name for name, preset in PRESETS.items())
