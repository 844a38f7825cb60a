"""Measurements of interactive discovery as files: JSON, figures and a page."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from research.compare.documentation_page import write_page

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "results" / "discovery.json", HERE.parents[1] / "docs"
COLOURS = {
    "interactive": "#0072b2",
    "static": "#d55e00",
    "static, hashed": "#009e73",
    "static, told which occur": "#777777",
}
NAMES = {"irc_ubuntu_text_to_2013": "IRC", "shakespeare_by_character": "Shakespeare"}
SCORES = ("recall", "weighted error")
KEY = ("corpus", "length", "people", "system", "truth")


def summary(trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean, lowest and highest of all runs, for each k."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in trials:
        groups.setdefault(tuple(row[name] for name in KEY), []).append(row)
    found = []
    for key, rows in groups.items():
        made: dict[str, Any] = dict(zip(KEY, key, strict=True)) | {"runs": len(rows)}
        for score in SCORES:
            numbers = np.array([row[score] for row in rows])
            made[score] = {
                "mean": numbers.mean(axis=0).round(4).tolist(),
                "low": numbers.min(axis=0).round(4).tolist(),
                "high": numbers.max(axis=0).round(4).tolist(),
            }
        found.append(made)
    return found


def publish(found: dict[str, Any]) -> None:
    """Write everything."""
    RESULTS.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {lines(value)}" for name, value in found.items()) + "\n}\n"
    )
    for corpus, name in NAMES.items():
        for score in SCORES:
            path = DOCS / "images" / f"discovery-{name.lower()}-{score.replace(' ', '-')}.png"
            curves(found, corpus, score, path)
    amplification(found["figure 1"], DOCS / "images" / "discovery-amplification.png")
    write_page(page(found), DOCS / "results" / "discovery.md")


def lines(value: Any) -> str:
    """JSON with a row a line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in value) + "\n]"
    return json.dumps(value)


