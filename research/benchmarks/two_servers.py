"""How long two servers take for many reports, from the first upload to the sums: processes, HTTP and SQLite.

    python -m research.benchmarks.two_servers [REPORTS] [CELLS]

Reports are made before the clock starts, and uploaded by four connections. Wall time and CPU of each server are
written to results/two_servers.json beside this script, with the load that other work put on the machine. It judges
nothing.
"""

import json
import os
import platform
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from hazemap.cli.main import main as hazemap
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.resource_paths import reports
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import DapReport, UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList

RESULTS = Path(__file__).with_name("results") / "two_servers.json"
RUN = "from hazemap.cli.main import run; run()"
PRECISION, TOGETHER = 86_400, 20
"""Seconds of a batch, and reports of one upload: about as large as a proxy of many devices would send."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def cpu(process: "subprocess.Popen[bytes]") -> float:
    """CPU seconds that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started(folder: Path, role: str, port: int) -> "subprocess.Popen[bytes]":
    """An aggregator that listens."""
    command = [sys.executable, "-c", RUN, "aggregator", "--role", role, "--port", str(port)]
    command += ["--data", str(folder / role), "--task", str(folder / "tasks" / f"{role}.toml")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}/hpke_config").raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return process


def uploaded(bodies: list[bytes], url: str) -> None:
    """Send every body by four connections."""
    with httpx.Client(timeout=120) as http, ThreadPoolExecutor(4) as pool:

        def send(body: bytes) -> None:
            reply = http.post(url, content=body, headers={"Content-Type": UploadRequest.media_type()})
            if reply.status_code != 200 or reply.content:
                raise SystemExit(f"an upload was not taken: {reply.status_code}")

        list(pool.map(send, bodies))


def measured(number: int, cells: int, folder: Path) -> dict[str, float]:
    """Seconds of each part of one run."""
    ports = {role: free_port() for role in ("leader", "helper")}
    urls = [part for role, port in ports.items() for part in (f"--{role}", f"http://127.0.0.1:{port}/")]
    terms = ["--least", str(number), "--seconds", str(PRECISION), "-o", str(folder / "tasks")]
    terms += ["--open", str(number)]
    if hazemap(["collector", "task", f"histogram:{cells}", *urls, *terms]):
        raise SystemExit("no task")
    task = TaskFile.read(folder / "tasks" / "client.toml").task
    servers = {role: started(folder, role, port) for role, port in ports.items()}
    try:
        keys = [HpkeConfigList.from_bytes(httpx.get(f"{url}hpke_config").content) for url in (task.leader, task.helper)]
        client = DapClient(task, vdaf_of(task), *(each.preferred() for each in keys))
        now = int(time.time())
        begun = time.process_time()
        made = [client.report(i % cells, now, os.urandom(client.randomness_bytes)) for i in range(number)]
        sharding = time.process_time() - begun
        every = [each for each in made if isinstance(each, DapReport)]
        bodies = [UploadRequest(tuple(every[i : i + TOGETHER])).to_bytes() for i in range(0, number, TOGETHER)]
        before = {role: cpu(process) for role, process in servers.items()}
        begun = time.perf_counter()
        uploaded(bodies, task.leader + reports(task.id))
        uploads = time.perf_counter() - begun
        with httpx.Client(timeout=120) as http:
            file = TaskFile.read(folder / "tasks" / "collector.toml")
            found = CollectorClient(file, http).collect(TimeInterval(now // PRECISION, 1), wait=3_600)
        wall = time.perf_counter() - begun
        if found.count != number or sum(found.sums) != number:
            raise SystemExit("the sums are wrong")
        spent = {f"{role}_cpu_s": cpu(process) - before[role] for role, process in servers.items()}
        return {"shard_ms": 1e3 * sharding / number, "upload_s": uploads, "wall_s": wall, **spent}
    finally:
        for process in servers.values():
            process.terminate()
            process.wait()


def main() -> None:
    """Measure once and write."""
    number, cells = (int(value) for value in [*sys.argv[1:3], "10000", "4096"][:2])
    if len(sys.argv) == 2:
        cells = 4_096
    with TemporaryDirectory() as folder:
        found = measured(number, cells, Path(folder))
    machine = {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "python": platform.python_version()}
    result = {"reports": number, "cells": cells, **{name: round(value, 3) for name, value in found.items()}, **machine}
    print(json.dumps(result, indent=1))
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
