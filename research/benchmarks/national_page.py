"""The page of the documentation that `national_release.py` makes."""

from typing import Any

PARTS = {
    "who is in which district square": "who is in which district square of which district",
    "counts": "exact counts, and their noise",
    "costs": "exact costs of cuts, and their noise",
    "cuts": "choosing and making the cuts, checking who paid what",
    "numbers": "numbers and error bars by least squares",
    "the map": "**the map**",
    "the file": "outlines of all cells, and the file with the transcript",
}


def page(known: dict[str, Any]) -> str:
    """docs/results/national.md."""
    timed, points, sizes = known["timed"], known["points"], known["districts"]
    lines = [
        "# A national release",
        "",
        f"{known['people'] / 1e6:,.0f} million people who do not exist, made of the populations of 1,000 cities, in",
        f"{known['inhabited squares']:,} squares of some 30 m; {sizes[1]} states, {sizes[2]:,} counties and",
        f"{sizes[3]:,} finest districts, which are cities and what these leave of their counties. Each level",
        "of districts is counted with ε_i ∝ n_i^(1/3); where that says fewer than a million people, a tree of even",
        "density grows inside. One budget, ε = 1, pays for all of it. [How to make one](../how-to/districts.md).",
        "",
        "## What it takes",
        "",
        f"From the counts to a map of {timed['cells']:,} cells with error bars, in {timed['questions']} questions, and",
        "from there to a file that can be opened, asked and replayed. Making the people themselves is not counted.",
        f"CPU time of one run on a machine with {known['machine']}, other work beside it.",
        "",
        "| | CPU seconds |",
        "|---|---|",
        *(f"| {what} | {timed[key]:.1f} |" for key, what in PARTS.items()),
        "",
        f"By the clock the map took {timed['the map, clock']:.0f} s,",
        f"and the file {timed['the file, clock']:.0f} s more.",
        f"Largest memory: {timed['memory with the map, GB']:.2f} GB with the map,",
        f"{timed['memory with the file, GB']:.2f} GB while the file of {timed['file, MB']:.0f} MB is written.",
        f"(The counts alone: {timed['memory before, GB']:.2f} GB.)",
        "",
        f"{points['points'] / 1e6:.0f} million points find their district among all of these in",
        f"{points['points, s']:.1f} CPU seconds ({points['points, clock']:.1f} s by the clock), after",
        f"{points['index, s']:.1f} s for the index, made once.",
        "",
        "## How near it is",
        "",
        "Figure 9 of Shaham et al. (2022) holds the levels against two benchmarks, in which the map is halved nine",
        "times or quartered five times, with geometric budgets, before the same trees grow. Mean relative error,",
        f"smoothed at 20 people; ± is two standard errors over {known['runs']} runs. Rectangles are 2,000 of random",
        "shape and size in the 1.2° around each city. (In the paper a city is a sample of a million people; here it",
        "is the national map.)",
        "",
    ]
    for epsilon in sorted({row["epsilon"] for row in known["rows"]}, reverse=True):
        rows = [row for row in known["rows"] if row["epsilon"] == epsilon]
        lines += [f"ε = {epsilon:g}, mean relative error in %:", ""]
        lines += ["| | " + " | ".join(row["method"] for row in rows) + " |", "|---|" + "---|" * len(rows)]
        for score in (score for score in rows[0]["mean"] if score.endswith(", %")):
            cells = [f"{row['mean'][score]:.3g} ± {row['band'][score]:.1g}" for row in rows]
            lines.append(f"| {score.removesuffix(', %')} | " + " | ".join(cells) + " |")
        lines += ["", f"ε = {epsilon:g}, median error in people:", ""]
        lines += ["| | " + " | ".join(row["method"] for row in rows) + " |", "|---|" + "---|" * len(rows)]
        for score in (score for score in rows[0]["mean"] if score.endswith(", people")):
            cells = [f"{row['mean'][score]:,.0f}" for row in rows]
            lines.append(f"| {score.removesuffix(', people')} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        "In the first method districts of more than a million people, and all in which a tree grew, are sums of cells.",
        "The benchmarks' cells know no border, and reach into the sea: a mean relative error there is that of a few",
        "rectangles with hardly anybody in them, so the medians say more. Cities in a smaller county are places that",
        "cells overlap, in every method.",
        "",
        "`research/benchmarks/national_release.py` makes this page.",
        "",
    ]
    return "\n".join(lines)
