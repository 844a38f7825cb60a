"""Comparators: methods of the papers to compare with, by their names; each is imported when somebody names it.

They lie in `hazemap.lab.methods`, which nothing on the table's side imports: what is here are names and dotted paths.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from hazemap.algorithms.built_in_methods import BUILT_IN
from hazemap.algorithms.named_methods import NamedMethod

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "geometric": "hierarchical_histogram.GEOMETRIC",
        "hierarchical": "hierarchical_histogram.HIERARCHICAL",
        "hb": "hierarchical_histogram.HB_PUBLISHED",
        "hb-least": "hierarchical_histogram.HB_LEAST",
        "privlet": "hierarchical_histogram.PRIVLET",
        "kd-tree": "kd_tree.KD_TREE",
        "kd-tree-uniform": "kd_tree.KD_TREE_UNIFORM",
        "kd-hybrid": "kd_tree.KD_HYBRID",
        "sketch": "count_min_tree.SKETCH",
        "laplace-clip": "one_level_baselines.LAPLACE_CLIP",
        "top": "one_level_baselines.TOP",
        "total": "one_level_baselines.TOTAL",
        "singular": "one_level_baselines.SINGULAR",
    }
)
"""Where the entry of each name is."""

CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "BestLevel": "one_level_baselines",
        "CountMin": "count_min_tree",
        "Geometric": "hierarchical_histogram",
        "HB": "hierarchical_histogram",
        "Hierarchical": "hierarchical_histogram",
        "KDTree": "kd_tree",
        "LaplaceClip": "one_level_baselines",
        "Privlet": "hierarchical_histogram",
        "TopCells": "one_level_baselines",
    }
)
"""Where the class is that a file holds by this name."""

_HOME = "hazemap.lab.methods"


@cache
def comparator_named(name: str) -> NamedMethod | None:
    """A comparator by its name; None if there is none.

    >>> comparator_named("hb").types[0].__name__, comparator_named("auto")
    ('HB', None)
    """
    module, _, entry = METHODS.get(name, "").partition(".")
    if not module:
        return None
    method: NamedMethod = getattr(import_module(f"{_HOME}.{module}"), entry)
    return method


@cache
def comparator_type(written: str) -> type | None:
    """The class of a comparator that a file holds; None for any other."""
    if written not in CLASSES:
        return None
    class_: type = getattr(import_module(f"{_HOME}.{CLASSES[written]}"), written)
    return class_


def is_comparator(algorithm: object) -> bool:
    """Whether an algorithm is one of them; it is not imported to find out."""
    type_ = type(algorithm)
    return type_.__module__ == f"{_HOME}.{CLASSES.get(type_.__name__, '')}"


def every_method() -> dict[str, NamedMethod]:
    """Hazemap's own methods by their names, the comparators last."""
    found = {name: comparator_named(name) for name in METHODS}
    return BUILT_IN | {name: method for name, method in found.items() if method is not None}
