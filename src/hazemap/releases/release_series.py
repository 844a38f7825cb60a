"""Releases over time: the total of each, how its error changes, and whether noise explains what changed since the last.

Everything is a function of published files, so asking costs no privacy.
"""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.noise_drift import Law, changed_p, holm, law_of, moved_p
from hazemap.machine_code.arrays import Ints
from hazemap.queries.noisy_queries import Query
from hazemap.releases.estimates import Estimate
from hazemap.releases.map_release import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHA = 0.05
"""Below this, taken together, a change is more than noise explains."""


@dataclass(frozen=True)
class SeriesPoint:
    """One release of a series: `place` counts periods, those without a file too.

    `cell_error` is the median standard error of a cell. `total_p` and `cells_p` say how often noise alone makes the
    total, or the counts of the cells, differ so much from the release before; each is corrected for all that the series
    tests (Holm 1979): of twenty series in which no number changed, one has any below 0.05. None where it was not
    tested: in the first, and where two releases have no question in common.
    """

    place: int
    name: str
    total: Estimate
    cell_error: float
    cells: int
    price: str
    total_p: float | None = None
    cells_p: float | None = None

    @property
    def drift(self) -> bool:
        """Whether the change since the release before is more than noise explains."""
        return any(chance is not None and chance <= ALPHA for chance in (self.total_p, self.cells_p))

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "period": self.name,
            "total": self.total.to_json(),
            "cell_error": self.cell_error,
            "cells": self.cells,
            "price": self.price,
            "total_p": self.total_p,
            "cells_p": self.cells_p,
            "more_than_noise_explains": self.drift,
        }

    @property
    def words(self) -> str:
        """One line for people."""
        tested = [
            f"{what} p ≤ {chance:.2g}"
            for what, chance in (("total", self.total_p), ("cells", self.cells_p))
            if chance is not None
        ]
        said = "more than noise explains" if self.drift else "noise explains the change"
        shown = f"; {said} ({', '.join(tested)})" if tested else ""
        return f"{self.name}: {self.total}; standard error of a cell {self.cell_error:.3g}{shown}"


@dataclass(frozen=True)
class ReleaseSeries:
    """Releases one after another, the oldest first."""

    title: str
    points: tuple[SeriesPoint, ...]

    @classmethod
    def of(cls, title: str, releases: Iterable[tuple[str, Release | None]]) -> "ReleaseSeries":
        """From names and releases, one of which is in memory at a time; None leaves a gap.

        `InputError` where there is none.
        """
        points: list[SeriesPoint] = []
        before: _Known | None = None
        for place, (name, made) in enumerate(releases):
            if made is None:
                continue
            known = _Known.of(made)
            error = float(np.median(made.map.stddev[made.map.places]))
            total, cells = (None, None) if before is None else (_total_p(before, known), _cells_p(before, known))
            cells_asked, price = int(made.ground.places.size), str(made.statement.budget)
            points.append(SeriesPoint(place, name, known.total, error, cells_asked, price, total, cells))
            before = known
        if not points:
            raise InputError("a series is of one release at least: no period has a file yet")
        chances = holm([each.total_p for each in points] + [each.cells_p for each in points])
        corrected = zip(points, chances[: len(points)], chances[len(points) :], strict=True)
        return cls(title, tuple(replace(each, total_p=total, cells_p=cells) for each, total, cells in corrected))

    @property
    def summary(self) -> str:
        """How the error changed, and how often more changed than noise explains."""
        first, last = self.points[0], self.points[-1]
        tested = sum(each.total_p is not None or each.cells_p is not None for each in self.points)
        drifts = sum(each.drift for each in self.points)
        return (
            f"{len(self.points)} releases. The standard error of the total is {first.total.stddev:,.3g} in "
            f"{first.name} and {last.total.stddev:,.3g} in {last.name}; that of a cell, in the median, "
            f"{first.cell_error:,.3g} and {last.cell_error:,.3g}. Of {tested} changes from one release to the next "
            f"{drifts} are more than noise explains (α = {ALPHA} for the whole series, Holm's correction)."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"title": self.title, "summary": self.summary, "releases": [each.to_json() for each in self.points]}

    def draw(self, width: float = 9.0) -> "Figure":
        """Three charts: totals with their intervals, errors, and p-values."""
        from hazemap.draw.series_charts import SeriesNumbers, draw_series

        numbers = SeriesNumbers(
            places=[each.place for each in self.points],
            names=[each.name for each in self.points],
            totals=[each.total.best_guess for each in self.points],
            lows=[each.total.low for each in self.points],
            highs=[each.total.high for each in self.points],
            total_errors=[each.total.stddev for each in self.points],
            cell_errors=[each.cell_error for each in self.points],
            total_ps=[each.total_p for each in self.points],
            cell_ps=[each.cells_p for each in self.points],
        )
        return draw_series(numbers, alpha=ALPHA, title=self.title, caption=self.summary, width=width)

    def to_html(self) -> str:
        """One page for a browser: the charts and the numbers; it asks no other machine for anything."""
        from hazemap.draw import encode

        picture = b64encode(encode(self.draw())).decode()
        rows = "\n".join(_row(each) for each in self.points)
        head = "".join(
            f"<th>{name}</th>" for name in ("release", "total", "95 %", "standard error of a cell", "price", *_TESTED)
        )
        title, summary = escape(self.title), escape(self.summary)
        return (
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n<style>{_STYLE}</style>\n'
            f'<h1>{title}</h1>\n<p>{summary}</p>\n<img alt="{summary}" src="data:image/png;base64,{picture}">\n'
            f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></html>\n"
        )


