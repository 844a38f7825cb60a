"""`hazemap demo browser`: a coordinator, sixty devices and three tabs of browsers on this machine make one map."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.demo.processes import Alive, enrolled, free_port, running
from hazemap.cli.shared_options import AsJson
from hazemap.errors import HazemapError, InputError

NAME, PURPOSE = "demo", "a demonstration on this machine, with people who do not exist"
GRID = 4
"""The level of the squares that the truth is drawn on."""
METHOD = "flat:2"
"""Sixteen cells in one round: sixty people fill no more."""
TOGETHER = 40
"""People and survivors that devices of the demo ask for: there are too few for the usual rules."""
POLICY = f"[cohort]\npeople = {TOGETHER}\nsurvivors = {TOGETHER}\n"
PATIENCE = 900.0
"""Seconds for three people to open three links."""

Logs = Callable[[], list[list[str]]]
"""Every tab's log, once it is asked for."""


def browser(
    folder: Annotated[Path, typer.Option(help="The demo's folder; it must be new or empty.")] = Path("demo-browser"),
    people: Annotated[
        int, typer.Option(metavar="N", min=50, max=5_000, help="The number of people with a device.")
    ] = 60,
    tabs: Annotated[
        int, typer.Option(metavar="N", min=1, max=9, help="The number of tabs, which are devices too.")
    ] = 3,
    visitors: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help=(
                "Command that opens the links and uses the pages in your place, such as web/tab/browser/visitors.mjs."
            ),
        ),
    ] = None,
    epsilon: Annotated[str, typer.Option("-e", "--epsilon", metavar="ε", help="The price in ε.")] = "1",
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed, other people.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Start a coordinator, devices and the page of a device in a tab, and make a map with your browsers' tabs.

    Open each link in a browser profile of its own, set both numbers of people to 40, make a walk up, and start. Each
    tab is one person more. The page and the coordinator run on this machine, on two ports: two origins.
    """
    from hazemap.cli.demo.devices import dealt_out
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
    server, page, data = f"http://127.0.0.1:{free_port()}", free_port(), folder / "coordinator"
    city = DemoCity(people, seed)
    [(table, _)] = dealt_out(city, folder, 1).items()
    policy = folder / "policy.toml"
    policy.write_text(POLICY)
    devices = (
        *("--many", str(people), "--table", str(table), "--store", str(table.with_suffix(".sqlite"))),
        *("--policy", str(policy)),
    )
    others = {"page": ("browser-device", "--port", str(page))}
    origin = f"http://127.0.0.1:{page}"
    coordinator = CoordinatorOptions(token_file=data / "operator.token", server=server)
    everybody = people + tabs
    with (
        running(folder, server, data, [devices], ("--page-origin", origin), others) as alive,
        coordinator.connect() as line,
    ):
        with progress() as tell:
            enrolled(line, people, alive, tell)
        codes = line.order("/v1/codes", {"number": tabs, "days": 1})["codes"]
        walk = f"{(BOX.west + BOX.east) / 2:.3f},{(BOX.south + BOX.north) / 2:.3f}"
        links = [f"{origin}/#server={server}&code={code}&walk={walk}" for code in codes]
        with _opened(links, visitors, folder) as (there, end):
            _joined(line, everybody, lambda: alive() and there(), as_json)
            campaign = Campaign.of(
                ReleaseSpec.of(epsilon=epsilon, box=BOX, outside="drop", dataset=NAME, method=METHOD),
                most_numbers=20_000,
                name=NAME,
                purpose=PURPOSE,
                cohort=Cohort(everybody, everybody, Fraction(1, 5), Fraction(1, 10), Sampling.ONE),
                deadlines=Deadlines.all(120.0, quiet=2.0),
            )
            begin(line, campaign, as_json, coordinator, quiet=as_json)
            status = watched(line, NAME, once=False, every=1.0, quiet=as_json)
            logs = end()
        if status["state"] != "done":
            raise HazemapError(f"the campaign ended as {status['state']}: {status['reason']} (see {folder}/*.log)")
        write_whole(folder / "map.parquet", line.content(f"/v1/campaigns/{NAME}/release"))
    made = Release.open(folder / "map.parquet")
    pictures = folder / "map.png", folder / "truth.png"
    draw(made, city, pictures, "A city that does not exist, and three tabs", GRID)
    seconds = time.monotonic() - begun
    facts = {"devices": people, "tabs": tabs, "rounds": status["rounds"], "cells": made.map.cells.size, "logs": logs}
    deliver(
        facts | {"seconds": seconds, "statement": made.statement.to_json()},
        as_json,
        made.statement.text(),
        "",
        *(f"tab {number}: {said}" for number, log in enumerate(logs, 1) for said in log),
        "",
        f"{people:,} devices and {tabs} tabs, {len(status['rounds'])} rounds over HTTP: {made.map.cells.size:,} cells, "
        f"{seconds:.0f} s",
        f"The map says {made.total()} of those who answered.",
        f"The picture: {pictures[0]}; of the devices' people beside it: {pictures[1]}",
    )


@contextmanager
def _opened(links: Sequence[str], visitors: str | None, folder: Path) -> Iterator[tuple[Alive, Logs]]:
    """Open the links in browsers, by a command or by the reader; yield whether they are there, and a function that ends
    it.
    """
    if visitors is None:
        note(
            "open each link in a browser (profile) of its own; set both numbers of people to 40; make a walk up; start:"
        )
        for link in links:
            note(f"  {link}")
        yield lambda: True, list
        return
    rules = {"people": str(TOGETHER), "survivors": str(TOGETHER)}
    closed = len(links) - 1 if len(links) > 1 else None
    orders = {
        "links": list(links),
        "rules": rules,
        "files": [None] * len(links),
        "closed": closed,
        "pictures": str(folder),
    }
    (folder / "orders.json").write_text(json.dumps(orders))
    command = [*shlex.split(visitors), str(folder / "orders.json")]
    pipe = subprocess.PIPE
    with (folder / "visitors.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log)  # noqa: S603 - whose demo it is says so

    def end() -> list[list[str]]:
        said, _ = process.communicate(b"done\n", timeout=PATIENCE)
        lines = said.decode().splitlines()
        if not lines or process.returncode:
            raise HazemapError(f"the browsers did not get to their end: see {folder / 'visitors.log'}")
        return list(json.loads(lines[-1])["logs"])

    try:
        yield lambda: process.poll() is None, end
    finally:
        process.kill()
        process.wait()


def _joined(line: Any, everybody: int, alive: Alive, quiet: bool) -> None:
    """Wait until the tabs are devices, too."""
    until = time.monotonic() + PATIENCE
    with progress() as tell:
        while (here := line.get("/v1/campaigns")["devices"]["recent"]) < everybody:
            if not quiet:
                tell("tabs join", here / everybody)
            if time.monotonic() > until or not alive():
                raise HazemapError(f"only {here:,} of {everybody:,} devices are there: see the logs in the folder")
            time.sleep(0.5)
