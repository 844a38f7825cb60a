"""What notebooks and terminals show of answers: escaped, bounded, with their intervals."""

import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.planning.release_plan import plan
from hazemap.releases.estimates import Estimate
from hazemap.releases.notebook_table import LONGEST, MOST_ROWS, NotebookTable, plain
from hazemap.releases.statistic_estimates import RegionStatistics, StatisticEstimate

EVIL = "<img src=x onerror=alert(1)>'\"&</td>\x1b[31m\u202e[red]"


class Seen(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.tags, self.names, self.text = set(), set(), ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def printed(shown: object) -> str:
    from rich.console import Console

    found = io.StringIO()
    Console(file=found, width=500, force_terminal=False).print(shown)
    return found.getvalue()


@given(st.lists(st.text(max_size=40), min_size=2, max_size=2), st.text(max_size=60), st.text(max_size=60))
def test_no_letter_of_an_answer_becomes_markup(row: list[str], heading: str, note: str):
    made = NotebookTable(heading, ("a", "b"), (tuple(row),), (note,))
    seen = Seen(made.html())
    assert seen.tags <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert seen.names <= {"style"}
    for each in (*row, heading, note):
        assert plain(each) in seen.text


def test_markup_and_control_sequences_are_shown_and_not_obeyed():
    made = NotebookTable(EVIL, (EVIL[:5], "n"), ((EVIL, EVIL),), (EVIL,))
    page, text = made.html(), printed(made.rich())
    assert "<img" not in page
    assert not re.search(r"https?:|<script|on\w+=\w", re.sub(r"&lt;.*?&gt;", "", page))
    for shown in (page, text):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "[red]" in text


def test_long_answers_are_cut_and_say_so():
    made = NotebookTable("many", ("label", "n"), tuple(("x" * 10_000, str(at)) for at in range(10_000)))
    assert len(made.html()) < 400 * MOST_ROWS + LONGEST * MOST_ROWS
    assert "… and 9,960 rows more" in made.html()
    assert "… and 9,960 rows more" in printed(made.rich())


FOUND = Estimate(12340.0, 12214.3, 12476.1, 0.95, "people", 12345.2, 66.8, 310.0, placement_stddev=20.0)
MEAN = StatisticEstimate("mean", "89", "08:00", 23.41, 0.52, 22.4, 24.4, 0.95)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (FOUND, ["12,340 people", "12,345", "95 % interval", "12,214 … 12,476", "67", "310 people in cut cells"]),
        (MEAN, ["mean", "08:00", "23.41", "22.40 … 24.40"]),
        (
            StatisticEstimate("mean", "<b>", "0", None, None, 0, 65, 0.9),
            ["too few people to say", "<b>", "90 %", "0 … 65"],
        ),
        (RegionStatistics(("89",), 0, 1, "people", (MEAN, MEAN)), ["Statistics of a region", "of 1 whole cell"]),
    ],
)
def test_an_answer_is_shown_with_its_interval_in_notebooks_and_terminals(shown, words: list[str]):
    page = Seen(shown._repr_html_())
    for each in words:
        assert each in page.text
        assert each in printed(shown)


@pytest.mark.parametrize("stddev", [0.0, float("inf"), float("nan"), 1e-300, 1e300])
def test_odd_errors_are_shown_too(stddev: float):
    assert "people" in Estimate(0.0, 0.0, 0.0, 0.95, "people", 0.0, stddev)._repr_html_()


def test_a_plan_is_a_table_of_levels():
    made = plan("2.2,48.8,2.5,48.95", people=100_000, epsilon=1, cells="h3:6-7")
    text = Seen(made._repr_html_()).text
    assert "no data was touched" in text
    assert "resolution 6" in text
    assert text.count("◂ best") == 1
    assert "misplaces" in printed(made)
