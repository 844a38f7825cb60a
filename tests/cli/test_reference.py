"""docs/command-line.md holds every command, option and exit code, in the words of `--help`, and no other."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hazemap import errors
from hazemap.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def commands(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    for own, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands"):
            yield from commands(inner, f"{name}{own} ")
        else:
            yield f"{name}{own}", inner


COMMANDS = dict(commands(get_command(app)))


def row(parameter: Any) -> str:
    """A parameter as a line of the page's table."""
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    shown = "" if default is None or isinstance(default, bool) or parameter.required else f" (default: {default})"
    return f"| {name} | {parameter.help.replace('|', chr(92) + '|')}{shown} |"


def section(name: str) -> str:
    found = re.search(rf"^### `hazemap {name}`$(.*?)(?=^##)", PAGE.read_text() + "\n## \n", re.MULTILINE | re.DOTALL)
    assert found, f"docs/command-line.md has no section '### `hazemap {name}`'"
    return found[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section_with_its_options_and_no_others(name):
    rows = [row(parameter) for parameter in COMMANDS[name].params if parameter.name != "help"]
    written = [line for line in section(name).splitlines() if line.startswith("| `")]
    assert written == rows


@pytest.mark.parametrize("name", COMMANDS)
def test_a_section_begins_with_the_sentence_of_the_help(name):
    first = COMMANDS[name].help.strip().partition("\n\n")[0]
    assert " ".join(first.split()) in " ".join(section(name).split())


def test_no_section_is_about_a_command_that_is_not_there():
    assert re.findall(r"^### `hazemap ([a-z -]+)`$", PAGE.read_text(), re.MULTILINE) == list(COMMANDS)


def test_every_exit_code_is_explained():
    written = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)}
    raised = {each.exit_code for each in vars(errors).values() if hasattr(each, "exit_code")}
    assert written == raised | {0, 1, 2, 130}
