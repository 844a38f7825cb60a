"""A comparison written up: figures, tables and what they are of, from the results alone."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from hazemap import __version__
from hazemap.compare.presets import Preset
from hazemap.compare.results import Results
from hazemap.compare.tables import by_map, hindsight
from hazemap.draw.files import save
from hazemap.whole import write_whole

PAGE, FIGURES = "page.md", "figures"


def written(preset: Preset, results: Results, folder: Path) -> list[Path]:
    """Figures and a page with them into a folder; the files, the page first."""
    (folder / FIGURES).mkdir(exist_ok=True)
    pictures = []
    for name, draw in preset.figures:
        path = folder / FIGURES / f"{name}.png"
        save(draw(results), path)
        pictures.append(path)
    text = page(preset, results, [f"{FIGURES}/{path.name}" for path in pictures])
    write_whole(folder / PAGE, text.encode())
    return [folder / PAGE, *pictures]


def page(preset: Preset, results: Results, pictures: Sequence[str] = ()) -> str:
    """Markdown: what was measured, pictures, and a table for each map."""
    times = sorted({int(number) for number in results.frame.groupby(_labels(results), dropna=False).size()})
    head = f"""{preset.what[0].upper()}{preset.what[1:]}. {_range(times)} releases for each map, method and ε, each with
    fresh noise of the operating system's; hazemap {__version__}. Errors of counts are of 2,000 random rectangles (and
    squares of 2 % of the area), relative to the true count or to 20 people if that is more; those of densities are of
    the map that is shown, nothing below 0, of sum 1. The best of a column is bold; ± is half a 95 % interval of the
    mean."""
    parts = [f"# {preset.name}", _paragraph(head)]
    parts += [_paragraph(preset.note)] if preset.note else []
    origins = [
        f"* {name}: {place.people:,} people, {place.side} × {place.side}; {place.origin}"
        for name, place in results.maps.items()
    ]
    parts += ["\n".join(origins)] if origins else []
    parts += [f"![{Path(picture).stem}]({picture})" for picture in pictures]
    verdict = hindsight(results)
    parts += [verdict.markdown()] if verdict else []
    parts += [table.markdown() for table in by_map(results, preset.scores)]
    return "\n\n".join(parts) + "\n"


def _labels(results: Results) -> list[str]:
    names = [name for name in results.frame if name in ("map", "method", "epsilon") or name.startswith("set_")]
    return [str(name) for name in names]


def _range(times: Sequence[int]) -> str:
    return str(times[0]) if times[0] == times[-1] else f"{times[0]} to {times[-1]}"


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False)
