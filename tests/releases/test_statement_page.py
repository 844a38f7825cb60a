"""The statement as a page: all of its words, in four languages, and no door for anything in them."""

from dataclasses import fields, replace
from html.parser import HTMLParser

import pytest

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.statement_facts import Randomness, StatementFacts
from hazemap.releases.statement_page.explanations import LANGUAGES, Explanations
from hazemap.releases.statement_page.statement_page import statement_page

from .conftest import STATEMENT

DIGEST = "ab" * 32


class Read(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open = [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page(language="en", **changes):
    return Read(statement_page(replace(STATEMENT, **changes), "map.parquet", DIGEST, language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_the_statement_is_there_as_it_is(language):
    read = page(language)
    words = "".join(read.text)
    assert STATEMENT.line() in words
    for _, items in STATEMENT.parts():
        assert all(item in words for item in items)
    assert DIGEST in words and "{times}" not in words and "{delta}" not in words
    assert ("html", {"lang": language}) in read.tags


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_explains_every_part(language):
    words = LANGUAGES[language]
    assert set(words.names) == set(words.why) == {name for name, _ in STATEMENT.parts()}
    for field in fields(Explanations):
        assert getattr(words, field.name)
    assert words.pure.count("{times}") == words.approximate.count("{times}") == 1
    assert words.approximate.count("{delta}") == 1


def test_it_runs_nothing_and_asks_nobody():
    names = {tag for tag, _ in page().tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "a", "svg", "base"}
    assert not any(name.startswith("on") or name in ("src", "href") for _, attrs in page().tags for name in attrs)


@pytest.mark.parametrize(
    "name", ["</title><script>alert(1)</script>", 'a" onload="x', "\u202egnp.exe", "a\x1b[2Jb", "<!--", "\ud800"]
)
def test_names_stay_text(name):
    read = Read(statement_page(replace(STATEMENT, dataset=name), f"{name}.parquet", DIGEST))
    assert read.tags == page().tags
    assert "\u202e" not in "".join(read.text) and "\x1b" not in "".join(read.text)
    statement_page(replace(STATEMENT, dataset=name), "m", DIGEST).encode()


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (PureDP("0.1"), "more than 1.106 times"),
        (PureDP(1), "more than 2.72 times"),
        (PureDP(3), "more than 21 times"),
        (PureDP(1000), "a thousand (which promises next to nothing)"),
        (PureDP("1/1000000000"), "more than 1.001 times"),
        (ApproxDP(1, "1/1000000"), "except with a probability of 1e-06, what"),
        (ZCDP("1/2"), "more than 186 times"),
    ],
)
def test_odds_are_rounded_up(budget, said):
    assert said in "".join(page(budget=budget).text)


def test_a_test_promises_nothing():
    words = "".join(page(circumstances=StatementFacts(randomness=Randomness.TEST_STREAM)).text)
    assert "promises nothing to anybody" in words and "more than 2.72 times" not in words


def test_a_command_is_copied_with_the_name_as_one_word():
    read = Read(statement_page(STATEMENT, "a; rm -rf b.parquet", DIGEST))
    assert "hazemap inspect 'a; rm -rf b.parquet' --replay" in read.text


def test_other_languages_are_refused():
    with pytest.raises(InputError, match="en, de, fr, es; found 'xx'"):
        page("xx")