def curves(found: dict[str, Any], corpus: str, score: str, path: Path) -> None:
    """A panel for each length and size of the population: a score against k, with the range of all runs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for row in found["summary"] if row["corpus"] == corpus and row["truth"] == "people"]
    sizes, lengths = (sorted({row[name] for row in rows}) for name in ("people", "length"))
    figure, axes = plt.subplots(
        len(sizes), len(lengths), figsize=(10.5, 7.4), sharex=True, sharey=True, layout="constrained", squeeze=False
    )
    for row in rows:
        axis = axes[sizes.index(row["people"])][lengths.index(row["length"])]
        colour, numbers = COLOURS[row["system"]], row[score]
        axis.fill_between(found["top"], numbers["low"], numbers["high"], color=colour, alpha=0.2, linewidth=0)
        axis.plot(found["top"], numbers["mean"], "o-", color=colour, markersize=3, label=row["system"])
        words = "1 word" if row["length"] == 1 else f"{row['length']} words"
        axis.set(xscale="log", ylim=(0, 1), title=f"{words}, {row['people']:,} people")
        axis.set_xticks(found["top"], [str(k) for k in found["top"]])
        axis.minorticks_off()
    for axis in axes[-1]:
        axis.set_xlabel("k")
    for axis in axes[:, 0]:
        axis.set_ylabel(score)
    axes[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def amplification(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Figure 1 of the paper: ε of the sum against the cohort."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
    bounds = {"theorem 3.1": "#777777", "clones": "#d55e00", "exact sum": "#0072b2"}
    for axis, local in zip(axes, sorted({row["local"] for row in rows}), strict=True):
        part = [row for row in rows if row["local"] == local]
        for bound, colour in bounds.items():
            some = [row for row in part if row[bound] is not None]
            axis.plot([row["cohort"] for row in some], [row[bound] for row in some], color=colour, label=bound)
        axis.set(xscale="log", yscale="log", xlabel="people in the cohort", title=f"ε₀ = {local}")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("ε of the sum, δ = 10⁻⁶")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def page(found: dict[str, Any]) -> str:
    """The page of the documentation."""
    rows = found["summary"]
    at = found["top"].index(100)
    parts = [HEAD.format(runs=max(row["runs"] for row in rows), seconds=found["CPU s"])]
    for truth, heading in (("people", PEOPLE), ("reports", REPORTS)):
        cells = compared(found, truth)
        sizes = "; ".join(
            f"{people:,} people, {ahead} of {cases}" for people, (ahead, cases) in ahead_by_size(found, truth).items()
        )
        parts.append(heading.format(**cells, sizes=sizes))
        parts.append(table(rows, truth, at))
    parts += [FIGURES, FIGURE_1 + "\n\n" + cohorts(found["figure 1"]), NOISE + "\n\n" + noise(found["local"])]
    return "\n\n".join(parts) + "\n"


def compared(found: dict[str, Any], truth: str) -> dict[str, int]:
    """Of the cases of 3 words or more in which a static system recalls 5–95 %, in how many interactive is ahead."""
    counts = {}
    for system, name in (("static", ""), ("static, hashed", "hashed_"), ("static, told which occur", "told_")):
        by_size = ahead_by_size(found, truth, system).values()
        counts |= {f"{name}ahead": sum(each[0] for each in by_size), f"{name}cases": sum(each[1] for each in by_size)}
    return counts


def ahead_by_size(found: dict[str, Any], truth: str, system: str = "static") -> dict[int, tuple[int, int]]:
    """In how many of how many cases interactive is ahead, by the size of the population."""
    mean = {tuple(row[name] for name in KEY): row["recall"]["mean"] for row in found["summary"]}
    counts: dict[int, tuple[int, int]] = {}
    for (corpus, length, people, asked, of), numbers in mean.items():
        if (of, asked) != (truth, system) or length < 3:
            continue
        ours = mean[corpus, length, people, "interactive", of]
        fair = [(best, static) for best, static in zip(ours, numbers, strict=True) if 0.05 <= static <= 0.95]
        ahead, cases = counts.get(people, (0, 0))
        counts[people] = ahead + sum(best > static for best, static in fair), cases + len(fair)
    return counts


def table(rows: Sequence[dict[str, Any]], truth: str, at: int) -> str:
    """Recall at one k: mean, and the range of all runs."""
    shown: dict[tuple[str, int, int], dict[str, str]] = {}
    for row in rows:
        if row["truth"] == truth:
            mean, low, high = (row["recall"][name][at] for name in ("mean", "low", "high"))
            case = shown.setdefault((NAMES[row["corpus"]], row["length"], row["people"]), {})
            case[row["system"]] = f"{mean:.2f} ({low:.2f}–{high:.2f})"
    lines = [f"| corpus | words | people | {' | '.join(COLOURS)} |", "|---" * (3 + len(COLOURS)) + "|"]
    for (corpus, length, people), case in shown.items():
        lines.append(f"| {corpus} | {length} | {people:,} | {' | '.join(case.get(name, '–') for name in COLOURS)} |")
    return "\n".join(lines)


def cohorts(rows: Sequence[dict[str, Any]]) -> str:
    """Some points of figure 1."""
    lines = ["| ε₀ | cohort | theorem 3.1 | clones | exact sum |", "|---|---|---|---|---|"]
    for row in rows:
        if row["cohort"] in (1_000, 10_000, 100_000, 1_000_000):
            closed = "–" if row["theorem 3.1"] is None else f"{row['theorem 3.1']:.3f}"
            numbers = f"{closed} | {row['clones']:.3f} | {row['exact sum']:.4f}"
            lines.append(f"| {row['local']} | {row['cohort']:,} | {numbers} |")
    return "\n".join(lines)


def noise(rows: Sequence[dict[str, Any]]) -> str:
    """What a round costs a person's own report, and the noise of an empty bin."""
    lines = ["| people | rounds | ε₀ of each report | standard error of an empty bin |", "|---|---|---|---|"]
    lines += [f"| {row['people']:,} | {row['rounds']} | {row['local']:.2f} | {row['stddev']:.1f} |" for row in rows]
    return "\n".join(lines)


