"""Console output: numbers on stdout, for people or for machines; everything else on stderr.

With `--json` stdout holds one JSON object and nothing else, whether the command succeeds or fails. Plain words of a
command line skip typer's validator: that is pydantic, which takes longer to load than many commands take in all.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

import typer

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


GROUPED = {"_", " ", "\t", "\n"}
"""Characters that Python allows in and around numbers."""

NUMBERS: dict[Any, re.Pattern[str]] = {
    int: re.compile("-?(?:0|[1-9][0-9]{0,14})"),
    float: re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?"),
}
"""Texts that every parser reads as the same number."""


def accept_plain_values(parameters: list[Any]) -> list[Any]:
    """Parameters of a command, which plain values pass."""
    for each in parameters:
        if "process_value" not in vars(each):  # typer gives the same ones again and again
            each.process_value = partial(_processed, each, each.process_value)
    return parameters


def lighten(command: Any) -> None:
    """Let plain values pass to the parameters of a command, or of every command in a group."""
    own = command.get_params
    command.get_params = lambda ctx: accept_plain_values(own(ctx))
    for each in getattr(command, "commands", {}).values():
        lighten(each)


def _processed(parameter: Any, checked: Any, ctx: Any, value: Any) -> Any:
    """The value that typer's `checked` gives for a parameter."""
    _refuse_odd_numbers(parameter, ctx, value)
    plain = _plain(parameter, value)
    if plain is None:
        return checked(ctx, value)
    [value] = plain
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _refuse_odd_numbers(parameter: Any, ctx: Any, value: Any) -> None:
    """`typer.BadParameter` for what typer reads as a number though it is not written as `number_text` has it."""
    described = getattr(parameter, "type_descriptor", None)
    if described is None or described.parameter_info.parser is not None:
        return
    kinds = {described.annotation, *get_args(described.annotation)}
    if not kinds & {int, float, list[int], list[float]} or str in kinds:
        return
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, str) and set(each) & GROUPED | {letter for letter in each if not letter.isascii()}:
            raise typer.BadParameter(
                f"write numbers in the digits 0 to 9 alone, not {each!r:.60}", ctx=ctx, param=parameter
            )


def _plain(parameter: Any, value: Any) -> tuple[Any] | None:
    """The value that a command gets, alone in a tuple; None where typer has to say."""
    described = getattr(parameter, "type_descriptor", None)
    if described is None or described.parameter_info.parser is not None:
        return None
    kind, info, many = described.annotation, described.parameter_info, parameter.multiple or parameter.nargs == -1
    if value is None:
        return None if parameter.required else (() if many else None,)
    if many:
        words = kind == list[str] and isinstance(value, list | tuple) and value and set(map(type, value)) == {str}
        return (list(value),) if words else None
    if kind is Path and type(value) is str and _may_be_read(info, value):
        return (Path(value),)
    if kind in NUMBERS and type(value) is str and NUMBERS[kind].fullmatch(value):
        value = kind(value)
    right = type(value) is kind and (kind is str or (kind in NUMBERS and _in_range(info, value)))
    return (value,) if right else None


def _in_range(info: Any, number: float) -> bool:
    """Whether a number is in its range; typer refuses others."""
    return (info.min is None or info.min <= number) and (info.max is None or number <= info.max)


def _may_be_read(info: Any, path: str) -> bool:
    """Whether a path is of nothing yet, or of what can be read, where no more is asked of it."""
    anything = info.file_okay and info.dir_okay and info.readable and info.path_type is None
    if not anything or info.exists or info.writable or info.resolve_path or info.allow_dash:
        return False
    try:
        Path(path).stat()
    except OSError:  # nothing that can be seen is there
        return True
    return os.access(path, os.R_OK)
