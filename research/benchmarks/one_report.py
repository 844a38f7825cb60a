"""One report of each device, and the whole tree: what two servers spend on it, with HTTP and SQLite.

    python -m research.benchmarks.one_report                        (10,000 devices: some ten minutes of CPU)
    python -m research.benchmarks.one_report --devices 1000

Paths of 46 bits, five levels of at most 4,096 prefixes, each below a prefix of the level before; all people are below
some of them. It is measured in both ways in which a batch is asked several times: collected with five aggregation
parameters, of which the last is that of the leaves, where numbers have 255 bits; and by five questions, whose paths
have a bit more at each end: the first says whether one is nowhere, and the last is never asked.

Reports are made before the clock starts, and uploaded by four connections, twenty at a time. The CPU of each server is
that of its process, from the first upload to the last result, with what it took to load compiled code. Results go to
results/one_report.json beside this script, each way in its place, with the load that other work put on the machine. It
judges nothing.
"""

import argparse
import json
import os
import platform
import subprocess
import time
from fractions import Fraction
from importlib.metadata import version
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import httpx
import numpy as np

from hazemap.cli.main import main as hazemap
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.prefix_question import PrefixCells, PrefixQuestion
from hazemap.federated.protocols.dap.resource_paths import reports as reports_path
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import DapReport, UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList
from hazemap.machine_code.arrays import Words
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter
from research.benchmarks.two_servers import PRECISION, TOGETHER, cpu, free_port, started, uploaded

RESULTS = Path(__file__).with_name("results") / "one_report.json"
BITS, LEVELS, PREFIXES = 46, (11, 19, 27, 36, 45), 4_096
PLACES = 500
"""Different paths of all devices together: so many that all of them stay among the prefixes of every level."""
BUDGET = 1_000
"""An ε so large that noise is no larger than a few counts: what is drawn costs the same, and sums can be checked."""
Servers = dict[str, "subprocess.Popen[bytes]"]


def walk(leaves: list[int]) -> list[Poplar1Parameter]:
    """An adaptive tree: at each level prefixes below those before, at random, and those of everybody."""
    draw, above, last = np.random.default_rng(3), np.zeros(1, dtype=np.uint64), -1
    found = []
    for level in LEVELS:
        deeper = level - last
        below = draw.choice(above, 2 * PREFIXES) << np.uint64(deeper)
        below |= draw.integers(0, 1 << deeper, below.size, dtype=np.uint64)
        on_paths = np.unique(np.array([leaf >> (BITS - 1 - level) for leaf in leaves], dtype=np.uint64))
        others = draw.permutation(np.setdiff1d(below, on_paths))
        above = np.union1d(on_paths, others[: PREFIXES - on_paths.size])
        above = np.arange(PREFIXES, dtype=np.uint64) if level == LEVELS[0] else above
        last = level
        found.append(Poplar1Parameter(level, above))
    return found


def question(parameter: Poplar1Parameter, number: int) -> bytes:
    """How many paths begin with each prefix, after the 0 of who is somewhere, for a fifth of the budget."""
    below = Poplar1Parameter(parameter.level + 1, parameter.prefixes)
    cells = PrefixCells.of(parameter.prefixes, np.full(parameter.prefixes.size, below.level + 1))
    return PrefixQuestion.of(number, below.to_bytes(), Fraction(1, len(LEVELS)), (cells,)).to_bytes()


def made(work: tuple[DapClient, list[int], int]) -> tuple[list[bytes], int, float]:
    """Uploads of so many paths, the bytes of one report, and CPU milliseconds of making it."""
    client, paths, now = work
    begun = time.process_time()
    found = [client.report(path, now, os.urandom(client.randomness_bytes)) for path in paths]
    milliseconds = (time.process_time() - begun) / len(paths) * 1e3
    every = [each for each in found if isinstance(each, DapReport)]
    bodies = [UploadRequest(tuple(every[i : i + TOGETHER])).to_bytes() for i in range(0, len(every), TOGETHER)]
    return bodies, len(every[0].to_bytes()), milliseconds


