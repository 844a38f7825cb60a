"""Options of a command, and a file that holds others, as one specification."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.shared_options import FILE
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.statistics_spec import StatisticsSpec

Kind = TypeVar("Kind", "ReleaseSpec", "StatisticsSpec")

SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec",
        metavar="FILE",
        rich_help_panel=FILE,
        help="A specification in TOML. Options on the command line override it.",
    ),
]
WrittenSpec = Annotated[
    Path | None,
    typer.Option(
        "--write-spec",
        metavar="FILE",
        rich_help_panel=FILE,
        help="Write the specification there and stop: read, charge and release nothing.",
    ),
]


def specified(ctx: typer.Context, kind: type[Kind], file: Path | None, **options: Any) -> Kind:
    """The specification of a file and of the options that were given, by the names it has in a document."""
    from hazemap.specs.toml_and_json import from_toml

    document: dict[str, Any] = {}
    if file is not None:
        try:
            document = dict(from_toml(file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"the specification {file} cannot be read: {error}") from error
    for name, value in options.items():
        if value is not None and not _is_default(ctx, name):
            document[name] = str(value) if isinstance(value, Path) else value
    if "source" not in document:
        raise InputError("which table? Name its file, a folder or a pattern in quotes; or a --spec that does")
    return kind.from_json(document)


def written(spec: "ReleaseSpec | StatisticsSpec", to: Path, as_json: bool) -> None:
    """Keep a specification in a file."""
    from hazemap.atomic_write import write_whole

    write_whole(to, spec.to_toml().encode())
    deliver({"spec": str(to), **spec.to_json()}, as_json, f"{to}: the specification; nothing was read or charged")


def _is_default(ctx: typer.Context, name: str) -> bool:
    """Whether an option was left out; `overwrite` is called --force."""
    source = ctx.get_parameter_source({"overwrite": "force"}.get(name, name))
    return source is not None and source.name in ("DEFAULT", "DEFAULT_MAP")
