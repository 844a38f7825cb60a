"""What the authors' own code reaches on their own cell, and how far ours is from it."""

from statistics import median

from hazemap.lab.compare.result_tables import Table
from hazemap.lab.compare.results import Results

EPSILONS = (0.5, 1.0, 2.0)
DRAWS = 300
"""Of each figure: its own sampling error is as large as ours of as many draws."""

PUBLISHED: dict[str, dict[float, float]] = {
    "plain Laplace": {1.0: 1.62},
    "Array-Averaging, median": dict(zip(EPSILONS, (1.10, 0.76, 0.69), strict=True)),
    "Array-Averaging, m = 114": dict(zip(EPSILONS, (1.23, 0.64, 0.42), strict=True)),
    "Levy, median": dict(zip(EPSILONS, (1.59, 0.88, 0.69), strict=True)),
    "Levy, m = 114": dict(zip(EPSILONS, (1.36, 0.69, 0.41), strict=True)),
    "Quantile, median": dict(zip(EPSILONS, (1.16, 0.81, 0.70), strict=True)),
    "Quantile, m = 114": dict(zip(EPSILONS, (1.33, 0.80, 0.47), strict=True)),
}
"""Mean absolute errors in km/h, by method and ε."""


def equalled(results: Results) -> Table | None:
    """Ours beside the published figures, and their distance in standard errors of the difference."""
    rows = []
    for name, figures in PUBLISHED.items():
        for epsilon, figure in figures.items():
            here = results.where(method=name, epsilon=epsilon)
            ours, variance = here.mean("mae").mean, here.mean("mae_variance").mean
            if variance > 0:
                error = (variance / here.frame["draws"].sum()) ** 0.5
                apart = (ours - figure) / (error**2 + variance / DRAWS) ** 0.5
                rows.append((name, f"{epsilon:g}", f"{ours:.3f} ± {error:.3f}", f"{figure:.2f}", f"{apart:+.1f}"))
    head = ("method", "ε", "MAE ± its standard error, km/h", "published", "standard errors apart")
    return Table("Beside the figures of the authors’ code (300 draws)", (head, *rows)) if rows else None


def surpassed(results: Results, name: str = "balanced") -> Table | None:
    """Our method against the best published figure, and against the best published method as it is measured here."""
    rows = []
    for epsilon in EPSILONS:
        ours = results.where(method=name, epsilon=epsilon).mean("mae")
        figure = min(figures[epsilon] for figures in PUBLISHED.values() if epsilon in figures)
        rivals = {
            method: results.where(method=method, epsilon=epsilon).mean("mae").mean
            for method in results.named("method")
            if not method.startswith(name)
        }
        rivals = {method: error for method, error in rivals.items() if error > 0}
        if not ours.number or not rivals:
            continue
        best = min(rivals, key=lambda method: rivals[method])
        gains = (f"{1 - ours.mean / figure:.0%}", f"{best}: {rivals[best]:.3f}", f"{1 - ours.mean / rivals[best]:.0%}")
        rows.append((f"{epsilon:g}", f"{ours.mean:.3f}", f"{figure:.2f}", *gains))
    head = ("ε", f"{name}, MAE", "best published figure", "lower by", "best published method here", "lower by")
    return Table(f"{name} against the best that is published", (head, *rows)) if rows else None


def elsewhere(results: Results, name: str = "balanced") -> Table | None:
    """Our method against the best of the others in each cell of other tables."""
    rows = []
    for epsilon in sorted(results.named("epsilon")):
        ratios = []
        for place in results.named("map"):
            here = results.where(map=place, epsilon=epsilon)
            errors = {method: here.where(method=method).mean("mae").mean for method in here.named("method")}
            if name in errors and len(errors) > 1:
                ratios.append(errors[name] / min(error for method, error in errors.items() if method != name))
        if ratios:
            won = f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"
            rows.append((f"{epsilon:g}", won, f"{median(ratios):.2f}"))
    head = ("ε", "cells in which it is lower", "MAE ÷ that of the best other, median cell")
    return Table(f"{name} against the best other in each cell", (head, *rows)) if rows else None
