"""What the studio itself says no to. Its page has these sentences in four languages, by their names.

What the library refuses is in English alone: the page says so, in the reader's language, before it.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final, TypeVar

Refusal = TypeVar("Refusal", bound=Exception)

SENTENCES: Final[dict[str, str]] = json.loads(files(__package__).joinpath("refusals.json").read_text("utf-8"))
LONGEST: Final = 300
"""Letters of what is filled in."""


def refused(kind: type[Refusal], sentence: str, **words: object) -> Refusal:
    """An error with a sentence of the catalogue, filled in.

    >>> from hazemap.errors import FileError
    >>> error = refused(FileError, "noSuchFile", name="a.csv")
    >>> str(error), said_of(error)["sentence"]
    ("there is no file 'a.csv' in the studio's folder", 'noSuchFile')
    """
    plain = _plain(words)
    return saying(kind(SENTENCES[sentence].format(**plain)), sentence, plain)


def saying(error: Refusal, sentence: str, words: Mapping[str, object], more: bool = False) -> Refusal:
    """An error that a page can tell by a sentence of the catalogue; with `more`, its own words stand beside it."""
    error.__dict__["said"] = {"sentence": sentence, "words": _plain(words), "more": more}
    return error


def said_of(error: BaseException) -> dict[str, Any] | None:
    """The sentence of an error and what is filled in; None for an error that has none."""
    found: dict[str, Any] | None = error.__dict__.get("said")
    return found


def told_of(error: BaseException) -> dict[str, Any]:
    """An error for the browser."""
    return {"type": type(error).__name__, "message": str(error), "said": said_of(error)}


def _plain(words: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value)[:LONGEST] for name, value in words.items()}
