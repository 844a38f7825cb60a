"""What tasks on executors send one another: a slice, where it came from, and bytes (`SCHEMA`).

A message is of some thousand people's rows or of cells with votes, so Spark moves few records whose bytes it need not
look into. Those of slice `NOTES` say what became of a task's rows. This module imports numba.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Tree
from hazemap.engines.streaming.cell_counter import base_cells
from hazemap.engines.streaming.keyed_hash import mix
from hazemap.engines.streaming.person_index import RowBatch, Texts
from hazemap.errors import FileError, HazemapError, InputError, TableError
from hazemap.machine_code.arrays import Ints, Words
from hazemap.tables.votes import Votes
from hazemap.vdaf.compiled_loops import compiled

SCHEMA = "slice int, part bigint, seq bigint, data binary"
NOTES = -1
MOST_SLICES = 1 << 16
"""As many as the upper bits of a seed tell apart."""

AT_ONCE = 1 << 11
"""Rows or cells in a message at most: Spark hands over ten thousand messages at a time."""

LETTERS = 1 << 26
"""Bytes of ids, or of messages, that are in memory together, and those of one batch more."""

TOGETHER = 32
"""Messages that are read at a time."""

NO_MARKS = np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True)
class RowForm:
    """How rows are written: their seeds, then their base cells, then perhaps weights, lengths of ids, and ids.

    Base cells are numbered from `first`, as words of 4 bytes where that suffices; `NOWHERE` is 0.
    """

    first: int
    wide: bool
    weighted: bool
    named: bool
    apart: bool
    """Whether rows in `NOWHERE` count only for people who have no others."""

    @classmethod
    def of(cls, tree: Tree, numbered: bool, weighted: bool, named: bool, apart: bool) -> "RowForm":
        """For the base cells of a tree; for any words, where rows are not `numbered` by base cells."""
        first, size = base_cells(tree) if numbered else (1, 1 << 63)
        return cls(first, size >= 1 << 32, weighted, named, apart)

    def written(self, batch: RowBatch, begin: int, end: int) -> bytes:
        """Some rows of a batch, as bytes."""
        some, kind = slice(begin, end), "<u8" if self.wide else "<u4"
        cells = batch.cells[some]
        cells = np.where(cells == 0, cells, cells - np.uint64(self.first - 1))
        parts = [np.uint32(end - begin).tobytes(), batch.seeds[some].tobytes(), cells.astype(kind).tobytes()]
        if self.weighted:
            parts.append(batch.weights[some].tobytes())
        if batch.texts is not None:
            data, ends = batch.texts
            parts += [np.diff(ends[begin : end + 1]).tobytes(), data[ends[begin] : ends[end]].tobytes()]
        return b"".join(parts)

    def read(self, messages: Iterable[bytes]) -> RowBatch:
        """The rows of several messages, in their order."""
        columns: list[list[NDArray[Any]]] = [[], [], [], [], []]
        for message in messages:
            many, at = int(np.frombuffer(message, "<u4", 1)[0]), 4
            kinds = ["<u8", "<u8" if self.wide else "<u4"]
            kinds += ["<i8"] * self.weighted + ["<i4"] * self.named
            for column, kind in zip((0, 1, *[2] * self.weighted, *[3] * self.named), kinds, strict=True):
                found = np.frombuffer(message, kind, many, at)
                columns[column].append(found)
                at += found.nbytes
            columns[4].append(np.frombuffer(message, np.uint8, offset=at))
        seeds = np.concatenate(columns[0])
        cells = np.concatenate(columns[1]).astype(np.uint64)
        cells[cells != 0] += np.uint64(self.first - 1)
        weights = np.concatenate(columns[2]) if self.weighted else np.ones(len(seeds), dtype=np.int64)
        texts = None
        if self.named:
            ends = np.cumsum(np.concatenate([[0], *columns[3]]), dtype=np.int32)
            texts = Texts(np.concatenate(columns[4]), ends)
        counts = cells != 0 if self.apart else np.ones(len(seeds), dtype=np.bool_)
        return RowBatch(seeds, cells, weights, counts, texts, 0, ~counts if self.apart else None)


class RowSender:
    """Rows on their way to the slices that their people belong to; in each slice they keep their order."""

    def __init__(self, form: RowForm, slices: int, part: int) -> None:
        self._form, self._slices, self._part, self._sent = form, slices, part, 0
        self._waiting: list[RowBatch] = []
        self._many, self._letters, self._most = 0, 0, min(max(slices * AT_ONCE, 1 << 19), 1 << 22)

    def take(self, batch: RowBatch) -> Iterator[Any]:
        """Take in the rows of a batch that count; messages as an Arrow batch, whenever enough rows are waiting."""
        counts = batch.counts if batch.outside is None else batch.counts | batch.outside
        rows = np.flatnonzero(counts)
        texts = None if batch.texts is None else _texts_of(*batch.texts, rows)
        weights = batch.weights[rows] if self._form.weighted else batch.weights[:0]
        self._waiting.append(RowBatch(batch.seeds[rows], batch.cells[rows], weights, NO_MARKS, texts, 0))
        self._many += len(rows)
        self._letters += 0 if texts is None else len(texts.data)
        if self._many >= self._most or self._letters >= LETTERS:
            yield from self.rest()

    def rest(self) -> Iterator[Any]:
        """All that is waiting."""
        if not self._many:
            return
        seeds = np.concatenate([each.seeds for each in self._waiting])
        order, ends = _dealt(seeds >> np.uint64(48), self._slices)
        cells = np.concatenate([each.cells for each in self._waiting])[order]
        weights = np.concatenate([each.weights for each in self._waiting])
        texts = None
        if self._form.named:
            of = [each.texts for each in self._waiting if each.texts is not None]
            lengths = np.concatenate([[0], *(np.diff(each.offsets) for each in of)])
            texts = _texts_of(np.concatenate([each.data for each in of]), np.cumsum(lengths), order)
        all_rows = RowBatch(seeds[order], cells, weights[order] if len(weights) else weights, NO_MARKS, texts, 0)
        messages = [(where, self._form.written(all_rows, begin, end)) for where, begin, end in _runs(ends)]
        yield sent(messages, self._part, self._sent)
        self._sent += len(messages)
        self._waiting, self._many, self._letters = [], 0, 0


def votes_sent(votes: Votes, slices: int) -> Iterator[Any]:
    """Votes as Arrow batches of messages: a cell is in the slice that its hash says."""
    order, ends = _dealt(mix(votes.cells) >> np.uint64(48), slices)
    cells, weights = votes.cells[order], votes.weights[order]
    messages = [(s, cells[begin:end].tobytes() + weights[begin:end].tobytes()) for s, begin, end in _runs(ends)]
    for at in range(0, len(messages), AT_ONCE):
        yield sent(messages[at : at + AT_ONCE])


def votes_read(messages: Iterable[bytes]) -> Votes:
    """The cells of these messages with their votes, perhaps several times."""
    halves = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in messages]
    cells = np.concatenate([np.frombuffer(cells, np.uint64) for cells, _ in halves])
    return Votes(cells, np.concatenate([np.frombuffer(weights, np.int64) for _, weights in halves]))


def sent(messages: list[tuple[int, bytes]], part: int = 0, first: int = 0) -> Any:
    """An Arrow batch of messages, each of a slice; their part and number put them in order within it."""
    import pyarrow

    numbers = np.arange(first, first + len(messages))
    return pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.array([where for where, _ in messages], pyarrow.int32()),
            pyarrow.array(np.full(len(messages), part, dtype=np.int64)),
            pyarrow.array(numbers, pyarrow.int64()),
            pyarrow.array([data for _, data in messages], pyarrow.binary()),
        ],
        names=["slice", "part", "seq", "data"],
    )


def received(batches: Iterable[Any]) -> Iterator[tuple[int, list[bytes]]]:
    """Slices and their messages, in order, some megabytes at a time at most."""
    for batch in batches:
        slices, data = batch.column("slice").to_pylist(), batch.column("data")
        for where, run in groupby(enumerate(slices), key=itemgetter(1)):
            together, size = list[bytes](), 0
            for place, _ in run:
                together.append(data[place].as_py())
                size += len(together[-1])
                if len(together) == TOGETHER or size >= LETTERS:
                    yield where, together
                    together, size = [], 0
            if together:
                yield where, together


@dataclass(frozen=True)
class Notes:
    """What became of rows, in numbers that are for the curator's eyes only; whether people did not fit; what failed.

    `slices` are those of people that a task has bound: two tasks never have the same one. `sample` is the state of a
    fingerprint (`streaming.table_fingerprint`), as bytes.
    """

    rows: int = 0
    without_person: int = 0
    nowhere: int = 0
    full: bool = False
    failed: tuple[str, str] | None = None
    slices: tuple[int, ...] = ()
    sample: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, messages: Iterable[bytes]) -> "Notes":
        """Of several tasks together."""
        parts = [message.partition(b"\n") for message in messages]
        heads = [json.loads(head) for head, _, _ in parts]
        rows, without_person, nowhere, full, failed, slices = zip(*heads, strict=True) if heads else ((),) * 6
        told = next((tuple(each) for each in failed if each), None)
        every = tuple(chain.from_iterable(slices))
        samples = tuple(sample for _, _, sample in parts if sample)
        return cls(sum(rows), sum(without_person), sum(nowhere), any(full), told, every, samples)

    def written(self) -> bytes:
        """As a message; of samples, which have to be merged before, the only one."""
        head = [self.rows, self.without_person, self.nowhere, self.full, self.failed, self.slices]
        return json.dumps(head).encode() + b"\n" + b"".join(self.sample[:1])

    def raise_failure(self) -> None:
        """The error that a task reported, in its words."""
        if self.failed is not None:
            kinds: dict[str, type[HazemapError]] = {each.__name__: each for each in (TableError, FileError, InputError)}
            raise kinds.get(self.failed[0], HazemapError)(self.failed[1])


def _runs(ends: Ints) -> Iterator[tuple[int, int, int]]:
    """Slices with something in them, where each begins and ends, in pieces of `AT_ONCE`."""
    for where in np.flatnonzero(np.diff(ends)).tolist():
        for begin in range(int(ends[where]), int(ends[where + 1]), AT_ONCE):
            yield where, begin, min(begin + AT_ONCE, int(ends[where + 1]))


@compiled
def _dealt(of: Words, slices: int) -> tuple[Ints, Ints]:
    """The places of words by their remainders, in their order; where each remainder begins, and the last one ends."""
    ends = np.zeros(slices + 1, dtype=np.int64)
    for i in range(of.size):
        ends[of[i] % np.uint64(slices) + np.uint64(1)] += 1
    for i in range(slices):
        ends[i + 1] += ends[i]
    free, order = ends.copy(), np.empty(of.size, dtype=np.int64)
    for i in range(of.size):
        where = of[i] % np.uint64(slices)
        order[free[where]] = i
        free[where] += 1
    return order, ends


def _texts_of(data: NDArray[np.uint8], offsets: NDArray[Any], rows: Ints) -> Texts:
    """The texts of these rows alone."""
    begins, lengths = offsets[rows].astype(np.int64), (offsets[rows + 1] - offsets[rows]).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return Texts(_copied(data, begins, ends), ends.astype(np.int32))


@compiled
def _copied(data: NDArray[np.uint8], begins: Ints, ends: Ints) -> NDArray[np.uint8]:
    copied = np.empty(ends[-1], dtype=np.uint8)
    for i in range(begins.size):
        for j in range(ends[i + 1] - ends[i]):
            copied[ends[i] + j] = data[begins[i] + j]
    return copied
