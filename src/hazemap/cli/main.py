"""`hazemap`: the list of commands, and what happens to their errors.

Exit codes: 0 done · 1 the system refused, or a bug · 2 wrong options or data · 3 privacy is spent ·
4 files of different releases or versions · 5 the ledger cannot be used · 130 interrupted.
"""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated

import typer

from hazemap.cli import (
    ask,
    audit,
    campaign,
    compare,
    demo,
    demo_devices,
    device,
    export,
    inspect,
    ledger,
    plan,
    recover,
    release,
    server,
    show,
    stats,
)
from hazemap.cli.console_output import complain, warned
from hazemap.errors import HazemapError

INTERRUPTED = 130
BUG = "this is a bug in hazemap, not in what you asked; please report it with the lines above"

app = typer.Typer(
    name="hazemap",
    help="Publish where people are without publishing anyone: differentially private maps.",
    epilog="Example: [bold]hazemap release visits.parquet --person user --epsilon 1 -o map.parquet[/bold]",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command(epilog=demo.EXAMPLE)(demo.demo)
app.command(epilog=demo_devices.EXAMPLE)(demo_devices.demo_devices)
app.command(epilog=release.EXAMPLE)(release.release)
app.command(epilog=stats.EXAMPLE)(stats.stats)
app.command(epilog=recover.EXAMPLE)(recover.recover)
app.command(epilog=ask.EXAMPLE)(ask.ask)
app.command(epilog=show.EXAMPLE)(show.show)
app.command(epilog=plan.EXAMPLE)(plan.plan)
app.command(epilog=compare.EXAMPLE)(compare.compare)
app.command(epilog=audit.EXAMPLE)(audit.audit)
app.command(epilog=inspect.EXAMPLE)(inspect.inspect)
app.command(epilog=export.EXAMPLE)(export.export)
app.command(epilog=server.EXAMPLE)(server.server)
app.add_typer(campaign.app)
app.add_typer(device.app)
app.add_typer(ledger.app)


def _version(wanted: bool) -> None:
    if wanted:
        from hazemap import __version__

        typer.echo(f"hazemap {__version__}")
        raise typer.Exit


@app.callback()
def hazemap(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Publish where people are without publishing anyone: differentially private maps."""


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; only a bug, or the system, raises."""
    machine = "--json" in arguments
    try:
        with warned():
            code = app(list(arguments), prog_name="hazemap", standalone_mode=False)
        if code == INTERRUPTED:  # typer has caught Ctrl-C
            raise KeyboardInterrupt
    except HazemapError as error:
        complain(type(error).__name__, str(error), machine)
        return error.exit_code
    except typer.TyperException as error:
        usage = error.format_message()
        if usage:  # nothing to say where the help has just been printed
            complain("UsageError", usage, machine, "hazemap --help lists every command and its options")
        return 2
    except (typer.Abort, KeyboardInterrupt):
        stands = "interrupted; a charge that was made stands, and `hazemap recover` lists what can be made of it"
        complain("Interrupted", stands, machine)
        return INTERRUPTED
    except OSError as error:
        complain("SystemError", f"the system refused: {error}", machine)
        return 1
    return code if isinstance(code, int) else 0


def run() -> None:
    """The entry point of the `hazemap` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or ε shows a question mark, not a traceback
    try:
        code = main(sys.argv[1:])
    except Exception as error:
        complain(type(error).__name__, BUG, "--json" in sys.argv)
        raise
    sys.exit(code)
