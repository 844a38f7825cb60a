"""Prices of sums of reports: how long each bound takes, and how the bounds compare.

    python -m research.benchmarks.amplification

One price by the exact law, with nothing kept from one call to the next, by clones and by theorem 3.1, at δ = 10⁻⁶; the
least cohort and the best unary encoding once each. Results go to results/amplification.json beside this script. It
judges nothing.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

from hazemap.privacy.amplification.aggregate_price import best_unary, clone_bound, minimum_cohort, theorem_3_1
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import SumRound, exact_sum
from hazemap.privacy.amplification.sum_of_reports import coordinate_losses

RESULTS = Path(__file__).with_name("results") / "amplification.json"
MICRO = Fraction(1, 10**6)
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(8))


def timed(work: Callable[[], object]) -> tuple[object, float]:
    """What it gives, and the seconds of CPU that it takes."""
    coordinate_losses.cache_clear()
    clone_bound.cache_clear()
    start = time.process_time()
    found = work()
    return found, round(time.process_time() - start, 4)


def price(encoding: str, honest: int, epsilon: Fraction) -> dict[str, object]:
    """One law and one size, by every bound."""
    law = getattr(BitFlipLaw, encoding)(epsilon)
    exact, seconds = timed(lambda: exact_sum([SumRound(law, honest)], MICRO))
    clones, clone_seconds = timed(lambda: clone_bound(honest, law.replacement, MICRO))
    theorem = theorem_3_1(honest, law.replacement, MICRO)
    found = {
        "encoding": encoding,
        "honest": honest,
        "local_epsilon": float(epsilon),
        "exact": float(exact),
        "exact_seconds": seconds,
        "clones": float(clones),
        "clones_seconds": clone_seconds,
        "theorem_3_1": float(theorem) if theorem is not None else None,
    }
    print(found)
    return found


def main() -> None:
    """Measure, print, write."""
    timed(lambda: exact_sum([SumRound(BitFlipLaw.asymmetric(1), 100)], MICRO))  # loads what is loaded once
    figures = [
        price(encoding, 10**power, epsilon)
        for encoding in ("asymmetric", "symmetric")
        for power in (3, 5, 6, 7)
        for epsilon in EPSILONS
    ]
    cohorts = {str(e): timed(lambda e=e: minimum_cohort(BitFlipLaw.asymmetric(e), 1, MICRO)) for e in (4, 6, 8)}
    best, seconds = timed(lambda: best_unary(Fraction(1, 4), MICRO, 10**5, 8))
    result = {
        "figures": figures,
        "minimum_cohort_for_epsilon_1": cohorts,
        "best_unary": {"keep": float(best.keep), "turn_on": float(best.turn_on), "seconds": seconds},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("numpy",)},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
