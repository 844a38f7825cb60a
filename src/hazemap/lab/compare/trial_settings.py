"""Settings of a trial (who holds the data, who answers, what is scored) and its key.

The key distinguishes a trial from every other. It covers the code of the method, so that what was measured with other
code is measured again.
"""

import ast
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

from hazemap import __version__
from hazemap.cellmap import CellMap
from hazemap.codec import dumps, to_json
from hazemap.errors import InputError
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.compare.map_scores import VERSION, WORKLOAD, Scorer
from hazemap.lab.compare.practices import Method
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Result, Unrecorded, run
from hazemap.queries.noisy_queries import Trust
from hazemap.tables.contribution_bounding import Bounding, RowIsPerson
from hazemap.trust.curator import Curator

Row = dict[str, Any]


class Place(Protocol):
    """What a trial is about: data of which all is known, a map of people or a table of theirs."""

    @property
    def name(self) -> str:
        """What tables and figures call it."""

    @property
    def origin(self) -> str:
        """Where it comes from."""

    @property
    def people(self) -> int:
        """How many they are."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that a score can depend on; the name is not part of it."""

    @property
    def size(self) -> Row:
        """How large it is beside its people: columns of results."""

    @property
    def extent(self) -> str:
        """The same in words."""

    def small(self) -> "Place":
        """Little enough of it that a trial takes no time."""


class Named(Protocol):
    """What is compared at a place, as tables and figures know it."""

    @property
    def name(self) -> str:
        """What they call it."""

    @property
    def spelled(self) -> str:
        """What users type."""

    @property
    def at(self) -> float | None:
        """Its place along the axis of a figure, if it has one."""

    @property
    def settings(self) -> Row:
        """Parameters that are set otherwise."""


class TrialSetting(Protocol):
    """A frozen dataclass of plain data: two trials with equal settings are measured in the same way.

    A setting is for some kinds of places and of methods; a trial of others is refused before anything is measured.
    """

    places: ClassVar[tuple[type, ...]]
    methods: ClassVar[tuple[type, ...]]

    def algorithm(self, place: Any, method: Any, epsilon: str) -> Any:
        """The method as it is run here, a dataclass; `InputError` if it cannot be."""

    def measured(self, place: Any, method: Any, epsilon: str, repetition: int) -> Row:
        """One release with fresh noise (or several), and its scores."""


def timed(algorithm: Any, trust: Trust, epsilon: str) -> tuple[Result[CellMap], Row]:
    """A run, and the CPU seconds of this process that it took; whoever calls has counted the votes before."""
    begin = time.process_time()
    result = run(algorithm, trust, PureDP(epsilon), Unrecorded())
    return result, {"seconds": time.process_time() - begin, "cells": result.value.cells.size}


@lru_cache(maxsize=2)
def scorer(place: GroundTruthMap) -> Scorer:
    """What is known of a map is kept from trial to trial."""
    return Scorer(place)


@dataclass(frozen=True)
class Everyone:
    """A curator holds the rows of all people, one each, and publishes one map.

    With `emd`, that is measured too.
    """

    places: ClassVar[tuple[type, ...]] = (GroundTruthMap,)
    methods: ClassVar[tuple[type, ...]] = (Method,)

    emd: bool = False

    @property
    def rule(self) -> Bounding:
        """A row is a person."""
        return RowIsPerson()

    def algorithm(self, place: GroundTruthMap, method: Method, epsilon: str) -> Any:
        """As orders would run it."""
        return method.algorithm(place.tree, self.rule, epsilon)

    def measured(self, place: GroundTruthMap, method: Method, epsilon: str, repetition: int) -> Row:  # noqa: ARG002 - noise differs
        """Range queries and densities against the truth of all people."""
        table = place.table
        table.votes(place.tree, self.rule)
        made, row = timed(self.algorithm(place, method, epsilon), Curator(table), epsilon)
        shown, unbiased = painted(made.value, place.tree)
        return row | scorer(place).all(shown, unbiased) | self.beside(place, shown)

    def beside(self, place: GroundTruthMap, shown: Floats) -> Row:
        """What is told of the map that is shown, beside its errors."""
        return dict(scorer(place).moved(shown)) if self.emd else {}


@dataclass(frozen=True)
class Trial:
    """A place by its name, a method, a setting, the budget ε, and which of several repetitions it is.

    What a place and a method are is the setting's: a map and a way to release it, a table of speeds and a mean.
    """

    place: str
    method: Named
    setting: TrialSetting
    epsilon: str
    repetition: int

    def key(self, place: Place) -> str:
        """A digest of all that its result can depend on but luck: the people, the method, its parameters and its code,
        the setting, ε, the queries, the version of the scores and of hazemap.

        A name is not part of it: a method or a map that is only called otherwise need not be measured again.
        `InputError` if this method cannot be run here.
        """
        if not isinstance(place, self.setting.places):
            raise InputError(f"{self.place} holds nothing that {self.method.name} could be compared on here")
        if not isinstance(self.method, self.setting.methods):
            raise InputError(f"the method {self.method.name} is no method for {self.place} here")
        algorithm = self.setting.algorithm(place, self.method, self.epsilon)
        known = (
            place.digest,
            dumps(algorithm),
            code_of(type(algorithm).__module__),
            type(self.setting).__name__,
            str(to_json(self.setting)),
            self.epsilon,
            str(self.repetition),
            WORKLOAD.decode(),
            str(VERSION),
            __version__,
        )
        return sha256("\n".join(known).encode()).hexdigest()

    def labels(self, place: Place) -> Row:
        """What a row of results says of its trial before any score."""
        settings = {name: value for name, value in vars(self.setting).items() if type(value) in (int, float, str)}
        return {
            "map": self.place,
            "people": place.people,
            **place.size,
            "method": self.method.name,
            "spelled": self.method.spelled,
            "epsilon": float(self.epsilon),
            "repetition": self.repetition,
            "at": self.method.at,
            **{f"set_{name}": value for name, value in {**settings, **self.method.settings}.items()},
        }


@cache
def code_of(module: str) -> str:
    """SHA-256 of a module and of all that it may import of hazemap and of its own package.

    Comments, docstrings and layout aside.
    """
    seen, todo = dict[str, str](), [module]
    packages = frozenset({"hazemap", module.partition(".")[0]})
    while todo:
        name = todo.pop()
        path = None if name in seen else _file(name)
        if path is not None:
            seen[name], imported = _read(path, packages)
            todo += imported
    return sha256(repr(sorted(seen.items())).encode()).hexdigest()


@cache
def _read(path: Path, packages: frozenset[str]) -> tuple[str, tuple[str, ...]]:
    """A digest of a file as it runs, and the modules of these packages that it names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:] or [ast.Pass()]
    return sha256(ast.dump(tree).encode()).hexdigest(), tuple(_imported(tree, packages))


def _imported(tree: ast.Module, packages: frozenset[str]) -> Iterator[str]:
    """Modules of these packages, also those that functions import as they run; a name may be something in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in packages)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in packages:
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name in a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
