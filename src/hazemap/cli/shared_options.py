"""Options that several commands share, and a specification from a file and the options beside it."""

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.main import method_texts
from hazemap.errors import FileError, InputError
from hazemap.files.number_text import decimals
from hazemap.files.text_files import read_text
from hazemap.specs.spec_fields import FILE, SOURCE, Field

if TYPE_CHECKING:
    from hazemap.privacy.ledger import Ledger
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.statistics_spec import StatisticsSpec


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="Release: a .parquet or .tif that hazemap wrote.")]
LedgerPlace = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="Ledger: a file or postgresql://…. Default: HAZEMAP_LEDGER, or the ledger in HAZEMAP_HOME.",
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


Kind = TypeVar("Kind", "ReleaseSpec", "StatisticsSpec")
Command = TypeVar("Command", bound=Callable[..., None])

SpecFile = Annotated[
    Path | None,
    typer.Option(
        "--spec",
        metavar="FILE",
        rich_help_panel=FILE,
        help="Specification in TOML. Options on the command line override it.",
    ),
]
WrittenSpec = Annotated[
    Path | None,
    typer.Option(
        "--write-spec",
        metavar="FILE",
        rich_help_panel=FILE,
        help="Write the specification to this file and stop: read, charge and release nothing.",
    ),
]
Schema = Annotated[
    bool, typer.Option("--schema", rich_help_panel=FILE, help="Print the JSON Schema of specifications and stop.")
]

BUDGETS = {"rho": ("epsilon", "delta"), "epsilon": ("rho",), "delta": ("rho",)}
"""The names of a budget that one of them excludes: an option takes their place in a file."""


COMPLETED = {"method": method_texts}
"""Names whose values the shell can complete."""


def options(fields: Mapping[str, Field], *names: str) -> Callable[[Command], Command]:
    """Give a command an option for each of these names of a specification, by default for all; it takes `**asked`."""

    def given(command: Command) -> Command:
        own = inspect.signature(command)
        context, *rest = (each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD)
        ours = [_option(name, fields[name]) for name in names or fields]
        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (context, *ours, *rest)]
        command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return given


def _option(name: str, field: Field) -> inspect.Parameter:
    kind: Any = (list[str] if field.texts else str) if field.kind is list else field.kind
    if field is SOURCE:
        info: Any = typer.Argument(help=field.help)
    else:
        flags = field.flags or (f"--{name.replace('_', '-')}",)
        info = typer.Option(
            *flags,
            metavar=field.metavar,
            rich_help_panel=field.group,
            help=field.help,
            autocompletion=COMPLETED.get(name),
        )
    if field.default is None:
        kind = kind | None
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=field.default, annotation=Annotated[kind, info])


def specified(
    ctx: typer.Context,
    kind: type[Kind],
    file: Path | None,
    asked: Mapping[str, Any],
    *,
    table: bool = True,
    **usual: Any,
) -> Kind:
    """The specification of a file and of the options that were given, which count for more than the file.

    With `table` it has to name one. `usual` are defaults that only this command has.
    """
    from hazemap.specs.specification import from_toml

    document: dict[str, Any] = usual
    if file is not None:
        document |= from_toml(read_text(file, "the specification"))
    given = {name: value for name, value in asked.items() if value is not None and not _is_default(ctx, name)}
    for name in given:
        for other in BUDGETS.get(name, ()):
            document.pop(other, None)
    document |= {name: _read(kind.NAMES[name], value) for name, value in given.items()}
    if table and "source" not in document:
        raise InputError("name a table: a file, a folder or a pattern in quotes, or a --spec that names one")
    return kind.from_json(document)


def written(spec: "ReleaseSpec | StatisticsSpec", to: Path, as_json: bool) -> None:
    """Keep a specification in a file."""
    from hazemap.files.atomic_write import write_whole

    write_whole(to, spec.to_toml().encode())
    deliver({"spec": str(to), **spec.to_json()}, as_json, f"{to}: the specification; nothing was read or charged")


def print_schema(schema: Mapping[str, Any]) -> None:
    """Print a JSON Schema as docs/reference has it."""
    typer.echo(json.dumps(schema, ensure_ascii=False, indent=2))


def _read(field: Field, value: Any) -> Any:
    """The value of an option as a file has it."""
    return _ranks(value) if field.kind is list and not field.texts else value


def _ranks(text: str) -> list[float]:
    try:
        return decimals(text)
    except ValueError:
        raise InputError(f"quantiles are numbers between 0 and 1, such as 0.1,0.5,0.9; found {text!r}") from None


def _is_default(ctx: typer.Context, name: str) -> bool:
    """Whether an option was left out."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name in ("DEFAULT", "DEFAULT_MAP")
