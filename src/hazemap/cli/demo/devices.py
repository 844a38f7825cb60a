"""`hazemap demo devices` and `hazemap demo two-servers`: some thousand devices and their servers on this machine."""

import re
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver, note, progress
from hazemap.cli.demo.map import draw, files_in
from hazemap.cli.demo.processes import free_port, running, wait_for_devices
from hazemap.cli.federated.serving_options import CoordinatorOptions
from hazemap.cli.shared_options import AsJson
from hazemap.errors import HazemapError, InputError

if TYPE_CHECKING:
    from hazemap.federated.service.operator_line import Operator
    from hazemap.planning.synthetic_city import DemoCity
    from hazemap.releases import Release

NAME, PURPOSE = "demo", "a demonstration on this machine, with people who do not exist"
GRID = 6
"""The level of the squares that the truth is drawn on."""
_COUNTED = re.compile("a (batch|level) of")
PARTIES = ("leader", "helper")


@dataclass(frozen=True, kw_only=True)
class PeopleOptions:
    """Options of demonstrations with a city of people who do not exist."""

    epsilon: Annotated[str, typer.Option("-e", "--epsilon", metavar="ε", help="Price in ε.")] = "1"
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the people.")] = 1
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class DeviceOptions(PeopleOptions):
    """Options of demonstrations with devices in processes of their own."""

    people: Annotated[int, typer.Option(metavar="N", min=200, max=100_000, help="Number of people with a device.")] = (
        2000
    )
    drop: Annotated[
        float,
        typer.Option(metavar="PART", min=0, max=0.3, help="Share of devices that fall silent in a round."),
    ] = 0.1
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, max=16, help="Number of processes that the devices share.")
    ] = 2


@dataclass
class CampaignDemo:
    """A demonstration that makes a map by a campaign, in a folder of its own."""

    folder: Path
    begun: float
    server: str
    data: Path

    @classmethod
    def begin(cls, folder: Path) -> "CampaignDemo":
        """Begin one in a new or empty folder; `InputError` for a folder with files of an earlier run."""
        if files_in(folder) - {"people.parquet"}:
            raise InputError(
                f"the folder {folder} has files of an earlier run: remove it, or name another with --folder"
            )
        return cls(folder, time.monotonic(), f"http://127.0.0.1:{free_port()}", folder / "coordinator")

    @property
    def coordinator(self) -> CoordinatorOptions:
        """The coordinator of the demonstration, and the operator's token for it."""
        return CoordinatorOptions(token_file=self.data / "operator.token", server=self.server)

    @property
    def pictures(self) -> tuple[Path, Path]:
        """The files of the map's picture and of the truth beside it."""
        return self.folder / "map.png", self.folder / "truth.png"

    @property
    def seconds(self) -> float:
        """Seconds since the demonstration began."""
        return time.monotonic() - self.begun

    def tables(self, city: "DemoCity", processes: int) -> dict[Path, int]:
        """Deal the people out to the files of the processes; the number of people in each."""
        import numpy as np
        import pyarrow.parquet as pq

        from hazemap.files.atomic_write import whole

        city.write(self.folder / "people.parquet")
        table = pq.read_table(self.folder / "people.parquet")
        part = table["person"].to_numpy() % processes
        paths = [self.folder / f"people-{number}.parquet" for number in range(processes)]
        for number, path in enumerate(paths):
            with whole(path) as half_made:
                pq.write_table(table.take(np.flatnonzero(part == number)), half_made)
        return {path: len(range(number, city.people, processes)) for number, path in enumerate(paths)}

    def release(
        self,
        line: "Operator",
        options: PeopleOptions,
        people: int,
        shard: int,
        stage: float,
        quiet: float | None,
        **more: Any,
    ) -> "tuple[dict[str, Any], Release]":
        """Run a campaign to its end; its last status, and its map in map.parquet."""
        from hazemap.cli.federated.campaign import begin
        from hazemap.cli.federated.campaign_display import watched
        from hazemap.federated.server.campaign_spec import Campaign, Deadlines
        from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
        from hazemap.files.atomic_write import write_whole
        from hazemap.planning.synthetic_city import BOX
        from hazemap.releases import Release
        from hazemap.specs.release_spec import ReleaseSpec

        method = {"method": more.pop("method")} if "method" in more else {}
        campaign = Campaign.of(
            ReleaseSpec.of(epsilon=options.epsilon, box=BOX, outside="drop", dataset=NAME, **method),
            most_numbers=20_000,
            name=NAME,
            purpose=PURPOSE,
            cohort=Cohort(people, min(shard, people), Fraction(1, 5), Fraction(1, 10), Sampling.ONE),
            deadlines=Deadlines.all(stage, quiet=quiet),
            **more,
        )
        begin(line, campaign, options.as_json, self.coordinator, quiet=options.as_json)
        status = watched(line, NAME, once=False, every=1.0, quiet=options.as_json)
        if status["state"] != "done":
            raise HazemapError(f"the campaign ended as {status['state']}: {status['reason']} (see {self.folder}/*.log)")
        write_whole(self.folder / "map.parquet", line.content(f"/v1/campaigns/{NAME}/release"))
        return status, Release.open(self.folder / "map.parquet")

    def show(
        self,
        made: "Release",
        city: "DemoCity",
        how: str,
        status: dict[str, Any],
        as_json: bool,
        *lines: str,
        **more: Any,
    ) -> None:
        """Draw a map and the truth beside it, and say what came of the demonstration."""
        draw(made, city, self.pictures, f"A city that does not exist, by {how}", GRID)
        facts = {
            "people": city.people,
            "rounds": status["rounds"],
            "cells": made.map.cells.size,
            **more,
            "files": [str(self.folder / "map.parquet"), *map(str, self.pictures)],
            "seconds": self.seconds,
            "statement": made.statement.to_json(),
        }
        deliver(
            facts,
            as_json,
            made.statement.text(),
            "",
            f"{city.people:,} devices, {len(status['rounds'])} rounds over HTTP: {made.map.cells.size:,} cells, "
            f"{self.seconds:.0f} s",
            *lines,
            f"There are {city.people:,} people. The map says {made.total()} of those who answered.",
            "",
            f"The picture:               {self.pictures[0]}",
            f"The truth beside it:       {self.pictures[1]}",
            f"The release (GeoParquet):  {self.folder / 'map.parquet'}",
        )
        if not as_json:
            note(
                f"Logs of servers and devices: {self.folder}/*.log; a device's own log: see `hazemap device log --help`"
            )


