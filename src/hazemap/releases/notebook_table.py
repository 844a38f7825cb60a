"""Tables that notebooks and terminals show of what was asked: escaped, bounded, without any script."""

import html
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group

MOST_ROWS = 40
LONGEST = 120
"""Letters of one word or sentence that somebody else may have written."""

CELL = "padding:.15em .8em .15em 0;border:0;vertical-align:top;background:none;"


def plain(text: object, longest: int = LONGEST) -> str:
    r"""Text of which every letter is seen: no line break, no control sequence, nothing that turns the direction.

    >>> plain("a\x1b[31mred"), plain("a" * 200, 3)
    ('a\\u001b[31mred', 'aaa…')
    """
    words = str(text)
    shown = "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in words[:longest])
    return shown + "…" if len(words) > longest else shown


@dataclass(frozen=True)
class NotebookTable:
    """A heading, rows of words and numbers, and notes beneath; the first `words` columns stand left, the rest right.

    Of more than 40 rows the first ones are shown, and the last line says how many there are.

    >>> made = NotebookTable("Ages", ("age", "people"), (("<20", "40"),))
    >>> "&lt;20" in made.html(), "<20" in made.html()
    (True, False)
    """

    heading: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    words: int = 1

    @property
    def shown(self) -> tuple[tuple[str, ...], ...]:
        """The rows that there is room for, plain."""
        return tuple(tuple(plain(each) for each in row) for row in self.rows[:MOST_ROWS])

    @property
    def said(self) -> tuple[str, ...]:
        """The notes; first how many rows are left out."""
        left_out = len(self.rows) - MOST_ROWS
        more = (f"… and {left_out:,} rows more",) if left_out > 0 else ()
        return (*more, *(plain(each, 10 * LONGEST) for each in self.notes))

    def html(self) -> str:
        """For notebooks, in whatever colours they have."""
        side = ["left" if at < self.words else "right" for at in range(len(self.columns))]

        def line(tag: str, row: tuple[str, ...]) -> str:
            cells = zip(row, side, strict=True)
            made = (f"<{tag} style='{CELL}text-align:{where}'>{html.escape(each)}</{tag}>" for each, where in cells)
            return f"<tr style='background:none'>{''.join(made)}</tr>"

        heading = f"<div><b>{html.escape(plain(self.heading, 10 * LONGEST))}</b></div>"
        body = "".join(line("td", row) for row in self.shown)
        head = f"<thead>{line('th', self.columns)}</thead>" if any(self.columns) else ""
        table = (
            f"<table style='border-collapse:collapse;margin:.3em 0'>{head}<tbody>{body}</tbody></table>" if body else ""
        )
        notes = "".join(f"<div style='opacity:.75'>{html.escape(each)}</div>" for each in self.said)
        return f"<div style='overflow-x:auto'>{heading}{table}{notes}</div>"

    def rich(self) -> "Group":
        """For terminals, and for notebooks that show what rich prints."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=any(self.columns))
        for at, name in enumerate(self.columns):
            table.add_column(Text(name), justify="left" if at < self.words else "right")
        for row in self.shown:
            table.add_row(*(Text(each) for each in row))
        heading = Text(plain(self.heading, 10 * LONGEST), style="bold")
        return Group(heading, *([table] if self.rows else []), *(Text(each, style="dim") for each in self.said))


class ShownAsTable(ABC):
    """What is shown as a table: Jupyter, VS Code and Colab look for `_repr_html_`, rich for `__rich__`."""

    @abstractmethod
    def notebook_table(self) -> NotebookTable:
        """The table."""

    def _repr_html_(self) -> str:
        return self.notebook_table().html()

    def __rich__(self) -> "Group":
        return self.notebook_table().rich()
