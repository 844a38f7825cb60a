"""`hazemap collector map`: a map from one report of each person, by questions to two servers."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hazemap.cli.console_output import deliver, progress
from hazemap.cli.federated.server_options import TrustCertificate
from hazemap.cli.shared_options import AsJson
from hazemap.cli.spec_options import SpecFile, options, specified
from hazemap.errors import InputError
from hazemap.specs.spec_fields import RELEASE

EXAMPLE = (
    "Example: [bold]hazemap collector map tasks/collector.toml --start 1767225600 --box=-74.02,40.70,-73.93,40.80 "
    "-o map.parquet[/bold]"
)


@options(RELEASE, "dataset", "box", "cells", "method", "bounding", "outside")
def collected(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The collector's file of a task of --questions.")],
    start: Annotated[
        int, typer.Option(min=0, help="Start of the batch, in seconds since 1970: a multiple of the time precision.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The map: .parquet or .tif.")],
    seconds: Annotated[
        int | None, typer.Option(min=1, help="Length of the batch in seconds. Default: one time precision.")
    ] = None,
    numbers: Annotated[
        int,
        typer.Option(metavar="N", min=500, help="The most numbers that the method may ask for in all rounds together."),
    ] = 100_000,
    wait: Annotated[float, typer.Option(min=0, help="Seconds for each question until the command gives up.")] = 600,
    trust_certificate: TrustCertificate = None,
    spec: SpecFile = None,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Make a map from a batch of reports: each device has reported once, and paid for all questions.

    The cells are those that the devices were told. A command that was interrupted is given again: both servers answer
    the same questions by the same sums, so it goes on where it was, and nothing is paid twice.
    """
    import ssl

    import httpx

    from hazemap.federated.aggregator.collector_client import CollectorClient
    from hazemap.federated.aggregator.task_file import TaskFile
    from hazemap.federated.protocols.dap.basic_types import Interval
    from hazemap.federated.protocols.dap.walk_terms import Nowhere
    from hazemap.federated.server.collected_map import collected_map
    from hazemap.federated.server.collected_one_report import CollectedOneReport
    from hazemap.specs.method_from_name import among_devices
    from hazemap.specs.parsing import budget_texts
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.tables.contribution_bounding import Outside

    known = TaskFile.read(file)
    precision = known.task.time_precision
    if start % precision or (seconds or precision) % precision:
        raise InputError(f"batches begin and end at whole multiples of {precision} s")
    terms = known.task.walk
    paid = {} if terms is None else budget_texts(terms.budget)
    if terms is not None and terms.nowhere is Nowhere.REFUSED:
        paid["outside"] = Outside.DROP.value
    order = specified(ctx, ReleaseSpec, spec, asked, table=False, **{"dataset": output.stem, **paid})
    algorithm = among_devices(order.algorithm, numbers, once=True, text=order.method)
    verify = ssl.create_default_context(cafile=trust_certificate)
    with httpx.Client(verify=verify, timeout=60) as http, progress() as tell:
        interval = Interval(start // precision, (seconds or precision) // precision)
        line = CollectorClient(known, http)
        trust = CollectedOneReport(line, interval, wait, told=lambda what: tell(what, None))
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
