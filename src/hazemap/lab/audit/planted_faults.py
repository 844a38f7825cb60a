"""Sabotaged builds to test an audit with: each breaks the package in one way that has happened somewhere.

A planted fault is a context manager that is only ever entered in a process of its own
(`audit.subprocess_runs.SubprocessRuns`). Its docstring says what it breaks and who is exposed by it.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.cells import Leaves
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.duckdb_connection import DuckDBConnection, literal, quoted
from hazemap.engines.person_ids import Coded, TextIds
from hazemap.engines.table_source import SourcePart, TableSource, named_numbers
from hazemap.errors import LedgerError
from hazemap.federated.device.recipes import recipe_answer
from hazemap.federated.protocols.shuffle import client
from hazemap.federated.shuffler import shuffler_service
from hazemap.federated.study import population_study
from hazemap.federated.trust import device_tasks
from hazemap.lab.audit import planted_row_faults
from hazemap.lab.audit.fault_list import PLANTS, fault, known, planted, replaced
from hazemap.lab.audit.shuffle_runs import KEY_OF_SHUFFLER
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
from hazemap.tables.contribution_bounding import AtMostRows, Sensitivity
from hazemap.tables.keyed_hash import KeyWords
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator
from hazemap.vdaf.hpke import Kem, KeyPair

__all__ = ["PLANTS", "known", "planted", "planted_row_faults"]  # those of rows are listed by being imported


@fault("noise half as wide as the budget buys")
def half_width_noise() -> Iterator[None]:
    """Draw from narrower laws than are stated: everybody loses twice the stated ε (four times the stated ρ)."""

    def laplace(self: DiscreteLaplace, stream: Stream, size: int) -> Any:
        return discrete_laplace(stream, self.scale / 2, size)

    def gaussian(self: DiscreteGaussian, stream: Stream, size: int) -> Any:
        return discrete_gaussian(stream, self.variance / 4, size)

    with replaced(DiscreteLaplace, "draw", laplace), replaced(DiscreteGaussian, "draw", gaussian):
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

    with replaced(rule, "sensitivity", property(sensitivity)):
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

    with replaced(Ledger, "charge", skipping), replaced(Ledger, "released", tolerant):
        yield


@contextmanager
def _exact_votes() -> Iterator[list[Votes]]:
    """A list whose last item is what a table answered last, for faults that look at it without paying."""
    votes, seen = EngineTable.votes, list[Votes]()

    def watching(self: EngineTable, *arguments: Any, **options: Any) -> Votes:
        seen[:] = [votes(self, *arguments, **options)]
        return seen[0]

    with replaced(EngineTable, "votes", watching):
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

        with replaced(Adaptive, "_cut", cut):
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

    with replaced(DiscreteLaplace, "draw", halved):
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

    with replaced(sources, "open_files", sniffing):
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

    with replaced(TextIds, "coded", tidied):
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

    with replaced(Session, "_spend", spending), replaced(Curator, "answer", answering):
        yield


@fault("how fine cells are depends on the exact number of people")
def unpaid_threshold() -> Iterator[None]:
    """Call a twentieth of the people a full cell of the adaptive method: nobody paid for their exact number."""
    cut = Adaptive._cut
    with _exact_votes() as seen:

        def informed(self: Adaptive, known: Any, fullness: float, *rest: Any) -> Leaves:
            people = float(seen[-1].weights.sum()) / self.bounding.unit
            return cut(self, known, max(people / 20, 1.0) * fullness / max(fullness, 1.0), *rest)

        with replaced(Adaptive, "_cut", informed):
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

    with replaced(DiscreteLaplace, "draw", pooled):
        yield


@fault("reports are randomised with twice the stated ε₀")
def doubled_local_epsilon() -> Iterator[None]:
    """Turn bits on as rarely as with 2ε₀: whoever sees a report, or a sum of few, learns twice as much."""
    twice = property(lambda self: Coin(2 * self.epsilon, plus=1))
    with replaced(Asymmetric, "_turn_on", twice):
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

    with replaced(population_study, "reported_bin", found), replaced(_unary(), "report", silent):
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

    with replaced(_unary(), "report", told):
        yield


@fault("sums of fewer people are opened than a recipe states")
def ignored_minimum_cohort() -> Iterator[None]:
    """Check neither how many people are in a sum nor what it tells: small groups are seen."""
    with replaced(device_tasks, "check_recipe_sum", lambda *_: None):
        yield


@fault("people leave their shares of the noise out")
def missing_noise_shares() -> Iterator[None]:
    """Add nothing: sums over people are exact, whoever opens them."""
    with replaced(DistributedNoise, "share", lambda _self, _stream, size: np.zeros(size, dtype=np.int64)):
        yield


@fault("a shuffler hands messages on in the order of their senders' numbers")
def kept_order() -> Iterator[None]:
    """Permute nothing: the analyser, who gave the numbers, adds up one person's parts."""
    with replaced(shuffler_service, "permuted_pieces", lambda sent, _size, _stream: [b"".join(sent)]):
        yield


@fault("messages of a shuffle are sealed with the shuffler's key")
def sealed_to_the_shuffler() -> Iterator[None]:
    """Let the shuffler, who knows who sent a message, read it."""
    seal, public = client.messages, KeyPair.derived(Kem.X25519_HKDF_SHA256, KEY_OF_SHUFFLER).public
    with replaced(client, "messages", lambda terms, _public, *rest: seal(terms, public, *rest)):
        yield


def _unary() -> type:
    """The class whose method makes the reports of all laws."""
    return next(each for each in Asymmetric.__mro__ if "report" in each.__dict__)
