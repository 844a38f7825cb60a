"""The maps that methods are compared on, by name: made-up ones, a user's own, and others that a caller adds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from hazemap.compare.ground_truth_maps import GroundTruthMap
from hazemap.compare.synthetic_maps import city, gaussian, mixture
from hazemap.compare.trial_settings import Place
from hazemap.compare.user_maps import own_map
from hazemap.errors import InputError


@dataclass(frozen=True)
class Dataset:
    """A map or a table that can be asked for by name; `needs_data` if it is made of files that may not be here."""

    name: str
    what: str
    make: Callable[[], Place]
    needs_data: bool = False
    kind: str = "maps"


MADE_UP = {
    entry.name: entry
    for entry in (
        Dataset("city", "3.5 million people in a made-up city, 1024 × 1024", city),
        *(
            Dataset(
                f"gaussian-{sigma}",
                f"a million people in one Gaussian of σ = {sigma} pixels",
                partial(gaussian, sigma),
            )
            for sigma in (20, 50, 100)
        ),
        *(
            Dataset(f"mixture-{number}", f"a density of {number} Gaussians, 256 × 256", partial(mixture, number))
            for number in (2, 5, 10, 20, 50)
        ),
    )
}
"""The maps that need no data."""


@dataclass(frozen=True)
class Datasets:
    """The maps that there are: a user's own files by name, and `known` ones.

    >>> Datasets().map("gaussian-20").people
    1000000
    """

    own: tuple[tuple[str, Path], ...] = ()
    known: Mapping[str, Dataset] = field(default_factory=lambda: MADE_UP)

    def map(self, name: str) -> Place:
        """The map of this name; `name@N` is the same with N of its people, `name/S` with S × S larger pixels.

        A table of values has no pixels.
        """
        rest, _, number = name.partition("@")
        plain, _, side = rest.partition("/")
        found: Any = self._plain(plain)
        if side:
            if not hasattr(found, "coarser"):
                raise InputError(f"{plain} is a table, and has no pixels")
            found = found.coarser(_whole(side, name).bit_length() - 1)
            if found.side != int(side):
                raise InputError(f"a map is seen in 2, 4, 8, … × as many pixels; {name!r} asks for {side}")
        if number:
            if not isinstance(found, GroundTruthMap):
                raise InputError(f"{plain} has people with several rows each, of whom a comparison draws some itself")
            found = found.sample(_whole(number, name), plain.encode())
        return found if name == plain else replace(found, name=name)  # type: ignore[no-any-return]

    def _plain(self, name: str) -> Place:
        for own, path in self.own:
            if name == own:
                return _own(name, path)
        if name not in self.known:
            maps = [entry.name for entry in self.known.values() if entry.kind == "maps"]
            raise InputError(f"there is no map {name!r}; there are {', '.join(maps)}, and your own: --map NAME=FILE")
        return _kept(self.known[name].make)


@cache
def _kept(make: Callable[[], Place]) -> Place:
    """A map is made once in a process."""
    return make()


@cache
def _own(name: str, path: Path) -> GroundTruthMap:
    return own_map(name, path)


def _whole(text: str, name: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**40:
        raise InputError(f"a map is called name, name@PEOPLE or name/SIDE; found {name!r}")
    return int(text)
