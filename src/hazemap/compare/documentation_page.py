"""The page of results in the documentation, from the Parquet of comparisons."""

import re
from collections.abc import Sequence
from pathlib import Path

from hazemap.atomic_write import write_whole
from hazemap.compare.datasets import Datasets
from hazemap.compare.presets import Preset, preset_named
from hazemap.compare.report_page import page
from hazemap.compare.results import Results
from hazemap.compare.run_comparison import RESULTS
from hazemap.draw.figure_layout import save

SHOWN = {"gallery": ("city",)}
"""Of these comparisons only these figures: pictures of the evaluation data may not be passed on."""

TABLED = (
    *("quick", "federated", "users-means", "users-cells", "users-samples", "users-people", "users-lengths"),
    *("users-chop", "users-distributions"),
)
"""These comparisons have their tables on the page, the others only their figures."""

WORDS = 1_950
"""A page has so many words at most."""

SHARPNESS = 90
"""Dots an inch of figures in the documentation."""

HEAD = """# All methods, measured

Made by `hazemap compare` on public and made-up maps, and written from its results; nothing here is typed by hand.
[How to repeat it](../how-to/compare.md)."""


def documented(folder: Path, atlas: Datasets, docs: Path, names: Sequence[str], to: str, head: str = HEAD) -> Path:
    """A page of some comparisons, `docs/results/<to>.md`, and their figures in `docs/images`.

    `folder` holds a folder for each comparison, by its name, as `hazemap compare` left it.
    """
    parts = [head] if head else []
    for name in names:
        preset = preset_named(name)
        maps = {place: atlas.map(place) for place in preset.places}
        results = Results.read(folder / name / RESULTS, maps)
        parts.append(_section(preset, results, docs / "images", 2 if head else 3).rstrip("\n"))
    return write_parts("\n\n".join(parts) + "\n", docs / "results" / f"{to}.md")


def write_parts(text: str, path: Path) -> Path:
    """A page; one of too many words goes on in `NAME-2.md` and so on, which the first one links to."""
    first, *rest = _parts(text)
    names = [f"{path.stem}-{number}" for number in range(2, len(rest) + 2)]
    if rest:
        links = ", ".join(f"[part {number}]({name}.md)" for number, name in enumerate(names, 2))
        first += f"\nThis page goes on in {links}.\n\n```{{toctree}}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    for name, part in zip([path.stem, *names], [first, *rest], strict=True):
        write_whole(path.with_stem(name), (part.rstrip("\n") + "\n").encode())
    return path


def _parts(text: str) -> list[str]:
    """Cut at headings so that no part has more than WORDS, if its sections allow it."""
    title = text.partition("\n")[0]
    parts, section = [""], ""
    for piece in re.split(r"^(?=##)", text, flags=re.MULTILINE):
        if piece.startswith("## "):
            section = piece.partition("\n")[0]
        if parts[-1] and len((parts[-1] + piece).split()) > WORDS:
            parts.append(f"{title} (part {len(parts) + 1})\n\n")
            parts[-1] += f"{section} (continued)\n\n" if piece.startswith("###") else ""
        parts[-1] += piece
    return parts


def _section(preset: Preset, results: Results, images: Path, level: int) -> str:
    pictures = []
    for name, draw in preset.figures:
        if name in SHOWN.get(preset.name, (name,)):
            path = images / f"compare-{name}.png"
            figure = draw(results)
            figure.set_dpi(SHARPNESS)
            save(figure, path)
            pictures.append(f"../images/{path.name}")
    return page(preset, results, pictures, level, preset.name in TABLED)
