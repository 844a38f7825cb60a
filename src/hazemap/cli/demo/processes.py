"""Processes of demonstrations: starts, awaits and ends a server and devices on this machine."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hazemap.errors import HazemapError

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


def enrolled(line: "Operator", people: int, alive: Alive, tell: Any) -> None:
    """Wait until all devices are there."""
    until = time.monotonic() + PATIENCE + people / 50
    while (here := line.get("/v1/campaigns")["devices"]["recent"]) < people:
        tell("devices enrol", here / people)
        if time.monotonic() > until or not alive():
            raise HazemapError(f"only {here:,} of {people:,} devices have enrolled: see devices-*.log in the folder")
        time.sleep(0.5)


def free_port() -> int:
    """A free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
