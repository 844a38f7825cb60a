"""Measurements of the heatmap paper as files: Parquet, JSON, figures and a page."""

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research.compare.documentation_page import write_page

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "results", HERE.parents[1] / "docs"
OURS, THEIRS, THIRD = "#0072b2", "#d55e00", "#999999"
Pictures = dict[str, list[tuple[str, np.ndarray]]]
MEASURES = ["mse", "l1", "mape", "smape", "maape", "numbers", "bytes", "cells", "level", "bits", "rounds", "seconds"]


def publish(rows: list[dict[str, Any]], pictures: Pictures, folder: str | None) -> None:
    """Write everything; experiments that were not run keep what was measured of them before."""
    RESULTS.mkdir(exist_ok=True)
    path, fresh = RESULTS / "heatmap_paper.parquet", pd.DataFrame(rows)
    if path.exists():
        old = pd.read_parquet(path)
        fresh = pd.concat([old[~old["experiment"].isin(fresh["experiment"].unique())], fresh], ignore_index=True)
    fresh.to_parquet(path, index=False)
    (RESULTS / "heatmap_paper.json").write_text(json.dumps(summary(fresh), indent=1) + "\n")
    made_up = {"figure 1": "heatmap_trust", "figure 6, the city": "heatmap_methods", "figure 9": "heatmap_proportions"}
    for name, panels in pictures.items():
        if name in made_up:
            draw(panels, DOCS / "images" / f"{made_up[name]}.png", proportion=name == "figure 9")
        elif folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            draw(panels, Path(folder) / f"{name.replace(', ', '-').replace(' ', '_')}.png")
    curves(fresh)
    write_page(page(fresh), DOCS / "results" / "heatmap_paper.md")


def summary(frame: pd.DataFrame) -> dict[str, Any]:
    """Means and standard deviations over repetitions, experiment by experiment."""
    found: dict[str, Any] = {}
    for name, whole in frame.groupby("experiment", sort=False):
        part = whole.dropna(axis=1, how="all").drop(columns="experiment")
        measures = [column for column in [*MEASURES, "error", "width", "held"] if column in part]
        labels = [column for column in part if column not in measures]
        found[name] = []
        for label, group in part.groupby(labels, sort=False, dropna=False):
            row = {key: None if pd.isna(value) else value for key, value in zip(labels, label, strict=True)}
            numbers = group[measures].dropna(axis=1, how="all")
            mean, spread = numbers.mean(), numbers.std(ddof=0)
            row |= {key: float(f"{value:.5g}") for key, value in mean.items()} | {"repetitions": len(group)}
            row |= {f"{key} sd": float(f"{spread[key]:.3g}") for key in ("mse", "l1") if key in spread}
            found[name].append(row)
    return found


def draw(panels: list[tuple[str, np.ndarray]], path: Path, proportion: bool = False) -> None:
    """Pictures side by side: densities on one scale of colours (a cube root), or proportions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(3.1 * len(panels), 3.4), layout="constrained")
    top = None
    for axis, (name, picture) in zip(axes, panels, strict=True):
        if proportion:
            shown = axis.imshow(picture, vmin=0, vmax=0.6, cmap="magma", interpolation="nearest")
        else:
            density = np.clip(picture, 0, None) / max(np.clip(picture, 0, None).sum(), 1e-300)
            top = np.quantile(density, 0.9995) if top is None else top
            axis.imshow(np.cbrt(density), vmin=0, vmax=np.cbrt(top), cmap="magma", interpolation="nearest")
        axis.set_title(name, fontsize=9)
        axis.set_axis_off()
    if proportion:
        figure.colorbar(shown, ax=axes, shrink=0.7)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def curves(frame: pd.DataFrame) -> None:
    """Figures 7 and 8 as curves of means."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    seven, eight = frame[frame.experiment == "figure 7"], frame[frame.experiment == "figure 8"]
    if len(seven):
        figure, axes = plt.subplots(2, 2, figsize=(8.4, 6.4), layout="constrained")
        for row, (place, part) in zip(axes, seven.groupby("map", sort=False), strict=True):
            for (method, epsilon), some in part[part.c0.isna()].groupby(["method", "epsilon"], sort=False):
                line(row[0], some, "people", method, f"{method}, ε = {epsilon:g}", dashed=epsilon < 1)
            line(row[1], part[part.c0.notna()], "c0", "published", "prefix tree as published, ε = 1")
            row[0].set(title=place, xlabel="people asked in a round", ylabel="MSE of the density")
            row[1].set(title=place, xlabel="calibration c₀ of the schedule")
            for axis in row:
                axis.legend(fontsize=7)
        figure.savefig(DOCS / "images" / "heatmap_samples.png", dpi=110)
        plt.close(figure)
    if len(eight):
        figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
        for people, some in eight[eight["shard"].notna()].groupby("people"):
            line(axes[0], some, "shard", "flat" if people > 20_000 else "published", f"{people:,.0f} people asked")
        axes[0].set(xlabel="people in a shard", ylabel="MSE of the density", title="shards (flat, level 6)")
        for people, some in eight[eight["allowed"].notna()].groupby("people"):
            method = "flat" if people > 20_000 else "published"
            line(axes[1], some, "allowed", method, f"{people:,.0f} people asked", logarithmic=False)
        axes[1].set(xlabel="% of a shard that may be missing", title="noise for dropouts (flat, level 6)")
        axes[1].set_ylim(0, 1.3 * axes[1].get_ylim()[1])
        for method, some in eight[eight["modulus"].notna()].groupby("method", sort=False):
            line(axes[2], some, "modulus", method, method, logarithmic=False)
        chosen = eight["chosen"].max()
        axes[2].axvline(chosen, color=THIRD, linestyle=":", label=f"bits that the wire chooses: {chosen:.0f}")
        axes[2].set(xlabel="bits of the modulus", title="overflow (10,000 people)", yscale="log")
        for axis in axes:
            axis.legend(fontsize=7)
        figure.savefig(DOCS / "images" / "heatmap_secure_sum.png", dpi=110)
        plt.close(figure)


