"""TOML from outside, at a bounded cost: what Python's reader takes grows with the square of a key's parts."""

import re
import tomllib
from collections.abc import Callable
from typing import Any

from hazemap.errors import InputError

_WORD = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w.\"'-]){_WORD}(?:[ \t]*+\.[ \t]*+{_WORD}){{16}}")


def toml_table(text: str, what: str, longest: int, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The table in a TOML text of at most `longest` characters; `InputError` names `what` it was to be.

    >>> toml_table("days = 30", "the policy", 100)
    {'days': 30}
    """
    if len(text) > longest:
        raise InputError(f"{what} in TOML has at most {longest:,} characters: write a longer one as JSON")
    if _LONG_KEY.search(text):
        raise InputError(f"no name in {what} has more than 16 parts")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=parse_float)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError of its own
        raise InputError(f"{what} is not TOML: {error!s:.200}") from None
