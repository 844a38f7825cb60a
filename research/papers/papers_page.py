"""docs/results/papers.md: every figure and table of the papers with its verdict, from `figures_and_tables.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from hazemap.files.atomic_write import write_whole

LIST = Path(__file__).with_name("figures_and_tables.toml")
DOCS = Path(__file__).parents[2] / "docs"
VERDICTS = ("agrees", "agrees in part", "does not agree", "not reproduced", "nothing to measure")
HEAD = """# Every figure and table of the papers

What became of each when we measured it again, on public and made-up data. `make results` makes all pages anew, in some
hours. A verdict is about what a paper claims, not about its very numbers, where its data is not public.
Theorems are tests: `tests/laws/test_theorems_of_papers.py` checks them on small instances, and says where
others are."""


@dataclass(frozen=True)
class Item:
    """A figure or table: what it shows, the page with ours, what makes that, what came out, and why."""

    name: str
    shows: str
    verdict: str
    why: str
    page: str = ""
    by: str = ""

    @property
    def row(self) -> str:
        """A row of its paper's table."""
        name = f"[{self.name}]({self.page})" if self.page else self.name
        return f"| {name} | {self.shows} | {self.verdict} | {self.why} |"


@dataclass(frozen=True)
class Paper:
    """A paper with all of its figures and tables."""

    title: str
    note: str
    items: tuple[Item, ...]


def papers(path: Path = LIST) -> tuple[Paper, ...]:
    """All papers, in their order."""
    found = tomllib.loads(path.read_text())["paper"]
    return tuple(Paper(each["title"], each["note"], tuple(Item(**item) for item in each["item"])) for each in found)


def page(every: tuple[Paper, ...]) -> str:
    """The page: how many of each verdict, then a table for each paper."""
    items = [item for paper in every for item in paper.items]
    counted = ", ".join(f"{sum(item.verdict == verdict for item in items)} {verdict}" for verdict in VERDICTS)
    parts = [HEAD, f"Of {len(items)} entries: {counted}."]
    for paper in every:
        rows = ["| | what it shows | here | why |", "|---|---|---|---|", *(item.row for item in paper.items)]
        parts += [f"## {paper.title}", paper.note, "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def write(docs: Path = DOCS) -> Path:
    """Write the page."""
    path = docs / "results" / "papers.md"
    write_whole(path, page(papers()).encode())
    return path
