"""Writes what docs/reference takes from the code: the help and the options of every command, and the JSON Schemas.

usage: python docs/cli_reference.py

Text between `<!-- help: NAME -->` or `<!-- options: NAME -->` and `<!-- end -->` is generated, the rest is by hand.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from hazemap.cli.main import app
from hazemap.federated.recipes.policy_document import POLICY_SCHEMA
from hazemap.federated.recipes.recipe_file import SCHEMA as RECIPE
from hazemap.specs.schedule_spec import SCHEMA as SCHEDULE
from hazemap.specs.spec_fields import SCHEMAS

FOLDER = Path(__file__).parent / "reference" / "cli"
PART = re.compile(r"<!-- (help|options): ([a-z -]+) -->\n.*?^<!-- end -->\n", re.DOTALL | re.MULTILINE)
"""A generated part of a page: which one, and of which command."""


def commands(command: Any, name: str = "hazemap") -> Iterator[tuple[str, Any]]:
    """Every command and group, with its whole name."""
    for own, inner in getattr(command, "commands", {}).items():
        yield f"{name} {own}", inner
        yield from commands(inner, f"{name} {own}")


FILES = SCHEMAS | {"schedule": SCHEDULE, "recipe": RECIPE, "policy": POLICY_SCHEMA}
"""The JSON Schema of each kind of file that people write."""

COMMANDS = dict(commands(get_command(app)))


def page_of(name: str) -> Path:
    """The page of a command: a group shares one."""
    return FOLDER / f"{name.split()[1]}.md"


def usage(name: str, command: Any) -> str:
    """How the command is called."""
    arguments = [each.metavar or each.name.upper() for each in command.params if each.param_type_name == "argument"]
    rest = "COMMAND …" if hasattr(command, "commands") else " ".join([*arguments, "[OPTIONS]"])
    return f"```text\n{name} {rest}\n```"


def row(parameter: Any) -> str:
    """A parameter as a line of the table."""
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        name = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    if parameter.required:
        shown = " (required)"
    else:
        shown = "" if default is None or isinstance(default, bool) else f" (default: {default})"
    return f"| {name} | {parameter.help.replace('|', chr(92) + '|')}{shown} |"


def part(kind: str, name: str) -> str:
    """What the code says: the help of a command, or its options as a table."""
    command = COMMANDS[name]
    if kind == "help":
        paragraphs = [" ".join(each.split()) for each in (command.help or "").strip().split("\n\n")]
        return "\n\n".join([*paragraphs, usage(name, command)])
    rows = [row(each) for each in command.params if each.name != "help"]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def refreshed(page: str) -> str:
    """A page with its generated parts as the code has them now."""
    return PART.sub(
        lambda found: f"<!-- {found[1]}: {found[2]} -->\n\n{part(found[1], found[2])}\n\n<!-- end -->\n", page
    )


def schema(name: str) -> str:
    """The JSON Schema of a kind of file, as a file."""
    return json.dumps(FILES[name], ensure_ascii=False, indent=2) + "\n"


def main() -> None:
    """Refresh every page, and the JSON Schemas of specifications."""
    for name in FILES:
        (FOLDER.parent / f"{name}.schema.json").write_text(schema(name))
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(refreshed(path.read_text()))


if __name__ == "__main__":
    main()
