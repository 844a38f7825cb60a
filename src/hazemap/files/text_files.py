"""Small text files that people write, read in one way: UTF-8, with or without a mark of it, no longer than allowed.

TOML is read at a bounded cost: what Python's reader takes grows with the square of a key's parts.
"""

import re
import tomllib
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

from hazemap.errors import FileError, InputError

_WORD = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w.\"'-]){_WORD}(?:[ \t]*+\.[ \t]*+{_WORD}){{16}}")

MOST = 1 << 20
"""Bytes of a file that somebody writes by hand, at most."""

MOST_OF_A_LIST = 1 << 28
"""Bytes of a file that a program may have written, at most: names of cells, a log, shapes."""

_PIECE = 1 << 20


def read_text(file: str | Path, what: str, most: int = MOST, advice: str = "") -> str:
    """The text of a file, its lines ended by LF; `FileError` names `what` it was to be, and the `advice`.

    >>> read_text("nowhere.toml", "the policy", advice="`hazemap device policy` prints one")
    Traceback (most recent call last):
    hazemap.errors.FileError: the policy nowhere.toml cannot be read (No such file or directory): `hazemap device \
policy` prints one
    """
    try:
        content = bytearray()
        with Path(file).open("rb") as opened:
            while len(content) <= most and (piece := opened.read(_PIECE)):
                content += piece
        if len(content) > most:
            why = f"it has more than {most:,} bytes"
        else:
            return TextIOWrapper(BytesIO(content), encoding="utf-8-sig").read()
    except OSError as error:
        why = str(error.strerror)
    except UnicodeDecodeError:
        why = "it is no text in UTF-8"
    except ValueError:
        why = "it has no name that a file can have"
    raise FileError(f"{what} {file} cannot be read ({why}){advice and ': '}{advice}")


def toml_table(text: str, what: str, longest: int, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """The table in a TOML text of at most `longest` characters; `InputError` names `what` it was to be.

    >>> toml_table("days = 30", "the policy", 100)
    {'days': 30}
    """
    if len(text) > longest:
        raise InputError(f"{what} has at most {longest:,} characters of TOML; this has {len(text):,}")
    if _LONG_KEY.search(text):
        raise InputError(f"no name in {what} has more than 16 parts")
    try:
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=parse_float)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError of its own
        raise InputError(f"{what} is not TOML: {error!s:.200}") from None
