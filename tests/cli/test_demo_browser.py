"""The demonstration with tabs, without its browsers: what opens links, and who is told what went wrong."""

import json
import sys

import pytest

from hazemap.cli.demo.browser import _opened, browser
from hazemap.cli.demo.devices import PeopleOptions
from hazemap.errors import HazemapError, InputError

LINKS = ["http://127.0.0.1:1/#a", "http://127.0.0.1:1/#b", "http://127.0.0.1:1/#c"]
VISITOR = """
import json, sys
orders = json.load(open(sys.argv[1]))
print("answering")
sys.stdin.readline()
print(json.dumps({"logs": [[link] for link in orders["links"]], "closed": orders["closed"]}))
"""


def test_what_opens_the_links_is_told_the_rules_and_gives_every_tabs_log_in_the_end(tmp_path):
    (tmp_path / "visitor.py").write_text(VISITOR)
    with _opened(LINKS, f"{sys.executable} {tmp_path / 'visitor.py'}", tmp_path) as (there, end):
        assert there()
        assert end() == [[link] for link in LINKS]
    orders = json.loads((tmp_path / "orders.json").read_text())
    assert orders["rules"] == {"people": "40", "survivors": "40"} and orders["closed"] == 2
    with _opened(LINKS[:1], None, tmp_path) as (there, end):
        assert there() and end() == []


def test_browsers_that_fail_are_said_to(tmp_path):
    (tmp_path / "visitor.py").write_text("raise SystemExit(3)")
    with (
        _opened(LINKS, f"{sys.executable} {tmp_path / 'visitor.py'}", tmp_path) as (_, end),
        pytest.raises(HazemapError, match="did not get to their end"),
    ):
        end()


def test_a_folder_with_an_earlier_run_is_left_alone(tmp_path):
    (tmp_path / "map.parquet").write_text("x")
    with pytest.raises(InputError, match="earlier run"):
        browser(PeopleOptions(), tmp_path)
