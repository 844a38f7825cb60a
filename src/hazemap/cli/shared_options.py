"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.errors import FileError
from hazemap.specs.spec_fields import FILE

if TYPE_CHECKING:
    from hazemap.privacy.ledger import Ledger

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="A release: a .parquet or .tif that hazemap wrote.")]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="The ledger, a file or postgresql://…, instead of HAZEMAP_LEDGER or the one in HAZEMAP_HOME.",
    ),
]

Force = Annotated[bool, typer.Option("--force", rich_help_panel=FILE, help="Replace an existing file.")]
Memory = Annotated[
    int | None,
    typer.Option(metavar="MB", min=1, rich_help_panel=FILE, help="Memory limit in megabytes. Default: 1024."),
]


def refuse_replacing(output: Path) -> None:
    """`FileError` where a file is there, or the statement that is written beside a table."""
    beside = [output.with_name(output.name + ".statement.json")] if output.suffix.lower() == ".csv" else []
    for each in (output, *beside):
        if each.exists():
            raise FileError(f"the file {each} exists: choose another name, or replace it with --force")


def ledger_at(place: str | None) -> "Ledger":
    """The ledger of an option, or the default one."""
    from hazemap.privacy.ledger import Ledger

    return Ledger(place) if place else Ledger.default()
