"""Sabotaged builds to test an audit with: each breaks the package in one way that has happened somewhere.

A planted fault is a context manager that is only ever entered in a process of its own
(`lab.audit.subprocess_runs.SubprocessRuns`). Its docstring says what it breaks and who is exposed by it.
"""

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.duckdb_connection import DuckDBConnection, literal, quoted
from hazemap.engines.person_ids import Coded, TextIds
from hazemap.engines.table_source import SourcePart, TableSource, named_numbers
from hazemap.errors import InputError, LedgerError
from hazemap.execution import run
from hazemap.federated.device.recipes import recipe_answer
from hazemap.federated.protocols.shuffle import sealed_parts
from hazemap.federated.shuffler import shuffler_service
from hazemap.federated.study import population_study
from hazemap.federated.trust import device_tasks
from hazemap.lab.audit.device_runs import KEY_OF_SHUFFLER
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import Budget
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.local_randomisers import Asymmetric, Bits
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_gaussian, discrete_laplace
from hazemap.privacy.samplers.bernoulli import Coin
from hazemap.queries.algorithm_session import Session
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.readers import open_table as sources
from hazemap.readers.file_formats import open_files
from hazemap.sources.source import Files
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Sensitivity
from hazemap.tables.keyed_hash import KeyWords
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator
from hazemap.values.boolean_attribute import AttributeCells
from hazemap.values.cells_in_slots import EachSlot
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

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


