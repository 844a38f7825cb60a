"""Console output: numbers on stdout, for people or for machines; everything else on stderr.

With `--json` stdout holds one JSON object and nothing else, whether the command succeeds or fails.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from hazemap.errors import warnings_told

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PATIENCE = 0.5  # seconds before a progress bar appears: short work needs none


def console(stderr: bool = False) -> "Console":
    """A rich console that colours only terminals and never breaks lines for a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 200
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def deliver(facts: Mapping[str, Any], as_json: bool, *lines: "RenderableType") -> None:
    """The result of a command: `facts` as JSON, or `lines` for people."""
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, allow_nan=False) + "\n")
        return
    if not sys.stdout.isatty() and all(isinstance(line, str) for line in lines):
        sys.stdout.writelines(
            f"{line}\n" for line in lines
        )  # for a pipe rich has nothing to add, and takes long to load
        return
    out = console()
    for line in lines:
        out.print(line)


def complain(kind: str, message: str, as_json: bool, hint: str = "") -> None:
    """An error: one JSON object on stdout, or one red line on stderr."""
    if as_json:
        sys.stdout.write(json.dumps({"error": {"type": kind, "message": message}}, ensure_ascii=False) + "\n")
        return
    from rich.text import Text

    err = console(stderr=True)
    err.print(Text.assemble(("error: ", "bold red"), (message, "red")), soft_wrap=True)
    if hint:
        err.print(Text(hint, "dim"), soft_wrap=True)


def note(message: str) -> None:
    """One dim line beside the result, on stderr."""
    from rich.text import Text

    console(stderr=True).print(Text(message, "dim"), soft_wrap=True)


def warned() -> AbstractContextManager[None]:
    """Say what hazemap warns of as a line on stderr, as it comes; other warnings are shown as they would be."""
    return warnings_told(_warning)


def _warning(message: str) -> bool:
    from rich.text import Text

    console(stderr=True).print(Text.assemble(("warning: ", "bold yellow"), message), soft_wrap=True)
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
