"""Settings of a trial: who holds the data, who answers, and what is scored."""

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from hazemap.cellmap import CellMap
from hazemap.lab.compare.compared_methods import Method
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.map_scores import Scorer
from hazemap.lab.compare.map_to_pixels import painted
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
