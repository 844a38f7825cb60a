"""`hazemap schedule`: releases for the periods of a calendar, from cron or any other scheduler."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.cap_advice import Cap, NoCap, reading_notes
from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.shared_options import AsJson, LedgerPlace, Memory, ledger_at
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from hazemap.execution.scheduled_releases import PeriodState, ScheduleStatus

app = typer.Typer(
    name="schedule",
    help="Release a map for every period of a calendar, each paid for once, within a yearly budget.",
    epilog="Example: [bold]hazemap schedule run release.toml --json[/bold]",
    no_args_is_help=True,
)

ScheduleFile = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Specification of a release with a table \\[schedule].")
]
Now = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Release periods that end before this time (ISO 8601, in the schedule's zone). Default: now.",
    ),
]


@app.command(epilog="Example: [bold]hazemap schedule run release.toml --json[/bold]")
def run(
    file: ScheduleFile = None,
    now: Now = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of schedules and stop.")] = False,
    memory: Memory = None,
    cap: Cap = None,
    no_cap: NoCap = False,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Release every period that is over and not released yet, and finish paid ones. You may run this as often as you
    like.

    Exit codes: 0 nothing is left to do · 3 the newest period is refused, the budget is spent · 6 another process is at
    it · 7 the newest period stopped after its look · others as of hazemap release. They depend on the calendar, the
    ledger, what files declare, and noisy answers that were paid: never on rows themselves.
    """
    if schema:
        from hazemap.cli.shared_options import print_schema
        from hazemap.specs.schedule_spec import SCHEMA

        return print_schema(SCHEMA)
    from hazemap.execution.scheduled_releases import run_schedule

    limit = None if memory is None else memory << 20
    how: dict[str, Any] = {"ledger": ledger_at(ledger), "now": now, "memory_limit": limit, "cap": cap, "no_cap": no_cap}
    with progress() as tell:
        done = run_schedule(_spec(file), progress=tell, **how)
    _told(done, as_json)
    new = [each.period for each in done.periods if each.state == "released"]
    for line in () if as_json or not new else reading_notes(done.spec.of(new[-1])):
        note(line)
    if done.exit_code:
        raise typer.Exit(done.exit_code)
    return None


@app.command(epilog="Example: [bold]hazemap schedule status release.toml[/bold]")
def status(
    file: ScheduleFile = None,
    now: Now = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Show which periods are due, paid or released, and what is left of the year's budget.

    Reads no table and changes nothing.
    """
    from hazemap.execution.scheduled_releases import schedule_status

    _told(schedule_status(_spec(file), ledger=ledger_at(ledger), now=now), as_json)


@app.command(epilog="Example: [bold]hazemap schedule series release.toml -o series.html[/bold]")
def series(
    file: ScheduleFile = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write charts (.png, .svg, .pdf) or a page with the numbers (.html)."),
    ] = None,
    now: Now = None,
    ledger: LedgerPlace = None,
    as_json: AsJson = False,
) -> None:
    """Say how the error changes from release to release, and which changes are more than noise explains, with p.

    It reads published files alone, and costs nothing.
    """
    from hazemap.execution.scheduled_releases import schedule_series

    spec = _spec(file)
    told = schedule_series(spec, ledger=ledger_at(ledger), now=now)
    if output is not None:
        _drawn(told, output)
    lines = [] if output is not None else [each.words for each in told.points]
    facts = {**told.to_json(), **({"output": str(output)} if output else {})}
    deliver(facts, as_json, *lines, *([f"{output}: {told.summary}"] if output else [told.summary]))


def _drawn(told: Any, output: Path) -> None:
    from hazemap.draw import save

    if output.suffix.lower() != ".html":
        return save(told.draw(), output)
    from hazemap.files.atomic_write import write_whole

    return write_whole(output, told.to_html().encode())


def _spec(file: Path | None) -> Any:
    from hazemap.specs.schedule_spec import ScheduleSpec

    if file is None:
        raise InputError("name the file of a schedule: hazemap schedule run release.toml")
    if file.is_dir():
        raise FileError(f"{file} is a folder: name the file of a schedule")
    return ScheduleSpec.read(file)


def _told(done: "ScheduleStatus", as_json: bool) -> None:
    counts = ", ".join(f"{number} {name}" for name in ("there", "missed") if (number := done.to_json()[name]))
    left = (
        f"{done.year}: spent {done.spent}, left {done.left} of {done.spec.yearly}" if done.year else "nothing is over"
    )
    lines = [_line(each) for each in done.periods if each.state not in ("there", "missed")]
    summary = f"{done.spec.name}: {counts or 'no release before'}. {left}."
    deliver(done.to_json(), as_json, *lines, summary)


def _line(each: "PeriodState") -> str:
    said = f": {each.error}" if each.error else f", {each.file}" if each.file else ""
    return f"{each.period.name} {each.state}{said}"
