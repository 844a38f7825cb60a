"""What a fixed stream draws stays what it was: the samplers are those whose laws were tested, word for word.

A law is tested by chance, on draws that reach few of the far cases; here every draw counts, at the ends of scales and
where one piece of work ends and the next begins. A sampler that is changed on purpose is tested for its law again, and
then pinned anew.
"""

from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest

from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric
from hazemap.privacy.private_splitting import SplittingNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import bernoulli as coins
from hazemap.privacy.samplers import (
    discrete_gaussian,
    discrete_laplace,
    gaussian,
    geometric,
    laplace,
    permute_and_flip,
    permute_and_flip_each,
)
from hazemap.privacy.samplers.private_selection import below_each

SCALES = (Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(255, 8), Fraction(10**6, 7))
SCALES += (Fraction((1 << 50) - 1), Fraction(1 << 50))
VARIANCES = (Fraction(1, 10**12), Fraction(1, 3), Fraction(1), Fraction(10, 3), Fraction(400), Fraction(10**13, 7))
VARIANCES += (gaussian.LARGEST_VARIANCE - Fraction(1, 2), Fraction(gaussian.LARGEST_VARIANCE))


def pinned(*parts: object) -> str:
    """The first digits of a digest of numbers."""
    whole = sha256()
    for part in parts:
        array = np.asarray(part)
        whole.update(array.astype("<u8").tobytes() if array.dtype.kind in "iub" else repr(part).encode())
    return whole.hexdigest()[:16]


def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Draws that take several pieces of work, the last one short."""
    monkeypatch.setattr(laplace, "_CHUNK", 128)
    monkeypatch.setattr(gaussian, "_CHUNK", 100)
    monkeypatch.setattr("hazemap.privacy.samplers.private_selection._CHUNK", 5)
    stream = Stream.fixed(b"pieces")
    starts = np.array([0, 2, 8, 9, 12, 17, 18])
    return [
        *(
            sample(stream, Fraction(9), size)
            for sample in (geometric, discrete_laplace)
            for size in (127, 128, 129, 400)
        ),
        *(discrete_gaussian(stream, Fraction(9), size) for size in (0, 1, 63, 100, 301)),
        permute_and_flip_each(stream, np.arange(18) % 4, starts, 2, Fraction(1)),
    ]


def shares(stream: Stream) -> list[object]:
    noise = DistributedNoise(Fraction(20), 900)
    return [
        *(noise.share(stream, 3000), noise.together(stream, 50, 1), noise.together(stream, 50, 1900)),
        *(
            noise.bits(people, most, size)
            for people in (1, 900, 10**5)
            for most in (0, 1, 999)
            for size in (1, 1 << 16)
        ),
        *(DistributedNoise(scale, 9).bits(9, 1, 5) for scale in SCALES),
        *(
            DistributedNoise(Fraction(scale), 9).bits(9, 1, 1 << size)
            for scale in range(1, 40, 3)
            for size in (0, 9, 16, 30)
        ),
    ]


def choices(stream: Stream) -> list[object]:
    scores = np.array([0, 5, 9, 9, -4, 12, 12, 11, 0, 3])
    groups = np.array([0, 1, 3, 8, 10])
    return [
        *(permute_and_flip(stream, scores, by, Fraction(1, 2)) for by in (1, 2, 3, 9) for _ in range(20)),
        *(permute_and_flip_each(stream, np.tile(scores, 50), np.arange(0, 501, 10), 3, Fraction(2, 3)) for _ in (0, 1)),
        permute_and_flip_each(stream, scores.astype(np.int8), groups, 1, Fraction(1, 5)),
        *(below_each(stream, np.array([1, 2, 3, 4, 5, 63, 64, 65, bound])) for bound in (1 << 52, (1 << 51) + 1)),
    ]


def reports(stream: Stream) -> list[object]:
    return [
        each
        for randomiser in (Symmetric(Fraction(1, 2)), Asymmetric(Fraction(3)))
        for each in (
            *(randomiser.report(stream, place, size) for place in (None, 0, 6) for size in (7, 64, 65)),
            randomiser.sums(stream, np.array([0, 1, 50, 100]), 100),
        )
    ]


def tosses(stream: Stream) -> list[object]:
    some = [coins.Coin(x, top, plus) for x in SCALES[1:] for top, plus in ((1, 0), (1, 1), (2, 1))]
    return [
        *(coins.toss(stream, coin, words) for coin in some for words in (0, 1, 40)),
        *(coins.toss_once(stream, coin) for coin in some for _ in range(5)),
        *(bits for coin in some for n in (1, 64, 200) for bits in (coin.digits(n) >> 60, coin.digits(n) % (1 << 60))),
        *(f"{bound:x}" for x in SCALES for bits in (1, 40, 200) for bound in coins.exp_bounds(x, bits)),
    ]


PINNED: list[tuple[str, Callable[[Stream], list[object]], str]] = [
    ("geometric", lambda s: [geometric(s, scale, 700) for scale in SCALES], "32143c4fc8c127f5"),
    ("Laplace", lambda s: [discrete_laplace(s, scale, 700) for scale in SCALES], "627809ddd81063ae"),
    ("Gaussian", lambda s: [discrete_gaussian(s, variance, 1500) for variance in VARIANCES], "71f9f461a70e16cc"),
    ("shares", shares, "34b21f20ac872b99"),
    ("choices", choices, "04eb4cde0fbbe079"),
    ("reports", reports, "5cecfb3f971c6c04"),
    ("tosses", tosses, "af17471209250e85"),
]


@pytest.mark.parametrize(("name", "draw", "wanted"), PINNED, ids=[name for name, *_ in PINNED])
def test_a_fixed_stream_draws_what_it_drew(name, draw, wanted):
    stream = Stream.fixed(name.encode())
    assert pinned(*draw(stream), stream.words(1)) == wanted, "and as many words were read"


def test_draws_in_pieces_are_what_they_were(monkeypatch):
    assert pinned(*in_pieces(monkeypatch)) == "a8c6538164bfb504"


def test_open_questions_of_gaussians_are_settled_as_they_were():
    """E is compared with γ digit by digit, from both sides of its first 20."""
    stream, asked = Stream.fixed(b"open"), []
    for k in (0, 1, 700_000, 1 << 22):
        for part in (Fraction(0), Fraction(1, 1000), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(1)):
            asked += [gaussian._exceeds(stream, k, (k + part) / 2**20) for _ in range(8)]
    assert pinned(asked, stream.words(1)) == "151dc1f65cf94a02"


def test_bounds_of_gamma_are_what_they_were():
    found = []
    for variance in VARIANCES:
        scale = int(variance**0.5) + 1
        magnitude = np.array([0, 1, 2, scale // 2, scale, scale + 1, 3 * scale, 20 * scale, 40 * scale, 1000 * scale])
        found += [gaussian._binary_places(variance), *gaussian._gamma_bounds(variance, scale, magnitude)]
    assert pinned(*found) == "a7638aef0af17aca"


def test_trees_are_grown_with_the_noise_and_the_bias_they_were():
    budgets, numbers = ("1/1000000000", "1/7", "3", "40"), ((1, 2), (5, 4), (3, 9))
    grid = [(e, most, fan, depth) for e in budgets for most, fan in numbers for depth in (1, 2, 3, 24)]
    noise = [SplittingNoise.within(Fraction(e), most, fan, depth) for e, most, fan, depth in grid]
    assert pinned(*(str(each).replace("SplittingNoise", "GrowthNoise") for each in noise)) == "663392334da8ea16"