_TESTED = ("p of the total", "p of the cells")
_STYLE = (
    "body{font:15px/1.5 sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#22252b}img{max-width:100%}"
    "table{border-collapse:collapse}td,th{padding:.1rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}tr.drift{background:#fbe3d6}"
)


def _row(point: SeriesPoint) -> str:
    total = point.total
    ps = ("" if chance is None else f"{chance:.2g}" for chance in (point.total_p, point.cells_p))
    cells = (
        point.name,
        f"{total.best_guess:z,.0f}",
        f"{total.low:z,.0f} … {total.high:z,.0f}",
        f"{point.cell_error:.3g}",
        point.price,
        *ps,
    )
    kind = ' class="drift"' if point.drift else ""
    return f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


class _Asked(NamedTuple):
    """A question about counts, the answer, and the law of its noise, where that is known."""

    encoder: Counts
    sums: Ints
    law: Law | None


class _Known(NamedTuple):
    """What a series keeps of a release until the next."""

    total: Estimate
    kurtosis: float
    asked: tuple[_Asked, ...]

    @classmethod
    def of(cls, release: Release) -> "_Known":
        asked = []
        for question, answer in release.transcript:
            if isinstance(question, Query) and isinstance(question.encoder, Counts):
                error = np.unique(answer.stddev)
                law = law_of(float(error[0]), answer.kurtosis) if error.size == 1 else None
                asked.append(_Asked(question.encoder, answer.sums, law))
        return cls(release.total(), release.kurtosis, tuple(asked))


def _total_p(before: _Known, now: _Known) -> float:
    difference = now.total.unbiased - before.total.unbiased
    error = float(np.hypot(before.total.stddev, now.total.stddev))
    return moved_p(difference, error, max(before.kurtosis, now.kurtosis))


def _cells_p(before: _Known, now: _Known) -> float | None:
    """Of the questions that both were asked the one with the most numbers; None without any."""
    both = [(old, new) for old in before.asked for new in now.asked if old.encoder == new.encoder]
    for old, new in sorted(both, key=lambda pair: -len(pair[1].sums)):
        if old.law is not None and new.law is not None:
            return changed_p(old.sums, new.sums, (old.law, new.law))
    return None
