"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hazemap.privacy.ledger import Ledger

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="A release: a .parquet or .tif that hazemap wrote.")]
LedgerFile = Annotated[
    Path | None, typer.Option("--ledger", metavar="PATH", help="The ledger, instead of the one in HAZEMAP_HOME.")
]
BOX = "west,south,east,north in degrees, written --box=-74.02,40.70,-73.93,40.80"


def ledger_at(path: Path | None) -> "Ledger":
    """The ledger of an option, or the default one."""
    from hazemap.privacy.ledger import Ledger

    return Ledger(path) if path else Ledger.default()
