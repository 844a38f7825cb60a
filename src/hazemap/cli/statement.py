"""`hazemap statement`: the promise of a release as a page for people who read no code."""

from hashlib import file_digest
from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.shared_options import AsJson, Force, ReleaseFile
from hazemap.errors import FileError

EXAMPLE = "Example: [bold]hazemap statement map.parquet -o statement.html --language de[/bold]"


def statement(
    file: ReleaseFile,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a page (.html), or the statement's words alone (.txt).")
    ] = None,
    language: Annotated[str, typer.Option(help="Language of the explanations: en, de, fr or es.")] = "en",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a release, and show its privacy statement or write it as a page to print.

    The page is one HTML file without a script. It explains each part, in one of four languages.
    """
    from hazemap.files.atomic_write import write_whole
    from hazemap.releases import check_whole, open_release
    from hazemap.releases.statement_page.statement_page import statement_page

    if output is not None and output.suffix.lower() not in (".html", ".txt"):
        raise FileError(f"the page of a statement ends in .html, its words alone in .txt; found {str(output)!r}")
    if output is not None and output.exists() and not force:
        raise FileError(f"the file {output} exists: choose another name, or replace it with --force")
    with progress() as tell:
        made = open_release(file)
        tell("checking the file", None)
        check_whole(file)
        with file.open("rb") as content:
            digest = file_digest(content, "sha256").hexdigest()
    facts = {"release": str(file), "sha256": digest, "statement": made.statement.to_json()}
    page = statement_page(made.statement, file.name, digest, language)
    if output is None:
        deliver(facts, as_json, made.statement.text())
        return
    write_whole(output, (page if output.suffix.lower() == ".html" else made.statement.text() + "\n").encode())
    deliver({"file": str(output), **facts}, as_json, str(output))
