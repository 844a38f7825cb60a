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

TABLE, PRIVACY, FILE = "The table", "Privacy", "Files"
Source = Annotated[
    str | None,
    typer.Argument(help="Parquet, CSV, GeoPackage, GeoJSON, FlatGeobuf: a file, a folder, a pattern in quotes."),
]
Person = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="The column with the person's id. Guessed by default."),
]
Longitude = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Longitude in degrees. Guessed.")
]
Latitude = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Latitude in degrees. Guessed.")
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", rich_help_panel=TABLE, help="Only rows from then on (ISO 8601).")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", rich_help_panel=TABLE, help="Only rows before then.")]
Epsilon = Annotated[
    str | None, typer.Option("-e", "--epsilon", metavar="ε", rich_help_panel=PRIVACY, help="The price in ε.")
]
Delta = Annotated[
    str | None, typer.Option(metavar="δ", rich_help_panel=PRIVACY, help="With --epsilon: the price is (ε, δ).")
]
Rho = Annotated[
    str | None, typer.Option(metavar="ρ", rich_help_panel=PRIVACY, help="The price in ρ (zCDP), instead of ε.")
]
Payer = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=PRIVACY, help="The data set that pays. By default the file's name."),
]
Force = Annotated[bool, typer.Option("--force", rich_help_panel=FILE, help="Replace a file that is there.")]
Memory = Annotated[
    int | None, typer.Option(metavar="MB", min=1, rich_help_panel=FILE, help="Memory limit in megabytes; 1024.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="SIGN", rich_help_panel=TABLE, help="Of CSV: , ; tab or |. By default read off the header."),
]
Encoding = Annotated[
    str, typer.Option(metavar="NAME", rich_help_panel=TABLE, help="Of CSV: utf-8, latin-1, cp1252 or utf-16.")
]
DecimalSign = Annotated[
    str, typer.Option("--decimal", metavar="SIGN", rich_help_panel=TABLE, help="Of numbers in CSV: a point or a comma.")
]
Multiline = Annotated[
    bool, typer.Option("--multiline", rich_help_panel=TABLE, help="Quoted fields of CSV may hold line breaks.")
]
BOX = "west,south,east,north in degrees, written --box=-74.02,40.70,-73.93,40.80"


def ledger_at(path: Path | None) -> "Ledger":
    """The ledger of an option, or the default one."""
    from hazemap.privacy.ledger import Ledger

    return Ledger(path) if path else Ledger.default()
