"""Plain values of options become what typer makes of them, and whatever is wrong with others is said by typer."""

import os
from enum import Enum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command

from hazemap.cli.console_output import lighten


class Colour(Enum):
    RED = "red"


def every_kind(
    file: Path,
    others: Annotated[list[Path] | None, typer.Argument()] = None,
    name: str | None = None,
    shown: str = "count",
    cell: Annotated[list[str] | None, typer.Option()] = None,
    number: Annotated[list[int] | None, typer.Option()] = None,
    pair: tuple[str, int] = ("a", 1),
    part: Annotated[float, typer.Option(max=1)] = 0.95,
    most: Annotated[int, typer.Option(min=3, clamp=True)] = 2,
    whole: float = 1,
    top: Annotated[int | None, typer.Option(min=1)] = None,
    there: Annotated[Path | None, typer.Option(exists=True)] = None,
    folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
    out: Annotated[Path | None, typer.Option(writable=True)] = None,
    loud: bool = False,
    quiet: bool | None = None,
    colour: Colour = Colour.RED,
    doubled: Annotated[str, typer.Option(parser=lambda text: 2 * text)] = "x",
    told: Annotated[str, typer.Option(callback=lambda value: f"told {value}")] = "y",
    asked: Annotated[str | None, typer.Option(callback=lambda value: f"asked {value}")] = None,
) -> None: ...


def outcome(light: bool, words: list[str]) -> object:
    """What the function is given for these words, or what is said of them."""
    holder, given = typer.Typer(add_completion=False), {}
    holder.command("one")(every_kind)
    holder.command("two")(lambda: None)
    group = get_command(holder)
    if light:
        lighten(group)
    command = group.commands["one"]
    command.callback = lambda **values: given.update(values)
    try:
        group(["one", *words], standalone_mode=False)
    except typer.TyperException as error:
        return type(error), error.format_message()
    return {name: (type(value), value) for name, value in given.items()}


TAKEN = (
    "here",
    "here a b/c",
    "not/yet",
    "here/below",
    "long" + "er" * 200,
    "folder",
    "here --name --shown= --cell=1 --cell=2 --number=3 --pair q 2 --part=0.5 --top=2 --loud",
    "here --name ± --most=9 --whole=2 --doubled=z --told=me --asked=you --quiet --colour=red",
    "here --part=-0 --whole=007 --most=-5 --top=0999",
    "here --part=1e-3 --whole=123456789012345.123456789012345 --top=999999999999999 --most=9.0",
    "here --there=here --folder=folder --out=here --most=1",
)
REFUSED = (
    *(
        "",
        "closed",
        "here --part=2",
        "here --part=x",
        "here --top=0",
        "here --top=1.5",
        "here --number=x",
        "here --colour=blue",
    ),
    *("here --there=nowhere", "here --folder=here", "here --out=closed", "here --unknown"),
)


@pytest.mark.parametrize("words", [*TAKEN, *REFUSED])
def test_commands_get_what_typer_alone_would_give_them(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("")
    (tmp_path / "closed").write_text("")
    (tmp_path / "folder").mkdir()
    able = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != "closed" and able(path, mode))
    found = outcome(True, words.split())
    assert found == outcome(False, words.split())
    assert isinstance(found, dict) == (words in TAKEN)
