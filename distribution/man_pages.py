"""Writes a man page for every command of hazemap, from the same words as `--help`.

usage: python distribution/man_pages.py FOLDER
"""

import re
import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from hazemap import __version__
from hazemap.cli.main import COMMANDS as FIRST_SENTENCES
from hazemap.cli.main import app

SECTION = "1"
EXIT_CODES = (
    ("0", "done"),
    ("1", "the system refused, or a bug"),
    ("2", "wrong options or data"),
    ("3", "privacy is spent"),
    ("4", "files of different releases or versions"),
    ("5", "the ledger cannot be used"),
    ("6", "another process runs this schedule"),
    ("7", "a release stopped after its look"),
    ("130", "interrupted"),
)
VARIABLES = (
    ("HAZEMAP_HOME", "the folder of the ledger, instead of the platform's folder for a user's data"),
    ("NUMBA_CACHE_DIR", "the folder of compiled loops, instead of the user's cache folder"),
)


def pages() -> dict[str, str]:
    """Every page by its file's name: `hazemap.1`, `hazemap-release.1`, `hazemap-ledger-cap.1`."""
    named = {"hazemap": get_command(app)}
    named |= commands(named["hazemap"], "hazemap")
    return {f"{name.replace(' ', '-')}.{SECTION}": page(name, command) for name, command in named.items()}


def commands(group: Any, above: str) -> dict[str, Any]:
    """Every command within a group, by its whole name."""
    found = {}
    for own, inner in inner_of(group):
        found[f"{above} {own}"] = inner
        found |= commands(inner, f"{above} {own}")
    return found


def page(name: str, command: Any) -> str:
    """One page in the macros of man(7)."""
    about = paragraphs(command)
    lines = [
        f'.TH "{name.replace(" ", "-").upper()}" "{SECTION}" "" "hazemap {__version__}" "hazemap"',
        ".SH NAME",
        f"{roff(name.replace(' ', '-'))} \\- {roff(first_sentence(about[0]))}",
        ".SH SYNOPSIS",
        f".B {roff(name)}",
        roff(synopsis(command)),
        ".SH DESCRIPTION",
        *(line for each in about for line in (".PP", roff(each))),
    ]
    inner = FIRST_SENTENCES if name == "hazemap" else {own: paragraphs(each)[0] for own, each in inner_of(command)}
    if inner:
        lines.append(".SH COMMANDS")
        for own, text in inner.items():
            lines += [".TP", f"\\fB{roff(f'{name} {own}'.replace(' ', '-'))}\\fR({SECTION})", roff(text)]
    options = [each for each in command.params if not getattr(each, "hidden", False)]
    if options:
        lines.append(".SH OPTIONS")
        for each in options:
            lines += [".TP", heading(each), roff(each.help or "")]
    lines.append(".SH EXIT STATUS")
    for code, what in EXIT_CODES:
        lines += [".TP", f"\\fB{code}\\fR", roff(what)]
    lines.append(".SH ENVIRONMENT")
    for variable, what in VARIABLES:
        lines += [".TP", f"\\fB{variable}\\fR", roff(what)]
    above = name.rpartition(" ")[0]
    if above:
        lines += [".SH SEE ALSO", f"\\fB{roff(above.replace(' ', '-'))}\\fR({SECTION})"]
    return "\n".join(lines) + "\n"


def inner_of(command: Any) -> list[tuple[str, Any]]:
    """The commands of a group."""
    return list(getattr(command, "commands", {}).items())


def paragraphs(command: Any) -> list[str]:
    """The help of a command, a line for each paragraph."""
    text = re.sub(r"\[/?[a-z ]+\]", "", command.help or "")
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", text) if each.strip()]


def first_sentence(text: str) -> str:
    """What stands in the list of pages: no full stop at its end."""
    return re.split(r"(?<=[.;:])\s", text)[0].rstrip(".;:")


def synopsis(command: Any) -> str:
    """What follows the name of the command."""
    if hasattr(command, "commands"):
        return "COMMAND …"
    arguments = [each.metavar or each.name.upper() for each in command.params if each.param_type_name == "argument"]
    return " ".join([*arguments, "[OPTIONS]"])


def heading(parameter: Any) -> str:
    """An option or argument with what it takes."""
    if parameter.param_type_name == "argument":
        return f"\\fI{roff(parameter.metavar or parameter.name.upper())}\\fR"
    names = ", ".join(f"\\fB{roff(each)}\\fR" for each in [*parameter.opts, *parameter.secondary_opts])
    takes = "" if parameter.is_flag else f" \\fI{roff(parameter.metavar or parameter.name.upper())}\\fR"
    return names + takes


def roff(text: str) -> str:
    """A text as roff: no word of it is a command."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = " ".join(escaped.split())
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def main(folder: Path) -> None:
    """Write them all."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
