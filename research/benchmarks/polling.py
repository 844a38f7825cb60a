"""Thousands of devices that ask one server for work, for minutes: how long a poll takes, and what it costs.

    python -m research.benchmarks.polling              (5,000 devices, 10 minutes, a campaign among 1,000 in the middle)
    python -m research.benchmarks.polling --minutes 1

The server is `hazemap server`; the devices are those of `hazemap device run --many`, in two processes of half of them
each, and a third of 50, that does little else, so that what it waits for is the server and not itself. They ask as
often as the server tells them. Everything is on this machine, over a loopback port without TLS. The first 40 % of the
time nothing is to be done; then a campaign of two rounds is run; then again nothing. A poll is timed from the moment
it is sent to the moment its answer is there, in the device's process. Results go to results/polling.json beside this
script. It judges nothing.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import httpx
import numpy as np

from hazemap.algorithms import Adaptive
from hazemap.codec import dumps
from hazemap.device import enrolment
from hazemap.device import row_store as rows
from hazemap.device.consent_policy import Policy
from hazemap.device.device_process import DeviceProcess
from hazemap.device.encrypted_store import EncryptedStore
from hazemap.device.http_client import HttpReply, HttpTransport
from hazemap.device.pooled_http_client import FleetClient
from hazemap.device.row_store import PersonRows
from hazemap.errors import Unreachable
from hazemap.privacy.budget import PureDP
from hazemap.server.campaign_spec import Campaign, Deadlines
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.trust.cohort_assumptions import Cohort, Sampling

RESULTS = Path(__file__).with_name("results") / "polling.json"
BOX = Box(13.2, 52.4, 13.6, 52.6)
PROBES = 50
QUIET = 0.4
"""The part of the time before the campaign."""
EVERY = 5.0
"""Seconds between two looks at memory and CPU."""
COMMAND = "from hazemap.cli.main import run; run()"


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
            number: PersonRows.of([lon], [lat], time.time()) for number, (lon, lat) in zip(numbers, spots, strict=True)
        }
        rows.added(store, places, None)
        timed = asyncio.run(live(store))
    np.savez(
        folder / f"{name}.npz",
        polls=np.array(timed.polls).reshape(-1, 2),
        answers=np.array(timed.answers).reshape(-1, 2),
    )
    (folder / f"{name}.json").write_text(json.dumps({"statuses": timed.statuses, "errors": timed.errors}))


@contextmanager
def process(folder: Path, name: str, *command: str) -> Iterator[subprocess.Popen]:
    """A process that is told to end, and waited for."""
    environment = os.environ | {"HAZEMAP_HOME": str(folder)}
    with (folder / f"{name}.log").open("wb") as log:
        started = subprocess.Popen([sys.executable, *command], stdout=log, stderr=log, env=environment)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(60)
        except subprocess.TimeoutExpired:
            started.kill()


def memory(pid: int) -> dict[str, float]:
    """Megabytes that a process has in memory now, and its threads."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if name in WANTED}
    return {"megabytes": round(found["VmRSS"] / 1024, 1), "threads": found["Threads"]}


WANTED = ("VmRSS", "Threads")


