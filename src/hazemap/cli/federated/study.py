"""`hazemap study`: ask people's devices recipes, one after the other, within the budget of their analysis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.federated.recipe import RecipeFile
from hazemap.cli.federated.serving_options import LOCAL, CoordinatorOptions, Server
from hazemap.cli.federated.trust_options import TRUST, CohortOptions
from hazemap.cli.shared_options import AsJson
from hazemap.errors import InputError, NotOpened

if TYPE_CHECKING:
    from pandas import DataFrame

    from hazemap.federated.recipes.recipe import Recipe
    from hazemap.federated.service.operator_line import Operator
    from hazemap.federated.study.http_study import HttpStudy

app = typer.Typer(
    name="study",
    help="Ask people's devices a series of recipes within the budget of their analysis.",
    epilog="Example: [bold]hazemap study ask spring words.toml --token-file anna.token[/bold]",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the study.")]
Round = Annotated[int | None, typer.Option("--round", metavar="N", min=1, help="Round. Default: the last.")]
Confidence = Annotated[float, typer.Option(metavar="PART", help="Confidence of the intervals.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="CSV", help="Write every line to this file.")]
SHOWN = 20
"""Lines of an answer that are shown: the largest counts."""


@app.command(epilog="Example: [bold]hazemap study policy keyboard.signed.json --token-file operator.token[/bold]")
def policy(
    policy: Annotated[Path, typer.Argument(metavar="FILE", help="A policy signed by `hazemap policy sign`.")],
    coordinator: CoordinatorOptions,
    as_json: AsJson = False,
) -> None:
    """Give a server the policy of its devices, which decides about recipes and the budgets of studies."""
    from hazemap.cli.federated.policy import read_signed_policy

    signed = read_signed_policy(policy)
    with coordinator.connect() as line:
        line.post("/v1/policies", signed.to_json().encode())
    facts = {"name": signed.policy.name, "version": signed.policy.version}
    said = f"{signed.policy.name}, version {signed.policy.version}, rules the studies of {coordinator.server}"
    deliver(facts, as_json, said)


@app.command(
    epilog="Example: [bold]hazemap study begin spring --analysis next_word --epsilon 0.5 --delta 1e-6 --reports 3 "
    "--people 2000 --token-file anna.token[/bold]"
)
def begin(
    name: Name,
    coordinator: CoordinatorOptions,
    analysis: Annotated[
        str, typer.Option(metavar="NAME", help="Analysis whose budget pays, as the devices' policy names it.")
    ],
    epsilon: Annotated[
        str, typer.Option("-e", "--epsilon", metavar="ε", help="Most that all rounds may cost together.")
    ],
    cohort: CohortOptions,
    delta: Annotated[str, typer.Option(metavar="δ", help="δ of all rounds together.")] = "1e-6",
    reports: Annotated[int, typer.Option(metavar="N", min=1, help="Most rounds.")] = 10,
    trust: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            rich_help_panel=TRUST,
            help="How reports become sums: secure-sum or two-servers. Recipes name it as their carrier.",
        ),
    ] = "secure-sum",
    as_json: AsJson = False,
) -> None:
    """Begin a study. Its rounds cost; beginning it does not."""
    from hazemap.codec import dumps
    from hazemap.federated.server.studies import StudyOrder
    from hazemap.federated.server.study_statement import assumed

    order = StudyOrder(
        name=name, analysis=analysis, epsilon=epsilon, delta=delta, reports=reports, trust=trust, **vars(cohort)
    )
    spec = order.study()
    with coordinator.connect() as line:
        line.post("/v1/studies", dumps(spec).encode())
    facts = {"study": name, "analysis": analysis, "people": cohort.people, "honest": spec.honest, "reports": reports}
    deliver(
        facts,
        as_json,
        f"{name}: {spec.budget} in {reports:,} reports at most, from {cohort.people:,} people a round",
        *(f"  {line}" for line in assumed(spec)),
        f"Ask in it: hazemap study ask {name} RECIPE",
    )


@app.command(epilog="Example: [bold]hazemap study ask spring words.toml --token-file anna.token[/bold]")
def ask(
    name: Name,
    recipe: RecipeFile,
    coordinator: CoordinatorOptions,
    confidence: Confidence = 0.95,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Ask a recipe, wait, and show the answer. Ctrl-C stops waiting only; the same recipe costs nothing again."""
    from hazemap.federated.recipes.recipe_file import read_recipe
    from hazemap.federated.study.study import check_columns

    asked = read_recipe(recipe)
    check_columns(asked)
    with coordinator.connect() as line:
        study = _study(line, name)
        round_ = study.begin(asked)
        with progress() as tell:
            study.tell = lambda _: tell(f"round {round_} of {name}: waiting for devices", None)
            study.answer(round_)
        _delivered(line, name, round_, confidence, output, as_json)


