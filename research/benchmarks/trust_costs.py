"""What each trust costs: methods of sums on every trust model at equal ε and people; L1, MSE, EMD, bytes a device.

    python -m research.benchmarks.trust_costs [REPETITIONS]

100,000 people of each map, the same for all, drawn anew in each repetition (3 by default; one for methods other than
adaptive). Everybody answers and nobody works with a server. Results go to results/trust_costs.json, the page to
docs/results/trust.md. It judges nothing. Errors are against the truth of all people of the map.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hazemap.algorithms import Adaptive
from hazemap.errors import HazemapError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust import report_bytes
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.federated.trust.one_report import OneReportTrust
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.shuffled import ShuffledParts, ShuffledReports
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.trial_settings import scorer
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Question, Trust
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator
from research.benchmarks.maps import DATA
from research.benchmarks.trust_page import page
from research.compare.evaluation_datasets import evaluation_datasets

PEOPLE, REPETITIONS = 100_000, 3
MAPS = ("city", "new-york", "mixture-20")
METHODS = {
    "adaptive": "adaptive",
    "prefix tree": "prefix",
    "pyramid": "pyramid",
    "HB+": "hb-least:8",
    "flat, level 7": "flat:7",
}
PURE, APPROXIMATE = PureDP(1), ApproxDP(1, "1e-6")
BATCH, COHORT = (
    ReportBatch(PEOPLE, PEOPLE),
    Cohort(PEOPLE, 10_000, Fraction(0), Fraction(0), Sampling.ONE, Mode.SEMI_HONEST),
)
MOST_PREFIXES = 1 << 18
HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results" / "trust_costs.json", HERE.parents[1] / "docs" / "results" / "trust.md"


class CuratorOfSample(Curator):
    """A curator who says over how many people its sums are, as devices do: methods then allow for the sample."""

    def answer(self, question: Question, price: Budget) -> Answer:
        """The curator's answer."""
        return replace(super().answer(question, price), people=PEOPLE)


Made = tuple[Budget, Callable[[Any], Trust], Callable[[Any], int | None]]
TRUSTS: dict[str, Made] = {
    "a curator": (PURE, Curator, lambda _: None),
    "a curator of a sample": (PURE, CuratorOfSample, lambda _: None),
    "secure sums": (
        PURE,
        lambda table: SimulatedSecureAggregation(table, COHORT),
        lambda asked: report_bytes.of_secure_sums(asked, PURE, COHORT),
    ),
    "two servers, a report a round": (PURE, lambda table: TwoServers(table, BATCH), report_bytes.of_two_servers),
    "two servers, one report": (
        PURE,
        lambda table: OneReportTrust(table, BATCH, 8, most_prefixes=MOST_PREFIXES),
        report_bytes.of_one_report,
    ),
    "two servers, randomised reports": (
        APPROXIMATE,
        lambda table: TwoServers(table, BATCH, local_epsilon=Fraction(8)),
        lambda asked: report_bytes.of_randomised(asked, APPROXIMATE, BATCH, Fraction(8)),
    ),
    "a shuffler, in parts": (
        PURE,
        lambda table: ShuffledParts(table, BATCH),
        lambda asked: report_bytes.of_shuffled_parts(asked, PURE, BATCH),
    ),
    "a shuffler, randomised reports": (
        APPROXIMATE,
        lambda table: ShuffledReports(table, BATCH, APPROXIMATE),
        lambda asked: report_bytes.of_bits(asked, sealed=True),
    ),
    "nobody": (
        PURE,
        lambda table: LocalReports(table, PEOPLE),
        lambda asked: report_bytes.of_bits(asked, sealed=False),
    ),
}


def method(name: str, place: GroundTruthMap, trust: str) -> Any:
    """As this trust model runs it: an adaptive map has parameters for samples, and walks down in one report."""
    found = Method(name, METHODS[name]).algorithm(place.tree, RowIsPerson(), "1")
    if not isinstance(found, Adaptive):
        return found
    if trust == "a curator":
        return found
    make = Adaptive.for_one_report if trust == "two servers, one report" else Adaptive.for_devices
    return make(found.tree, found.bounding)


def measured(place: GroundTruthMap, sample: GroundTruthMap, name: str, trust: str) -> dict[str, Any]:
    """The errors of one run, or why it was refused."""
    budget, make, octets = TRUSTS[trust]
    begin = time.process_time()
    try:
        made = run(method(name, place, trust), make(sample.table), budget, Unrecorded())
    except HazemapError as error:
        return {"refused": str(error).partition(":")[0]}
    seconds = time.process_time() - begin
    shown, unbiased = painted(made.value, place.tree)
    scores = scorer(place).all(shown, unbiased)
    found = {"l1": scores["l1"], "mse": scores["mse"], "emd": scorer(place).moved(shown)["emd"]}
    sent = octets(made.transcript)
    return found | {"cells": made.value.cells.size, "rounds": len(made.transcript), "bytes": sent, "seconds": seconds}


def mean(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each number; what is no number is the same in all."""
    numbers = [key for key, value in runs[0].items() if isinstance(value, int | float)]
    return runs[0] | {key: float(np.mean([one[key] for one in runs])) for key in numbers}


def main(repetitions: int) -> None:
    """Run, print, write."""
    rows, known = [], evaluation_datasets(DATA)
    for map_ in MAPS:
        place = known.map(map_)
        for name in METHODS:
            for trust in TRUSTS:
                runs = []
                for repetition in range(repetitions if name == "adaptive" else 1):
                    sample = place.sample(PEOPLE, str(repetition).encode())
                    runs.append(measured(place, sample, name, trust))
                row = {"map": map_, "method": name, "trust": trust, "budget": str(TRUSTS[trust][0])}
                row |= mean(runs)
                rows.append(row)
                print(row, flush=True)
    facts = {"people": PEOPLE, "repetitions": repetitions, "rows": rows}
    RESULTS.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(facts))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
