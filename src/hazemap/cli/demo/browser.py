"""`hazemap demo browser`: a coordinator, sixty devices and three tabs of browsers on this machine make one map."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.demo.devices import CampaignDemo, PeopleOptions, device_words
from hazemap.cli.demo.map import draw
from hazemap.cli.demo.processes import Alive, free_port, running, wait_for_devices
from hazemap.errors import HazemapError

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
    options: PeopleOptions,
    folder: Annotated[Path, typer.Option(help="Folder of the demo, new or empty.")] = Path("demo-browser"),
    people: Annotated[int, typer.Option(metavar="N", min=50, max=5_000, help="Number of people with a device.")] = 60,
    tabs: Annotated[int, typer.Option(metavar="N", min=1, max=9, help="Number of tabs, which are devices too.")] = 3,
    visitors: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help=(
                "Command that opens the links and uses the pages in your place, such as web/tab/browser/visitors.mjs."
            ),
        ),
    ] = None,
) -> None:
    """Start a coordinator, devices and the page of a device in a tab, and make a map with your browsers' tabs.

    Open each link in a browser profile of its own, set both numbers of people to 40, make a walk up, and start. Each
    tab is one person more. The page and the coordinator run on this machine, on two ports: two origins.
    """
    from hazemap.planning.synthetic_city import BOX, DemoCity

    demo, page, as_json = CampaignDemo.begin(folder), free_port(), options.as_json
    city = DemoCity(people, options.seed)
    policy = folder / "policy.toml"
    policy.write_text(POLICY)
    words = device_words(demo.tables(city, 1), "--policy", str(policy))
    others = {"page": ("browser-device", "--port", str(page))}
    origin = f"http://127.0.0.1:{page}"
    everybody = people + tabs
    with (
        running(folder, demo.server, demo.data, words, ("--page-origin", origin), others) as alive,
        demo.coordinator.connect() as line,
    ):
        wait_for_devices(line, people, alive)
        codes = line.order("/v1/codes", {"number": tabs, "days": 1})["codes"]
        walk = f"{(BOX.west + BOX.east) / 2:.3f},{(BOX.south + BOX.north) / 2:.3f}"
        links = [f"{origin}/#server={demo.server}&code={code}&walk={walk}" for code in codes]
        with _opened(links, visitors, folder) as (there, end):
            wait_for_devices(line, everybody, lambda: alive() and there(), "tabs join", PATIENCE, as_json)
            status, made = demo.release(line, options, everybody, everybody, 120.0, 2.0, method=METHOD)
            logs = end()
    draw(made, city, demo.pictures, "A city that does not exist, and three tabs", GRID)
    facts = {"devices": people, "tabs": tabs, "rounds": status["rounds"], "cells": made.map.cells.size, "logs": logs}
    deliver(
        facts | {"seconds": demo.seconds, "statement": made.statement.to_json()},
        as_json,
        made.statement.text(),
        "",
        *(f"tab {number}: {said}" for number, log in enumerate(logs, 1) for said in log),
        "",
        f"{people:,} devices and {tabs} tabs, {len(status['rounds'])} rounds over HTTP: {made.map.cells.size:,} cells, "
        f"{demo.seconds:.0f} s",
        f"The map says {made.total()} of those who answered.",
        f"The picture: {demo.pictures[0]}; of the devices' people beside it: {demo.pictures[1]}",
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
