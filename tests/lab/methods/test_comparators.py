"""Comparators are called by name like any method, and loaded by nobody who does not."""

import subprocess
import sys

import pytest

from hazemap import Box, Quadtree
from hazemap.algorithms.built_in_methods import BUILT_IN
from hazemap.algorithms.comparators import CLASSES, METHODS, comparator_named, comparator_type, is_comparator
from hazemap.algorithms.plug_ins import method_named, plug_in_type
from hazemap.algorithms.single_level import Flat
from hazemap.codec import from_json, to_json
from hazemap.lab import methods as lab
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.tables.contribution_bounding import RowIsPerson

TREE = Quadtree.world(depth=6)


@pytest.mark.parametrize("name", METHODS)
def test_an_entry_has_the_name_that_it_is_registered_under(name):
    named = comparator_named(name)
    assert named is not None and named.name == name and method_named(name) == named
    assert name not in BUILT_IN


def test_every_class_that_a_file_of_a_comparator_holds_is_found_by_its_name():
    held = {each for name in METHODS for each in comparator_named(name).types} | {lab.BestLevel}
    assert {comparator_type(name) for name in CLASSES} == held - {Flat}
    assert {name: comparator_type(name).__name__ for name in CLASSES} == {name: name for name in CLASSES}
    assert sorted(CLASSES) == sorted(lab.__all__)
    assert comparator_type("Flat") is None and comparator_named("flat") is None


def test_a_comparator_is_told_from_other_algorithms():
    assert is_comparator(lab.HB.published(TREE, 4)) and not is_comparator(Flat(TREE, 4)) and not is_comparator(object())


def test_a_file_of_a_comparator_is_read_and_a_device_does_not_know_it():
    method = lab.KDTree(TREE)
    assert from_json(to_json(method), plug_ins=plug_in_type) == method
    with pytest.raises(Exception, match="closed list"):
        from_json(to_json(method))


def test_nothing_loads_comparators_before_somebody_names_one():
    script = """
import sys
import hazemap
from hazemap.algorithms import READABLE, plug_ins
from hazemap.specs.method_from_name import method_from_name
loaded = lambda: any(name.startswith("hazemap.lab") for name in sys.modules)
plug_ins.method_named("auto"), plug_ins.plug_in_type("Adaptive")
before = loaded()
plug_ins.method_named("privlet")
print(before, loaded())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_method_of_one_level_among_comparators_takes_its_level():
    made = method_from_name("singular:5", QuadtreeCells(None), Box(13.2, 52.4, 13.6, 52.6), RowIsPerson())
    assert isinstance(made, Flat) and made.level == 5
