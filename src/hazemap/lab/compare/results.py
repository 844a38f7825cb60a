"""Results of a comparison as drawn and tabulated: means over repetitions, with their standard errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hazemap.errors import FileError
from hazemap.lab.compare.trial_settings import Place
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable

if TYPE_CHECKING:
    import pandas as pd

SURE = 0.95
"""The confidence of every band."""


class ResultMean(NamedTuple):
    """A mean over repetitions and a Student interval for it; without bounds for a single repetition."""

    mean: float
    low: float
    high: float
    number: int


@dataclass(frozen=True, eq=False)
class Results(ShownAsTable):
    """A row a trial; the folder where they are kept, and the maps that they are about.

    Columns: what tells a trial apart (`Trial.labels`), then its scores; a score that a trial does not have is NaN.
    """

    frame: "pd.DataFrame"
    folder: Path
    maps: Mapping[str, Place]

    @classmethod
    def read(cls, path: Path, maps: Mapping[str, Place] | None = None) -> "Results":
        """From the Parquet that a comparison wrote."""
        import pandas as pd

        try:
            frame = pd.read_parquet(path)
        except (OSError, ValueError) as error:
            raise FileError(
                f"{path} holds no results of a comparison: run `hazemap compare` into its folder"
            ) from error
        return cls(frame, path.parent, maps or {})

    def notebook_table(self) -> NotebookTable:
        """The mean of each score over the repetitions of a method on a map at a price, with half its 95 % interval."""
        labels = [name for name in ("map", "method", "epsilon") if name in self.frame]
        numbers = self.frame.select_dtypes("number").columns
        scores = [
            name for name in numbers if name not in (*labels, "repetition", "draws") and not name.startswith("set_")
        ]
        rows = []
        for key, part in self.frame.groupby(labels, sort=False, dropna=False) if labels else ():
            means = [mean_of(part[name].to_numpy(dtype=np.float64)) for name in scores]
            said = [f"{each.mean:.3g} ± {(each.high - each.low) / 2:.2g}" if each.number else "" for each in means]
            rows.append((*(f"{each:g}" if isinstance(each, float) else str(each) for each in key), *said))
        return NotebookTable("Results of a comparison", (*labels, *scores), tuple(rows), words=len(labels))

    def named(self, column: str) -> list[Any]:
        """The values of a column, as they first come."""
        if column not in self.frame:
            return []
        return [value for value in self.frame[column].unique().tolist() if value == value]  # noqa: PLR0124 - not NaN

    def where(self, **wanted: Any) -> "Results":
        """Only the trials with these labels; a list allows any of its values, None a label that is not there."""
        frame = self.frame
        for column, value in wanted.items():
            if column not in frame:
                continue
            values = list(value) if isinstance(value, list | tuple) else [value]
            kept = frame[column].isin([each for each in values if each is not None])
            frame = frame[kept | frame[column].isna()] if None in values else frame[kept]
        return Results(frame, self.folder, self.maps)

    def mean(self, score: str) -> ResultMean:
        """Of all trials here."""
        return mean_of(self.frame[score].to_numpy(dtype=np.float64)) if score in self.frame else mean_of([])

    def along(self, column: str, score: str) -> list[tuple[float, ResultMean]]:
        """The mean for each value of a column, in ascending order."""
        values = sorted(self.named(column))
        found = [(float(value), self.where(**{column: value}).mean(score)) for value in values]
        return [(value, mean) for value, mean in found if mean.number]


def mean_of(numbers: Sequence[float] | np.ndarray[Any, Any]) -> ResultMean:
    """The mean and a 95 % interval for it: x̄ ± h, h = t·s/√n.

    Where all numbers are positive the lower end is x̄·exp(−h/x̄), the interval of its logarithm by the delta method:
    the same for a small h, and never below 0, so that it can stand on a logarithmic axis.

    >>> mean_of([1.0, 2.0, 3.0]).mean, mean_of([1.0]).low
    (2.0, 1.0)
    """
    from scipy.special import stdtrit

    known = np.asarray(numbers, np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return ResultMean(float("nan"), float("nan"), float("nan"), 0)
    mean = float(known.mean())
    if len(known) == 1:
        return ResultMean(mean, mean, mean, 1)
    half = float(stdtrit(len(known) - 1, (1 + SURE) / 2) * known.std(ddof=1) / len(known) ** 0.5)
    low = mean * exp(-half / mean) if known.min() > 0 else mean - half
    return ResultMean(mean, low, mean + half, len(known))
