"""`hazemap`: the list of commands, completion in shells, and what happens to errors.

Exit codes: 0 done · 1 the system refused, or a bug · 2 wrong options or data · 3 privacy is spent ·
4 files of different releases or versions · 5 the ledger cannot be used · 6 another process runs this schedule ·
130 interrupted.
"""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hazemap.cli.console_output import accept_plain_values, complain, lighten, warned
from hazemap.errors import HazemapError

INTERRUPTED = 130
SLEEP_AT_ONCE = {"OPENBLAS_THREAD_TIMEOUT": "4"}
"""Threads of NumPy's linear algebra sleep after 2⁴ ticks of the clock without work. By default it is
2²⁶, in which each of them keeps a processor busy, from when NumPy is loaded and after every product."""

BUG = "this is a bug in hazemap, not in what you asked; please report it with the lines above"

PANELS: dict[str, dict[str, str]] = {
    "Publish": {
        "demo": "Try hazemap on made-up people: a map from a table (the default), from devices, or in browsers.",
        "plan": "Plan a release without any data: how certain cells of each size can be, and which to choose.",
        "release": "Publish where the people of a table are, under differential privacy per person.",
        "stats": "Publish statistics of a value per cell and timeslot, private for all records of a person.",
        "schedule": "Release a map for every period of a calendar, each paid for once, within a yearly budget.",
        "recover": "Rebuild the file of a paid release after a crash, a full disk or a failed write.",
        "ledger": "Show what data sets have spent, and set the most that they may spend.",
        "studio": "Publish maps in a browser: look at a table, plan, compare prices, release and view.",
    },
    "Look": {
        "ask": "Ask a release for a number: in a box, a polygon, a cell, at a point, or by default in all.",
        "show": "Draw a release as a map, with a legend, a scale bar, its uncertainty and its privacy statement.",
        "centres": "Find K places with people close to them, and how many people are nearest to each.",
        "inspect": "Check every byte of a release, and show its privacy statement and a summary of its transcript.",
        "statement": "Check every byte of a release, and show its privacy statement or write it as a page to print.",
        "export": "Write the numbers of a release, a map or statistics, for other tools, with its statement.",
    },
    "Devices and servers": {
        "server": "Run the coordinator and manage who may enrol devices, order and view campaigns.",
        "campaign": "Order a map from people's devices, watch its progress and fetch it.",
        "device": "Keep a person's rows and answer campaigns without revealing them.",
        "browser-device": "Serve, write or compare the page that makes a browser tab a device, and print its SHA-256.",
        "policy": "Write and sign the policy of devices: which recipes they may answer, and at which price.",
        "recipe": "Write a recipe (a question to devices about their events) and check it before it is sent.",
        "study": "Ask people's devices a series of recipes within the budget of their analysis.",
        "aggregator": "Run one of the two servers of DAP, each of which sees half of every report.",
        "collector": "Create tasks on two servers, and collect the sums of their batches.",
        "shuffler": "Run a shuffler: it passes on what devices send to an analyser, who cannot see who sent it.",
    },
    "Research and audit": {
        "methods": "List methods of maps; describe one with its parameters, defaults and paper.",
        "compare": "Compare methods on maps whose truth is known: errors, times, figures and a page.",
        "audit": "Measure what releases reveal about one person, and compare it with the stated ε.",
    },
}
COMMANDS = {name: text for panel in PANELS.values() for name, text in panel.items()}
"""Every command, by panels of the help, with the first sentences of its own. Its module is loaded when it is used."""

EXAMPLES = {
    "plan": "hazemap plan --box=-74.1,40.6,-73.8,40.9 --people 100000 --epsilon 1",
    "release": "hazemap release visits.parquet --person user --epsilon 1 -o map.parquet",
    "stats": "hazemap stats rides.parquet --value speed --low 0 --high 65 --slots hour-of-day --epsilon 1 "
    "-o speed.parquet",
    "recover": "hazemap recover 3",
    "studio": "hazemap studio data",
    "ask": "hazemap ask map.parquet --box=-74.02,40.70,-73.93,40.80",
    "show": "hazemap show map.parquet -o map.png",
    "centres": "hazemap centres map.parquet -k 10 -o centres.geojson",
    "inspect": "hazemap inspect map.parquet --replay",
    "statement": "hazemap statement map.parquet -o statement.html --language de",
    "export": "hazemap export map.parquet -o map.geojson",
    "browser-device": "hazemap browser-device -o device.html",
    "aggregator": "hazemap aggregator --role leader --data leader --task tasks/leader.toml",
    "shuffler": "hazemap shuffler --data shuffler --least 1000",
    "methods": "hazemap methods htf",
    "compare": "hazemap compare quick --map city --repetitions 3 -o comparison",
    "audit": "hazemap audit --method auto --bounding 'one row' --releases 200 -o audit.md",
}
"""An example of every command that is no group."""

MODULES = {
    "stats": "release",
    "statement": "inspect",
    "browser-device": "device",
    "aggregator": "party_servers",
    "shuffler": "party_servers",
}
"""The modules of commands that share one; any other is called like its command."""


