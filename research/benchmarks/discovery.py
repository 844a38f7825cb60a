"""Frequent words and sequences of words, learnt in rounds or at once (McMillan et al. 2022, section 1), and figure 1.

    python -m research.benchmarks.discovery [--runs 5] [--only irc_ubuntu_text_to_2013] [--page]

Populations of 10⁴, 10⁵ and 10⁶ are drawn with replacement from the people of two corpora in `../shared/data`. Both
systems ask the same rows, every sequence of n known words, by asymmetric one-hot reports, whose ε₀ is such that all
sums together cost (1, 10⁻⁶) by the exact law. Interactive: `FrequentSequences`, n rounds. Static: one question over all
1,000ⁿ sequences as published, one with these hashed into bins that could be sent (`discovery_hashed`), and one over
those that occur at all, which no system knows. Sums of reports are drawn by NumPy from their law; the bins of sequences
that nobody has only where they reach what the system would report.

Writes results/discovery.json, figures to docs/images and the page docs/results/discovery.md (--page: from the JSON of
before). Without the data it says so and ends. One process, some minutes.
"""

import argparse
import json
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from hazemap.federated.recipes.features import Feature, PrefixTree
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import RecipeTable
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.study.searches import FrequentSequences, ListedSequences
from hazemap.federated.study.searches.item_counts import frequent_bins
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.amplification.aggregate_price import aggregate_price, clone_bound, theorem_3_1
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.trust.curator import CentralPrices
from research.benchmarks.discovery_corpora import Sequences, corpus
from research.benchmarks.discovery_hashed import HashedStatic
from research.benchmarks.discovery_page import RESULTS, publish, summary

DATA = Path(__file__).parents[2].parent / "shared" / "data"
CORPORA = ("irc_ubuntu_text_to_2013", "shakespeare_by_character")
EPSILON, DELTA = 1, Fraction(1, 10**6)
WORDS, LENGTHS, TOP = 1_000, (1, 2, 3, 4), (20, 50, 100, 200, 500)
PEOPLE = (10_000, 100_000, 1_000_000)
BY_NOISE = Fraction(20)
"""How many of the sequences that a round or a static system reports may be nothing but noise."""

WORDS_TYPED = Recipe(
    "words", 1, "keyboard", "which words follow each other", SqlQuery("SELECT ngram FROM keyboard"), (),
    (Feature("words", PrefixTree(("",), ("a",))),), Fraction(20), Fraction(EPSILON), DELTA, 1_000,
)  # fmt: skip


@dataclass(frozen=True)
class OneHotReports:
    """Sums of asymmetric one-hot reports, drawn by NumPy; each round has an equal part of the local budget."""

    table: RecipeTable
    people: int
    chance: np.random.Generator

    def prices(self, budget: Budget) -> CentralPrices:
        """Searches for sequences read the noise off their answers, so any prices will do."""
        return CentralPrices(budget)

    def answers(self, question: type[Question]) -> bool:
        """Sums."""
        return question is Query

    def answer(self, question: Question, price: Budget) -> Answer:
        """Unbiased numbers of people; `stddev` is that of a bin of nobody where the number is 0 or less."""
        law = Asymmetric(price.epsilon)
        keep, turn_on = law.chances
        counts = question.encoder.total(self.table)
        sums = self.chance.binomial(counts, keep) + self.chance.binomial(self.people - counts, turn_on)
        numbers = law.unbiased(sums, self.people)
        return Answer(
            np.rint(numbers).astype(np.int64), np.sqrt(law.variance(self.people, numbers)), law.kurtosis(self.people)
        )


@cache
def local_epsilon(people: int, rounds: int) -> Fraction:
    """The largest ε₀, in hundredths, whose reports of so many rounds cost (1, 10⁻⁶) together by the exact law."""
    low, high = 1, 2_000
    while high - low > 1:
        middle = (low + high) // 2
        law = BitFlipLaw.asymmetric(Fraction(middle, 100))
        low, high = (middle, high) if aggregate_price(law, people, DELTA, rounds).epsilon <= EPSILON else (low, middle)
    return Fraction(low, 100)


def interactive(asked: Sequences, dictionary: tuple[str, ...], of: Ints, seed: int, length: int) -> list[str]:
    """The sequences that n rounds find, the most frequent first."""
    trust = OneHotReports(asked.table.resampled(of, seed), len(of), np.random.default_rng(seed))
    search = FrequentSequences(WORDS_TYPED, dictionary, (Fraction(1, length),) * length, BY_NOISE)
    budget = PureDP(length * local_epsilon(len(of), length))
    found = run(search, trust, budget, Unrecorded()).value
    return list(found.of_round(length).top(max(TOP)).items)


