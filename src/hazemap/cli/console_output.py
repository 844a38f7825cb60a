"""Console output: numbers on stdout, for people or for machines; everything else on stderr.

With `--json` stdout holds one JSON object and nothing else, whether the command succeeds or fails.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hazemap.errors import warnings_told

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PATIENCE = 0.5  # seconds before a progress bar appears: short work needs none


HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, colour it, or reverse the order of letters."""


def printable(text: str) -> str:
    """A text in which control characters are visible and have no effect: names in a file may be hostile.

    >>> print(printable(f"ill{chr(155)}2K healthy").isascii(), printable("Zürich"))
    True Zürich
    """
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def several(number: int, noun: str) -> str:
    """A number and its noun.

    >>> several(1, "cell"), several(2_000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def console(stderr: bool = False) -> "Console":
    """A rich console that colours only terminals, never breaks lines for a pipe, and shows what is `printable`."""
    from rich.console import Console
    from rich.text import Text

    class Printable(Console):
        def render_str(self, text: str, **look: Any) -> Text:
            return super().render_str(printable(text), **look)

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Printable(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def deliver(facts: Mapping[str, Any], as_json: bool, *lines: "RenderableType") -> None:
    """The result of a command: `facts` as JSON, or `lines` for people."""
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n")
        return
    if not sys.stdout.isatty() and all(isinstance(line, str) for line in lines):
        for line in lines:  # rich has nothing to add, and takes long to load
            sys.stdout.write(printable(str(line)) + "\n")
        return
    out = console()
    for line in lines:
        out.print(line)


def complain(
    kind: str, message: str, as_json: bool, hint: str = "", facts: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """An error: one JSON object on stdout, or one red line on stderr."""
    if as_json:
        sys.stdout.write(json.dumps({"error": {"type": kind, "message": message, **facts}}, ensure_ascii=False) + "\n")
        return
    from rich.text import Text

    err = console(stderr=True)
    err.print(Text.assemble(("error: ", "bold red"), (printable(message), "red")), soft_wrap=True)
    if hint:
        err.print(Text(hint, "dim"), soft_wrap=True)


def note(message: str) -> None:
    """One dim line beside the result, on stderr."""
    from rich.text import Text

    console(stderr=True).print(Text(printable(message), "dim"), soft_wrap=True)


def warned() -> AbstractContextManager[None]:
    """Say what hazemap warns of as a line on stderr, as it comes; other warnings are shown as they would be."""
    return warnings_told(_warning)


def _warning(message: str) -> bool:
    from rich.text import Text

    console(stderr=True).print(Text.assemble(("warning: ", "bold yellow"), printable(message)), soft_wrap=True)
    return True


@contextmanager
def progress() -> Iterator[Callable[[str, float | None], None]]:
    """A bar on stderr for long work: call it with what is being done and the part done, 0 to 1, if known.

    Nothing is drawn where stderr is not a terminal, nor for work that is over at once.
    """
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    tasks: dict[str, TaskID] = {}
    begun = time.monotonic()

    def tell(what: str, part: float | None) -> None:
        if time.monotonic() - begun < PATIENCE:
            return
        if not tasks:
            bars.start()
        if what not in tasks:
            for earlier in tasks.values():
                bars.update(earlier, total=1.0, completed=1.0)
            tasks[what] = bars.add_task(what, total=None)
        if part is not None:
            bars.update(tasks[what], total=1.0, completed=part)

    try:
        yield tell
    finally:
        bars.stop()
