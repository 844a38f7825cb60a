"""Reports of one person, randomised on their device: microseconds of CPU each, by length and law.

    python -m research.benchmarks.local_reports

The first report of a law and a length makes a table, which is kept; it is timed apart. Results go to
results/local_reports.json beside this script. It judges nothing.
"""

import json
import os
import platform
import time
from fractions import Fraction
from pathlib import Path
from statistics import median

from hazemap.privacy.local_randomisers import Asymmetric, Randomiser, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream

LAWS: tuple[Randomiser, ...] = (
    Asymmetric(Fraction(4)),
    Symmetric(Fraction(4)),
    UnaryEncoding(Fraction(1, 2), Fraction(1, 55)),
    Asymmetric(Fraction(1)),
)
SIZES = (256, 4_096, 65_536, 1_048_576)
BATCHES, REPORTS = 15, 40
RESULTS = Path(__file__).with_name("results") / "local_reports.json"


def timed(law: Randomiser, size: int) -> dict[str, object]:
    """The first report, and the median over batches of the time of one."""
    stream = Stream.from_os()
    start = time.process_time()
    law.report(stream, 0, size)
    first = time.process_time() - start
    batches = []
    for _ in range(BATCHES):
        start = time.process_time()
        for _ in range(REPORTS):
            law.report(stream, 0, size)
        batches.append((time.process_time() - start) / REPORTS)
    return {
        "law": str(law),
        "places": size,
        "flips": round(size * law.chances[1], 1),
        "first_ms": round(1e3 * first, 3),
        "report_us": round(1e6 * median(batches), 1),
        "fastest_us": round(1e6 * min(batches), 1),
    }


def main() -> None:
    """Measure and write."""
    found = [timed(law, size) for law in LAWS for size in SIZES]
    for each in found:
        print(each)
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    RESULTS.write_text(json.dumps({"machine": machine, "reports": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
