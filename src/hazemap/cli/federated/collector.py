"""`hazemap collector`: sets up tasks of two servers, and collects the sums of their batches."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.federated.serving_options import TrustCertificate
from hazemap.cli.shared_options import AsJson, SpecFile, options, specified
from hazemap.errors import FileError, InputError
from hazemap.files.number_text import is_rational
from hazemap.specs.spec_fields import RELEASE

if TYPE_CHECKING:
    import httpx

    from hazemap.federated.protocols.dap.basic_types import TimeInterval
    from hazemap.federated.protocols.dap.vdaf_configuration import VdafConfiguration

app = typer.Typer(
    name="collector",
    help="Create tasks on two servers, and collect the sums of their batches.",
    epilog="Example: [bold]hazemap collector collect tasks/collector.toml --start 1767225600 --seconds 3600[/bold]",
    no_args_is_help=True,
)


@app.command(
    epilog="Example: [bold]hazemap collector task histogram:4096 --leader https://one.example/ --helper "
    "https://two.example/ --least 1000 --epsilon 1 --open 100000 -o tasks[/bold]"
)
def task(
    measurement: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="count, sum:MAX, vector:LENGTH:MAX, histogram:CELLS, bits:LENGTH:MOST or prefixes:BITS.",
        ),
    ],
    leader: Annotated[str, typer.Option(metavar="URL", help="URL of the leader, as clients use it.")],
    helper: Annotated[str, typer.Option(metavar="URL", help="URL of the helper.")],
    least: Annotated[int, typer.Option(min=1, help="Fewest reports of a batch.")],
    open_reports: Annotated[
        int,
        typer.Option(
            "--open",
            metavar="REPORTS",
            min=1,
            help="Declare the task open: anyone may upload, as often as they like, until so many reports are stored.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="New folder for the files of the parties.")
    ],
    seconds: Annotated[int, typer.Option(min=1, help="Time precision in seconds; batches are multiples of it.")] = 3600,
    epsilon: Annotated[
        str | None,
        typer.Option(metavar="ε", help="Price of a report for its person. Each server adds all of the noise."),
    ] = None,
    delta: Annotated[
        str | None, typer.Option(metavar="δ", help="With δ the noise is Gaussian; without it, Laplace.")
    ] = None,
    levels: Annotated[
        int, typer.Option(min=1, help="How often a batch of prefixes may be collected, each time with fresh noise.")
    ] = 1,
    questions: Annotated[
        bool,
        typer.Option(
            "--questions",
            help="For prefixes: ε and levels pay for questions about a tree, as `collector map` asks them.",
        ),
    ] = False,
    outside: Annotated[
        bool,
        typer.Option(
            "--outside",
            help=(
                "For --questions: maps may count people outside. Each row then moves two counts, so noise is "
                "twice as wide."
            ),
        ),
    ] = False,
    prefixes: Annotated[
        int | None, typer.Option(min=1, help="For --questions: the most prefixes of one level that servers verify.")
    ] = None,
    leader_selected: Annotated[
        bool, typer.Option("--leader-selected", help="Let the leader form batches, instead of intervals of time.")
    ] = False,
    expiry_days: Annotated[
        int | None, typer.Option(min=1, help="Days after which the servers refuse new reports and delete old ones.")
    ] = None,
    version: Annotated[str, typer.Option(help="'dap-18', or 'dap-09' for the uploads of older clients.")] = "dap-18",
    as_json: AsJson = False,
) -> None:
    """Set up a task: four files, for the leader, the helper, the collector and clients.

    Hand each file over on a way that nobody else reads. Only the clients' may be public. Nobody proves who they are to
    such a task, so one client may count many times: campaigns give out credentials instead.
    """
    import os

    from hazemap.federated.aggregator.task_file import new_task_files
    from hazemap.federated.aggregator.task_records import measurement_of, noise_within
    from hazemap.federated.protocols.dap.basic_types import VERSIONS
    from hazemap.federated.protocols.dap.privacy_parameters import Nowhere, WalkTerms
    from hazemap.federated.protocols.dap.resource_paths import id_text
    from hazemap.federated.protocols.dap.task import BatchMode, DapTask
    from hazemap.specs.parsing import budget
    from hazemap.vdaf.poplar1 import MOST_PREFIXES

    if version not in VERSIONS:
        raise InputError(f"--version is one of {', '.join(VERSIONS)}; found {version!r:.20}")
    measured = measurement_of(measurement)
    privacy = walk = None
    if not questions and (outside or prefixes is not None):
        raise InputError("--outside and --prefixes are for tasks of --questions")
    if questions:
        nowhere = Nowhere.PAID if outside else Nowhere.REFUSED
        walk = WalkTerms.of(budget(epsilon, delta, None), levels, prefixes or MOST_PREFIXES, nowhere)
    elif epsilon is not None:
        privacy = noise_within(measured, _number(epsilon), _number(delta or "0"), levels)
    made = DapTask.created(
        os.urandom(32),
        b"hazemap",
        leader,
        helper,
        seconds,
        least,
        BatchMode.LEADER_SELECTED if leader_selected else BatchMode.TIME_INTERVAL,
        measured,
        privacy=privacy,
        version=VERSIONS[version],
        walk=walk,
    )
    expiry = None if expiry_days is None else 86_400 * expiry_days
    files = new_task_files(made, os.urandom, expiry, open_reports)
    try:
        output.mkdir(mode=0o700)
    except OSError as error:
        raise FileError(f"the folder {output} cannot be made ({error.strerror}): name a new one") from error
    for party, file in files.items():
        file.write(output / f"{party}.toml")
    written = {party: str(output / f"{party}.toml") for party in files}
    deliver({"task": id_text(made.id), **written}, as_json, f"task {id_text(made.id)}", *written.values())


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """Options of a batch, besides its start, and of the line to the servers that have it."""

    seconds: Annotated[
        int | None, typer.Option(min=1, help="Length of the batch in seconds. Default: one time precision.")
    ] = None
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds for an answer until the command gives up; nothing is lost.")
    ] = 600
    trust_certificate: TrustCertificate = None

    def interval(self, start: int, precision: int) -> "TimeInterval":
        """The interval of the batch, in units of a task's time precision; `InputError` for one between two units."""
        from hazemap.federated.protocols.dap.basic_types import TimeInterval

        if start % precision or (self.seconds or precision) % precision:
            raise InputError(f"batches begin and end at whole multiples of {precision} s")
        return TimeInterval(start // precision, (self.seconds or precision) // precision)

    def client(self) -> "httpx.Client":
        """The line to the servers; `FileError` for a file without certificates."""
        import ssl

        import httpx

        try:
            verify = ssl.create_default_context(cafile=self.trust_certificate)
        except OSError as error:
            raise FileError(f"{self.trust_certificate} holds no certificates in PEM") from error
        return httpx.Client(verify=verify, timeout=60)


@app.command(
    epilog="Example: [bold]hazemap collector collect tasks/collector.toml --start 1767225600 --seconds 3600[/bold]"
)
def collect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Collector's file of the task.")],
    batch: BatchOptions,
    start: Annotated[
        int | None,
        typer.Option(min=0, help="Start of the batch, in seconds since 1970: a multiple of the time precision."),
    ] = None,
    prefix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BITS",
            help="In a task of prefixes: count the strings with this prefix. May be repeated with the same length.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Collect the sums of a batch: of an interval, or, in a task whose leader makes batches, of the next one.

    A batch is collected once. The same command gives the same result again.
    """
    from hazemap.federated.aggregator.collector_client import CollectorClient
    from hazemap.federated.aggregator.task_file import TaskFile

    known = TaskFile.read(file)
    precision = known.task.time_precision
    interval = None if start is None else batch.interval(start, precision)
    agg_param = _parameter(known.task.measured, prefix or [])
    with batch.client() as http:
        found = CollectorClient(known, http).collect(interval, agg_param, batch.wait)
    times = {"start": found.interval.start * precision, "seconds": found.interval.duration * precision}
    facts = {"reports": found.count, **times, "sums": list(found.sums)}
    deliver(facts, as_json, f"{found.count:,} reports", *(f"{place} {value}" for place, value in enumerate(found.sums)))


@app.command(
    "map",
    epilog="Example: [bold]hazemap collector map tasks/collector.toml --start 1767225600 "
    "--box=-74.02,40.70,-73.93,40.80 -o map.parquet[/bold]",
)
@options(RELEASE, "dataset", "box", "cells", "method", "bounding", "outside")
def collect_map(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Collector's file of a task with --questions.")],
    start: Annotated[
        int, typer.Option(min=0, help="Start of the batch, in seconds since 1970: a multiple of the time precision.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="File to write: .parquet or .tif.")],
    batch: BatchOptions,
    numbers: Annotated[
        int,
        typer.Option(metavar="N", min=500, help="Most numbers that the method may ask for in all rounds together."),
    ] = 100_000,
    spec: SpecFile = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Make a map from a batch of reports: each device has reported once, and paid for all questions.

    The cells are those that the devices were told. A command that was interrupted is given again: both servers answer
    the same questions by the same sums, so it goes on where it was, and nothing is paid twice.
    """
    from hazemap.federated.aggregator.collector_client import CollectorClient
    from hazemap.federated.aggregator.task_file import TaskFile
    from hazemap.federated.protocols.dap.privacy_parameters import Nowhere
    from hazemap.federated.server.collected_map import collected_map
    from hazemap.federated.server.networked_one_report import CollectedOneReport
    from hazemap.specs.method_from_name import among_devices
    from hazemap.specs.parsing import budget_texts
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.tables.contribution_bounding import Outside

    known = TaskFile.read(file)
    interval = batch.interval(start, known.task.time_precision)
    terms = known.task.walk
    paid = {} if terms is None else budget_texts(terms.budget)
    if terms is not None and terms.nowhere is Nowhere.REFUSED:
        paid["outside"] = Outside.DROP.value
    order = specified(ctx, ReleaseSpec, spec, asked, table=False, **{"dataset": output.stem, **paid})
    algorithm = among_devices(order.algorithm, numbers, once=True, text=order.method)
    with batch.client() as http, progress() as tell:
        trust = CollectedOneReport(
            CollectorClient(known, http), interval, batch.wait, told=lambda what: tell(what, None)
        )
        made = collected_map(trust, algorithm, order.dataset)
    made.save(output)
    answers = [each.answer.people or 0 for each in made.transcript]
    facts = {"file": str(output), "cells": made.ground.places.size, "questions": len(answers), "reports": min(answers)}
    deliver(
        {**facts, "statement": made.statement.to_json()},
        as_json,
        f"{output}: {made.ground.places.size:,} cells, from {min(answers):,} reports by {len(answers)} questions",
        made.statement.line(),
    )


def _parameter(measured: "VdafConfiguration", prefixes: list[str]) -> bytes:
    """The aggregation parameter: prefixes where the task is of them, and else nothing."""
    import numpy as np

    from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
    from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

    if not isinstance(measured, Poplar1Configuration):
        if prefixes:
            raise InputError("--prefix is for tasks of prefixes; this one sums something else")
        return b""
    lengths = {len(prefix) for prefix in prefixes}
    if len(lengths) != 1 or not 1 <= (length := lengths.pop()) <= min(measured.bits, 64):
        raise InputError(
            f"give --prefix once or more: 1 to {measured.bits} bits such as 0110, all as long as each other"
        )
    if any(set(prefix) - {"0", "1"} for prefix in prefixes):
        raise InputError("a prefix is written in bits, such as 0110")
    numbers = np.unique(np.array([int(prefix, 2) for prefix in prefixes], dtype=np.uint64))
    return Poplar1Parameter(length - 1, numbers).to_bytes()


def _number(text: str) -> Fraction:
    try:
        if len(text) > 40 or not is_rational(text):
            raise ValueError
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{text!r:.40} is not a number") from None