@app.command(epilog="Example: [bold]hazemap study status spring --token-file anna.token[/bold]")
def status(name: Name, coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """Show the rounds of a study, their states, and what is left of its budget."""
    with coordinator.connect() as line:
        study = _study(line, name)
        found, left = study.status(), study.left()
    rounds = [
        f"  round {each['round']}: {each['state']}, ε = {_number(each['epsilon'])}, δ = {_number(each['delta'])}, "
        f"{each.get('survivors', 0):,} people{_declined(each)}{': ' if each['reason'] else ''}{each['reason']}"
        for each in found["rounds"]
    ]
    ended = [f"  {found['reason']}, {found['stopped']}: nothing more is asked"] if found["stopped"] else []
    deliver(found, as_json, f"{name}, of the analysis {found['analysis']}: {left} left", *ended, *rounds)


@app.command(epilog="Example: [bold]hazemap study results spring --round 2 -o words.csv --token-file anna.token[/bold]")
def results(
    name: Name,
    coordinator: CoordinatorOptions,
    round_: Round = None,
    confidence: Confidence = 0.95,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show the answer of a round, with intervals: the largest counts, or with -o everything."""
    with coordinator.connect() as line:
        rounds = [each["round"] for each in _study(line, name).status()["rounds"] if each["state"] == "done"]
        if not rounds and round_ is None:
            raise NotOpened(f"no round of {name} has been answered yet: `hazemap study status {name}` says why")
        _delivered(line, name, round_ or rounds[-1], confidence, output, as_json)


@app.command(epilog="Example: [bold]hazemap study release spring -o words.parquet --token-file anna.token[/bold]")
def release(
    name: Name,
    coordinator: CoordinatorOptions,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PARQUET", help="File to write.")],
    round_: Annotated[int | None, typer.Option("--round", metavar="N", min=1, help="One round. Default: all.")] = None,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """Write answers with intervals, recipes, price and privacy statement to one file, whole or not at all. It is free.

    The budget in the statement is that of all rounds that were paid, whether or not they are in the file.
    """
    from dataclasses import replace

    with coordinator.connect() as line:
        made = replace(_study(line, name).release(round_=round_), confidence=confidence)
    made.save(output)
    facts = {"file": str(output), "rounds": made.prices(), "statement": made.statement.to_json()}
    deliver(facts, as_json, made.statement.text(), "", *made.summary()[1:], str(output))


@app.command(epilog="Example: [bold]hazemap study stop spring --token-file anna.token[/bold]")
def stop(name: Name, coordinator: CoordinatorOptions, as_json: AsJson = False) -> None:
    """Stop a study for good. Its charges stand, and its answers can still be read."""
    with coordinator.connect() as line:
        study = _study(line, name)
        study.stop()
        rounds = len(study.status()["rounds"])
    facts = {"study": name, "state": "stopped", "rounds": rounds}
    deliver(facts, as_json, f"{name} is stopped, after {rounds:,} rounds: no device is asked in it any more")


@app.command(epilog="Example: [bold]hazemap study recipes --server https://maps.example[/bold]")
def recipes(server: Server = LOCAL, as_json: AsJson = False) -> None:
    """Show the recipes and policies that a server has sent, and check that its log is complete. Needs no token."""
    import json

    import httpx

    from hazemap.federated.recipes.recipe import RECIPE_LOG_FORMAT

    lines: list[str] = []
    try:
        with httpx.Client(base_url=server, timeout=60) as http:
            while more := http.get("/v1/recipes", params={"after": len(lines)}).raise_for_status().text.splitlines():
                lines += more
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InputError(f"the server {server} does not show its log of recipes ({type(error).__name__})") from error
    head = RECIPE_LOG_FORMAT.checked(lines)
    entries = [json.loads(each) for each in lines]
    said = [
        f"{each['time']}  stop {each['study']}, of the analysis {each['name']}, after {each['round']:,} rounds"
        if each["kind"] == "stop"
        else f"{each['time']}  {each['kind']} {each['name']}, version {each['version']}, {each['sha256'][:16]}…"
        + (f"  {each['study']} round {each['round']}, {each['people']:,} people" if each["study"] else "")
        for each in entries
    ]
    deliver(
        {"entries": entries, "digest": head.digest},
        as_json,
        *said,
        f"{head.entries:,} entries, whole up to {head.digest}",
    )


def _study(line: "Operator", name: str) -> "HttpStudy":
    """A study of a server, over the same line."""
    from hazemap.federated.study.http_study import HttpStudy

    return HttpStudy(line.http, name)


def _delivered(line: "Operator", name: str, round_: int, confidence: float, output: Path | None, as_json: bool) -> None:
    """An answer for people, for machines, or as a file."""
    from hazemap.federated.server.study_spec import recipe_from
    from hazemap.federated.study.study import answer_table
    from hazemap.files.atomic_write import write_whole
    from hazemap.releases.text_tables import csv_of

    study = _study(line, name)
    answer = study.answer(round_)
    recipe = recipe_from(study.round(round_)["text"])
    frame = answer_table(recipe, answer, study.assumptions(), confidence)
    if output is not None:
        write_whole(output, csv_of(frame))
        note(f"{output}: {len(frame):,} lines")
    facts = {"study": name, "round": round_, "recipe": recipe.digest, **frame.attrs, "lines": _lines(frame)}
    deliver(facts, as_json, *shown(recipe, frame), f"Left: {study.left()}")


def _lines(frame: "DataFrame") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.to_dict(orient="records")
    return found


def shown(recipe: "Recipe", frame: "DataFrame", most: int = SHOWN) -> list[Any]:
    """The largest counts of an answer as a table for people, and who is not in it."""
    from rich.table import Table

    table = Table(*[each.name for each in recipe.features], "count", "standard error", "low", "high", box=None)
    for _, row in frame.nlargest(most, "count").iterrows():
        numbers = (f"{row[each]:,.0f}" for each in ("count", "standard_error", "low", "high"))
        table.add_row(*(str(row[each.name]) for each in recipe.features), *numbers)
    people, confidence = frame.attrs["people"], frame.attrs["confidence"]
    rest = f"; {len(frame) - most:,} more bins" if len(frame) > most else ""
    none = frame.attrs.get("none")
    apart = f"; without an answer: {none['count']:,.0f} (standard error {none['standard_error']:,.0f})" if none else ""
    counted = f"{people:,} people answered{apart}; intervals hold {confidence:.0%} of the time{rest}"
    return [table, counted, "Promised to each of them:", *(f"* {each}" for each in frame.attrs["promise"])]


def _declined(found: dict[str, Any]) -> str:
    refusals = found.get("refusals") or {}
    if not refusals:
        return ""
    said = "; ".join(f"{number:,}: {reason}" for reason, number in sorted(refusals.items(), key=lambda one: -one[1]))
    return f", {sum(refusals.values()):,} refused ({said})"


def _number(text: str) -> str:
    from fractions import Fraction

    return f"{float(Fraction(text)):.6g}"
