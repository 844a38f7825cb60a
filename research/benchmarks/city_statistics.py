"""How uneven six cities are: table 2 of Shaham et al. (2022), the variance and entropy of a million people in each.

usage: city_statistics.py   writes results/city_statistics.json, docs/results/cities.md

A million people drawn from all within 0.6° of a city, on 1024 × 1024 pixels: the variance of the numbers in pixels, and
the entropy of the pixel of a person in bits. The paper's people are phones, which are not public; these are those of
`national.py`, who are made of the populations of cities, and public data of two of the cities.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.national_release import AROUND, truth
from research.compare.evaluation_datasets import evaluation_datasets

HERE = Path(__file__).parent
DATA = HERE.parents[1] / ".." / "shared" / "data"
PEOPLE = 1_000_000
PUBLISHED = {
    "New York": (9.99, 17.04),
    "San Francisco": (36.66, 15.43),
    "Seattle": (16.65, 16.41),
    "Denver": (19.80, 16.14),
    "Detroit": (13.08, 16.68),
    "Phoenix": (14.41, 16.51),
}
"""Variance and entropy as the paper prints them."""


def statistics(counts: np.ndarray) -> dict[str, float]:
    """The variance of the pixels' numbers, and the entropy of a person's pixel in bits.

    >>> statistics(np.array([[2, 2], [0, 0]]))
    {'variance': 1.0, 'entropy': 1.0}
    """
    parts = counts[counts > 0] / counts.sum()
    return {"variance": float(counts.var()), "entropy": float(-(parts * np.log2(parts)).sum())}


def sampled(counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`PEOPLE` of these people, drawn with replacement."""
    weights = np.maximum(counts.ravel(), 0).astype(np.float64)
    return rng.multinomial(PEOPLE, weights / weights.sum()).reshape(counts.shape)


def measured() -> dict[str, dict[str, float]]:
    """Each city of the made-up nation, and of public data."""
    rng = np.random.default_rng(2)
    found = {name: statistics(sampled(counts, rng)) for name, counts in zip(AROUND, truth()[1], strict=True)}
    atlas = evaluation_datasets(DATA)
    for place, name in (("new-york", "New York, phones (map)"), ("san-francisco", "San Francisco, taxi pickups")):
        found[name] = statistics(sampled(atlas.map(place).counts, rng))
    return found


def page(found: dict[str, dict[str, float]]) -> str:
    """docs/results/cities.md."""
    rows = ["| city | variance here | in the paper | entropy here, bits | in the paper |", "|---|---|---|---|---|"]
    for name, row in found.items():
        variance, entropy = (f"{number:.2f}" for number in PUBLISHED.get(name, (float("nan"), float("nan"))))
        told = ("", "") if name not in PUBLISHED else (variance, entropy)
        rows.append(f"| {name} | {row['variance']:.2f} | {told[0]} | {row['entropy']:.2f} | {told[1]} |")
    own = [found[name]["entropy"] for name in PUBLISHED]
    order = np.corrcoef(np.argsort(np.argsort(own)), np.argsort(np.argsort([e for _, e in PUBLISHED.values()])))[0, 1]
    return f"""# How uneven six cities are

Table 2 of Shaham et al. (2022) describes the cities of its figure 9: a million people each, on 1024 × 1024 pixels of
1.2°, by the variance of the numbers in pixels and the entropy of the pixel of a person. Their phones are not public.
Those of [our nation](national.md) are made of the populations of cities; two cities have public data as well, in a
frame of its own.

{chr(10).join(rows)}

The entropy of the made-up cities has a rank correlation of {order:.2f} with the paper's. Statistics of data that nobody
else has cannot be reproduced; they say how far our cities are from theirs.

`python -m research.benchmarks.city_statistics` measures this again.
""".replace("-0.", "−0.")


def main() -> None:
    """Measure, and write the numbers and the page."""
    found: dict[str, Any] = measured()
    (HERE / "results" / "city_statistics.json").write_text(json.dumps(found, indent=1) + "\n")
    (HERE.parents[1] / "docs" / "results" / "cities.md").write_text(page(found))


if __name__ == "__main__":
    main()
