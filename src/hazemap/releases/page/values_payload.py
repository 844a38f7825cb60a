"""What a page is told of statistics of a value: each of every cell and slot, and how the value is distributed."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.draw.colour_scales import ValueScale
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats
from hazemap.releases.page.cell_places import names, painted, places
from hazemap.releases.page.map_payload import floats
from hazemap.releases.page.release_facts import release_facts
from hazemap.releases.statistic_estimates import records_of

if TYPE_CHECKING:
    from hazemap.releases.statistics_release import Statistics

MOST_NUMBERS = 1 << 24
"""Of one page, of all statistics and bins together: 64 megabytes."""


def values_payload(release: "Statistics", title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of statistics; `InputError` for more numbers than a page can hold.

    Numbers stand one slot after another, those of a slot in the order of the cells' places; NaN where too few people
    are.
    """
    encoding = release.measurements.tree.value_encoding
    numbers = release.measurements.tree.places * (4 * len(release.statistics) + sum(encoding.levels[:1]) + 3)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"a page shows at most {MOST_NUMBERS:,} numbers, and these statistics are {numbers:,}: draw a picture with"
            " `hazemap show`, or export them"
        )
    leaves, positions = release.cells, painted(release.cells)

    def by_slot(column: Floats) -> dict[str, Any]:
        """Numbers of places, one slot after another."""
        return floats(column.reshape(leaves.size, len(release.slots), -1)[positions].transpose(1, 0, 2))

    found = {statistic: release.found(statistic) for statistic in release.statistics}
    guess, error = release.guesses
    people, stddev, margin = release.measurements.numbers(np.arange(release.measurements.tree.places)[:, None])
    area = release.ground.km2[positions]
    return {
        **release_facts(release, "values", title),
        "value": release.value,
        "slots": list(release.slots),
        "bounds": [encoding.low, encoding.high],
        "threshold": release.measurements.threshold,
        "records": records_of(release.statement.bounding, release.measurements),
        "bin_width": encoding.width / encoding.bins if encoding.bins else None,
        "said": " ".join(filter(None, (release.summary()[1], release.who_counts))),
        "cells": {"places": places(leaves, positions), "names": names(leaves, positions), "area": floats(area)},
        "people": {"count": by_slot(people), "stddev": stddev, "margin": margin, "most": float(people.max())},
        "statistics": [
            {
                "name": name,
                **{what: by_slot(getattr(each, what)) for what in ("value", "stddev", "low", "high")},
                "bias": None if each.bias is None else by_slot(each.bias),
                "scale": _scale(each.value, each.stddev, _bounds(release, name)),
            }
            for name, each in found.items()
        ],
        "guess": {
            "value": by_slot(guess),
            "stddev": by_slot(error),
            "scale": _scale(guess, error, _bounds(release, "mean")),
        },
        "histogram": _histogram(release, by_slot),
    }


def _bounds(release: "Statistics", statistic: str) -> tuple[float, float]:
    """Between which a statistic lies, whatever people are like."""
    encoding = release.measurements.tree.value_encoding
    return (0.0, encoding.width**2 / 4) if statistic == "variance" else (encoding.low, encoding.high)


def _scale(values: Floats, errors: Floats, bounds: tuple[float, float]) -> dict[str, float]:
    """The colours of pictures: see `ValueScale.of`."""
    known = errors[np.isfinite(errors)]
    scale = ValueScale.of(values, bounds, float(np.median(known)) if known.size else 0.0)
    return {"low": scale.low, "high": scale.high}


def _histogram(release: "Statistics", by_slot: Any) -> dict[str, Any] | None:
    """People in bins of the value, NaN in places where nothing was asked; None where there are no bins."""
    encoding = release.measurements.tree.value_encoding
    if not encoding.bins:
        return None
    try:
        people, stddev, kurtosis = release.measurements.histograms
    except InputError:  # an estimator that asked for no bins
        return None
    margin = float(reach(0.95, np.array(kurtosis))) * stddev
    return {"edges": encoding.edges(1).tolist(), "people": by_slot(people), "margin": margin}
