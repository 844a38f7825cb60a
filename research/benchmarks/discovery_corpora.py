"""Words of people, in a public dictionary: populations of any size that are resampled from those who are there."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from hazemap.federated.recipes.population_table import PopulationTable, TokenSequences
from hazemap.machine_code.arrays import Floats, Ints

WORD = re.compile(r"[a-z0-9']+")
DICTIONARY = 5
"""One in so many people lends their words to the public dictionary, and is in no population."""


@dataclass(frozen=True, eq=False)
class Sequences:
    """Every sequence of so many known words, by who says it how often: what both systems ask for."""

    table: PopulationTable
    texts: tuple[str, ...]
    holder: Ints
    sequence: Ints
    often: Ints

    def people(self, of: Ints) -> Floats:
        """How many people of a population have each sequence."""
        return np.bincount(self.sequence, weights=self._many(of)[self.holder], minlength=len(self.texts))

    def reports(self, of: Ints) -> Floats:
        """How many would report it, if everybody reported one of their sequences at random."""
        total = np.diff(self.table.start)
        weights = self._many(of)[self.holder] * self.often / total[self.holder]
        return np.bincount(self.sequence, weights=weights, minlength=len(self.texts))

    def drawn(self, of: Ints, chance: np.random.Generator) -> Ints:
        """A sequence of each person of a population that has any, drawn by how often they say it."""
        passed = np.concatenate([[0], np.cumsum(self.often)])
        start, end = (passed[np.searchsorted(self.holder, of, side=side)] for side in ("left", "right"))
        some = end > start
        at = start[some] + chance.integers(end[some] - start[some])
        return self.sequence[np.searchsorted(passed, at, side="right") - 1]

    def _many(self, of: Ints) -> Ints:
        return np.bincount(of, minlength=len(self.table.start) - 1)


@dataclass(frozen=True, eq=False)
class Corpus:
    """People's lines as places in the dictionary; −1 for an unknown word."""

    name: str
    dictionary: tuple[str, ...]
    lines: list[list[Ints]]

    @property
    def people(self) -> int:
        """How many people there are to draw from."""
        return len(self.lines)

    def sequences(self, length: int) -> Sequences:
        """All sequences of this length."""
        rows, start = [np.empty((0, length), dtype=np.int64)], [0]
        for own in self.lines:
            windows = [np.lib.stride_tricks.sliding_window_view(line, length) for line in own if len(line) >= length]
            known = [each[(each >= 0).all(axis=1)] for each in windows]
            rows += known
            start.append(start[-1] + sum(map(len, known)))
        tokens = np.concatenate(rows).astype(np.int32)
        distinct, number = np.unique(tokens, axis=0, return_inverse=True)
        holder = np.repeat(np.arange(len(start) - 1), np.diff(start))
        pairs, often = np.unique(np.stack([holder, number.ravel()], axis=1), axis=0, return_counts=True)
        texts = tuple(" ".join(self.dictionary[token] for token in row) for row in distinct.tolist())
        table = PopulationTable(np.array(start), (TokenSequences(tokens, self.dictionary),))
        return Sequences(table, texts, pairs[:, 0], pairs[:, 1], often)


def corpus(file: Path, words: int) -> Corpus:
    """A table of user and text; the dictionary holds the most frequent words of one in five of its people."""
    found = pq.read_table(file, columns=["user", "text"]).to_pydict()
    by_person: dict[object, list[list[str]]] = {}
    for user, text in zip(found["user"], found["text"], strict=True):
        by_person.setdefault(user, []).append(WORD.findall(text.lower()))
    everybody = list(by_person.values())
    order = np.random.default_rng(1).permutation(len(everybody))
    lent = order[: len(everybody) // DICTIONARY]
    counts = Counter(word for person in lent for line in everybody[person] for word in line)
    dictionary = tuple(word for word, _ in counts.most_common(words))
    places = {word: place for place, word in enumerate(dictionary)}
    lines = [
        [np.array([places.get(word, -1) for word in line], dtype=np.int64) for line in everybody[person]]
        for person in order[len(lent) :]
    ]
    return Corpus(file.stem, dictionary, lines)