def checked(sums: Words, paths: list[int], parameter: Poplar1Parameter) -> None:
    """Sums that are further from the truth than any noise of this size are wrong."""
    on_paths = np.array([path >> (BITS - 1 - parameter.level) for path in paths], dtype=np.uint64)
    true = np.bincount(np.searchsorted(parameter.prefixes, on_paths), minlength=parameter.prefixes.size)
    if np.abs(np.asarray(sums) - true).max() > 25:
        raise SystemExit("the sums are wrong")


def measured(devices: int, by_questions: bool, folder: Path) -> dict[str, object]:
    """CPU seconds of each server, for the uploads and for each level; bytes and milliseconds of a device."""
    ports = {role: free_port() for role in ("leader", "helper")}
    urls = [part for role, port in ports.items() for part in (f"--{role}", f"http://127.0.0.1:{port}/")]
    terms = ["--least", str(devices), "--seconds", str(PRECISION), "-o", str(folder / "tasks")]
    terms += ["--epsilon", str(BUDGET), "--levels", str(len(LEVELS)), "--open", str(devices)]
    terms += ["--questions", "--prefixes", str(PREFIXES)] if by_questions else []
    if hazemap(["collector", "task", f"prefixes:{BITS + 2 * by_questions}", *urls, *terms]):
        raise SystemExit("no task")
    task = TaskFile.read(folder / "tasks" / "client.toml").task
    servers: Servers = {role: started(folder, role, port) for role, port in ports.items()}
    try:
        keys = [HpkeConfigList.from_bytes(httpx.get(f"{url}hpke_config").content) for url in (task.leader, task.helper)]
        client = DapClient(task, vdaf_of(task), *(each.preferred() for each in keys))
        draw, now = np.random.default_rng(1), int(time.time())
        places = draw.integers(0, 1 << BITS, PLACES)
        paths = places[draw.integers(0, PLACES, devices)].tolist()
        work = [(client, [path << by_questions for path in paths[i::8]], now) for i in range(8)]
        with Pool(2) as pool:
            parts = pool.map(made, work, chunksize=1)
        bodies, wall = [body for each in parts for body in each[0]], {}
        spent: dict[str, list[float]] = {role: [cpu(process)] for role, process in servers.items()}

        def lap(name: str, begun: float) -> None:
            wall[name] = round(time.perf_counter() - begun, 2)
            for role, process in servers.items():
                spent[role].append(cpu(process))

        begun = time.perf_counter()
        uploaded(bodies, task.leader + reports_path(task.id))
        lap("uploads", begun)
        with httpx.Client(timeout=120) as http:
            line = CollectorClient(TaskFile.read(folder / "tasks" / "collector.toml"), http)
            for number, parameter in enumerate(walk(places.tolist())):
                asked, begun = (
                    question(parameter, number) if by_questions else parameter.to_bytes(),
                    time.perf_counter(),
                )
                found = line.collect(TimeInterval(now // PRECISION, 1), asked, wait=3_600)
                lap(f"{parameter.level + 1} bits", begun)
                if found.count != devices:
                    raise SystemExit("not everybody was counted")
                checked(np.array(found.sums), paths, parameter)
        of_each = {role: [after - before for before, after in pairwise(all_)] for role, all_ in spent.items()}
        return {
            "cpu_seconds": {role: round(sum(each), 2) for role, each in of_each.items()},
            "of_each_part": {
                role: dict(zip(wall, (round(value, 2) for value in each), strict=True))
                for role, each in of_each.items()
            },
            "wall_seconds": wall,
            "device": {"bytes": parts[0][1], "cpu_milliseconds": round(mean(each[2] for each in parts), 2)},
        }
    finally:
        for process in servers.values():
            process.terminate()
            process.wait()


def main() -> None:
    """Measure both ways, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=10_000)
    parser.add_argument("--only", choices=("levels", "questions"), help="one of both ways")
    options = parser.parse_args()
    result: dict[str, object] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    result |= {"prefixes": PREFIXES, "bits": [level + 1 for level in LEVELS]}
    for name in ("levels", "questions"):
        if options.only in (None, name):
            load = os.getloadavg()[0]
            with TemporaryDirectory() as folder:
                found = measured(options.devices, name == "questions", Path(folder))
            machine = {
                "cpus": os.cpu_count(),
                "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
                "python": platform.python_version(),
                "numba": version("numba"),
            }
            result[name] = {"devices": options.devices, **found, "machine": machine}
            print(name, json.dumps(result[name], indent=1), flush=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
