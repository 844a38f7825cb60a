"""`hazemap demo devices`: a coordinator and some thousand devices on this machine, from the first key to the map."""

import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.demo.processes import enrolled, free_port, running
from hazemap.cli.shared_options import AsJson
from hazemap.errors import HazemapError, InputError

if TYPE_CHECKING:
    from hazemap.planning.synthetic_city import DemoCity

NAME, PURPOSE = "demo", "a demonstration on this machine, with people who do not exist"
GRID = 6
"""The level of the squares that the truth is drawn on."""


def devices(
    folder: Annotated[Path, typer.Option(help="The demo's folder; it must be new or empty.")] = Path("demo-devices"),
    people: Annotated[
        int, typer.Option(metavar="N", min=200, max=100_000, help="The number of people with a device.")
    ] = 2000,
    shard: Annotated[int, typer.Option(metavar="N", min=100, help="People in one secure sum.")] = 250,
    drop: Annotated[
        float,
        typer.Option(metavar="PART", min=0, max=0.3, help="The share of devices that fall silent in a round."),
    ] = 0.1,
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="The number of processes that the devices share.")
    ] = 2,
    epsilon: Annotated[str, typer.Option("-e", "--epsilon", metavar="ε", help="The price in ε.")] = "1",
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed, other people.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Start a coordinator and many devices, make a map by secure aggregation, and show the truth beside it.

    The devices are people of a city that does not exist, so the truth may be shown. Everything that travels does so
    over HTTP, on this machine alone. The demo has a ledger of its own: yours is not touched.
    """
    from hazemap.cli.demo.map import draw, files_in
    from hazemap.cli.federated.campaign import begin
    from hazemap.cli.federated.campaign_display import watched
    from hazemap.cli.federated.serving_options import CoordinatorOptions
    from hazemap.federated.server.campaign_spec import Campaign, Deadlines
    from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
    from hazemap.files.atomic_write import write_whole
    from hazemap.planning.synthetic_city import BOX, DemoCity
    from hazemap.releases import Release
    from hazemap.specs.release_spec import ReleaseSpec

    if files_in(folder) - {"people.parquet"}:
        raise InputError(f"the folder {folder} has files of an earlier run: remove it, or name another with --folder")
    begun = time.monotonic()
    server, data = f"http://127.0.0.1:{free_port()}", folder / "coordinator"
    with progress() as tell:
        tell("making people up", None)
        city = DemoCity(people, seed)
        tables = dealt_out(city, folder, processes)
    coordinator = CoordinatorOptions(token_file=data / "operator.token", server=server)
    devices = [
        ("--many", str(count), "--table", str(table), "--store", str(table.with_suffix(".sqlite")), "--drop", str(drop))
        for table, count in tables.items()
    ]
    with running(folder, server, data, devices) as alive, coordinator.connect() as line:
        with progress() as tell:
            enrolled(line, people, alive, tell)
        campaign = Campaign.of(
            ReleaseSpec.of(epsilon=epsilon, box=BOX, outside="drop", dataset=NAME),
            most_numbers=20_000,
            name=NAME,
            purpose=PURPOSE,
            cohort=Cohort(people, min(shard, people), Fraction(1, 5), Fraction(1, 10), Sampling.ONE),
            deadlines=Deadlines.all(60.0, quiet=2.0),
        )
        begin(line, campaign, as_json, coordinator, quiet=as_json)
        status = watched(line, NAME, once=False, every=1.0, quiet=as_json)
        if status["state"] != "done":
            raise HazemapError(f"the campaign ended as {status['state']}: {status['reason']} (see {folder}/*.log)")
        write_whole(folder / "map.parquet", line.content(f"/v1/campaigns/{NAME}/release"))
    made = Release.open(folder / "map.parquet")
    pictures = folder / "map.png", folder / "truth.png"
    draw(made, city, pictures, "A city that does not exist, by secure aggregation", GRID)
    seconds = time.monotonic() - begun
    traffic = _traffic(status)
    deliver(
        {
            "people": people,
            "rounds": status["rounds"],
            "cells": made.map.cells.size,
            "bytes": traffic,
            "files": [str(folder / "map.parquet"), *map(str, pictures)],
            "seconds": seconds,
            "statement": made.statement.to_json(),
        },
        as_json,
        made.statement.text(),
        "",
        f"{people:,} devices, {len(status['rounds'])} rounds over HTTP: {made.map.cells.size:,} cells, {seconds:.0f} s",
        f"A device sent {traffic['up']:,.0f} bytes and received {traffic['down']:,.0f} in all rounds together.",
        f"There are {people:,} people. The map says {made.total()} of those who answered.",
        "",
        f"The picture:               {pictures[0]}",
        f"The truth beside it:       {pictures[1]}",
        f"The release (GeoParquet):  {folder / 'map.parquet'}",
    )
    if not as_json:
        note(f"Logs of server and devices: {folder}/*.log; a device's own log: see `hazemap device log --help`")


def dealt_out(city: "DemoCity", folder: Path, processes: int) -> dict[Path, int]:
    """Deal the people out to the processes; the number of people by file."""
    import numpy as np
    import pyarrow.parquet as pq

    from hazemap.files.atomic_write import whole

    city.write(folder / "people.parquet")
    table = pq.read_table(folder / "people.parquet")
    part = table["person"].to_numpy() % processes
    paths = [folder / f"people-{number}.parquet" for number in range(processes)]
    for number, path in enumerate(paths):
        with whole(path) as half_made:
            pq.write_table(table.take(np.flatnonzero(part == number)), half_made)
    return {path: len(range(number, city.people, processes)) for number, path in enumerate(paths)}


def _traffic(status: dict[str, Any]) -> dict[str, float]:
    """Mean bytes that a device sent and received in all rounds."""
    rounds = [each["bytes"] for each in status["rounds"]]
    return {way: sum(each[f"{way}_per_device"] for each in rounds) for way in ("up", "down")}