def line(
    axis: Any, part: pd.DataFrame, x: str, method: str, label: str, dashed: bool = False, logarithmic: bool = True
) -> None:
    """Mean MSE against something."""
    mean = part.groupby(x)["mse"].mean()
    colour = OURS if "ours" in method else THIRD if method == "flat" else THEIRS
    axis.plot(mean.index, mean, "o--" if dashed else "o-", color=colour, label=label, markersize=3)
    if logarithmic:
        axis.set(xscale="log", yscale="log")


def page(frame: pd.DataFrame) -> str:
    """The page of the documentation."""
    parts = {name: part.dropna(axis=1, how="all") for name, part in frame.groupby("experiment", sort=False)}
    sections = [SECTIONS[name](parts[name]) for name in SECTIONS if name in parts]
    times = int(frame[frame["experiment"] == "table 3"].groupby(["map", "method"]).size().max())
    return "\n\n".join([HEAD.format(times=times), *sections]) + "\n"


HEAD = """# The location-heatmap paper, measured again

Bagdasaryan et al. (PETS 2022) with its baselines, and with our methods, on the exact law of the secure sum. The copy of
the paper that we had lost the numbers of its tables, so nothing here is set beside them; its published simulator gives
MSE 7.08 × 10⁻¹², L1 0.643 and 1,217 numbers on the city with 100,000 people, and `prefix tree as published` must agree.
Means of {times} runs (`research/benchmarks/heatmap_paper.py`; one run of methods that ask for every pixel), a fresh
sample of people in every round, ε = 1 unless it says otherwise, shards of 10,000; nobody in them works with the server.
Errors are of densities, clipped at 0 and normalised. *Numbers* and *bytes* are what a person sends who is asked in
every round: the length of all vectors, and these packed to the bits of their modulus, as the wire packs them.
Lines marked *ours* are not in the paper."""


def table(part: pd.DataFrame, by: list[str], columns: dict[str, Callable[[pd.DataFrame], str]]) -> str:
    """A Markdown table, one line for each combination of `by`."""
    lines = ["| " + " | ".join([*by, *columns]) + " |", "|" + "---|" * (len(by) + len(columns))]
    for label, group in part.groupby(by, sort=False, dropna=False):
        cells = ["" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value) for value in label]
        lines.append("| " + " | ".join(cells + [write(group) for write in columns.values()]) + " |")
    return "\n".join(lines)


def mean(column: str, shown: str, factor: float = 1.0) -> Callable[[pd.DataFrame], str]:
    """How a table shows a mean."""
    return lambda group: "" if group[column].isna().all() else format(group[column].mean() * factor, shown)


def wrapped(text: str) -> str:
    """A paragraph."""
    return textwrap.fill(" ".join(text.split()), 120)


def table_1(part: pd.DataFrame) -> str:
    """Methods, a column for each setting."""
    made = []
    for place, some in part.groupby("map", sort=False):
        columns = {}
        for setting in part["setting"].unique():
            for measure, shown, factor in (
                ("mse", ".2f" if place == "the city" else ".3f", 1e12),
                ("numbers", ",.0f", 1),
            ):
                columns[f"{'MSE' if measure == 'mse' else 'numbers'}: {setting}"] = cell(
                    setting, measure, shown, factor
                )
        columns["L1: 100,000"] = cell("100,000", "l1", ".3f", 1)
        columns["bytes: 100,000"] = cell("100,000", "bytes", ",.0f", 1)
        made.append(f"MSE × 10⁻¹² on {place}:\n\n" + table(some, ["method"], columns))
    text = wrapped(
        """*By the truth* is the choice that the paper makes for its baselines: only who knows the truth can make it.
        *By the answers* is ours, as in `BestLevel`. *Count-min alone* takes all numbers from the sketches, as in the
        paper. No adaptive grid is cut finer than a pixel."""
    )
    return "## Table 1: methods\n\n" + text + "\n\n" + "\n\n".join(made)