HEAD = """# Frequent sequences of words, in rounds and at once

The claim of the paper on interactive federated statistics (McMillan et al. 2022, section 1), measured: to learn
frequent sequences of n words, ask in n rounds, and only after sequences that were frequent so far. Made by `python -m
research.benchmarks.discovery` ({runs} runs of each case, {seconds} s of one processor) and written from its results.

People are drawn with replacement from the chatters of Ubuntu's IRC channel or the characters of Shakespeare; one in
five lends the 1,000 words of the public dictionary, and is not asked. As they are, they are too few for three words at
ε = 1, and in a drawn population many people say the same. All systems ask for the same rows (each sequence of n known
words that a person has) by asymmetric one-hot reports, and spend the same: all sums together are (1, 10⁻⁶)-DP for the
replacement of a person, by the exact law of sums. No device takes part: NumPy draws the sums of all reports from their
law.

* *interactive*: `FrequentSequences`, n rounds of equal ε₀.
* *static*: one question over all 1,000ⁿ sequences, as in the paper. Nobody could send so many bins; we draw the reports
  that matter from their law.
* *static, hashed*: what could be sent. The sequences are hashed into the 2²⁰ − 1 bins of a table, in as many tables as
  they have words, and a person reports to each at once. Who reads them looks for sequences whose bins stand high in
  every table. With one word there is nothing to hash.
* *static, told which occur*: the same over only the sequences that anybody has. No system knows these; it is the most
  that any static system could reach.

*Recall* is the part of the true top k that is among the first k found, *weighted error* the part of its weight that
is not. Rounds and static systems report what stands out of the noise, with the same threshold."""
PEOPLE = """## By the number of people who have a sequence

This is what "frequent" means where each person counts once. Of the cases with three or four words in which the static
system recalls between 5 and 95 %, interactive is ahead in {ahead} of {cases} (by the means of all runs); where it
hashes, in {hashed_ahead} of {hashed_cases}; where it is told which sequences occur, in {told_ahead} of {told_cases}.
With one word the two are the same question. With two, a round more costs about what it brings. Recall at k = 100, with
the range of all runs:"""
REPORTS = """## By the reports that a static system expects

A static system counts reports of one sequence of each person, drawn from all they have: people who say little weigh
more there. Of that it gives unbiased numbers, and rounds do not: from the second on a person draws among sequences that
begin frequently. By this measure interactive is ahead in {ahead} of {cases} cases ({sizes}), in {hashed_ahead} of
{hashed_cases} where the static system hashes, and in {told_ahead} of {told_cases} where it is told which sequences
occur.

So where noise hides the sequences, ask in rounds. Where it does not, and you want this average, ask at once. Hashing
loses next to nothing there, so nobody needs bins for all sequences. Recall at k = 100:"""
FIGURES = """## Curves

By the number of people who have a sequence. Bands are the range of all runs.

![Recall on IRC](../images/discovery-irc-recall.png)

![Weighted error on IRC](../images/discovery-irc-weighted-error.png)

![Recall on Shakespeare](../images/discovery-shakespeare-recall.png)

![Weighted error on Shakespeare](../images/discovery-shakespeare-weighted-error.png)"""
FIGURE_1 = """## Figure 1 of the paper: what a cohort is worth

The ε of the sum of all reports, δ = 10⁻⁶, if each is ε₀-DP by itself: the closed form (theorem 3.1), the numeric bound
by clones (the paper draws its figure with an older form of it), and the exact law of the sum of asymmetric one-hot
reports, which is ours. Clones price reports of any law that are seen one by one; the ε of these sums is about half of
that, or less.

![ε of the sum against the cohort](../images/discovery-amplification.png)"""
NOISE = """## What the budget buys

The largest ε₀ that keeps all rounds within (1, 10⁻⁶). The noise of a round hardly depends on how many people there
are; what one report tells by itself does. With a limit of ε₀ = 8 a million people would have a standard error of 37."""
