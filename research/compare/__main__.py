"""`python -m research.compare`: `hazemap compare` with the experiments of papers and evaluation data."""

import inspect
import sys
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from hazemap.cli import compare, main
from hazemap.lab.compare.presets import Catalogue
from research.compare.evaluation_datasets import evaluation_datasets
from research.compare.presets import PRESETS

EXAMPLE = "Example: [bold]python -m research.compare htf-7 --data ../shared/data -o comparison[/bold]"
DATA = Annotated[Path | None, typer.Option(metavar="FOLDER", help="The folder of the evaluation data.")]


@wraps(compare.compare)
def _compare(context: typer.Context, *, data: Path | None, **options: Any) -> None:
    context.obj = Catalogue(PRESETS, evaluation_datasets(data))
    compare.compare(context, **options)


_options = inspect.signature(compare.compare)
_data = inspect.Parameter("data", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=DATA)
_compare.__signature__ = _options.replace(parameters=[*_options.parameters.values(), _data])  # type: ignore[attr-defined]

app = typer.Typer(rich_markup_mode="rich", **main.LOOKS)
app.command(epilog=EXAMPLE)(_compare)


def run(arguments: Sequence[str]) -> int:
    """Run a comparison and return its exit code."""
    return main.main(arguments, app, "python -m research.compare")


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
