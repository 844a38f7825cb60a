"""Thousands of devices that ask for work, for minutes: how long a poll takes, and what it costs.

    python -m research.benchmarks.polling              (5,000 devices, 10 minutes, a campaign among 1,000 in the middle)
    python -m research.benchmarks.polling --minutes 1
    python -m research.benchmarks.polling --devices 20000 --standby

The server is `hazemap server`; the devices are those of `hazemap device run --many`, in two processes of half of them
each, and a third of 50, that does little else, so that what it waits for is the server and not itself. They ask as
often as the server tells them. Everything is on this machine, over a loopback port without TLS. The first 40 % of the
time nothing is to be done; then a campaign of two rounds is run; then again nothing. A poll is timed from the moment
it is sent to the moment its answer is there, in the device's process.

With `--standby` there are two servers of one PostgreSQL behind HAProxy (`apt-get install haproxy`), whichever serves is
killed each minute (`polling_servers`), and campaigns follow each other until three quarters of the time are over. At
the end it is seen whether anything was lost or paid twice (`polling_campaigns`).

Results go to results/polling.json beside this script, under the number of devices. It judges nothing.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import tempfile
import time
from array import array
from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from math import inf
from pathlib import Path

import httpx
import numpy as np

from hazemap.errors import Unreachable
from hazemap.federated.device import enrolment
from hazemap.federated.device.device_process import DeviceProcess
from hazemap.federated.device.http_client import FleetClient, HttpReply, HttpTransport
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.row_store import DeviceRows
from hazemap.federated.server.campaign_spec import Campaign
from research.benchmarks.polling_campaigns import BOX, accounts, campaign, judged, ordered
from research.benchmarks.polling_servers import OneServer, Pair, Servers, cpu, kept, process

RESULTS = Path(__file__).with_name("results") / "polling.json"
PROBES = 50
QUIET, BUSY = 0.4, 0.75
"""The parts of the time before the first campaign, and before the end of the last that is begun on standby."""
SMALL = Fraction(1, 5)
"""The ε of a campaign on standby: a device has enough for ten of them."""
EVERY = 5.0
"""Seconds between two looks at memory and CPU."""


@dataclass
class TimedCourier:
    """Another transport, with a stopwatch: when each request was sent, what it was, and how long its answer took."""

    http_transport: HttpTransport
    polls: array = field(default_factory=lambda: array("d"))
    answers: array = field(default_factory=lambda: array("d"))
    statuses: Counter = field(default_factory=Counter)
    errors: Counter = field(default_factory=Counter)

    async def send(self, method: str, path: str, ticket: str = "", content: bytes = b"", kind: str = "") -> HttpReply:
        """One request, timed."""
        what, sent, begun = "poll" if method == "GET" else "answer", time.time(), time.perf_counter()
        try:
            answer = await self.http_transport.send(method, path, ticket, content, kind)
        except Unreachable as error:
            self.errors[f"{what}: {error}"] += 1
            raise
        (self.polls if method == "GET" else self.answers).extend((sent, time.perf_counter() - begun))
        self.statuses[f"{what} {answer.status}"] += 1
        return answer


def devices(folder: Path, name: str, people: int, server: str, token: str) -> None:
    """Enrol and run so many devices until this process is told to end; then write down what was timed."""

    async def live(store: EncryptedStore) -> TimedCourier:
        policy = Policy(finest=0.0)
        async with FleetClient.to(server) as http_transport:
            running, timed = DeviceProcess(store, policy, lean=True), TimedCourier(http_transport)
            await running.enrol(server, token, http_transport)
            (folder / f"{name}.enrolled").touch()
            task = asyncio.ensure_future(running.run(timed))
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
            return timed

    rng = np.random.default_rng(len(name) + people)
    with EncryptedStore.opened(folder / f"{name}.sqlite", create=True) as store:
        spots = zip(rng.uniform(BOX.west, BOX.east, people), rng.uniform(BOX.south, BOX.north, people), strict=True)
        numbers = enrolment.add(store, people)
        places = {
            number: DeviceRows.of([lon], [lat], time.time()) for number, (lon, lat) in zip(numbers, spots, strict=True)
        }
        rows.added(store, places, None)
        timed = asyncio.run(live(store))
    np.savez(
        folder / f"{name}.npz",
        polls=np.array(timed.polls).reshape(-1, 2),
        answers=np.array(timed.answers).reshape(-1, 2),
    )
    (folder / f"{name}.json").write_text(json.dumps({"statuses": timed.statuses, "errors": timed.errors}))


@dataclass
class Watch:
    """Looks at the processes now and then."""

    servers: Servers
    crowds: dict[str, int]
    samples: list[dict] = field(default_factory=list)

    def look(self) -> None:
        """Note how things are."""
        self.samples.append(
            {
                "time": time.time(),
                "server": self.servers.look(),
                "devices_cpu": sum(map(cpu, self.crowds.values())),
                "load": os.getloadavg()[0],
            }
        )

    def wait(self, until: float, over: object = None) -> None:
        """Until a moment, or until something is over."""
        while time.time() < until and not (over and over()):
            time.sleep(min(EVERY, max(0.05, until - time.time())))
            self.look()


def timings(seconds: np.ndarray) -> dict[str, float]:
    """Milliseconds of many requests."""
    if not len(seconds):
        return {"number": 0}
    p50, p90, p99, p999 = np.quantile(seconds, [0.5, 0.9, 0.99, 0.999]) * 1e3
    ms = {"p50": p50, "p90": p90, "p99": p99, "p99.9": p999, "max": seconds.max() * 1e3}
    return {"number": len(seconds), **{f"{name}_ms": round(float(each), 2) for name, each in ms.items()}}


def between(timed: np.ndarray, begun: float, ended: float) -> np.ndarray:
    """The seconds of requests that were sent in this time."""
    return timed[(timed[:, 0] >= begun) & (timed[:, 0] < ended), 1]


def measured(folder: Path, options: argparse.Namespace) -> dict:
    """Start everything, let it run, and say what was seen."""
    people, minutes = options.devices, options.minutes
    half = (people - PROBES) // 2
    names = {"devices-1": people - PROBES - half, "devices-2": half, "probes": PROBES}
    with ExitStack() as everything:
        database = ""
        if options.standby:
            from tests.federated.server.postgres import cluster

            database = everything.enter_context(cluster())
        with ExitStack() as stack:
            servers = stack.enter_context(Pair.running(folder, database) if database else OneServer.running(folder))
            while not (servers.data / "enrolment.token").exists():
                time.sleep(0.1)
            time.sleep(5 * options.standby)  # both are there
            token, operator = (
                (servers.data / f"{name}.token").read_text().strip() for name in ("enrolment", "operator")
            )
            headers = {"Authorization": f"Bearer {operator}"}
            line = stack.enter_context(httpx.Client(base_url=servers.url, headers=headers, trust_env=False, timeout=60))
            begun = time.time()
            crowds = {}
            for name, number in names.items():
                arguments = ("-m", "research.benchmarks.polling", "--worker", name, str(number), servers.url, token)
                crowds[name] = stack.enter_context(process(folder, name, *arguments, str(folder)))
            while not all((folder / f"{name}.enrolled").exists() for name in names):
                time.sleep(0.2)
                assert all(each.poll() is None for each in crowds.values()), f"see the logs in {folder}"
            enrolling = time.time() - begun
            print(f"{people:,} devices enrolled in {enrolling:.1f} s", flush=True)
            time.sleep(30)  # every device has asked, and they have drifted apart
            watch = Watch(servers, {name: each.pid for name, each in crowds.items()})
            watch.look()
            start = time.time()
            end = start + 60 * minutes
            with servers.killed_every(options.every) if isinstance(servers, Pair) else nullcontext():
                watch.wait(start + QUIET * 60 * minutes)
                moments = {"before": time.time()}
                campaigns, statuses = followed(line, watch, options, start)
                moments["during"] = time.time()
                watch.wait(max(end, time.time()))
            moments["after"] = time.time()
            servers.check()
            assert all(each.poll() is None for each in crowds.values()), f"see the logs in {folder}"
        result = told(folder, names, watch, start, moments)
        if not isinstance(servers, Pair):
            result["campaign"] = statuses[0] if statuses else {}
        else:
            result |= {
                "campaigns": statuses,
                "failovers": failovers(folder, names, servers, start),
                "servers": servers.told(start),
            }
            paid = accounts([folder / f"{name}.sqlite" for name in names])
            for each, status in zip(campaigns, statuses, strict=True):
                status["left_behind"] = judged(each, database, folder, paid)
    return result | {"enrolling_seconds": round(enrolling, 1)}


def followed(
    line: httpx.Client, watch: Watch, options: argparse.Namespace, start: float
) -> tuple[list[Campaign], list[dict]]:
    """The campaigns, one after the other, each watched to its end, and their statuses then."""
    campaigns: list[Campaign] = []
    statuses: list[dict] = []
    last, latest = start + BUSY * 60 * options.minutes, start + 60 * options.minutes + 600
    while options.campaign and (not campaigns or (options.standby and time.time() < last)):
        name, epsilon = f"polled-{len(campaigns) + 1}", SMALL if options.standby else Fraction(1)
        campaigns.append(campaign(name, options.campaign, epsilon))
        statuses.append(ordered(line, campaigns[-1], lambda over: watch.wait(latest, over)))
    return campaigns, statuses


def failovers(folder: Path, names: dict[str, int], pair: Pair, start: float) -> list[dict[str, float]]:
    """For each kill: how long no poll was answered after it, and how long polls waited that were sent around it."""
    timed = np.concatenate([np.load(folder / f"{name}.npz")["polls"] for name in names])
    ends, found = np.sort(timed.sum(axis=1)), []
    for killed in sorted(life.killed for life in pair.lives if life.killed is not None):
        after = ends[ends > killed + 0.005]  # what the proxy had of the one that was killed is passed on by then
        around = between(timed, killed - 0.5, killed + 2)
        each = {
            "after_seconds": killed - start,
            "silent_ms": 1e3 * (after.min(initial=inf) - killed),
            "longest_poll_ms": 1e3 * around.max(initial=0),
        }
        found.append({name: round(float(value), 1) for name, value in each.items()})
    return found


def told(folder: Path, names: dict[str, int], watch: Watch, start: float, moments: dict) -> dict:
    """What was seen, by part of the time."""
    loaded = {name: np.load(folder / f"{name}.npz") for name in names}
    counts = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    parts, begun = {}, start
    for part, ended in moments.items():
        samples = [each for each in watch.samples if begun - EVERY <= each["time"] <= ended + EVERY]
        seconds = max(samples[-1]["time"] - samples[0]["time"], 1e-9)
        spent = {
            "server_cores": samples[-1]["server"]["cpu"] - samples[0]["server"]["cpu"],
            "device_cores": samples[-1]["devices_cpu"] - samples[0]["devices_cpu"],
            "proxy_cores": samples[-1]["server"].get("proxy_cpu", 0) - samples[0]["server"].get("proxy_cpu", 0),
        }
        polls = {name: between(loaded[name]["polls"], begun, ended) for name in names}
        every = np.concatenate(list(polls.values()))
        parts[part] = {
            "seconds": round(ended - begun, 1),
            "polls_a_second": round(len(every) / max(ended - begun, 1e-9), 1),
            "poll": timings(every),
            "poll_of_probes": timings(polls["probes"]),
            "answer": timings(np.concatenate([between(each["answers"], begun, ended) for each in loaded.values()])),
            **{name: round(value / seconds, 3) for name, value in spent.items()},
            "server_megabytes": [samples[0]["server"]["megabytes"], samples[-1]["server"]["megabytes"]],
        }
        begun = ended
    every = np.concatenate([between(each["polls"], start, begun) for each in loaded.values()])
    step = max(1, len(watch.samples) // 24)
    return {
        "all": timings(every),
        "parts": parts,
        "statuses": dict(sum((Counter(each["statuses"]) for each in counts.values()), Counter())),
        "errors": dict(sum((Counter(each["errors"]) for each in counts.values()), Counter())),
        "server_megabytes_after_seconds": {
            str(round(each["time"] - start)): each["server"]["megabytes"] for each in watch.samples[::step]
        },
        "server_threads": watch.samples[-1]["server"]["threads"],
        "load": [round(watch.samples[0]["load"], 2), round(watch.samples[-1]["load"], 2)],
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--devices", type=int, default=5_000)
    parser.add_argument("--campaign", type=int, default=1_000, help="devices that a campaign asks; 0: none")
    parser.add_argument("--standby", action="store_true", help="two servers, of which one is killed now and then")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two kills")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        name, people, server, token, folder = options.worker
        return devices(Path(folder), name, int(people), server, token)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # and with it whatever it started
    with tempfile.TemporaryDirectory(prefix="hazemap-polling-") as folder:
        result = measured(Path(folder), options)
    result = {
        "devices": options.devices,
        "minutes": options.minutes,
        **result,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "starlette")},
    }
    print(json.dumps(result, indent=2))
    if options.minutes >= 10 and options.devices >= 5_000:
        name = f"{options.devices}-standby" if options.standby else str(options.devices)
        kept(RESULTS, name, result)
        print(f"written to {RESULTS.name}, as {name}")
    return None


if __name__ == "__main__":
    main()
