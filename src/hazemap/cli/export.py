"""`hazemap export`: the numbers of a release for other tools."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, ReleaseFile, refuse_replacing
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.releases import Release, Statistics
    from hazemap.releases.base_release import BaseRelease
    from hazemap.releases.gis.catalogue_facts import Publication

STYLED = (".geojson", ".fgb", ".csv")
"""Exports beside which QGIS looks for a style of the same name."""

RECORDS = {"stac": ".stac.json", "dcat": ".dcat.jsonld"}
CATALOGUES = "Records for catalogues"


def export(
    file: ReleaseFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="File to write: .geojson, .gpkg, .fgb, .pmtiles, .csv, .tif, .qml or .sld."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="stac|dcat|URL",
            help="Write a record for catalogues beside the release, or a table postgresql://host/database?table=name.",
        ),
    ] = None,
    loader: Annotated[
        str | None, typer.Option(metavar="r|duckdb", help="Print a script that loads the release there, and stop.")
    ] = None,
    pixel: Annotated[
        float | None, typer.Option(metavar="METRES", help="For a .tif: largest width of a pixel at the equator.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For a .tif of statistics or marks: column to write. Default: value or shares.",
        ),
    ] = None,
    style: Annotated[
        bool, typer.Option(help="For a .geojson, .fgb or .csv: also write styles for QGIS and others (.qml, .sld).")
    ] = True,
    title: Annotated[
        str | None, typer.Option(rich_help_panel=CATALOGUES, help="Title. Default: name of the data set.")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(rich_help_panel=CATALOGUES, help="Licence: an SPDX identifier such as CC-BY-4.0, or a URL."),
    ] = None,
    publisher: Annotated[str | None, typer.Option(rich_help_panel=CATALOGUES, help="Publisher.")] = None,
    publisher_url: Annotated[str | None, typer.Option(rich_help_panel=CATALOGUES, help="URL of the publisher.")] = None,
    contact: Annotated[
        str | None, typer.Option(rich_help_panel=CATALOGUES, help="E-mail address of the publisher.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(rich_help_panel=CATALOGUES, help="First and last day of the data, such as 2026-01-01/2026-06-30."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(rich_help_panel=CATALOGUES, help="URL of the release. Default: its file name."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file or table.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the numbers of a release, a map or statistics, for other tools, with its statement.

    Of a map with slots the total of all of them is apart, in a file of its own: hours.total.gpkg beside hours.gpkg.
    Answers of a study are written as .csv. A .tif of statistics has a band for every timeslot. QGIS takes the colours
    of a .gpkg out of the file itself, those of a .geojson from the .qml beside it; styles that are there already stay.
    Passwords of databases are libpq's business: ~/.pgpass, a service file, PGPASSWORD.
    """
    facts = (title, licence, publisher, publisher_url, contact, period, url)
    if (to in RECORDS, output is not None) == (True, False):
        output = file.with_name(file.stem + RECORDS[str(to)])
    if sum(each is not None for each in (loader, output, to if to not in RECORDS else None)) != 1:
        raise InputError(
            "say what to make, one thing: -o FILE, --to stac, --to dcat, --to postgresql://…, or --loader r|duckdb"
        )
    if any(facts) and to not in RECORDS:
        raise InputError(f"--{_given(facts)} is for records of catalogues: --to stac or --to dcat")
    if (pixel, column) != (None, None) and (to is not None or loader is not None):
        raise InputError("--pixel and --column are for a .tif of cells")
    if output is not None and not force:
        refuse_replacing(output)
    if loader is not None:
        _print_loader(file, loader, as_json)
        return
    from hazemap.federated.study.study_answers import StudyAnswers
    from hazemap.releases import open_release

    beside: list[Path] = []
    total: list[Path] = []
    with progress() as tell:
        release = open_release(file)
        tell("writing", None)
        if isinstance(release, StudyAnswers):
            if output is None or to is not None or (pixel, column) != (None, None):
                raise InputError(
                    f"{file} holds {release.HOLDS}, exported as .csv: --to, --pixel and --column are for cells"
                )
            release.export(output)
        elif to in RECORDS and output is not None:
            _record(release, str(to), output, _publication(file, output, facts))
        elif output is None:
            from hazemap.releases.gis.postgis_table import write_table

            written = write_table(release, str(to), force)
            tables = [{"table": table, "rows": rows} for table, rows in written]
            lines = [f"{table}: {rows:,} rows" for table, rows in written]
            deliver({**tables[0], **({"total": tables[1]} if tables[1:] else {})}, as_json, *lines)
            return
        else:
            total = _total(release, output, force)
            release.export(output, pixel, column)
            beside = _style(release, output, force) if style else []
    names = [str(each) for each in beside]
    csv = output.suffix.lower() == ".csv" and to is None
    statement = [f"{each}.statement.json" for each in (output, *total)] if csv else []
    facts_: dict[str, Any] = {"file": str(output), **({"statement": statement[0]} if statement else {})}
    facts_ |= {"styles": names} if names else {}
    facts_ |= {"total": str(total[0])} if total else {}
    deliver(facts_, as_json, str(output), *map(str, total), *statement, *names)


def _total(release: "BaseRelease", output: Path, force: bool) -> list[Path]:
    """The file for the total of all slots; None for a release without slots. `FileError` if a file exists."""
    from hazemap.releases.exports import total_path

    if release.total_release is None:
        return []
    if not force:
        refuse_replacing(total_path(output))
    return [total_path(output)]


def _given(facts: tuple[str | None, ...]) -> str:
    names = ("title", "licence", "publisher", "publisher-url", "contact", "period", "url")
    return next(name for name, each in zip(names, facts, strict=True) if each)


def _print_loader(file: Path, loader: str, as_json: bool) -> None:
    from hazemap.releases import open_release
    from hazemap.releases.gis.loader_scripts import loader_script

    release = open_release(file)  # a script for a file that is none would fail in somebody else's hands
    script = loader_script(loader, str(file), getattr(release, "total_release", None) is not None)
    deliver({"file": str(file), "script": script}, as_json, script.rstrip("\n"))


def _publication(file: Path, output: Path, facts: tuple[str | None, ...]) -> "Publication":
    """Catalogue facts from the options, and the release's address as seen from the record."""
    from hazemap.releases.gis.catalogue_facts import Publication

    *about, url = facts
    near = Path(os.path.relpath(file, output.parent)).as_posix()
    return Publication(url or (near if near.startswith("..") else f"./{near}"), *about)


def _record(release: "Release | Statistics", to: str, output: Path, about: "Publication") -> None:
    from hazemap.files.atomic_write import write_whole
    from hazemap.releases.gis.dcat_dataset import dcat_dataset
    from hazemap.releases.gis.stac_item import stac_item

    made: dict[str, Any] = (stac_item if to == "stac" else dcat_dataset)(release, about)
    write_whole(output, (json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def _style(release: "BaseRelease", output: Path, force: bool) -> list[Path]:
    """Write styles beside an export that has none in it; existing styles are replaced only with `force`."""
    from hazemap.releases.exports import total_path

    if output.suffix.lower() not in STYLED or not any(style.writable for style in release.layer_styles()):
        return []
    wanted = [output.with_suffix(suffix) for suffix in (".qml", ".sld")]
    made = [path for path in wanted if force or not path.exists()]
    for path in made:
        release.export(path)
    if release.total_release is not None:
        made += _style(release.total_release, total_path(output), force)
    return made
