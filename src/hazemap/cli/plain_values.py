"""Words of a command line that need no check go on as they are, without the validator that typer loads for the others.

It is pydantic, which takes longer to load than many commands take for the rest. Whatever is not plain is typer's.
"""

import os
import re
from functools import partial
from pathlib import Path
from typing import Any, get_args

import typer

GROUPED = {"_", " ", "\t", "\n"}
"""Characters that Python allows in and around numbers."""

NUMBERS: dict[Any, re.Pattern[str]] = {
    int: re.compile("-?(?:0|[1-9][0-9]{0,14})"),
    float: re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?"),
}
"""Texts that every parser reads as the same number."""


def lightened(parameters: list[Any]) -> list[Any]:
    """Parameters of a command, which plain values pass."""
    for each in parameters:
        if "process_value" not in vars(each):  # typer gives the same ones again and again
            each.process_value = partial(_processed, each, each.process_value)
    return parameters


def lighten(command: Any) -> None:
    """Let plain values pass to the parameters of a command, or of every command in a group."""
    own = command.get_params
    command.get_params = lambda ctx: lightened(own(ctx))
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
