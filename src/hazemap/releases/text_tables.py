"""Tables as text for spreadsheets: a name of a district, a slot or a word is text, and never runs as a formula."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hazemap.files.atomic_write import write_whole

if TYPE_CHECKING:
    from pandas import DataFrame

    from hazemap.privacy.statement import Statement

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORMULA = re.compile(r"(^|[;,|\t\r\n])(\s*)(?=[=+\-@＝＋－＠])")
"""Where a spreadsheet would read a formula: at the start of a text, and behind signs that may divide cells."""


def plain_text(text: str) -> str:
    """A text with an apostrophe before what a spreadsheet would run; numbers stay as they are.

    >>> plain_text("=HYPERLINK(1)"), plain_text("-3.5"), plain_text("north;@SUM(A1)"), plain_text("a-b")
    ("'=HYPERLINK(1)", '-3.5', "north;'@SUM(A1)", 'a-b')
    """
    if _NUMBER.fullmatch(text):
        return text
    text = _FORMULA.sub(r"\1\2'", text)
    return f"'{text}" if text.startswith(("\t", "\r", "\n")) else text


def csv_of(frame: "DataFrame", ours: Sequence[str] = ()) -> bytes:
    """A table as CSV (RFC 4180) whose texts are no formulas; in columns of `ours` none can be."""
    safe = frame.copy()
    for name in safe.columns:
        if name not in ours and safe[name].dtype.kind not in "biufc":
            texts = [plain_text(value) if isinstance(value, str) else value for value in safe[name]]
            safe[name] = safe[name].__class__(texts, index=safe.index, dtype=object)
    text: str = safe.rename(columns=plain_text).to_csv(index=False, lineterminator="\n")
    return text.encode()


def statement_beside(path: Path) -> Path:
    """The file in which the statement of a table stands."""
    return path.with_name(path.name + ".statement.json")


def write_csv(frame: "DataFrame", statement: "Statement", path: Path, ours: Sequence[str] = ()) -> None:
    """A table, and its statement beside it."""
    said = json.dumps(statement.to_json(), indent=1, ensure_ascii=False) + "\n"
    write_whole(statement_beside(path), said.encode())
    write_whole(path, csv_of(frame, ours))
