"""Maps as pictures: the truth, what each method shows, and where that is too much or too little."""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.draw.colour_scales import DensityScale, quantile, short
from hazemap.draw.figure_layout import GREY, MARGIN, FigureLayout, style
from hazemap.draw.legends import BAR, draw_densities
from hazemap.errors import FileError, InputError
from hazemap.lab.compare.charts import PAPER, PLAIN, SMALL, heading
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.map_scores import seen_at
from hazemap.lab.compare.results import Results
from hazemap.lab.compare.trial_settings import Everyone, Row
from hazemap.machine_code.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PICTURE_DEPTH = 9
"""Pictures are kept with 4^9 pixels at most: more would not be seen."""

COLUMNS, GAP, WORDS, HEAD = 5, 0.12, 0.36, 0.62
"""Pictures in a row; inches between them, for the words above a picture, and for the legends above all."""

FEWER, MORE = ("#10304f", "#0067a8", "#8fc1e3"), ("#f3b68f", "#c8480a", "#5a1d00")
"""From far too little to nothing, and from nothing to far too much."""


@dataclass(frozen=True)
class Pictured(Everyone):
    """`Everyone`; it keeps what the map shows, too: people in each of at most 512² pixels."""

    def beside(self, place: GroundTruthMap, shown: Floats) -> Row:
        """The picture, beside what else is told of the map."""
        return super().beside(place, shown) | {"picture": seen_at(shown, min(PICTURE_DEPTH, place.tree.depth))}


def picture_of(results: Results) -> Floats:
    """The picture of the first of some trials; `FileError` if it has none."""
    frame = results.frame
    name = frame["picture"].iloc[0] if "picture" in frame and len(frame) else ""
    path = results.folder / str(name)
    if not path.is_file():
        raise FileError(f"the picture {name} is not in {results.folder}: measure it again with --afresh")
    found: Floats = np.load(path, allow_pickle=False)
    return found


def draw_gallery(results: Results, place: str, title: str) -> "Figure":
    """The truth of a map and, for each method, its release and the difference; one scale for all pictures.

    Takes the first trial of each method, best first by the error of counts in rectangles.
    """
    here, truth = results.where(map=place), results.maps[place]
    if not isinstance(truth, GroundTruthMap):
        raise InputError(f"{place} has people with several rows each, and no gallery")
    methods = sorted(here.named("method"), key=lambda method: here.where(method=method).mean("mre").mean)
    pictures = [(method, here.where(method=method)) for method in methods]
    side = (PAPER - 2 * MARGIN - GAP * (COLUMNS - 1)) / COLUMNS
    rows = ceil((1 + len(pictures)) / COLUMNS)
    tall = WORDS + 2 * side + GAP + 0.1
    epsilon = here.named("epsilon")[0]
    caption = (
        f"{heading(results, place)}, ε = {epsilon:g}. Above: people in a pixel, as the map shows them. Below: how many "
        "more (red) or fewer (blue) than there are, averaged over four pixels. Beneath a name: mean relative error of "
        "counts in random rectangles, and L1 of the density."
    )
    page = FigureLayout.ruled(PAPER, HEAD + rows * tall, title, caption)
    picture = picture_of(pictures[0][1])
    true = seen_at(truth.counts.astype(np.float64), len(picture).bit_length() - 1)
    scale = _scale(true)
    shown = [np.maximum(picture_of(trial).astype(np.float64), 0) for _, trial in pictures]
    apart = [seen_at(each - true, len(true).bit_length() - 2) / 4 for each in shown]
    errors = _scale(np.abs(np.stack(apart)))
    draw_densities(page, MARGIN, page.top, 2.6, scale, "people in a pixel")
    _draw_difference(page, PAPER - MARGIN - 2.6 - 0.15, page.top, 2.6, errors)
    _paint(page, 0, side, tall, "the truth", f"{truth.people:,} people", scale.colours(true), None)
    for number, (method, trial) in enumerate(pictures, 1):
        error = 100 * trial.mean("mre").mean
        words = f"{error:,.0f} %" if error >= 100 else f"{error:.3g} %"
        words += f", L1 {trial.mean('l1').mean:.2f}"
        images = scale.colours(shown[number - 1]), difference(apart[number - 1], errors)
        _paint(page, number, side, tall, method, words, *images)
    return page.figure


def _paint(
    page: FigureLayout,
    number: int,
    side: float,
    tall: float,
    name: str,
    words: str,
    above: NDArray[np.uint8],
    below: NDArray[np.uint8] | None,
) -> None:
    row, column = divmod(number, COLUMNS)
    left, top = MARGIN + column * (side + GAP), page.top + HEAD + row * tall
    page.write(left, top + 0.13, name, va="center", **style(PLAIN, weight="bold"))
    page.write(left, top + 0.27, words, va="center", **style(SMALL, colour=GREY))
    for at, image in enumerate((above, below)):
        if image is not None:
            axes = page.axes(left, top + WORDS + at * (side + GAP), side, side, f"{name} {at}")
            axes.imshow(image, interpolation="antialiased", aspect="auto")
            for spine in axes.spines.values():
                spine.set(linewidth=0.4, color=GREY)


def _scale(numbers: Floats) -> DensityScale:
    """Shades for most of some pictures: the darkest colour begins at their fullest hundredth, weighed by roots."""
    people = numbers[numbers > 0]
    weight = np.sqrt(people)
    high = quantile(people, weight, 0.99)
    low = float(np.clip(quantile(people, weight, 0.25), high / 300, high / 5))
    return DensityScale(low, high, float(people.max()))


def difference(apart: Floats, scale: DensityScale) -> NDArray[np.uint8]:
    """Colours of a difference, white for none, on the scale of the map in both directions.

    >>> difference(np.array([0.0, 5.0, -5.0]), DensityScale(1.0, 5.0, 5.0))[:, 0].tolist()
    [255, 90, 16]
    """
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("difference", (*FEWER, "#ffffff", *MORE), 1023)
    place = np.sign(apart) * scale.position(np.abs(apart))
    found: NDArray[np.uint8] = np.rint(255 * colours(0.5 + 0.5 * place)).astype(np.uint8)
    return found


def _draw_difference(page: FigureLayout, left: float, top: float, width: float, scale: DensityScale) -> None:
    page.write(left, top + 0.15, "fewer or more than there are", va="baseline", **style(8, weight="bold"))
    axes = page.axes(left, top + 0.22, width, BAR, label="difference legend")
    place = np.linspace(-1, 1, 513)
    apart = np.sign(place) * scale.low * np.sinh(np.abs(place) * np.arcsinh(scale.high / scale.low))
    axes.imshow(difference(apart, scale)[None], extent=(-1, 1, 0, 1), aspect="auto", interpolation="nearest")
    values = [value for value, _ in scale.ticks(0.28)]
    at = scale.position(np.array(values))
    ticks = [*(-at[:0:-1]), *at]
    labels = [*(f"−{short(value)}" for value in values[:0:-1]), *(short(value) for value in values)]
    axes.set_xticks(ticks, labels, **style(7))
    axes.tick_params(length=2, width=0.5, color=GREY, pad=1.5)
    for spine in axes.spines.values():
        spine.set(linewidth=0.4, color=GREY)