@fault("the second half of the noise of an answer mirrors the first")
def mirrored_noise() -> Iterator[None]:
    """Draw half of the noise, and use it twice: sums of two numbers that mirror each other show twice as much."""

    def mirrored(draw: Callable[..., Ints]) -> Callable[..., Ints]:
        def drawn(self: Any, stream: Stream, size: int) -> Ints:
            half = draw(self, stream, (size + 1) // 2)
            return np.concatenate([half, half[: size // 2][::-1]])

        return drawn

    laplace, gaussian = mirrored(DiscreteLaplace.draw), mirrored(DiscreteGaussian.draw)
    with patch.object(DiscreteLaplace, "draw", laplace), patch.object(DiscreteGaussian, "draw", gaussian):
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

    with patch.object(Curator, "answer", answering), patch.object(DiscreteLaplace, "draw", remembered):
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

    with patch.object(run, "opened", digested):
        yield


@fault("a row more than the rule allows counts")
def row_beyond_cap() -> Iterator[None]:
    """Keep k + 1 rows of whoever has as many, with the noise for k."""
    votes = EngineTable.votes

    def more(self: EngineTable, tree: Any, rule: Bounding) -> Any:
        return votes(self, tree, replace(rule, most=rule.most + 1) if isinstance(rule, AtMostRows) else rule)

    with patch.object(EngineTable, "votes", more):
        yield


@fault("noise is drawn from a seed that is the second of the clock")
def clock_seed() -> Iterator[None]:
    """Whoever knows when a run was made can draw its noise again."""
    seeded = classmethod(lambda _: Stream.fixed(str(int(time.time())).encode()))
    with patch.object(Stream, "from_os", seeded):
        yield


@fault("noise half as wide as the budget buys")
def half_width_noise() -> Iterator[None]:
    """Draw from narrower laws than are stated: everybody loses twice the stated ε (four times the stated ρ)."""

    def laplace(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        return discrete_laplace(stream, self.scale / 2, size)

    def gaussian(self: DiscreteGaussian, stream: Stream, size: int) -> Any:
        return discrete_gaussian(stream, self.variance / 4, size)

    with patch.object(DiscreteLaplace, "draw", laplace), patch.object(DiscreteGaussian, "draw", gaussian):
        yield


@fault("a rule of k rows says that a person moves k − 1 votes")
def low_sensitivity() -> Iterator[None]:
    """Keep k rows of a person, with noise for k − 1: whoever has k rows in a cell loses ε·k/(k − 1)."""
    rule = next(each for each in AtMostRows.__mro__ if "sensitivity" in each.__dict__)
    stated = rule.__dict__["sensitivity"]

    def sensitivity(self: Any) -> Sensitivity:
        if not isinstance(self, AtMostRows):
            said: Sensitivity = stated.__get__(self)
            return said
        most = max(1, self.most - 1)
        return Sensitivity(most, most**2)

    with patch.object(rule, "sensitivity", property(sensitivity)):
        yield


@fault("every third charge is not in the ledger")
def skipped_charge() -> Iterator[None]:
    """Take the row away again after it was written: releases go on after the cap is spent."""
    charge, released, turns = Ledger.charge, Ledger.released, [0]

    def skipping(self: Ledger, *arguments: Any, **options: Any) -> Any:
        made = charge(self, *arguments, **options)
        turns[0] += 1
        if turns[0] % 3 == 0:
            with closing(sqlite3.connect(self.path)) as db:
                db.execute("DELETE FROM charges WHERE id = ?", (made.id,))
                db.commit()
        return made

    def tolerant(self: Ledger, *arguments: Any, **options: Any) -> None:
        try:
            released(self, *arguments, **options)
        except LedgerError:
            return

    with patch.object(Ledger, "charge", skipping), patch.object(Ledger, "released", tolerant):
        yield


@contextmanager
def _exact_votes() -> Iterator[list[Votes]]:
    """A list whose last item is what a table answered last, for faults that look at it without paying."""
    votes, seen = EngineTable.votes, list[Votes]()

    def watching(self: EngineTable, *arguments: Any, **options: Any) -> Votes:
        seen[:] = [votes(self, *arguments, **options)]
        return seen[0]

    with patch.object(EngineTable, "votes", watching):
        yield seen


@fault("cells are cut where people are, without asking with noise")
def unpaid_cells() -> Iterator[None]:
    """Cut the cells of the adaptive method in which somebody is, by exact counts, whatever the noisy answers say.

    Who is alone somewhere makes their cell smaller.
    """
    with _exact_votes() as seen:

        def cut(self: Adaptive, known: Any, *_: Any) -> Leaves:
            leaves: Leaves = known.leaves
            exact = leaves.total(seen[-1].cells, seen[-1].weights)
            fine = self.tree.level(leaves.cells) >= self.tree.depth
            split = (exact > 0) & ~fine
            return Leaves(self.tree, np.concatenate([leaves.cells[~split], self.tree.children(leaves.cells[split])]))

        with patch.object(Adaptive, "_cut", cut):
            yield


@fault("noise passes through 16-bit floating point")
def float16_noise() -> Iterator[None]:
    """Round noise to half precision: beyond 2,048 only even numbers come out, beyond 4,096 multiples of 4.

    So where noise is wide, the low digits of an answer are those of the exact sum (Mironov 2012).
    """
    draw = DiscreteLaplace.draw

    def halved(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        wide = np.clip(draw(self, stream, size), -65_504, 65_504)
        return wide.astype(np.float16).astype(np.int64)

    with patch.object(DiscreteLaplace, "draw", halved):
        yield


@fault("a CSV file's dialect is guessed from its rows")
def sniffed_dialect() -> Iterator[None]:
    """Let DuckDB's own reader guess delimiter, quote and escape from the first rows, as this project once did.

    One line of one person can then change how everybody's lines are read.
    """

    def sniffing(connection: DuckDBConnection, files: Files, *rest: Any, **options: Any) -> TableSource:
        name = str(files)
        if not name.endswith(".csv"):
            return open_files(connection, files, *rest, **options)
        rows = f"read_csv([{literal(name)}], header = true, all_varchar = true, ignore_errors = true)"
        kinds = dict.fromkeys(connection.kinds(rows, name), "VARCHAR")
        written = named_numbers(list(kinds))
        numbers = ", ".join(f"TRY_CAST({quoted(a)} AS DOUBLE) AS {quoted(b)}" for a, b in written.items())
        return TableSource(name, (SourcePart(f"(SELECT *, {numbers} FROM {rows})", kinds, None, written),))  # noqa: S608 - quoted

    with patch.object(sources, "open_files", sniffing):
        yield


@fault("ids that look alike are one person")
def merged_ids() -> Iterator[None]:
    """Take case, spaces, plus signs and leading zeros from ids: 7, 07 and " 7" are one person of the bounding rule.

    So somebody whose id looks like another's moves the other's row, too: two cells instead of one.
    """
    coded = TextIds.coded

    def tidied(self: TextIds, column: Any, words: KeyWords) -> Coded:
        ids = column.cast("binary").to_pylist()
        left = [None if each is None else each.lower().strip().lstrip(b"0+") for each in ids]
        return coded(self, pa.array(left, "binary"), words)

    with patch.object(TextIds, "coded", tidied):
        yield


@fault("rounds are paid by cohorts that are the same people")
def shared_cohort() -> Iterator[None]:
    """Charge every round to a cohort of its own, and let everybody answer: people lose ε in every round."""
    spend, answer = Session._spend, Curator.answer

    def spending(self: "Session[Any]", question: Question) -> None:
        if isinstance(question, Query):
            object.__setattr__(question, "share", Fraction(1))
            object.__setattr__(question, "cohort", len(self._transcript))
        spend(self, question)

    def answering(self: Curator, question: Question, price: Budget) -> Answer:
        return answer(self, replace(question, cohort=None), price)

    with patch.object(Session, "_spend", spending), patch.object(Curator, "answer", answering):
        yield


@fault("how fine cells are depends on the exact number of people")
def unpaid_threshold() -> Iterator[None]:
    """Call a twentieth of the people a full cell of the adaptive method: nobody paid for their exact number."""
    cut = Adaptive._cut
    with _exact_votes() as seen:

        def informed(self: Adaptive, known: Any, fullness: float, *rest: Any) -> Leaves:
            people = float(seen[-1].weights.sum()) / self.bounding.unit
            return cut(self, known, max(people / 20, 1.0) * fullness / max(fullness, 1.0), *rest)

        with patch.object(Adaptive, "_cut", informed):
            yield


@fault("noise is cut from a pool that was drawn once")
def reused_noise() -> Iterator[None]:
    """Cut noise, somewhere, from a pool of four times the numbers that are first asked for, one for each scale.

    Two releases, subtracted, may be exact.
    """
    draw, pools = DiscreteLaplace.draw, dict[Fraction, Any]()

    def pooled(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        pool = pools.get(self.scale)
        if pool is None or len(pool) < 2 * size:
            pool = pools[self.scale] = draw(self, stream, 4 * max(size, 256))
        start = stream.below(len(pool) - size)
        return np.array(pool[start : start + size])

    with patch.object(DiscreteLaplace, "draw", pooled):
        yield


@fault("reports are randomised with twice the stated ε₀")
def doubled_local_epsilon() -> Iterator[None]:
    """Turn bits on as rarely as with 2ε₀: whoever sees a report, or a sum of few, learns twice as much."""
    twice = property(lambda self: Coin(2 * self.epsilon, plus=1))
    with patch.object(Asymmetric, "_turn_on", twice):
        yield


@fault("a device without a matching event sends zeros")
def skipped_none_bin() -> Iterator[None]:
    """Send nothing in place of a report of none: silence tells who has no event."""
    own, report = recipe_answer.reported_bin, Asymmetric.report

    def silent(self: Asymmetric, stream: Stream, place: int | None, size: int) -> Bits:
        return np.zeros(size, dtype=np.uint8) if place is not None and place < 0 else report(self, stream, place, size)

    def found(recipe: Any, *rest: Any) -> int:
        place = own(recipe, *rest)
        return -1 if place == recipe.none_bin else place

    with patch.object(population_study, "reported_bin", found), patch.object(_unary(), "report", silent):
        yield


@fault("the bit of a person's own bin is always sent")
def true_bit_sent() -> Iterator[None]:
    """Leave out the coin of the 1: a report in which a bit is missing tells that it is not the person's."""
    report = Asymmetric.report

    def told(self: Asymmetric, stream: Stream, place: int | None, size: int) -> Bits:
        bits = report(self, stream, place, size)
        if place is not None:
            bits[place] = 1
        return bits

    with patch.object(_unary(), "report", told):
        yield


@fault("sums of fewer people are opened than a recipe states")
def ignored_minimum_cohort() -> Iterator[None]:
    """Check neither how many people are in a sum nor what it tells: small groups are seen."""
    with patch.object(device_tasks, "check_recipe_sum", lambda *_: None):
        yield


@fault("people leave their shares of the noise out")
def missing_noise_shares() -> Iterator[None]:
    """Add nothing: sums over people are exact, whoever opens them."""
    with patch.object(DistributedNoise, "share", lambda _self, _stream, size: np.zeros(size, dtype=np.int64)):
        yield


@fault("a shuffler hands messages on in the order of their senders' numbers")
def kept_order() -> Iterator[None]:
    """Permute nothing: the analyser, who gave the numbers, adds up one person's parts."""
    with patch.object(shuffler_service, "permuted_pieces", lambda sent, _size, _stream: [b"".join(sent)]):
        yield


@fault("messages of a shuffle are sealed with the shuffler's key")
def sealed_to_the_shuffler() -> Iterator[None]:
    """Let the shuffler, who knows who sent a message, read it."""
    seal, public = sealed_parts.messages, HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, KEY_OF_SHUFFLER).public
    with patch.object(sealed_parts, "messages", lambda terms, _public, *rest: seal(terms, public, *rest)):
        yield


def _unary() -> type:
    """The class whose method makes the reports of all laws."""
    return next(each for each in Asymmetric.__mro__ if "report" in each.__dict__)
