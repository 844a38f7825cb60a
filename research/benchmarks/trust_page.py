"""The page of the documentation that `trust_costs.py` makes."""

from collections.abc import Callable
from typing import Any

WHO = {
    "a curator": "the curator, who sees every row",
    "a curator of a sample": "the curator, who sees every row",
    "secure sums": "the server, with more than the assumed part of the devices",
    "two servers, a report a round": "the two servers, with each other",
    "two servers, one report": "the two servers, with each other",
    "two servers, randomised reports": "the two servers, with each other; neither may choose whose reports are added",
    "a shuffler, in parts": "the shuffler with the analyser",
    "a shuffler, randomised reports": "the shuffler with the analyser",
    "nobody": "anybody may",
}
MAPS = {"city": "The city", "new-york": "New York", "mixture-20": "A mixture of 20 Gaussians"}


SCORES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("l1", "L1", lambda number: f"{number:.2f}"),
    ("mse", "MSE", lambda number: f"{1e12 * number:.3g}"),
    ("emd", "EMD", lambda number: f"{number:.4f}"),
)


def table(rows: list[dict[str, Any]], score: str, words: str, form: Callable[[float], str]) -> list[str]:
    """One score of one map: a row a method, a column a trust model."""
    trusts = list(dict.fromkeys(row["trust"] for row in rows))
    lines = [f"| {words} | {' | '.join(trusts)} |", "|---" * (len(trusts) + 1) + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        found = {row["trust"]: form(row[score]) if score in row else "–" for row in rows if row["method"] == method}
        lines.append(f"| {method} | {' | '.join(found.get(trust, '') for trust in trusts)} |")
    return [*lines, ""]


def page(facts: dict[str, Any]) -> str:
    """docs/results/trust.md."""
    rows = facts["rows"]
    adaptive = {row["trust"]: row for row in rows if row["map"] == "city" and row["method"] == "adaptive"}
    curator = adaptive["a curator of a sample"]["mse"]
    lines = [
        "# What each trust costs",
        "",
        f"The same {facts['people']:,} people of a map, the same ε = 1 (with δ = 10⁻⁶ where people randomise reports",
        "that others hide), and the same methods of sums, unchanged, on every trust model. Every answer is simulated",
        "by its exact law. Everybody answers, and nobody works with a server: allow for those, and the noise that",
        "people make themselves grows. `hazemap plan --trust all` tells what to expect for your own box, number of",
        "people and budget.",
        "",
        "## Whom to trust, and what it costs",
        "",
        f"An adaptive map of the city, the mean of {facts['repetitions']} draws of people. A curator runs it with its",
        "own parameters; all others with those for samples. A curator of a sample says over how many people its sums",
        "are, as devices do, and MSE is beside that one's. Methods choose their cells by the noise that they are told.",
        "More noise makes larger cells, which a sample fills better: so where a sample is small, a little more",
        "noise can make the better map.",
        "",
        "| who adds the noise | who must not work together | L1 | MSE/curator | bytes a device |",
        "|---|---|---|---|---|",
    ]
    for trust, row in adaptive.items():
        lines.append(
            f"| {trust} | {WHO[trust]} | {row['l1']:.3f} | {row['mse'] / curator:.2f} | {_bytes(row['bytes'])} |"
        )
    lines += [
        "",
        "Bytes are what a device sends in all rounds: shares, proofs, masked vectors or messages, without HTTP.",
        "",
    ]
    lines += [
        "MSE is that of the density a pixel, times 10¹². EMD is the exact earth mover's distance, in larger pixels",
        "where there are many; the side of the map is 1.",
        "",
    ]
    for map_, title in MAPS.items():
        lines += [f"## {title}", ""]
        for score, words, form in SCORES:
            lines += table([row for row in rows if row["map"] == map_], score, words, form)
    lines += [
        "– is what a report of a single 1 cannot say: several levels at once where reports are randomised; in",
        "one report, cells that leave its walk down the tree, or more levels than it was made for (eight).",
        "",
        "`python -m research.benchmarks.trust_costs` measures it and writes `results/trust_costs.json`, with bytes,",
        "cells and rounds of all, and this page.",
        "",
    ]
    return "\n".join(lines)


def _bytes(number: float | None) -> str:
    if number is None:
        return "its rows"
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{number / 1e3:.2f} kB"
