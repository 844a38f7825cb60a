"""The page of threats: its tests exist, and what it assumes is what statements say."""

import itertools
import re
from fractions import Fraction
from pathlib import Path

import pytest

from hazemap.algorithms import Flat
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.privacy_statement import NOT_CHECKED, assumed
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.spatial.quadtree import Quadtree

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGE = (DOCS / "threats.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def missing(page):
    """The tests that a page names and that are nowhere."""
    return [
        f"{path}::{name}"
        for path, name in NAMED.findall(page)
        if not (TESTS / path).exists()
        or not re.search(rf"^(async )?def {name}\(", (TESTS / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("threats.md", 30),
        ("threats-servers.md", 20),
        ("threats-shuffler.md", 20),
        ("threats-devices.md", 40),
        ("threats-studio.md", 20),
        ("threats-tab.md", 12),
        ("threats-tables.md", 12),
    ],
)
def test_every_test_that_a_page_names_exists_and_every_row_names_one(name, least):
    page = (DOCS / name).read_text(encoding="utf-8")
    assert missing(page) == []
    lines = page.splitlines()
    heads = {line for line, after in itertools.pairwise(lines) if after.startswith("|---")}
    rows = [line for line in lines if line.startswith("| ") and line not in heads]
    assert len(rows) > least
    assert [row for row in rows if not NAMED.search(row) and "not built" not in row and "no test" not in row] == []
    assert missing("`federated/device/test_kill.py::test_nothing` `nowhere.py::test_x`") == [
        "federated/device/test_kill.py::test_nothing",
        "nowhere.py::test_x",
    ]


def masked(text):
    """A text without its figures."""
    return re.sub(r"\d[\d,]*", "#", text)


@pytest.mark.parametrize("local", [None, Fraction(8)])
@pytest.mark.parametrize("sampling", list(Sampling))
@pytest.mark.parametrize("mode", list(Mode))
def test_whatever_a_statement_assumes_of_devices_is_on_the_page_in_the_same_words(mode, sampling, local):
    budgets = [PureDP(1)] if local is None else [PureDP(1), ApproxDP(1, "1e-6")]
    cohort = Cohort(25_000, 10_000, mode=mode, sampling=sampling)
    method = Flat(Quadtree.world(depth=3), 2)
    words, same = " ".join(PAGE.split()), str if mode is Mode.MALICIOUS else masked  # the page has its figures
    for budget in budgets:
        said = (*assumed(Campaign("homes", "a map", "town", method, budget, cohort, local_epsilon=local)), NOT_CHECKED)
        assert [each for each in said if same(each) not in same(words)] == []
