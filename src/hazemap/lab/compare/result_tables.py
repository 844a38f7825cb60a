"""Tables of results, for a page or for a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import median
from typing import TYPE_CHECKING, Any

from hazemap.lab.compare.charts import heading
from hazemap.lab.compare.map_scores import MEASURES, MetricLabel
from hazemap.lab.compare.results import ResultMean, Results

if TYPE_CHECKING:
    from rich.table import Table as RichTable


CLASSICS = (
    *("UG", "AG", "quadtree (geometric)", "quadtree (uniform)", "kd-tree (geometric)", "kd-tree (uniform)"),
    *("kd-tree (hybrid)", "Privlet", "HB", "HTF", "PrivTree"),
)
"""What `auto` is measured against in hindsight."""


@dataclass(frozen=True)
class Table:
    """A heading and rows of text; the first row names the columns."""

    heading: str
    rows: tuple[tuple[str, ...], ...]

    def markdown(self, level: int = 3) -> str:
        """For a page, under a heading of this level."""
        head, *body = self.rows
        lines = [f"{'#' * level} {self.heading}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])

    def rich(self) -> "RichTable":
        """For a terminal."""
        from rich.table import Table as RichTable

        head, *body = (tuple(cell.replace("**", "") for cell in row) for row in self.rows)
        made = RichTable(title=self.heading, title_justify="left", box=None)
        for column in head:
            made.add_column(column, justify="left" if column == head[0] else "right")
        for row in body:
            made.add_row(*row)
        return made


def by_map(results: Results, scores: Sequence[str], across: str = "epsilon") -> list[Table]:
    """A table for each map: a line a method, best first; each score at each ε, the best of a column in bold.

    `across` is what varies from column to column, in place of ε.
    """
    names = results.named("map") if scores else []
    return [_of_one_map(results.where(map=place), heading(results, place), scores, across) for place in names]


def _of_one_map(results: Results, title: str, scores: Sequence[str], across: str) -> Table:
    varied = [name for name in varying(results) if name != across]
    if across != "epsilon" and len(results.named("epsilon")) > 1:
        varied.insert(0, "epsilon")
    lines = _lines(results, ["method", *varied])
    steps = sorted(results.named(across))
    columns = [(MEASURES[score], step) for score in scores for step in steps]
    found = {
        line: [part.where(**{across: step}).mean(measure.score) for measure, step in columns]
        for line, part in lines.items()
    }
    price = varied.index("epsilon") + 1 if "epsilon" in varied else None  # lines of one price are compared alone
    best = {
        line: [
            _best([found[other][at] for other in found if price is None or other[price] == line[price]], measure)
            for at, (measure, _) in enumerate(columns)
        ]
        for line in found
    }
    sign = -1 if columns[0][0].higher else 1
    order = sorted(found, key=lambda line: sign * found[line][0].mean if found[line][0].number else float("inf"))
    if varied:
        order = list(found)
    head = ["method", *(_word(name) for name in varied)]
    word = _word(across)
    head += [f"{measure.short}: {_step(word, step)}" if len(steps) > 1 else measure.short for measure, step in columns]
    rows = [
        (
            *line,
            *(
                _cell(mean, measure, best[line][at])
                for at, ((measure, _), mean) in enumerate(zip(columns, found[line], strict=True))
            ),
        )
        for line in order
    ]
    return Table(title, (tuple(head), *rows))


def _step(word: str, step: Any) -> str:
    return f"no {word}" if step == inf else f"{word} = {_text(step)}"


def _word(column: str) -> str:
    return "ε" if column == "epsilon" else column.removeprefix("set_")


def varying(results: Results) -> list[str]:
    """The settings that tell trials of a method apart: without any one of them, some would look the same."""
    frame = results.frame
    kept = [name for name in frame if name in ("at", "spelled") or name.startswith("set_")]
    kept.sort(key=lambda name: (name != "at", name != "spelled"))
    apart = len(frame[["method", *kept]].drop_duplicates())
    for name in list(kept):
        rest = [other for other in kept if other != name]
        if len(frame[["method", *rest]].drop_duplicates()) == apart:
            kept = rest
    return kept


def _lines(results: Results, labels: list[str]) -> dict[tuple[str, ...], Results]:
    """The trials with the same labels, by these as text."""
    found: dict[tuple[str, ...], Results] = {}
    for values, part in results.frame.groupby(labels, sort=False, dropna=False):
        found[tuple(_text(value) for value in values)] = Results(part, results.folder, results.maps)
    return found


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value != value else f"{value:,g}"  # noqa: PLR0124 - NaN alone


def _best(means: Sequence[ResultMean], measure: MetricLabel) -> float:
    known = [mean.mean for mean in means if mean.number]
    if len(known) < 2 or measure.plain:
        return float("nan")
    return max(known) if measure.higher else min(known)


def _cell(mean: ResultMean, measure: MetricLabel, best: float) -> str:
    """The mean, bold where it is the best, with half the width of its interval."""
    text = measure.written(mean.mean)
    if not text:
        return ""
    text = f"**{text}**" if mean.mean == best else text
    half = mean.high - mean.mean
    return (
        f"{text} ± {_two_digits(half * measure.factor)}"
        if half > 1e-12 * abs(mean.mean) and not measure.plain
        else text
    )


def _two_digits(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{number:,.0f}"


def hindsight(results: Results, name: str = "auto") -> Table | None:
    """A method against the best of the classics, chosen with the truth in sight, on each map and ε; and against AG."""
    methods = results.named("method")
    rivals = [method for method in CLASSICS if method in methods]
    if name not in methods or "AG" not in rivals:
        return None
    rows, ratios = [], []
    for place in results.named("map"):
        for epsilon in _priced(results):
            here = results.where(map=place, epsilon=epsilon)
            errors = {rival: here.where(method=rival).mean("mre").mean for rival in rivals}
            ours, best = here.where(method=name), min(errors, key=lambda rival: errors[rival])
            mre, l1 = ours.mean("mre").mean, ours.mean("l1").mean
            parts = (mre / errors[best], mre / errors["AG"], l1 / here.where(method="AG").mean("l1").mean)
            ratios.append(parts)
            rows.append((place, f"{epsilon:g}", best, *(f"{part:.2f}" for part in parts)))
    middle = tuple(f"**{median(column):.2f}**" for column in zip(*ratios, strict=True))
    head = ("map", "ε", "best in hindsight", "MRE ÷ its", "MRE ÷ AG’s", "L1 ÷ AG’s")
    return Table(f"{name} against the best of {', '.join(rivals)}", (head, *rows, ("**median**", "", "", *middle)))


def beside_practices(results: Results) -> Table | None:
    """The errors of private maps and of practices, and what is learnt of people from either."""
    if "advantage" not in results.frame:
        return None
    scores = [MEASURES[name] for name in ("mre", "l1", "advantage", "bound", "located", "chance")]
    rows = []
    for place in results.named("map"):
        here = results.where(map=place)
        for epsilon in sorted(here.named("epsilon"), reverse=True):
            at = here.where(epsilon=epsilon)
            for name in at.named("method"):
                means = [at.where(method=name).mean(measure.score) for measure in scores]
                cells = (_cell(mean, measure, nan) for mean, measure in zip(means, scores, strict=True))
                rows.append((place, name, "none" if epsilon == inf else f"{epsilon:g}", *cells))
    head = ("map", "published by", "ε", *(each.short for each in scores))
    return Table("Beside what is published today", (head, *rows))


def _priced(results: Results) -> list[float]:
    """The prices, in ascending order, but for that of practices, which have none."""
    return [epsilon for epsilon in sorted(results.named("epsilon")) if epsilon != inf]


SAID = """How well somebody who knows where everybody else is tells from a map whether a person is there, and how many
newcomers are given away by the maps of the day before and the day after they came:"""


def in_words(results: Results) -> list[str]:
    """Lines for below `SAID`, one for each map and whatever published it; none where nobody was looked for."""
    if "advantage" not in results.frame:
        return []
    found = []
    for place in results.named("map"):
        here = results.where(map=place)
        for epsilon in sorted(here.named("epsilon"), reverse=True):
            at = here.where(epsilon=epsilon)
            found += [_of_one(at.where(method=name), place, name, epsilon) for name in at.named("method")]
    return found


def _of_one(results: Results, place: str, name: str, epsilon: float) -> str:
    told, bound, located, chance = (
        round(100 * results.mean(score).mean) for score in ("advantage", "bound", "located", "chance")
    )
    if epsilon == inf:
        said, limit = name, "nothing limits who knows more or computes more"
    else:
        said = f"{name}, ε = {epsilon:g}"
        limit = f"it is proved that nobody comes further than {bound} %, whatever they know and compute"
    return (
        f"**{said}** on {place}: {max(told, 0)} % of the way from a coin's toss to certainty; {limit}. Of 100 "
        f"newcomers {located} are given away, where {chance} are found by chance."
    )
