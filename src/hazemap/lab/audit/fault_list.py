"""The list of planted faults, and how one is put in effect."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from hazemap.errors import InputError

PLANTS: dict[str, str] = {}
"""The planted faults that there are, and what they do."""

_PLANTED: dict[str, Callable[[], AbstractContextManager[None]]] = {}


def planted(name: str) -> AbstractContextManager[None]:
    """The fault of this name, in effect while this is open."""
    return _PLANTED[known(name)]()


def known(name: str) -> str:
    """The name of a planted fault; `InputError` if there is none."""
    if name not in PLANTS:
        raise InputError(f"a planted fault is one of: {', '.join(PLANTS)}; found {name!r}")
    return name


def fault(what: str) -> Callable[[Callable[[], Iterator[None]]], Callable[[], AbstractContextManager[None]]]:
    """List a fault under the name of its function."""

    def listed(plant: Callable[[], Iterator[None]]) -> Callable[[], AbstractContextManager[None]]:
        name = plant.__name__.replace("_", "-")
        PLANTS[name], _PLANTED[name] = what, contextmanager(plant)
        return _PLANTED[name]

    return listed


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`owner.name` is `value` while this is open."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
