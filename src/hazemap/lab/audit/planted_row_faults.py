"""Planted faults of noise that is not there everywhere, or comes back, and of rows that are bounded wrongly."""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.duckdb import EngineTable
from hazemap.execution import run
from hazemap.lab.audit.fault_list import fault, replaced
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.trust.curator import Curator
from hazemap.values.boolean_attribute import AttributeCells
from hazemap.values.cells_in_slots import EachSlot


@fault("the second half of the noise of an answer mirrors the first")
def mirrored_noise() -> Iterator[None]:
    """Draw half of the noise, and use it twice: sums of two numbers that mirror each other show twice as much."""

    def mirrored(draw: Callable[..., Ints]) -> Callable[..., Ints]:
        def drawn(self: Any, stream: Stream, size: int) -> Ints:
            half = draw(self, stream, (size + 1) // 2)
            return np.concatenate([half, half[: size // 2][::-1]])

        return drawn

    laplace, gaussian = mirrored(DiscreteLaplace.draw), mirrored(DiscreteGaussian.draw)
    with replaced(DiscreteLaplace, "draw", laplace), replaced(DiscreteGaussian, "draw", gaussian):
        yield


@contextmanager
def _answers(changed: Callable[[Query, Ints, Ints], Ints | None]) -> Iterator[None]:
    """Have sums answered otherwise: by what `changed` makes of the question, the exact sums and the noisy ones.

    What is exact follows from the noise that was drawn last.
    """
    answer, draw, drawn = Curator.answer, DiscreteLaplace.draw, list[Ints]()

    def remembered(self: DiscreteLaplace, stream: Stream, size: int) -> Ints:
        drawn[:] = [draw(self, stream, size)]
        return drawn[0]

    def answering(self: Curator, question: Question, price: Budget) -> Answer:
        given = answer(self, question, price)
        if isinstance(question, Query):
            other = changed(question, given.sums - drawn[0], given.sums)
            return given if other is None else replace(given, sums=other)
        return given

    with replaced(Curator, "answer", answering), replaced(DiscreteLaplace, "draw", remembered):
        yield


@fault("people outside the map are counted without noise")
def exact_outside() -> Iterator[None]:
    """Leave noise out of the one number that is no cell: whoever is outside is known to be there."""

    def changed(question: Query, exact: Ints, noisy: Ints) -> Ints | None:
        cells = getattr(question.encoder, "cells", None)
        if not isinstance(cells, Leaves) or NOWHERE not in cells.cells:
            return None
        return np.where(cells.cells == NOWHERE, exact, noisy)

    with _answers(changed):
        yield


@fault("those who carry a mark are counted without noise")
def exact_marks() -> Iterator[None]:
    """Leave noise out of the second side of every cell."""

    def changed(question: Query, exact: Ints, noisy: Ints) -> Ints | None:
        if not isinstance(getattr(question.encoder, "cells", None), AttributeCells):
            return None
        return np.where(np.arange(len(exact)) % 2 == 1, exact, noisy)

    with _answers(changed):
        yield


@fault("all slots of a cell have the same noise")
def repeated_slot_noise() -> Iterator[None]:
    """Draw the noise of a cell once: two slots, subtracted, are exact."""

    def changed(question: Query, exact: Ints, noisy: Ints) -> Ints | None:
        cells = getattr(question.encoder, "cells", None)
        if not isinstance(cells, EachSlot):
            return None
        many = len(cells.tree.slots.names)
        noise = (noisy - exact).reshape(-1, many)
        return exact + np.repeat(noise[:, :1], many, axis=1).ravel()

    with _answers(changed):
        yield


@fault("noise is half as wide where people are")
def quiet_crowds() -> Iterator[None]:
    """Halve noise where it would look too large: who is in an occupied cell loses twice as much."""

    def changed(question: Query, exact: Ints, noisy: Ints) -> Ints:  # noqa: ARG001 - whatever is asked
        return np.where(exact > 0, exact + (noisy - exact) // 2, noisy)

    with _answers(changed):
        yield


@fault("exact sums are rounded to multiples of 5 before noise is added")
def rounded_sums() -> Iterator[None]:
    """Round first: whoever makes 2 of 3 moves a number by 5, with the noise of one."""

    def changed(question: Query, exact: Ints, noisy: Ints) -> Ints:  # noqa: ARG001 - whatever is asked
        return noisy - exact + (exact + 2) // 5 * 5

    with _answers(changed):
        yield


@fault("the sampling key is a digest of the file")
def digest_key() -> Iterator[None]:
    """Let a file decide which rows of everybody count: whoever adds a line changes those of all others."""
    opened = run.opened

    def digested(spec: Any, source: Any, key: bytes, *rest: Any, **options: Any) -> Any:
        file = spec.table.source
        own = key if file is None else hashlib.sha256(Path(file).read_bytes()).digest()[: len(key)]
        return opened(spec, source, own, *rest, **options)

    with replaced(run, "opened", digested):
        yield


@fault("a row more than the rule allows counts")
def row_beyond_cap() -> Iterator[None]:
    """Keep k + 1 rows of whoever has as many, with the noise for k."""
    votes = EngineTable.votes

    def more(self: EngineTable, tree: Any, rule: Bounding) -> Any:
        return votes(self, tree, replace(rule, most=rule.most + 1) if isinstance(rule, AtMostRows) else rule)

    with replaced(EngineTable, "votes", more):
        yield


@fault("noise is drawn from a seed that is the second of the clock")
def clock_seed() -> Iterator[None]:
    """Whoever knows when a run was made can draw its noise again."""
    seeded = classmethod(lambda _: Stream.fixed(str(int(time.time())).encode()))
    with replaced(Stream, "from_os", seeded):
        yield
