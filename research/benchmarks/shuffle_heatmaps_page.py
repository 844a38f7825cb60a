"""The page and the figure that `shuffle_heatmaps.py` makes."""

import textwrap
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
COLOURS = {"a curator": "#999999", "a shuffler": "#0072b2", "a shuffler, wary": "#d55e00"}
MARKS = {"pyramid": "o-", "pyramid as published, w = 20": "s--"}
Row = dict[str, Any]


def publish(rows: list[Row]) -> None:
    """Write both."""
    draw(rows, DOCS / "images" / "shuffle-heatmaps.png")
    (DOCS / "results" / "shuffle-heatmaps.md").write_text(page(rows))


def draw(rows: list[Row], path: Path) -> None:
    """The distance against the scale of a vote, and against the number of people."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for method, mark in MARKS.items():
        for epsilon, faint in ((1.0, 1.0), (10.0, 0.45)):
            some = [row for row in rows if (row["part"], row["method"], row["epsilon"]) == ("scale", method, epsilon)]
            ours = [row for row in some if row["trust"] == "a shuffler"]
            [best] = [row["emd"] for row in some if row["trust"] == "a curator"]
            words, colour = f"{method}, ε = {epsilon:g}", COLOURS["a shuffler"]
            _line(left, ours, "scale", mark, words, colour, faint)
            left.axhline(best, color=COLOURS["a curator"], linestyle=mark[1:], linewidth=1, alpha=faint)
        for trust, colour in COLOURS.items():
            some = [row for row in rows if (row["part"], row["method"], row["trust"]) == ("people", method, trust)]
            _line(right, some, "people", mark, f"{method}: {trust}", colour, 1.0)
    left.set(xlabel="parts that a vote is shared out in", title="200 people; grey: a curator")
    right.set(xlabel="people", title="ε = 1, 1,024 parts")
    for axis in (left, right):
        axis.set(xscale="log", yscale="log", ylabel="earth mover's distance")
    left.set_ylim(0.01, None)
    left.legend(fontsize=7, loc="lower left")
    right.legend(fontsize=7, loc="lower left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(axis: Any, rows: list[Row], along: str, mark: str, words: str, colour: str, faint: float) -> None:
    bands = [row.get("band", 0.0) for row in rows]
    x, y = ([row[name] for row in rows] for name in (along, "emd"))
    axis.errorbar(x, y, bands, fmt=mark, color=colour, alpha=faint, label=words, markersize=3, linewidth=1, capsize=2)


def page(rows: list[Row]) -> str:
    """docs/results/shuffle-heatmaps.md."""
    scale = [row for row in rows if row["part"] == "scale"]
    crowd = [row for row in rows if row["part"] == "people"]
    parts = [
        "# Heatmaps through a shuffler",
        f"""Ghazi et al. (2022, appendix F) run their heatmaps in the shuffle model: each person shares out one vote in
        so many whole parts, adds a share of the noise, and splits each number in additive parts that a shuffler mixes
        ([its proof](../concepts/shuffle.md)). Their figures 12 and 13 ask how finely a vote must be shared
        out, and what that costs to send. Here are both in our terms. {scale[0]["people"]:,} people and more with homes
        in the synthetic city and 1 to 19 places each around them, 256 × 256 pixels; the earth mover's distance is exact
        (L1, unit square, seen at 128²), ± two standard errors of {scale[0]["draws"]} draws of people and noise (fewer
        of large crowds, as the tables say). The paper's own map of image saliency and its numbers are not in the copy
        that we had, so nothing is set beside them.""",
        "![Distance against the parts of a vote, and against people](../images/shuffle-heatmaps.png)",
        "## How finely a vote is shared out",
        f"""{scale[0]["people"]:,} people, of whom everybody answers and nobody works with the analyser. *Split in* is
        the number of additive parts of each message, at most of all rounds; *bits* are those of a number in its group,
        two more for each factor of four. Similarity, Pearson's correlation and KL are of heatmaps, blurred by 1/64 of
        the side. The last rows of each are curators with 4,096 parts. *A curator* says over how many people its sums
        are, as devices do, and methods allow for a sample. One who has *everybody* and says so is nearer to these very
        people, whatever the noise. Between 1 part of a vote and 4,096 no difference shows that chance does not explain:
        200 people's maps are limited by noise and by their number.""",
        _table(
            ("method", "ε", "parts of a vote", "EMD", "similarity", "Pearson", "KL", "split in", "bits", "kB a person"),
            (_scaled(row) for row in sorted(scale, key=_order)),
        ),
        "## How many people",
        """ε = 1, a vote in 1,024 parts. *Wary* allows for three in twenty who say nothing (one in twenty does) and
        for a tenth who work with the analyser: the others must make the noise alone.""",
        _table(
            ("method", "people", "draws", "a curator", "a shuffler", "a shuffler, wary", "wary: kB a person", "rounds"),
            _crowds(crowd),
        ),
        """With everybody honest the shuffler's noise has a curator's law, and the distances differ by chance. What the
        pyramids send depends on the crowd: ours cuts what stands out of the noise, so more people have more cells
        to answer for; the published one cuts 20 cells a level, whatever comes, and so does not get nearer than 20 cells
        can. It was not tried on the largest crowd.""",
        "`python -m research.benchmarks.shuffle_heatmaps` makes this page.",
    ]
    return "\n\n".join(part if part[:1] in "#!|" else _wrapped(part) for part in parts) + "\n"


def _order(row: Row) -> tuple[str, float, bool, int]:
    return row["method"], row["epsilon"], "curator" in row["trust"], row["scale"]


def _scaled(row: Row) -> list[str]:
    alone = "curator" in row["trust"]
    sent = [""] * 3 if alone else [f"{row['parts']:.0f}", f"{row['bits']:.0f}", f"{row['bytes'] / 1e3:,.0f}"]
    found = [f"{row[name]:.3f}" for name in ("similarity", "pearson", "kl")]
    parts = row["trust"] if alone else f"{row['scale']:,}"
    return [row["method"], f"{row['epsilon']:g}", parts, _distance(row), *found, *sent]


def _crowds(rows: list[Row]) -> list[list[str]]:
    known = {(row["method"], row["people"], row["trust"]): row for row in rows}
    found = []
    for method, people in dict.fromkeys((row["method"], row["people"]) for row in sorted(rows, key=_by_people)):
        three = [known[method, people, trust] for trust in COLOURS]
        last = three[-1]
        shown = [_distance(row) for row in three]
        found.append(
            [method, f"{people:,}", str(last["draws"]), *shown, f"{last['bytes'] / 1e3:,.0f}", f"{last['rounds']:.0f}"]
        )
    return found


def _by_people(row: Row) -> tuple[str, int]:
    return row["method"], row["people"]


def _distance(row: Row) -> str:
    return f"{row['emd']:.4f}" + (f" ± {row['band']:.4f}" if "band" in row else "")


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False)
