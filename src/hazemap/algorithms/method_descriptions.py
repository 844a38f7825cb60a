"""What a method by its name does, with its parameters, their defaults and its paper: what `hazemap methods` shows."""

import inspect
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from hazemap.algorithms.built_in_methods import ALIASES
from hazemap.algorithms.comparators import METHODS as COMPARATORS
from hazemap.algorithms.named_methods import CellKind, NamedMethod
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.spatial.quadtree import Quadtree

ONLY_CURATORS = frozenset({Learned.MEDIANS, Learned.EVENNESS, Learned.COSTS, Learned.GROWTH})
"""What somebody has to learn who sees all rows: sums over people do not tell it."""


@dataclass(frozen=True)
class DescribedParameter:
    """A parameter in words; `default` is '' where the method chooses by itself."""

    name: str
    what: str
    allowed: str
    default: str


@dataclass(frozen=True)
class DescribedMethod:
    """A method in words.

    `sums_only`: whether devices can answer it as well as a curator; `comparator`: whether it is there to compare with.
    """

    name: str
    spellings: tuple[str, ...]
    what: str
    paper: str
    class_: str
    cells: tuple[str, ...]
    sums_only: bool
    comparator: bool
    aliases: tuple[str, ...]
    parameters: tuple[DescribedParameter, ...]

    @property
    def example(self) -> str:
        """How it is asked for with a parameter or two, set to their defaults where they have one."""
        told = [f"{each.name}={each.default}" for each in self.parameters if each.default][:2]
        return f"{self.name}:{','.join(told)}" if told else self.spellings[-1]


def described(named: NamedMethod) -> DescribedMethod:
    """A method in words, its defaults read off one that is made over an example.

    >>> from hazemap.algorithms.built_in_methods import BUILT_IN
    >>> first = described(BUILT_IN["prefix"]).parameters[0]
    >>> first.name, first.allowed, first.default
    ('c0', 'a number from 0.001 to 1000', '0.1')
    """
    example = _example(named)
    parameters = tuple(
        DescribedParameter(each.name, each.what, each.allowed, each.text(getattr(example, each.field, None)))
        for each in named.settings
    )
    return DescribedMethod(
        named.name,
        named.spellings,
        named.what or _first_line(named),
        named.paper,
        named.types[0].__name__,
        tuple(kind.value for kind in named.cells),
        not ONLY_CURATORS.intersection(_disclosed(example)),
        named.name in COMPARATORS,
        tuple(alias for alias, name in ALIASES.items() if name == named.name),
        parameters,
    )


class _Defaults:
    """The defaults of a dataclass, for a method that needs more than a square to be made."""

    def __init__(self, class_: type) -> None:
        self.__dict__.update({each.name: each.default for each in fields(class_)})


def _example(named: NamedMethod) -> Any:
    if CellKind.SQUARES not in named.cells:
        return _Defaults(named.types[0])
    needed: dict[str, Any] = {"level": 8} if named.levelled else {}
    if named.priced:
        needed["epsilon"] = Fraction(1)
    usual = inspect.signature(named.types[0]).parameters["bounding"].default
    return named.build(Quadtree.world(depth=10), bounding=usual, **needed)


def _disclosed(example: Any) -> tuple[Learned, ...]:
    if isinstance(example, _Defaults):
        return (Learned.COSTS,) if getattr(example, "turns", 0) else ()
    learned: tuple[Learned, ...] = example.disclosure.learned
    return learned


def _first_line(named: NamedMethod) -> str:
    return (inspect.getdoc(named.types[0]) or "").partition("\n")[0]
