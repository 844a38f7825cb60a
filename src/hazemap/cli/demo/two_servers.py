"""`hazemap demo two-servers`: a leader, a helper, a coordinator and some thousand devices on this machine."""

import re
import time
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.demo.processes import enrolled, free_port, running
from hazemap.cli.shared_options import AsJson
from hazemap.errors import HazemapError, InputError

NAME, PURPOSE = "demo", "a demonstration on this machine, with people who do not exist"
GRID = 6
"""The level of the squares that the truth is drawn on."""
_COUNTED = re.compile("a (batch|level) of")
PARTIES = ("leader", "helper")


def two_servers(
    folder: Annotated[Path, typer.Option(help="The demo's folder; it must be new or empty.")] = Path(
        "demo-two-servers"
    ),
    people: Annotated[
        int, typer.Option(metavar="N", min=200, max=100_000, help="The number of people with a device.")
    ] = 2000,
    drop: Annotated[
        float, typer.Option(metavar="PART", min=0, max=0.3, help="The share of devices that send no report.")
    ] = 0.1,
    trust: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="one-report: a device reports once, and the servers walk down the map; or two-servers: once a round.",
        ),
    ] = "one-report",
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="The number of processes that the devices share.")
    ] = 2,
    epsilon: Annotated[str, typer.Option("-e", "--epsilon", metavar="ε", help="The price in ε.")] = "1",
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed, other people.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Start two servers, a coordinator and many devices, and make a map from reports that no server can read.

    Each device splits its report in halves. The two servers verify them, add them up and add noise, and the coordinator
    opens noisy sums of 70 % of the people or more, round after round. The devices are people of a city that does not
    exist, so the truth may be shown. The demo has a ledger of its own: yours is not touched.
    """
    from hazemap.cli.demo.devices import dealt_out
    from hazemap.cli.demo.map import draw, files_in
    from hazemap.cli.federated.campaign import begin
    from hazemap.cli.federated.campaign_display import watched
    from hazemap.cli.federated.serving_options import CoordinatorOptions
    from hazemap.federated.server.campaign_spec import Campaign, Deadlines
    from hazemap.federated.server.trust_options import TrustOptions
    from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
    from hazemap.files.atomic_write import write_whole
    from hazemap.planning.synthetic_city import BOX, DemoCity
    from hazemap.releases import Release
    from hazemap.specs.release_spec import ReleaseSpec

    if files_in(folder) - {"people.parquet"}:
        raise InputError(f"the folder {folder} has files of an earlier run: remove it, or name another with --folder")
    begun = time.monotonic()
    server, data = f"http://127.0.0.1:{free_port()}", folder / "coordinator"
    urls = {party: f"http://127.0.0.1:{free_port()}/" for party in PARTIES}
    carrier = TrustOptions(trust, urls["leader"], urls["helper"]).carrier(people * 7 // 10)
    with progress() as tell:
        tell("making people up", None)
        city = DemoCity(people, seed)
        tables = dealt_out(city, folder, processes)
    peers, policy = _agreed(folder, urls)
    coordinator = CoordinatorOptions(token_file=data / "operator.token", server=server)
    devices = [
        (
            *("--many", str(count), "--table", str(table), "--store", str(table.with_suffix(".sqlite"))),
            *("--drop", str(drop), "--policy", str(policy)),
        )
        for table, count in tables.items()
    ]
    others = {
        party: (
            *("aggregator", "--role", party, "--data", str(folder / party)),
            *("--port", url.rpartition(":")[2].rstrip("/"), "--take-tasks-at", url),
        )
        for party, url in urls.items()
    }
    with (
        running(folder, server, data, devices, ("--peers", str(peers)), others) as alive,
        coordinator.connect() as line,
    ):
        with progress() as tell:
            enrolled(line, people, alive, tell)
        campaign = Campaign.of(
            ReleaseSpec.of(epsilon=epsilon, box=BOX, outside="drop", dataset=NAME),
            most_numbers=20_000,
            name=NAME,
            purpose=PURPOSE,
            cohort=Cohort(people, min(people, 1_000), Fraction(1, 5), Fraction(1, 10), Sampling.ONE),
            deadlines=Deadlines.all(150.0, quiet=5.0 if drop else None),
            carrier=carrier,
        )
        begin(line, campaign, as_json, coordinator, quiet=as_json)
        status = watched(line, NAME, once=False, every=1.0, quiet=as_json)
        if status["state"] != "done":
            raise HazemapError(f"the campaign ended as {status['state']}: {status['reason']} (see {folder}/*.log)")
        write_whole(folder / "map.parquet", line.content(f"/v1/campaigns/{NAME}/release"))
    made = Release.open(folder / "map.parquet")
    pictures = folder / "map.png", folder / "truth.png"
    draw(made, city, pictures, "A city that does not exist, by two servers", GRID)
    seconds = time.monotonic() - begun
    deliver(
        {
            "people": people,
            "rounds": status["rounds"],
            "cells": made.map.cells.size,
            "files": [str(folder / "map.parquet"), *map(str, pictures)],
            "seconds": seconds,
            "statement": made.statement.to_json(),
        },
        as_json,
        made.statement.text(),
        "",
        *(f"Last entry of the {party}'s log: {_last(folder / f'{party}.log')}" for party in PARTIES),
        f"{people:,} devices, {len(status['rounds'])} questions answered over HTTP: {made.map.cells.size:,} cells, "
        f"{seconds:.0f} s",
        f"There are {people:,} people. The map says {made.total()} of those who reported.",
        "",
        f"The picture:               {pictures[0]}",
        f"The truth beside it:       {pictures[1]}",
        f"The release (GeoParquet):  {folder / 'map.parquet'}",
    )
    if not as_json:
        note(f"Logs of servers and devices: {folder}/*.log; a device's own log: see `hazemap device log --help`")


def _agreed(folder: Path, urls: dict[str, str]) -> tuple[Path, Path]:
    """Write what the parties agree on beforehand: the coordinator's tokens, and the devices' policy."""
    from dataclasses import replace

    from hazemap.federated.aggregator.task_shelf import TOKEN_FILE
    from hazemap.federated.device.policy.consent_policy import Policy
    from hazemap.federated.service.access_tokens import token_file

    lines = []
    for party, url in urls.items():
        (folder / party).mkdir(mode=0o700)
        lines.append(f'[[server]]\nurl = "{url}"\ntoken = "{token_file(folder / party / TOKEN_FILE)}"\n')
    peers, policy = folder / "peers.toml", folder / "policy.toml"
    peers.touch(mode=0o600)
    peers.write_text("".join(lines))
    policy.write_text(replace(Policy(), aggregators=tuple(urls.values())).to_toml())
    return peers, policy


def _last(log: Path) -> str:
    """The last line of an aggregator about a batch, or a level of one."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if _COUNTED.search(line)]
    return lines[-1] if lines else "nothing"
