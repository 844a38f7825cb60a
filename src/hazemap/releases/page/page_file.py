"""The page of a release: one HTML file with its script, its style and its data inside."""

import html
import json
import re
from importlib.resources import files
from typing import Any

from hazemap.errors import InputError

TEMPLATE = "page.html"
"""What `web/page` is built into; a wheel carries it, a clone builds it."""


TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Letters that turn the order of others about, so that a name could make a sentence say something else."""
HALVES = re.compile("[\ud800-\udfff]")
"""Halves of letters, which no file can hold."""


def template() -> str:
    """The built page, without a release in it; `InputError` where there is none."""
    built = files(__package__).joinpath(TEMPLATE)
    if not built.is_file():
        raise InputError(
            "the page for browsers was not built: with npm (Node 20) run `make studio` in the folder of hazemap's"
            " sources, or install a wheel, which carries it"
        )
    return built.read_text(encoding="utf-8")


def filled(page: str, payload: dict[str, Any]) -> str:
    """A built page with a release in it. Whatever the release holds stays data: nothing of it becomes markup."""
    summary = f"{payload['title']}. {payload['line']} This page needs JavaScript to show the map."
    for mark, text in (
        ("<!--title-->", html.escape(_seen(payload["title"], "\\"))),
        ("<!--summary-->", html.escape(_seen(summary, "\\"))),
        ("<!--release-->", script_text(payload)),
    ):
        before, found, after = page.partition(mark)
        if not found:
            raise InputError(f"the built page has no place for {mark[4:-3]}: build it anew with `make studio`")
        page = before + text + after
    return page


def script_text(payload: dict[str, Any]) -> str:
    """JSON that stands inside a script: no letter of it can end the script, or begin a comment, or hide.

    `InputError` for numbers that are not finite: a file may hold counts whose sum is none.
    """
    try:
        plain = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError("a number of this release is too large for a page: no honest one holds such counts") from None
    text = _seen(plain, "\\\\")
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _seen(text: str, backslash: str) -> str:
    """A text in which letters that turn others about are seen, by their numbers, and halves of letters are gone."""
    return HALVES.sub("\ufffd", TURNING.sub(lambda found: f"{backslash}u{ord(found[0]):04x}", text))