class LazyCommandGroup(TyperGroup):
    """All commands, of which only the one that is used is loaded: so the list of them appears at once, without rich."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _CommandModules(dict.fromkeys(COMMANDS))

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options."""
        return accept_plain_values(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the same in every context
        """Their names, in the order of the help."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, in plain text."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as above
        """A line for each command, by panels."""
        for panel, commands in PANELS.items():
            with formatter.section(panel):
                formatter.write_dl(list(commands.items()))


class _CommandModules(dict[str, Any]):
    """Commands by their names; one is loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if super().__getitem__(name) is None:
            self[name] = _loaded(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The command of a name."""
        if name not in self:
            return default
        return self[name]

    def items(self) -> Any:
        """All of them, loaded."""
        return {name: self[name] for name in self}.items()


def _loaded(name: str) -> Any:
    """A command, or a group of them, with its groups of options."""
    folder = "hazemap.cli.federated" if name in PANELS["Devices and servers"] else "hazemap.cli"
    module = import_module(f"{folder}.{MODULES.get(name, name)}")
    holder = typer.Typer(add_completion=False, rich_markup_mode="rich")
    if name not in EXAMPLES:
        for each in module.app.registered_commands:
            each.callback = with_option_groups(each.callback)
        holder.add_typer(module.app)
        command: Any = get_command(holder).commands[name]  # type: ignore[attr-defined]  # a group has them
    else:
        function = with_option_groups(getattr(module, name.replace("-", "_")))
        holder.command(name, epilog=f"Example: [bold]{EXAMPLES[name]}[/bold]")(function)
        command = get_command(holder)
    lighten(command)
    return command


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of each of its parameters that is a dataclass of options, in place of it."""
    own = inspect.signature(command)
    groups: dict[str, Any] = {each.name: each.annotation for each in own.parameters.values()}
    groups = {name: kind for name, kind in groups.items() if is_dataclass(kind)}
    if not groups:
        return command
    parameters: list[inspect.Parameter] = []
    for each in own.parameters.values():
        options = inspect.signature(groups[each.name]).parameters.values() if each.name in groups else (each,)
        parameters += [one.replace(kind=one.KEYWORD_ONLY) for one in options]

    @wraps(command)
    def grouped(**asked: Any) -> None:
        for name, kind in groups.items():
            asked[name] = kind(**{field.name: asked.pop(field.name) for field in fields(kind)})
        command(**asked)

    grouped.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return grouped


LOOKS: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(
    name="hazemap",
    cls=LazyCommandGroup,
    help="Publish where people are without publishing anyone: differentially private maps.",
    epilog=f"Example: {EXAMPLES['release']}",
    invoke_without_command=True,
    **LOOKS | {"add_completion": True},
)


@app.callback()
def hazemap(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Publish where people are without publishing anyone: differentially private maps."""
    if version:
        from hazemap import __version__

        typer.echo(f"hazemap {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit(2)


def main(arguments: Sequence[str], commands: typer.Typer = app, name: str = "hazemap") -> int:
    """Run one command and return its exit code; only a bug, or the system, raises."""
    machine = "--json" in arguments
    try:
        with warned():
            code = commands(list(arguments), prog_name=name, standalone_mode=False)
        if code == INTERRUPTED:  # typer has caught Ctrl-C
            raise KeyboardInterrupt
    except HazemapError as error:
        complain(type(error).__name__, str(error), machine, facts=error.facts)
        return error.exit_code
    except typer.TyperException as error:
        usage = error.format_message()
        if usage:  # nothing to say where the help has just been printed
            complain("UsageError", usage, machine, f"{name} --help lists every command and its options")
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
    for name, value in SLEEP_AT_ONCE.items():
        os.environ.setdefault(name, value)  # before NumPy is loaded, which reads it
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or ε shows a question mark, not a traceback
    try:
        code = main(sys.argv[1:])
    except Exception as error:
        complain(type(error).__name__, BUG, "--json" in sys.argv)
        raise
    sys.exit(code)


class RunByDefault(TyperGroup):
    """`hazemap device --many …` is `hazemap device run --many …`."""

    default = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The words, after the name of the default command where they begin with an option of it."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def method_names(incomplete: str) -> list[tuple[str, str]]:
    """Methods whose name begins so, each with what it does.

    >>> method_names("htf-")
    [('htf-published', "htf with the paper's amounts of ε: 0.0001 for the height and 0.001 for the lines of a level")]
    """
    from hazemap.algorithms.comparators import every_method
    from hazemap.algorithms.plug_ins import plug_in_names

    found = {name: each.what for name, each in every_method().items()} | dict.fromkeys(plug_in_names(), "of a plug-in")
    return [(name, what) for name, what in found.items() if name.startswith(incomplete)]


def method_texts(incomplete: str) -> list[tuple[str, str]]:
    """Methods, or after `NAME:` the parameters that are not there yet.

    >>> [text for text, _ in method_texts("htf:T=3,h")]
    ['htf:T=3,height=']
    """
    from hazemap.algorithms.built_in_methods import canonical
    from hazemap.algorithms.comparators import every_method

    name, colon, _ = incomplete.partition(":")
    named = every_method().get(canonical(name))
    if not colon or named is None:
        return method_names(incomplete)
    before, comma, begun = incomplete.rpartition(",")
    if not comma:
        before, begun = incomplete.split(":", 1)
    sign = "," if comma else ":"
    there = {each.partition("=")[0] for each in before.partition(":")[2].split(",")}
    return [
        (f"{before}{sign}{each.name}=", each.what)
        for each in named.settings
        if each.name.startswith(begun) and each.name not in there
    ]