def device_words(tables: dict[Path, int], *more: str) -> list[tuple[str, ...]]:
    """The options of each process of devices: its people's table and a store beside it."""
    return [
        ("--many", str(count), "--table", str(table), "--store", str(table.with_suffix(".sqlite")), *more)
        for table, count in tables.items()
    ]


def devices(
    options: DeviceOptions,
    folder: Annotated[Path, typer.Option(help="Folder of the demo, new or empty.")] = Path("demo-devices"),
    shard: Annotated[int, typer.Option(metavar="N", min=100, help="People in one secure sum.")] = 250,
) -> None:
    """Start a coordinator and many devices, make a map by secure aggregation, and show the truth beside it.

    The devices are people of a city that does not exist, so the truth may be shown. Everything that travels does so
    over HTTP, on this machine alone. The demo has a ledger of its own: yours is not touched.
    """
    from hazemap.planning.synthetic_city import DemoCity

    demo = CampaignDemo.begin(folder)
    with progress() as tell:
        tell("making people up", None)
        city = DemoCity(options.people, options.seed)
        words = device_words(demo.tables(city, options.processes), "--drop", str(options.drop))
    with running(folder, demo.server, demo.data, words) as alive, demo.coordinator.connect() as line:
        wait_for_devices(line, options.people, alive)
        status, made = demo.release(line, options, options.people, shard, 60.0, 2.0)
    rounds = [each["bytes"] for each in status["rounds"]]
    traffic = {way: sum(each[f"{way}_per_device"] for each in rounds) for way in ("up", "down")}
    sent = f"A device sent {traffic['up']:,.0f} bytes and received {traffic['down']:,.0f} in all rounds together."
    demo.show(made, city, "secure aggregation", status, options.as_json, sent, bytes=traffic)


def two_servers(
    options: DeviceOptions,
    folder: Annotated[Path, typer.Option(help="Folder of the demo, new or empty.")] = Path("demo-two-servers"),
    trust: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="one-report: a device reports once, and the servers walk down the map; or two-servers: once a round.",
        ),
    ] = "one-report",
) -> None:
    """Start two servers, a coordinator and many devices, and make a map from reports that no server can read.

    Each device splits its report in halves. The two servers verify them, add them up and add noise, and the coordinator
    opens noisy sums of 70 % of the people or more, round after round. The devices are people of a city that does not
    exist, so the truth may be shown. The demo has a ledger of its own: yours is not touched.
    """
    from hazemap.federated.server.campaign_spec import TrustOptions
    from hazemap.planning.synthetic_city import DemoCity

    demo = CampaignDemo.begin(folder)
    urls = {party: f"http://127.0.0.1:{free_port()}/" for party in PARTIES}
    carrier = TrustOptions(trust, urls["leader"], urls["helper"]).carrier(options.people * 7 // 10)
    with progress() as tell:
        tell("making people up", None)
        city = DemoCity(options.people, options.seed)
        tables = demo.tables(city, options.processes)
    peers, policy = _agreed(folder, urls)
    words = device_words(tables, "--drop", str(options.drop), "--policy", str(policy))
    others = {
        party: (
            *("aggregator", "--role", party, "--data", str(folder / party)),
            *("--port", url.rpartition(":")[2].rstrip("/"), "--take-tasks-at", url),
        )
        for party, url in urls.items()
    }
    with (
        running(folder, demo.server, demo.data, words, ("--peers", str(peers)), others) as alive,
        demo.coordinator.connect() as line,
    ):
        wait_for_devices(line, options.people, alive)
        quiet = 5.0 if options.drop else None
        status, made = demo.release(line, options, options.people, 1_000, 150.0, quiet, carrier=carrier)
    last = [f"Last entry of the {party}'s log: {_last(folder / f'{party}.log')}" for party in PARTIES]
    demo.show(made, city, "two servers", status, options.as_json, *last)


def _agreed(folder: Path, urls: dict[str, str]) -> tuple[Path, Path]:
    """Write what the parties agree on beforehand: the coordinator's tokens, and the devices' policy."""
    from dataclasses import replace

    from hazemap.federated.aggregator.task_file import TOKEN_FILE
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
