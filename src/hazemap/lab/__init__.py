"""Measuring methods (`compare`, `methods`) and auditing promises (`audit`); nothing that publishes a map imports it.

The public names are imported when they are first used; every other name of this folder is private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hazemap.lab.compare.practices import AG, PRIVTREE
    from hazemap.lab.compare.presets import Preset

__all__ = ["AG", "PRIVTREE", "Preset"]

_MODULES = {"AG": "practices", "PRIVTREE": "practices", "Preset": "presets"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hazemap.lab' has no attribute {name!r}")
    value = getattr(import_module(f"hazemap.lab.compare.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
