"""Poplar1: CPU of one aggregator for each report, bytes of a device, and the blocks that both are made of.

    python -m research.benchmarks.poplar1                       (10,000 reports: two minutes of CPU)
    python -m research.benchmarks.poplar1 --reference PYTHON    (also an interpreter that has `vdaf_poc` 18)

One request: 4,096 prefixes of 20 bits, from the root, at random or side by side. One report, whole tree: 10,000
reports of 46 bits, asked at five levels of at most 4,096 nodes each, every one below a node of the level before; by an
aggregator that keeps the nodes of the level before, and by one that begins each level at the root. Each level is
both rounds of verification and the sum. The reference implementation evaluates a 64th of the same prefixes, each on its
own, so its time is 64 times that. Results go to results/poplar1.json beside this script. It judges nothing.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np

from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.upload_messages import DapReport, PlaintextInputShare, ReportMetadata
from hazemap.machine_code.arrays import Words
from hazemap.vdaf import aes128_kernels
from hazemap.vdaf.hpke import Aead, CipherSuite, HpkeKeyPair, Kdf, Kem
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter, TreeNodes
from hazemap.vdaf.turboshake128_kernels import squeezed
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare

CTX, KEY = bytes(40), bytes(range(32))
BITS, LEVELS, PREFIXES = 46, (11, 19, 27, 36, 45), 4_096
REPORTS, DISTINCT, JOB = 10_000, 500, 500
RESULTS = Path(__file__).with_name("results") / "poplar1.json"
REFERENCE = """
import sys, time
from vdaf_poc.vdaf_poplar1 import Poplar1
poplar1, level, count = Poplar1(int(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
public, shares = poplar1.shard(bytes(40), (False,) * poplar1.idpf.BITS, bytes(16), bytes(poplar1.RAND_SIZE))
prefixes = tuple(tuple(bool(i >> (level - bit) & 1) for bit in range(level + 1)) for i in range(count))
start = time.process_time()
poplar1.verify_init(bytes(32), bytes(40), 0, (level, prefixes), bytes(16), public, shares[0])
print(time.process_time() - start)
"""

Reports = list[tuple[ReportShare, ReportShare]]


def reports_of(poplar1: Poplar1, count: int) -> tuple[Reports, list[int], float]:
    """Reports, their leaves, and CPU milliseconds of making one."""
    draw = random.Random(1)
    leaves = [draw.getrandbits(poplar1.bits) for _ in range(count)]
    start, found = time.process_time(), []
    for leaf in leaves:
        nonce = draw.randbytes(poplar1.NONCE_SIZE)
        public, shares = poplar1.shard(CTX, leaf, nonce, draw.randbytes(poplar1.RAND_SIZE))
        found.append((ReportShare(nonce, public, shares[0]), ReportShare(nonce, public, shares[1])))
    return found, leaves, (time.process_time() - start) / count * 1e3


def one_level(side_by_side: bool) -> float:
    """CPU milliseconds of `verify_init` for a report and one server: 4,096 prefixes of 20 bits, from the root."""
    poplar1, draw = Poplar1(21), np.random.default_rng(2)
    prefixes = np.arange(PREFIXES) + 500_000 if side_by_side else np.sort(draw.permutation(1 << 20)[:PREFIXES])
    parameter = Poplar1Parameter(19, prefixes.astype(np.uint64)).to_bytes()
    reports = [pair[0] for pair in reports_of(poplar1, 64)[0]]
    times = []
    for _ in range(20):
        start = time.process_time()
        poplar1.verify_init_all(KEY, CTX, 0, parameter, reports)
        times.append(time.process_time() - start)
    return median(times[1:]) / len(reports) * 1e3


def requests(leaves: list[int]) -> list[Poplar1Parameter]:
    """An adaptive tree: at each level nodes below those before, at random, and those of all leaves reported."""
    draw, above, last = np.random.default_rng(3), np.zeros(1, dtype=np.uint64), -1
    found = []
    for level in LEVELS:
        deeper = level - last
        below = draw.choice(above, 2 * PREFIXES) << np.uint64(deeper)
        below |= draw.integers(0, 1 << deeper, below.size, dtype=np.uint64)
        on_paths = np.array([leaf >> (BITS - 1 - level) for leaf in leaves], dtype=np.uint64)
        others = draw.permutation(np.setdiff1d(below, on_paths))
        above = np.union1d(on_paths, others[: max(0, PREFIXES - np.unique(on_paths).size)])
        above = np.arange(PREFIXES, dtype=np.uint64) if level == LEVELS[0] else above
        last = level
        found.append(Poplar1Parameter(level, above))
    return found


class Aggregator:
    """One of two servers, and the CPU that it takes for each level."""

    def __init__(self, poplar1: Poplar1, server: int, keeps: bool) -> None:
        self.poplar1, self.server, self.keeps = poplar1, server, keeps
        self.seconds = dict.fromkeys(LEVELS, 0.0)
        self.nodes: TreeNodes | None = None

    def begin(self, request: Poplar1Parameter, reports: Reports) -> list[Continuation]:
        """The first round."""
        start, nodes = time.process_time(), self.nodes if self.keeps and request.level != LEVELS[0] else None
        shares = [pair[self.server] for pair in reports]
        found, self.nodes = self.poplar1.verify_init_below(
            KEY, CTX, self.server, request.to_bytes(), shares, nodes, keep=self.keeps
        )
        self.seconds[request.level] += time.process_time() - start
        return [each for each in found if not isinstance(each, InvalidReport)]

    def go_on(
        self, request: Poplar1Parameter, states: list[Continuation], other: list[Continuation]
    ) -> tuple[list[Continuation], list[Words]]:
        """Both shares of each report as a message, and what comes of it: another round, or shares of the result."""
        start = time.process_time()
        said = [(a.verifier_share, b.verifier_share) for a, b in zip(states, other, strict=True)]
        messages = self.poplar1.verifier_shares_to_messages(CTX, request.to_bytes(), said)
        valid = [message for message in messages if not isinstance(message, InvalidReport)]
        after = self.poplar1.verify_next_all(CTX, [each.state for each in states], valid)
        self.seconds[request.level] += time.process_time() - start
        return [a for a in after if isinstance(a, Continuation)], [a for a in after if isinstance(a, np.ndarray)]

    def add_up(self, request: Poplar1Parameter, shares: list[Words]) -> Words:
        """An aggregate share."""
        start = time.process_time()
        total = self.poplar1.merge(request.to_bytes(), shares)
        self.seconds[request.level] += time.process_time() - start
        return total


def whole_tree(
    poplar1: Poplar1, reports: Reports, asked: list[Poplar1Parameter], keeps: bool, count: int
) -> dict[str, object]:
    """CPU seconds of each server over all levels, in jobs of some reports; the sums are checked."""
    both = [Aggregator(poplar1, server, keeps) for server in (0, 1)]
    counted = dict.fromkeys(LEVELS, 0)
    for first in range(0, count, JOB):
        job = [reports[i % len(reports)] for i in range(first, min(first + JOB, count))]
        for request in asked:
            begun = [aggregator.begin(request, job) for aggregator in both]
            rounds = [both[i].go_on(request, begun[i], begun[1 - i])[0] for i in (0, 1)]
            shares = [both[i].go_on(request, rounds[i], rounds[1 - i])[1] for i in (0, 1)]
            totals = [aggregator.add_up(request, share) for aggregator, share in zip(both, shares, strict=True)]
            counted[request.level] += sum(poplar1.unshard(request.to_bytes(), totals))
    return {
        "cpu_seconds_of_an_aggregator": [round(sum(each.seconds.values()), 2) for each in both],
        "of_each_level": {f"{level + 1} bits": round(both[0].seconds[level], 2) for level in LEVELS},
        "counted_at_each_level": list(counted.values()),
    }


def device(report: tuple[ReportShare, ReportShare]) -> dict[str, int]:
    """Bytes of a report in DAP-18, and of its parts."""
    suite = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
    key = HpkeKeyPair.derived(suite.kem, bytes(32))
    sealed = [
        HpkeCiphertext(
            1, *suite.seal(key.public, b"", b"", PlaintextInputShare((), each.input_share).to_bytes(), bytes(32))
        )
        for each in report
    ]
    whole = DapReport(ReportMetadata(bytes(16), 1), report[0].public_share, *sealed).to_bytes()
    return {
        "public share": len(report[0].public_share),
        "each input share": len(report[0].input_share),
        "whole report": len(whole),
    }


def blocks() -> dict[str, float]:
    """CPU nanoseconds of the primitives."""
    keys, rows = np.zeros((11, 2), dtype=np.uint64), np.zeros((PREFIXES, 2), dtype=np.uint64)
    messages, outputs = np.zeros((2, PREFIXES, 21), dtype=np.uint64)

    def nanoseconds(work: Callable[[], None], calls: int, each: int) -> float:
        work()
        times = []
        for _ in range(9):
            start = time.process_time()
            for _ in range(calls):
                work()
            times.append(time.process_time() - start)
        return round(min(times) / calls / each * 1e9, 2)

    found = {
        "AES block, bitsliced": nanoseconds(
            lambda: aes128_kernels.hash_blocks_bitsliced(keys, rows, PREFIXES), 5, PREFIXES
        ),
        "block of TurboSHAKE128, eight at once": nanoseconds(lambda: squeezed(messages, outputs), 20, PREFIXES),
    }
    if aes128_kernels.AVAILABLE:
        with_instructions = nanoseconds(
            lambda: aes128_kernels.hash_blocks_by_instructions(keys, rows, PREFIXES), 100, PREFIXES
        )
        found = {"AES block, by instructions": with_instructions} | found
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reference", metavar="PYTHON", help="an interpreter that has vdaf_poc")
    reference = parser.parse_args().reference
    poplar1 = Poplar1(BITS)
    reports, leaves, shard = reports_of(poplar1, DISTINCT)
    asked = requests(leaves)
    whole_tree(poplar1, reports, asked, keeps=True, count=8)  # compiles
    load = os.getloadavg()[0]
    results: dict[str, object] = {
        "cpu_milliseconds_of_a_report_at_20_bits": {
            "4,096 prefixes at random": round(one_level(False), 3),
            "4,096 prefixes side by side": round(one_level(True), 3),
        },
        "one_report_whole_tree": {
            "reports": REPORTS,
            "prefixes": [int(request.prefixes.size) for request in asked],
            "nodes kept": whole_tree(poplar1, reports, asked, keeps=True, count=REPORTS),
            "from the root": whole_tree(poplar1, reports, asked, keeps=False, count=REPORTS),
        },
        "device": {"cpu_milliseconds": round(shard, 2), "bytes": device(reports[0])},
        "cpu_nanoseconds": blocks(),
    }
    if reference:
        said = subprocess.run(
            [reference, "-c", REFERENCE, "21", "19", "64"], capture_output=True, text=True, check=True
        )
        results["reference_cpu_milliseconds_of_a_report_at_20_bits"] = round(float(said.stdout) * PREFIXES / 64 * 1e3)
    results["machine"] = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
        "python": platform.python_version(),
        "numba": version("numba"),
    }
    print(json.dumps(results, indent=2))
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
