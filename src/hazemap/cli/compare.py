"""`hazemap compare`: methods side by side on maps of which the truth is known."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import console, deliver, note, progress, several
from hazemap.cli.main import method_texts
from hazemap.cli.shared_options import AsJson
from hazemap.errors import HazemapError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hazemap.lab.compare.presets import Catalogue
    from hazemap.lab.compare.result_tables import Table


def compare(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="COMPARISON", help="Name of the comparison; --list shows all.")
    ] = "quick",
    folder: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for results, figures and the page.")
    ] = Path("comparison"),
    maps: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="MAP", help="Use this map instead; NAME=FILE is your own map. May be repeated."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="METHOD",
            help="Use this method instead. May be repeated.",
            autocompletion=method_texts,
        ),
    ] = None,
    practices: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="PRACTICE",
            help=(
                "Also measure a present practice: k-anonymity:5, suppression:10, rounding:10 or grid-blur:500m. "
                "May be repeated."
            ),
        ),
    ] = None,
    epsilons: Annotated[
        list[str] | None,
        typer.Option("-e", "--epsilon", metavar="ε", help="Use this price instead. May be repeated."),
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of releases of each method and map.")
    ] = None,
    emd: Annotated[bool, typer.Option("--emd", help="Also measure the exact earth mover's distance.")] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of processes. Default: one for each core.")
    ] = None,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Delete the folder's results and measure everything again.")
    ] = False,
    lists: Annotated[bool, typer.Option("--list", help="Show all comparisons, maps and methods, and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare methods on maps whose truth is known: errors, times, figures and a page.

    Every trial is a release with fresh noise. To resume a run that stopped, run the same command again.
    """
    from hazemap.lab.compare.presets import Catalogue

    catalogue = context.obj or Catalogue()  # a program with comparisons of its own gives them as click's object
    if lists:
        _listed(catalogue, as_json)
        return
    from hazemap.lab.compare.presets import ComparisonOrder
    from hazemap.lab.compare.report_page import written
    from hazemap.lab.compare.result_tables import by_map
    from hazemap.lab.compare.results import Results
    from hazemap.lab.compare.run_comparison import RESULTS, compared
    from hazemap.machine_code.parallel_map import processors

    order = ComparisonOrder(
        name, tuple(maps or ()), tuple(methods or ()), tuple(practices or ()), tuple(epsilons or ()), repetitions, emd
    )
    preset = order.preset(catalogue)
    atlas, trials = replace(catalogue.datasets, own=order.own), list(preset.trials())
    try:
        with progress() as tell:
            outcome = compared(trials, atlas, folder, jobs=jobs or processors(), tell=tell, afresh=afresh)
    except KeyboardInterrupt:
        note(f"stopped; what was finished is kept in {folder}, and the same command goes on from there")
        raise
    for failure in outcome.failures[:5]:
        note(f"failed: {failure}")
    if not outcome.rows:
        raise HazemapError(f"none of the {len(trials):,} trials could be measured; the first: {outcome.failures[0]}")
    results = Results.read(folder / RESULTS, {place: atlas.map(place) for place in preset.places})
    files = written(preset, results, folder)
    tables = [*by_map(results, preset.scores[:2], preset.across), *preset.told(results)]
    facts = {
        "comparison": preset.name,
        "trials": len(outcome.rows),
        "new": outcome.fresh,
        "failed": outcome.failures,
        "files": [str(folder / RESULTS), *map(str, files)],
        "tables": [{"heading": table.heading, "rows": table.rows} for table in tables],
    }
    kept = ", ".join(map(str, (folder / RESULTS, *files[:2])))
    counted = f"{several(len(outcome.rows), 'trial')}, {outcome.fresh:,} of them new: {kept}"
    deliver(facts, as_json, *(table.rich() for table in tables), "", _how_sure(tables), counted)
    if outcome.failures:
        raise HazemapError(f"{len(outcome.failures):,} trials failed; the same command tries them again")


def _how_sure(tables: "Sequence[Table]") -> str:
    """The meaning of ± in the tables, or why there is none."""
    if any(" ± " in cell for table in tables for row in table.rows for cell in row):
        return "± is half a 95 % interval of the mean; numbers without it are of one release, or do not vary."
    return "Nothing says how sure these numbers are: ± needs two releases of each, or more (--repetitions)."


def _listed(catalogue: "Catalogue", as_json: bool) -> None:
    from rich.table import Table

    from hazemap.lab.compare.practices import METHODS

    presets, known = catalogue.presets, catalogue.datasets.known
    kinds = {kind: [entry for entry in known.values() if entry.kind == kind] for kind in ("maps", "tables of values")}
    facts = {
        "comparisons": {name: preset.what for name, preset in presets.items()},
        **{
            kind.split()[0]: {entry.name: {"what": entry.what, "needs data": entry.needs_data} for entry in entries}
            for kind, entries in kinds.items()
            if entries
        },
        "methods": {method.name: method.spelled for method in METHODS},
    }
    shown = {
        "comparisons": [(name, preset.what) for name, preset in presets.items()],
        **{
            kind: [(entry.name, entry.what + (" (--data)" if entry.needs_data else "")) for entry in entries]
            for kind, entries in kinds.items()
            if entries
        },
        "methods": [(method.name, f"--method {method.spelled}") for method in METHODS],
    }
    tables = []
    for title, rows in shown.items():
        table = Table(title, "", box=None)
        for row in rows:
            table.add_row(*row)
        tables.append(table)
    deliver(facts, as_json, *tables)
    if not as_json:
        console().print("")