def cell(setting: str, measure: str, shown: str, factor: float) -> Callable[[pd.DataFrame], str]:
    """The mean of a measure in one setting."""
    return lambda group: (
        mean(measure, shown, factor)(group[group["setting"] == setting]) if (group["setting"] == setting).any() else ""
    )


def table_2(part: pd.DataFrame) -> str:
    """Tokyo."""
    text = wrapped(
        """2,173 people with 141 check-ins each on average, 128 × 128 pixels, all people in one shard. A vote is shared
        out over a person's places in *scale* whole parts. The paper rounds each entry by its own coin, so the noise is
        for scale + k, k the length of the vector; dependent rounding needs scale alone, whatever the length. *Clip* is
        a modulus of so many bits, as in the paper; without it the bits are those that the wire chooses, and nothing
        overflows. Errors are from everybody's own distribution, summed."""
    )
    columns = {
        "MSE × 10⁻⁷": mean("mse", ".2f", 1e7),
        "L1": mean("l1", ".3f"),
        "numbers": mean("numbers", ",.0f"),
        "bytes": mean("bytes", ",.0f"),
        "bits chosen": mean("bits", ".0f"),
    }
    return f"## Table 2: several places a person\n\n{text}\n\n" + table(
        part, ["method", "tree", "scale", "clip"], columns
    )


def table_3(part: pd.DataFrame) -> str:
    """Variants and measures."""
    columns = {
        "MSE × 10⁻¹²": mean("mse", ".3f", 1e12),
        "L1": mean("l1", ".3f"),
        "MAPE": mean("mape", ".2f"),
        "sMAPE": mean("smape", ".3f"),
        "MAAPE": mean("maape", ".3f"),
        "numbers": mean("numbers", ",.0f"),
    }
    return "## Table 3: variants and measures\n\n100,000 people.\n\n" + table(part, ["map", "method"], columns)


def figure_1(part: pd.DataFrame) -> str:
    """Trust models."""
    columns = {"MSE × 10⁻¹²": mean("mse", ".2f", 1e12), "L1": mean("l1", ".3f"), "cells": mean("cells", ",.0f")}
    return (
        "## Figure 1: whom you trust\n\n"
        "One method (`Adaptive`), one ε, 100,000 people of the city, three trust models.\n\n"
        "![The city under three trust models](../images/heatmap_trust.png)\n\n"
        + table(part, ["trust", "method"], columns)
    )


def figure_6(part: pd.DataFrame) -> str:
    """Other maps."""
    columns = {
        "MSE": mean("mse", ".3g"),
        "L1": mean("l1", ".3f"),
        "numbers": mean("numbers", ",.0f"),
        "bytes": mean("bytes", ",.0f"),
    }
    return (
        "## Figure 6: other maps\n\n"
        "100,000 people. The two African maps are 64 × 64 pixels of 10 arc-minutes, the others 1024 × 1024. On the\n"
        "desert coast one pixel holds a seventh of all people: where the published schedule ends early, it is lost.\n"
        "Only made-up data is drawn here; `--pictures FOLDER` draws the rest.\n\n"
        "![Methods on the city](../images/heatmap_methods.png)\n\n" + table(part, ["map", "method"], columns)
    )


def figure_7(_: pd.DataFrame) -> str:
    """Samples and calibration."""
    return (
        "## Figure 7: how many people, and the calibration of the schedule\n\n"
        "![MSE against people asked and against c₀](../images/heatmap_samples.png)"
    )


def figure_8(_: pd.DataFrame) -> str:
    """The secure sum's parameters."""
    return (
        "## Figure 8: shards, dropouts, bits\n\nNew York.\n\n"
        "![MSE against shard size, dropouts allowed for, and bits](../images/heatmap_secure_sum.png)"
    )


def figure_9(part: pd.DataFrame) -> str:
    """Proportions."""
    text = wrapped(
        """A bit that is set for 5 % of the people of the city, and for up to 55 % around one place; 100,000 people
        answer. *Error* and *width* (of 95 % intervals, noise and sampling together) are means over people; *held* is
        the part of the cells whose interval holds the proportion among all 3.5 M."""
    )
    columns = {
        "cells": mean("cells", ",.0f"),
        "error": mean("error", ".4f"),
        "width": mean("width", ".3f"),
        "held": mean("held", ".1%"),
        "numbers": mean("numbers", ",.0f"),
    }
    return f"## Figure 9: proportions\n\n{text}\n\n![Proportions](../images/heatmap_proportions.png)\n\n" + table(
        part, ["map", "method"], columns
    )


SECTIONS: dict[str, Callable[[pd.DataFrame], str]] = {
    "table 1": table_1,
    "table 2": table_2,
    "table 3": table_3,
    "figure 1": figure_1,
    "figure 6": figure_6,
    "figure 7": figure_7,
    "figure 8": figure_8,
    "figure 9": figure_9,
}