@dataclass(frozen=True)
class Static:
    """One question over sequences that are listed: it is the same in every run."""

    asked: Sequences
    question: Query
    everything: int

    @classmethod
    def over(cls, asked: Sequences, length: int) -> "Static":
        """Over the sequences that occur; there are 1,000ⁿ in all."""
        search = ListedSequences(WORDS_TYPED, asked.texts, BY_NOISE)
        return cls(asked, next(search.rounds(CentralPrices(PureDP(1)))), WORDS**length)

    def found(self, of: Ints, seed: int) -> dict[str, list[str]]:
        """What it reports where it knows which sequences occur, and where it asks for all that there can be."""
        chance, epsilon = np.random.default_rng([seed, 1]), local_epsilon(len(of), 1)
        trust = OneHotReports(self.asked.table.resampled(of, seed), len(of), chance)
        answer = trust.answer(self.question, PureDP(epsilon))
        listed = np.arange(1, len(self.asked.texts) + 1)
        known = frequent_bins(answer, listed, max(TOP), BY_NOISE)
        least, empty = self._empty(len(of), epsilon, chance)
        bins = listed[np.argsort(-answer.sums[listed], kind="stable")[: max(TOP)]]
        bins = bins[answer.sums[bins] >= least]
        numbers = np.concatenate([answer.sums[bins], empty])
        texts = [*(self.asked.texts[place - 1] for place in bins), *[""] * len(empty)]
        return {
            "static": [texts[place] for place in np.argsort(-numbers, kind="stable")],
            "static, told which occur": [self.asked.texts[place - 1] for place in known],
        }

    def _empty(self, people: int, epsilon: Fraction, chance: np.random.Generator) -> tuple[float, Floats]:
        """What about `BY_NOISE` bins would reach if all were empty, and the numbers of the empty ones that do."""
        law, bins = Asymmetric(epsilon), self.everything - len(self.asked.texts)
        turn_on = law.chances[1]
        least = binom.isf(min(float(BY_NOISE) / self.everything, 0.5), people, turn_on) + 1
        above = binom.sf(least - 1, people, turn_on)
        reports = binom.isf(chance.random(chance.binomial(bins, above)) * above, people, turn_on)
        numbers = law.unbiased(np.append(reports, least).astype(np.int64), people)
        return float(numbers[-1]), numbers[:-1]


def scores(found: list[str], truth: Floats, texts: tuple[str, ...]) -> dict[str, list[float]]:
    """For each k: which part of the true top k is among the first k found, and which part of its weight is not."""
    largest = np.argsort(-truth, kind="stable")
    place = {texts[each]: rank for rank, each in enumerate(largest[: max(TOP)].tolist())}
    weight = truth[largest[: max(TOP)]]
    recall, missed = [], []
    for k in (min(each, len(texts)) for each in TOP):
        hits = [place[text] for text in found[:k] if place.get(text, k) < k]
        recall.append(len(hits) / k)
        missed.append(float(1 - weight[hits].sum() / weight[:k].sum()))
    return {"recall": recall, "weighted error": missed}


def trials(name: str, runs: int) -> list[dict[str, Any]]:
    """All lengths and sizes of one corpus."""
    people, found = corpus(DATA / f"{name}.parquet", WORDS), []
    for length in LENGTHS:
        asked = people.sequences(length)
        static = Static.over(asked, length)
        for size in PEOPLE:
            for seed in range(runs):
                of = np.random.default_rng([size, seed]).integers(0, people.people, size)
                systems = static.found(of, seed)
                systems["interactive"] = interactive(asked, people.dictionary, of, seed, length)
                if length > 1:
                    hashed = HashedStatic(asked, WORDS**length, length, BY_NOISE)
                    systems["static, hashed"] = hashed.found(of, seed, local_epsilon(size, length), max(TOP))
                for kind, truth in (("people", asked.people(of)), ("reports", asked.reports(of))):
                    for system, items in systems.items():
                        row = {"corpus": name, "length": length, "people": size, "run": seed, "system": system}
                        found.append(row | {"truth": kind} | scores(items, truth, asked.texts))
            print(name, length, f"{size:,}", f"{time.process_time():.0f} CPU s", flush=True)
    return found


def figure_1() -> list[dict[str, Any]]:
    """ε of the sum against the cohort, δ = 10⁻⁶, by three bounds."""
    found = []
    for local in (3, 6):
        for honest in np.unique(np.rint(10 ** np.arange(2, 7.01, 0.125)).astype(int)).tolist():
            law = BitFlipLaw.asymmetric(local)
            closed = theorem_3_1(honest, Fraction(local), DELTA)
            found.append(
                {
                    "local": local,
                    "cohort": honest,
                    "theorem 3.1": None if closed is None else float(closed),
                    "clones": float(clone_bound(honest, Fraction(local), DELTA)),
                    "exact sum": float(aggregate_price(law, honest, DELTA).epsilon),
                }
            )
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=CORPORA)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        publish(json.loads(RESULTS.read_text()))
        return
    if not all((DATA / f"{name}.parquet").is_file() for name in CORPORA):
        print(f"skipped: the corpora are not in {DATA.name}")
        return
    begun = time.process_time()
    names = (options.only,) if options.only else CORPORA
    rows = [row for name in names for row in trials(name, options.runs)]
    local = [
        {"people": size, "rounds": rounds, "local": float(local_epsilon(size, rounds))}
        for size in PEOPLE
        for rounds in LENGTHS
    ]
    for each in local:
        law = Asymmetric(Fraction(str(each["local"])))
        each["stddev"] = float(np.sqrt(law.variance(int(each["people"]), np.zeros(1))[0]))
    found = {"top": list(TOP), "summary": summary(rows), "local": local, "figure 1": figure_1()}
    found["CPU s"] = round(time.process_time() - begun)
    publish(found)


if __name__ == "__main__":
    main()
