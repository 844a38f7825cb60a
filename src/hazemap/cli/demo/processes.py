"""Processes of the demonstrations, and the lines of chat that their devices hold.

Servers and devices are started, awaited and ended on this machine. The chat is a table where there is one, and
otherwise follows a small grammar.
"""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from hazemap.cli.console_output import progress
from hazemap.errors import HazemapError, TableError
from hazemap.federated.recipes.policy import ShippedPolicy

if TYPE_CHECKING:
    from hazemap.federated.service.operator_line import Operator


PATIENCE = 60.0
"""Seconds for a server to answer, and for all devices to enrol."""

Alive = Callable[[], bool]
"""Whether all processes still run."""


@contextmanager
def running(
    folder: Path,
    server: str,
    data: Path,
    devices: Sequence[Sequence[str]],
    more: Sequence[str] = (),
    others: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Alive]:
    """A coordinator that answers, and for each of `devices` a process with these options; all are ended in the end.

    `more` are options of the coordinator's; `others` are commands of other servers with their `--port`, by the names of
    their logs.
    """
    environment = os.environ | {"HAZEMAP_HOME": str(folder)}
    port = server.rpartition(":")[2]
    begun: list[subprocess.Popen[bytes]] = []

    def begin(log: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = (sys.executable, "-c", "from hazemap.cli.main import run; run()", *arguments)
        with (folder / log).open("wb") as said:
            begun.append(subprocess.Popen(command, stdout=said, stderr=said, env=environment))  # noqa: S603 - our own
        return begun[-1]

    servers = {**others, "server": ("server", "--data", str(data), "--port", port, *more)}
    try:
        processes = {log: begin(f"{log}.log", *command) for log, command in servers.items()}
        for log, command in servers.items():
            _await(processes[log], int(command[command.index("--port") + 1]), folder / f"{log}.log")
        where = ("--server", server, "--token-file", str(data / "enrolment.token"))
        for number, options in enumerate(devices):
            begin(f"devices-{number}.log", "device", "run", *options, *where)
        yield lambda: all(process.poll() is None for process in begun)
    finally:
        for process in reversed(begun):
            process.terminate()
        for process in begun:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a process listens at its port."""
    until = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > until:
            raise HazemapError(f"nothing answers at port {port}: see {log}")
        time.sleep(0.1)


def wait_for_devices(
    line: "Operator", people: int, alive: Alive, what: str = "devices enrol", patience: float = 0.0, quiet: bool = False
) -> None:
    """Wait until so many devices are there: for `patience` seconds, or for as long as they need to enrol."""
    until = time.monotonic() + (patience or PATIENCE + people / 50)
    with progress() as tell:
        while (here := line.get("/v1/campaigns")["devices"]["recent"]) < people:
            if not quiet:
                tell(what, here / people)
            if time.monotonic() > until or not alive():
                raise HazemapError(f"only {here:,} of {people:,} devices are there: see the logs in the folder")
            time.sleep(0.5)


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


STREAM, ANALYSIS, PURPOSE = "chat", "typed_words", "better suggestions for the next word"
MOST_EVENTS = 200
"""Pairs of words that a person's device keeps."""

_LIST = """
    a about all am an and any anyone are as at be but by can command could desktop disk did do does error file
    find for from get got has have help hello hi how i if in install installed into is it just kernel know like
    linux make me more my need network new no not now of off ok on one or other package please problem run same
    screen see should so some something sudo system thanks that the them then there they thing think this to try
    ubuntu up update use user version want was we well what when where which who why will windows with work
    working would yes you your
"""
WORDS = tuple(_LIST.split())
"""The words that are counted: a fixed list, made before any device is asked."""

OPENINGS = ("hi", "hello", "ok", "thanks", "well", "yes", "no", "please")
SENTENCES = (
    "how do i {verb} the {thing}",
    "i want to {verb} a {thing}",
    "can you {verb} my {thing}",
    "the {thing} does not work",
    "do you know how to {verb} it",
    "i have a problem with the {thing}",
    "is there a new {thing}",
    "try to {verb} it",
    "what is the {thing} for",
    "you need to {verb} the {thing}",
    "it is in the {thing}",
    "i think it will work now",
)
VERBS = ("install", "update", "run", "find", "use", "get", "make", "see")
THINGS = ("package", "kernel", "file", "network", "screen", "desktop", "system", "disk")


def policy(most: str) -> ShippedPolicy:
    """The policy that the demo's devices ship with: two reports of the words that people type."""
    from hazemap.federated.recipes.policy_document import from_toml

    return from_toml(f"""
name = "chat_statistics"
version = 1
days = 30
[[limits]]
days = 365
epsilon = 8
delta = 1e-5
reports = 20
[streams.{STREAM}]
keep = 30
fields = [{{ name = "ngram", type = "text" }}]
[fields."{STREAM}.ngram"]
local_epsilon = {most}
epsilon = 5
delta = 4e-6
reports = 4
[analyses.{ANALYSIS}]
purpose = "{PURPOSE}"
epsilon = 4
delta = 2e-6
reports = 3
minimum_cohort = 100
carriers = ["secure sums"]
[analyses.{ANALYSIS}.queries]
fields = ["{STREAM}.ngram"]
""")


def chat_of(table: Path, people: int) -> list[list[str]]:
    """Lines of people of a table with the columns user, ts and text; only of people with 5 lines or more."""
    import pyarrow.parquet as pq

    found = pq.read_table(table, columns=["user", "ts", "text"])
    if not {"user", "ts", "text"} <= set(found.column_names):
        raise TableError(f"{table} has no columns user, ts and text")
    users, texts = found["user"].to_numpy(), found["text"].to_pylist()
    order = np.lexsort((found["ts"].to_numpy(), users))
    names, starts, counts = np.unique(users[order], return_index=True, return_counts=True)
    some = np.flatnonzero(counts >= 5)
    if len(some) < people:
        raise TableError(f"{table} has {len(some):,} people with 5 lines or more, too few for {people:,} devices")
    del names
    places = some[np.linspace(0, len(some) - 1, people).astype(int)]
    return [[texts[row] for row in order[starts[at] : starts[at] + counts[at]]] for at in places]


def made_up(people: int, seed: int) -> list[list[str]]:
    """Made-up lines, by a small grammar."""
    rng = np.random.default_rng(seed)

    def one(of: Sequence[str]) -> str:
        return of[min(int(rng.exponential(len(of) / 4)), len(of) - 1)]

    def line() -> str:
        opening = f"{one(OPENINGS)} " if rng.random() < 0.3 else ""
        return opening + one(SENTENCES).format(verb=one(VERBS), thing=one(THINGS))

    return [[line() for _ in range(int(rng.integers(3, 12)))] for _ in range(people)]


def pairs(lines: Iterable[str]) -> list[str]:
    """The pairs that an app donates: each word of each line with the next one, in lower case."""
    found = []
    for line in lines:
        words = re.findall(r"[a-z']+", line.lower())
        found += [" ".join(words[place : place + 2]) for place in range(len(words))]
    return found[:MOST_EVENTS]
