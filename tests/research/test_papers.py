"""The page of every figure and table of the papers: whole, and what it names is there."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from research.compare.presets import PRESETS
from research.papers.papers_page import DOCS, VERDICTS, Item, Paper, page, papers, write

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()
EVERY = papers()
ITEMS = [item for paper in EVERY for item in paper.items]
NUMBERED = (
    {("Figure", number) for number in range(1, 10)} | {("Table", number) for number in (1, 2, 3)},
    {("Figure", number) for number in range(1, 14)},
    set(),
    {("Figure", number) for number in range(1, 11)} | {("Table", number) for number in (1, 2)},
    {("Figure", number) for number in (1, 2, 3, 4)} | {("Table", 1)},
)
"""The figures and tables of each paper; those of slides have no numbers."""


def words_of(name: str) -> list[str]:
    """The names that a variable of the Makefile holds."""
    found = re.search(rf"^{name} := ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert found, name
    return found[1].replace("\\\n", " ").split()


def anchors(path: Path) -> set[str]:
    """What a link to the page may name after its #."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def numbers(paper: Paper) -> list[tuple[str, int]]:
    """The figures and tables that the entries of a paper name."""
    named = [re.fullmatch(r"(Figure|Table)s? ([\d, ]+)", item.name) for item in paper.items]
    return [(one[1], int(number)) for one in named if one for number in one[2].split(",")]


@pytest.mark.parametrize(
    ("paper", "whole"), list(zip(EVERY, NUMBERED, strict=True)), ids=[each.title for each in EVERY]
)
def test_every_figure_and_table_of_a_paper_is_there_once(paper, whole):
    found = numbers(paper)
    assert set(found) == whole and len(found) == len(whole)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item.name}: {item.shows}")
def test_an_entry_has_a_verdict_and_names_a_page_and_a_command_that_are_there(item):
    assert item.verdict in VERDICTS and item.shows and item.why
    if item.verdict in VERDICTS[:3]:
        assert item.page, "what is judged is on a page"
    if item.page:
        name, _, anchor = item.page.partition("#")
        path = DOCS / "results" / name
        assert path.exists() and (not anchor or anchor in anchors(path))
    if item.by:
        assert item.by in {*words_of("COMPARISONS"), *words_of("PAPER_SCRIPTS")}


def on_pages(pattern: str) -> dict[str, str]:
    """The verdict of each figure on pages of claims; of one in parts, that of all of them together."""
    found: dict[str, list[str]] = {}
    for path in sorted((DOCS / "results").glob(pattern)):
        for name, said in re.findall(r"^### (Figure \d+)[a-e]?: (.*)$", path.read_text(), re.MULTILINE):
            found.setdefault(name, []).append(said)
    return {name: said[0] if len(set(said)) == 1 else "agrees in part" for name, said in found.items()}


@pytest.mark.parametrize(("paper", "pattern"), [(EVERY[1], "emd_paper*.md"), (EVERY[3], "htf_paper*.md")])
def test_a_verdict_is_the_one_that_its_page_was_given_by_its_results(paper, pattern):
    said = on_pages(pattern)
    judged = {item.name: item.verdict for item in paper.items if "paper" in item.page}
    assert judged == said and len(said) > 5


def test_what_make_results_runs_is_there():
    assert set(words_of("COMPARISONS")) == set(PRESETS)
    assert all(find_spec(f"research.benchmarks.{name}") for name in words_of("PAPER_SCRIPTS"))
    commands = re.search(r"^results:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert commands and "research.benchmarks.$$script" in commands[1] and "-m research.papers" in commands[1]


def test_the_page_is_the_one_that_the_list_makes(tmp_path):
    (tmp_path / "results").mkdir()
    write(tmp_path)
    written = sorted(path.name for path in (tmp_path / "results").iterdir())
    assert written == sorted(path.name for path in (DOCS / "results").glob("papers*.md"))
    for name in written:
        assert (tmp_path / "results" / name).read_text() == (DOCS / "results" / name).read_text()


def test_a_row_links_its_page_where_there_is_one():
    paper = Paper(
        "One", "A note.", (Item("Figure 1", "a", "agrees", "b", "x.md#y"), Item("Table 1", "c", "agrees", "d"))
    )
    text = page((paper,))
    assert "| [Figure 1](x.md#y) | a | agrees | b |\n| Table 1 | c | agrees | d |" in text
    assert "Of 2 entries: 2 agrees, 0 agrees in part" in text
