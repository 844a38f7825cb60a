"""Pages of results in the documentation, from the Parquet of comparisons: see `make compare-docs`.

    python -m research.compare.documentation_page [FOLDER]   FOLDER (./comparison) holds a folder for each comparison

Writes pages to docs/results, figures to docs/images, and some of the results to research/benchmarks/results. Of the
quick comparison one table more: docs/results/auto.md, the default against the best method in hindsight.
"""

import csv
import io
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hazemap.draw.figure_layout import save
from hazemap.files.atomic_write import write_whole
from hazemap.lab.compare.datasets import Datasets
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.report_page import page
from hazemap.lab.compare.result_tables import hindsight
from hazemap.lab.compare.results import Results
from hazemap.lab.compare.run_comparison import RESULTS
from research.compare.evaluation_datasets import evaluation_datasets
from research.compare.presets import PRESETS

ROOT = Path(__file__).parents[2]
KEPT_RESULTS = ROOT / "research" / "benchmarks" / "results"
PAGES = {
    "comparison": ("quick", "gallery"),
    "htf_paper": ("htf-4", "htf-5", "htf-6", "htf-7", "htf-8", *(f"htf-10{letter}" for letter in "abcde")),
    "emd_paper": tuple(f"heatmaps-{number}" for number in (1, 2, 4, 5, 6, 7, 8, 10, 11)),
    "federated": ("federated",),
    "today": ("today",),
    "users": tuple(
        f"users-{name}" for name in ("means", "cells", "samples", "people", "lengths", "chop", "distributions")
    ),
}
USERS = """# The papers on values of people with many records, measured again

The experiments of Rameshwar, Tandon et al. (2024) on means, on many cells and on distributions, with ours beside them.
A section is what `python -m research.compare` says of the comparison of its name, written from its results; nothing is
typed by hand. [What the methods are](../how-to/values.md), [how to repeat it](../how-to/compare.md). Our copy of the
papers' slides has lost their figures, so the published numbers are those that the authors' code gives."""
TODAY = """# What is published today, and what it tells of people

Counts with a rule for small ones, as many offices publish them, beside maps under differential privacy, of people who
are made up. Made by `python -m research.compare today`, which is `hazemap compare today` with the city of the
evaluation data, and written from its results; nothing is typed by hand.
[How to repeat it with a map of your own](../how-to/compare.md#beside-what-is-published-today)."""
HTF_PAPER = """# The paper on trees of even density, measured again

The figures of Shaham et al. (2022, section 7) and what the paper claims of each, held against what is measured here. A
section is what `python -m research.compare` says of the comparison of its name; a verdict follows from its results by
the rules of `research/compare/presets/htf_claims.py`. The paper's maps are of phones and not public: the synthetic city
has as many people. Of its numbers those in the text survive. [Figure 9](national.md#how-near-it-is) and [table
2](cities.md) have pages of their own; [all papers](papers.md)."""
EMD_PAPER = """# The paper on heatmaps under the earth mover’s distance, measured again

The figures of Ghazi et al. (2022) that can be measured, and what the paper claims of each, held against what is
measured here. A section is what `python -m research.compare` says of the comparison of its name; a verdict follows from
its results by the rules of `research/compare/presets/heatmaps_claims.py`. The claims are about the published algorithm,
`pyramid (published)`. [All papers](papers.md)."""
HEADS = {
    "today": TODAY,
    "htf_paper": HTF_PAPER,
    "emd_paper": EMD_PAPER,
    "federated": "",
    "users": USERS,
}
KEPT = ("quick", "federated", "heatmaps-1", "htf-7", "users-means")
"""The results of these comparisons are kept."""

SHOWN = {"gallery": ("city",)}
"""Of these comparisons only these figures: pictures of the evaluation data may not be passed on."""

TABLED = (
    *("quick", "today", "federated", "users-means", "users-cells", "users-samples", "users-people", "users-lengths"),
    *("users-chop", "users-distributions"),
)
"""These comparisons have their tables on the page, the others only their figures."""

WORDS, ROWS = 1_950, 14
"""Behind so many words of a page, tables of more lines than this lie beside it."""

SHARPNESS = 90
"""Dots an inch of figures in the documentation."""

HEAD = """# All methods, measured

Made by `python -m research.compare` on public and made-up maps, and written from its results; nothing is typed by hand.
[How to repeat it](../how-to/compare.md)."""


def documented(folder: Path, atlas: Datasets, docs: Path, names: Sequence[str], to: str, head: str = HEAD) -> Path:
    """A page of some comparisons, `docs/results/<to>.md`, and their figures in `docs/images`.

    `folder` holds a folder for each comparison, by its name, as the comparison left it.
    """
    parts = [head] if head else []
    for name in names:
        preset = PRESETS[name]
        maps = {place: atlas.map(place) for place in preset.places}
        results = Results.read(folder / name / RESULTS, maps)
        parts.append(_section(preset, results, docs / "images", 2 if head else 3).rstrip("\n"))
    return write_page("\n\n".join(parts) + "\n", docs / "results" / f"{to}.md")


def write_page(text: str, path: Path) -> Path:
    """A page with all its words; long tables behind the first WORDS words are CSV files in `data/NAME`, linked to."""
    folder = path.parent / "data" / path.stem
    shutil.rmtree(folder, ignore_errors=True)
    written, heading, before = "", "", 0
    for piece in re.split(r"(^#+ .*\n|(?:^\|.*\n)+)", text, flags=re.MULTILINE):
        heading = piece if piece.startswith("#") else heading
        rows = piece.splitlines() if piece.startswith("|") else []
        if len(rows) > ROWS and before + len(piece.split()) > WORDS:
            file = folder / f"{_slug(heading)}.csv"
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, _csv(rows).encode())
            written += f"[The table]({file.relative_to(path.parent).as_posix()}), as CSV.\n"
        else:
            written += piece
            before += len(piece.split())
    write_whole(path, (written.rstrip("\n") + "\n").encode())
    return path


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")[:60].strip("-")


def _csv(rows: Sequence[str]) -> str:
    """The rows of a table in Markdown, without the line beneath its head and without bold."""
    cells = [[cell.strip().replace("**", "") for cell in row.strip("|").split(" | ")] for row in rows]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cells[0], *cells[2:]])
    return text.getvalue()


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


def main(folder: Path) -> None:
    """Write every page whose comparisons are all in the folder."""
    atlas = evaluation_datasets(ROOT / ".." / "shared" / "data")
    for title, names in PAGES.items():
        missing = [name for name in names if not (folder / name / RESULTS).exists()]
        if missing:
            print(f"left out: {title}.md, which needs python -m research.compare {', '.join(missing)}")
            continue
        head = {"head": HEADS[title]} if title in HEADS else {}
        print(documented(folder, atlas, ROOT / "docs", names, title, **head))
    if (folder / "quick" / RESULTS).exists() and (verdict := hindsight(Results.read(folder / "quick" / RESULTS))):
        rows = verdict.markdown().splitlines()[2:]  # docs/concepts/auto.md has a heading for them
        write_whole(ROOT / "docs" / "results" / "auto.md", ("\n".join(rows) + "\n").encode())
    for name in KEPT:
        if (folder / name / RESULTS).exists():
            shutil.copy(folder / name / RESULTS, KEPT_RESULTS / f"compare_{name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "comparison")
