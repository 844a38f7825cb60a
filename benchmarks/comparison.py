"""Pages of the documentation from comparisons that `hazemap compare` has made: see `make compare-docs`.

usage: comparison.py [FOLDER]   FOLDER (./comparison) holds a folder for each comparison

Writes pages to docs/results, figures to docs/images, and some of the results to results/compare_*.parquet. Of the quick
comparison one table more: docs/results/auto.md, the default against the best method in hindsight.
"""

import shutil
import sys
from pathlib import Path

from city import SHARED

from hazemap.atomic_write import write_whole
from hazemap.compare.datasets import Datasets
from hazemap.compare.documentation_page import documented
from hazemap.compare.result_tables import hindsight
from hazemap.compare.results import Results
from hazemap.compare.run_comparison import RESULTS

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGES = {
    "comparison": ("quick", "gallery", "htf-7", "htf-8", "heatmaps-1", "heatmaps-2"),
    "htf_paper": ("htf-4", "htf-5", "htf-6", "htf-7", "htf-8", *(f"htf-10{letter}" for letter in "abcde")),
    "emd_paper": tuple(f"heatmaps-{number}" for number in (1, 2, 4, 5, 6, 7, 8, 10, 11)),
    "federated": ("federated",),
    "users": tuple(
        f"users-{name}" for name in ("means", "cells", "samples", "people", "lengths", "chop", "distributions")
    ),
}
USERS = """# The papers on values of people with many records, measured again

The experiments of Rameshwar, Tandon et al. (2024) on means, on many cells and on distributions, with ours beside them.
A section is what `hazemap compare` says of the comparison of its name, written from its results; nothing here is typed
by hand. [What the methods are](../how-to/values.md), [how to repeat it](../how-to/compare.md). Our copy of the papers'
slides has lost their figures, so the published numbers are those that the authors' code gives."""
HEADS = {
    "htf_paper": "# The paper on trees of even density, measured again",
    "emd_paper": "# The paper on heatmaps under the earth mover’s distance, measured again",
    "federated": "",
    "users": USERS,
}
KEPT = ("quick", "federated", "heatmaps-1", "htf-7", "users-means")


def main(folder: Path) -> None:
    atlas = Datasets(SHARED / "data")
    for page, names in PAGES.items():
        missing = [name for name in names if not (folder / name / RESULTS).exists()]
        if missing:
            print(f"left out: {page}.md, which needs hazemap compare {', '.join(missing)}")
            continue
        head = {"head": HEADS[page]} if page in HEADS else {}
        print(documented(folder, atlas, DOCS, names, page, **head))
    if (folder / "quick" / RESULTS).exists() and (verdict := hindsight(Results.read(folder / "quick" / RESULTS))):
        rows = verdict.markdown().splitlines()[2:]  # docs/concepts/auto.md has a heading for them
        write_whole(DOCS / "results" / "auto.md", ("\n".join(rows) + "\n").encode())
    for name in KEPT:
        if (folder / name / RESULTS).exists():
            shutil.copy(folder / name / RESULTS, HERE / "results" / f"compare_{name}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "comparison")