def cpu(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Watch:
    """Looks at the processes now and then."""

    server: int
    crowds: dict[str, int]
    samples: list[dict] = field(default_factory=list)

    def look(self) -> None:
        """Note how things are."""
        self.samples.append(
            {
                "time": time.time(),
                "server": memory(self.server) | {"cpu": cpu(self.server)},
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


def measured(folder: Path, people: int, asked: int, minutes: float) -> dict:
    """Start everything, let it run, and say what was seen."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, data = f"http://127.0.0.1:{port}", folder / "server"
    half = (people - PROBES) // 2
    names = {"devices-1": people - PROBES - half, "devices-2": half, "probes": PROBES}
    with ExitStack() as stack:
        server = stack.enter_context(
            process(folder, "server", "-c", COMMAND, "server", "--data", str(data), "--port", str(port))
        )
        while not (data / "enrolment.token").exists():
            time.sleep(0.1)
        token, operator = ((data / f"{name}.token").read_text().strip() for name in ("enrolment", "operator"))
        line = stack.enter_context(
            httpx.Client(base_url=url, headers={"Authorization": f"Bearer {operator}"}, trust_env=False, timeout=60)
        )
        begun = time.time()
        crowds = {}
        for name, number in names.items():
            arguments = (__file__, "--worker", name, str(number), url, token, str(folder))
            crowds[name] = stack.enter_context(process(folder, name, *arguments))
        while not all((folder / f"{name}.enrolled").exists() for name in names):
            time.sleep(0.2)
            assert all(each.poll() is None for each in crowds.values()), f"see the logs in {folder}"
        enrolling = time.time() - begun
        print(f"{people:,} devices enrolled in {enrolling:.1f} s", flush=True)
        time.sleep(30)  # every device has asked, and they have drifted apart
        watch = Watch(server.pid, {name: each.pid for name, each in crowds.items()})
        watch.look()
        start = time.time()
        end = start + 60 * minutes
        watch.wait(start + QUIET * 60 * minutes)
        moments = {"before": time.time()}
        status = ordered(line, asked, watch, end) if asked else {}
        moments["during"] = time.time()
        watch.wait(max(end, time.time()))
        moments["after"] = time.time()
        assert all(each.poll() is None for each in (server, *crowds.values())), f"see the logs in {folder}"
    return told(folder, names, watch, start, moments, status) | {"enrolling_seconds": round(enrolling, 1)}


def ordered(line: httpx.Client, asked: int, watch: Watch, end: float) -> dict:
    """A campaign of two rounds among so many, and its status when it is over."""
    share = Fraction(1, 4)
    method = Adaptive(Quadtree.around(BOX, 6), first_cells=64, deciding=(share,), fullness=(4,), coarser=())
    cohort = Cohort(asked, min(asked, 250), dropout=Fraction(1, 5), sampling=Sampling.ONE)
    campaign = Campaign("polled", "a benchmark", "nobody", method, PureDP(1), cohort, Deadlines.all(120, 10), 120)
    line.post("/v1/campaigns", content=dumps(campaign)).raise_for_status()
    watch.wait(end + 600, lambda: line.get("/v1/campaigns/polled").json()["state"] != "running")
    return line.get("/v1/campaigns/polled").json()


def told(folder: Path, names: dict[str, int], watch: Watch, start: float, moments: dict, status: dict) -> dict:
    """What was seen, by part of the time."""
    loaded = {name: np.load(folder / f"{name}.npz") for name in names}
    counts = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    parts, begun = {}, start
    for part, ended in moments.items():
        samples = [each for each in watch.samples if begun - EVERY <= each["time"] <= ended + EVERY]
        seconds = samples[-1]["time"] - samples[0]["time"]
        polls = {name: between(loaded[name]["polls"], begun, ended) for name in names}
        every = np.concatenate(list(polls.values()))
        parts[part] = {
            "seconds": round(ended - begun, 1),
            "polls_a_second": round(len(every) / max(ended - begun, 1e-9), 1),
            "poll": timings(every),
            "poll_of_probes": timings(polls["probes"]),
            "answer": timings(np.concatenate([between(each["answers"], begun, ended) for each in loaded.values()])),
            "server_cores": round((samples[-1]["server"]["cpu"] - samples[0]["server"]["cpu"]) / max(seconds, 1e-9), 3),
            "device_cores": round((samples[-1]["devices_cpu"] - samples[0]["devices_cpu"]) / max(seconds, 1e-9), 3),
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
        "campaign": {
            "state": status.get("state"),
            "rounds": [
                {name: each.get(name) for name in ("cells", "people", "dropped", "refusals", "shards", "bytes")}
                for each in status.get("rounds", ())
            ],
        },
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--devices", type=int, default=5_000)
    parser.add_argument("--campaign", type=int, default=1_000, help="devices that a campaign asks; 0: none")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        name, people, server, token, folder = options.worker
        return devices(Path(folder), name, int(people), server, token)
    with tempfile.TemporaryDirectory() as folder:
        result = measured(Path(folder), options.devices, options.campaign, options.minutes)
    result = {
        "devices": options.devices,
        "minutes": options.minutes,
        **result,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("uvicorn", "uvloop", "httptools", "starlette")},
    }
    print(json.dumps(result, indent=2))
    if options.minutes >= 10 and options.devices >= 5_000:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")
        print(f"written to {RESULTS.name}")
    return None


if __name__ == "__main__":
    main()
