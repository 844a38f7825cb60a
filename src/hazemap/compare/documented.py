"""The page of results in the documentation, from the Parquet of comparisons."""

from collections.abc import Sequence
from pathlib import Path

from hazemap.compare.atlas import Atlas
from hazemap.compare.page import page
from hazemap.compare.presets import Preset, preset_named
from hazemap.compare.results import Results
from hazemap.compare.running import RESULTS
from hazemap.draw.files import save
from hazemap.whole import write_whole

SHOWN = {"gallery": ("city",)}
"""Of these comparisons only these figures: pictures of the evaluation data may not be passed on."""

TABLED = (
    *("quick", "federated", "users-means", "users-cells", "users-samples", "users-people", "users-lengths"),
    *("users-chop", "users-distributions"),
)
"""These comparisons have their tables on the page, the others only their figures."""

SHARPNESS = 90
"""Dots an inch of figures in the documentation."""

HEAD = """# All methods, measured

Made by `hazemap compare` on public and made-up maps, and written from its results; nothing here is typed by hand.
[How to repeat it](../how-to/compare.md)."""


def documented(folder: Path, atlas: Atlas, docs: Path, names: Sequence[str], to: str, head: str = HEAD) -> Path:
    """A page of some comparisons, `docs/results/<to>.md`, and their figures in `docs/images`.

    `folder` holds a folder for each comparison, by its name, as `hazemap compare` left it.
    """
    parts = [head] if head else []
    for name in names:
        preset = preset_named(name)
        maps = {place: atlas.map(place) for place in preset.places}
        results = Results.read(folder / name / RESULTS, maps)
        parts.append(_section(preset, results, docs / "images", 2 if head else 3).rstrip("\n"))
    path = docs / "results" / f"{to}.md"
    write_whole(path, ("\n\n".join(parts) + "\n").encode())
    return path


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
