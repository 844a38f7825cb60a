"""The studio's sentences in four languages: complete, with the same parts, and English in one of them alone."""

import re
from pathlib import Path

import pytest

from hazemap.studio import refusals
from hazemap.studio.refusals import SENTENCES

SOURCES = Path(__file__).parents[2] / "web" / "studio" / "src"
CATALOGUES = SOURCES / "catalogue"
ENTRY = re.compile(r'^  (\w+):\s+"((?:[^"\\]|\\.)*)",$', re.MULTILINE)


def catalogue(language):
    """The sentences of one language, by name."""
    text = (CATALOGUES / f"{language}.ts").read_text(encoding="utf-8")
    found = ENTRY.findall(text)
    assert len(found) == len(dict(found)), "a sentence stands twice"
    return dict(found)


def parts(text):
    """What is filled in."""
    return sorted(re.findall(r"\{(\w+)\}", text))


@pytest.mark.parametrize("language", ["german", "french", "spanish"])
def test_each_language_has_every_sentence_with_the_same_parts_and_none_in_english(language):
    own = catalogue("english")
    assert not own.keys() & SENTENCES.keys()
    english, other = {**SENTENCES, **own}, catalogue(language)
    assert other.keys() == english.keys()
    for name, text in other.items():
        assert text.strip() and parts(text) == parts(english[name]), name
        long = re.search(r"[a-z]{4,}\W+[a-z]{4,}", re.sub(r"\{\w+\}", "", english[name]))
        assert text != english[name] or not long, name


def test_every_refusal_of_the_server_has_a_sentence_and_every_sentence_is_used():
    code = "".join(path.read_text() for path in Path(refusals.__file__).parent.glob("*.py"))
    named = set(re.findall(r'(?:refused|saying)\(\s*\w+,\s*"(\w+)"', code))
    assert named <= SENTENCES.keys()
    assert {name for name in SENTENCES if f'"{name}"' not in code} == set()
    views = [path for path in SOURCES.rglob("*.ts") if path.parent != CATALOGUES]
    used = code + "".join(path.read_text() for path in views)
    assert {name for name in catalogue("english") if f'"{name}"' not in used} == set()
