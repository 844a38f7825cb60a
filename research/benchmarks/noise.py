"""Exact noise, ours and OpenDP's, and shares of noise, ours and NumPy's, in one run: CPU seconds and their ratio.

    python -m research.benchmarks.noise

Both draw the same laws with nothing kept from one call to the next; ours includes the AES-256 words and the
certified digits of a first call. A share is drawn by NumPy as a Gamma and a Poisson number on either side of every
place, which is not exact. Results go to results/noise.json beside this script. It judges nothing.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np

from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_gaussian, discrete_laplace

DRAWS = 1 << 20
PLACES = 65_536
PEOPLE = 9_000
RESULTS = Path(__file__).with_name("results") / "noise.json"


def cpu(work: Callable[[], object], times: int) -> list[float]:
    """CPU seconds of each of some runs, in order, all threads of this process together."""
    seconds = []
    for _ in range(times):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return seconds


def opendp(law: str, width: float) -> Callable[[int], object]:
    """Draw this many of OpenDP's numbers of a law: its mechanism on as many zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    zeros = dp.vector_domain(dp.atom_domain(T=int))
    if law == "discrete Laplace":
        mechanism = dp.m.make_laplace(zeros, dp.l1_distance(T=int), width)
    else:
        mechanism = dp.m.make_gaussian(zeros, dp.l2_distance(T=float), width)
    return lambda draws: mechanism([0] * draws)


def ours(law: str, width: Fraction) -> Callable[[int], object]:
    """Draw this many of our numbers of a law."""
    stream = Stream.from_os()
    if law == "discrete Laplace":
        return lambda draws: discrete_laplace(stream, width, draws)
    return lambda draws: discrete_gaussian(stream, width**2, draws)


def compare(law: str, width: Fraction) -> dict[str, object]:
    """One law, both samplers: the peer once (it takes seconds), ours ten times, the first of them cold."""
    sampler = ours(law, width)
    first, *warm = cpu(lambda: sampler(DRAWS), 10)
    peer = cpu(lambda: opendp(law, float(width))(DRAWS), 1)[0] if width < 1000 else None
    found: dict[str, object] = {
        "law": law,
        "scale" if law == "discrete Laplace" else "stddev": str(width),
        "draws": DRAWS,
        "cpu_seconds": round(median(warm), 5),
        "cpu_seconds_first_call": round(first, 5),
        "millions_per_second": round(DRAWS / median(warm) / 1e6, 1),
    }
    line = f"{law}, width {width!s:>10}: {median(warm) * 1e3:7.1f} ms (first call {first * 1e3:.1f} ms)"
    if peer is not None:
        found |= {"opendp_cpu_seconds": round(peer, 3), "ratio": round(peer / median(warm))}
        line += f", OpenDP {peer:6.2f} s: {peer / median(warm):6.0f} ×"
    print(line)
    return found


def dense(noise: DistributedNoise, places: int) -> np.ndarray:
    """A share as simulators draw it: Poisson numbers of Gamma numbers, for every place."""
    random, odds = np.random.default_rng(), 1 / np.expm1(1 / float(noise.scale))
    plus, minus = (random.poisson(random.gamma(1 / noise.parties, odds, places)) for _ in range(2))
    return plus - minus


def shares(scale: Fraction) -> dict[str, object]:
    """One person's share, sparse and dense, and a million places of 110 people's worth of noise and a half."""
    stream, noise = Stream.from_os(), DistributedNoise(scale, PEOPLE)
    first, *_ = cpu(lambda: noise.share(stream, PLACES), 1)
    each = median(cpu(lambda: noise.share(stream, PLACES), 500))
    peer = median(cpu(lambda: dense(noise, PLACES), 20))
    together = cpu(lambda: noise.together(stream, 1_000_000, PEOPLE * 221 // 2), 1)[0]
    print(
        f"a share of {PLACES}, scale {scale!s:>10}: {each * 1e3:.3f} ms (first {first * 1e3:.1f} ms), "
        f"dense {peer * 1e3:.1f} ms: {peer / each:.0f} ×; a million places, shape 110½: {together:.2f} s"
    )
    return {
        "law": f"Pólya difference, shape 1/{PEOPLE}",
        "scale": str(scale),
        "draws": PLACES,
        "cpu_seconds": round(each, 6),
        "cpu_seconds_first_call": round(first, 5),
        "numpy_dense_cpu_seconds": round(peer, 5),
        "ratio": round(peer / each),
        "together_million_places_shape_110_5_cpu_seconds": round(together, 2),
    }


def main() -> None:
    """Measure, print, write."""
    laws = ("discrete Laplace", "discrete Gaussian")
    figures = [compare(law, width) for law in laws for width in (Fraction(1), Fraction(10), Fraction(10**6))]
    figures += [shares(scale) for scale in (Fraction(1), Fraction(20), Fraction(1 << 30))]
    stream = Stream.from_os()
    words = median(cpu(lambda: stream.words(DRAWS), 10))
    print(f"words alone: {8 * DRAWS / words / 1e9:.1f} GB/s of AES-256 in counter mode")
    result = {
        "figures": figures,
        "stream_gigabytes_per_second": round(8 * DRAWS / words / 1e9, 2),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("numpy", "cryptography", "opendp")},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
