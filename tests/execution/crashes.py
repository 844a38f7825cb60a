"""Releases that are killed, or run out of disk, at any instant: by a parent that forks a child for each of them.

The parent has loaded everything but started no thread. A child makes a release like anybody. It counts the calls after
which the world could look different (synced, renamed, locked, paid, drawn, seen), and may be told to die, or to have
its disk full, at the n-th of them; or the parent kills it after a while.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

PARENT = """
import json, os, select, signal, sys, time, warnings
import duckdb, geopandas, numba, pyarrow.parquet, rasterio, scipy.linalg, shapely
import hazemap.algorithms, hazemap.spatial.pixel_kernels, hazemap.publish, hazemap.releases.geoparquet
import hazemap.execution.crash_recovery
import fcntl, pathlib
from contextlib import contextmanager
from hazemap.errors import HazemapError
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_file import LedgerFile
from hazemap.queries.algorithm_session import Session
from hazemap.execution.scheduled_releases import run_schedule
from hazemap.specs.schedule_spec import ScheduleSpec
from hazemap.trust.curator import Curator

{sabotage}

def fill():
    with open(pathlib.Path(task["ledger"]).parent / "ballast", "wb", buffering=0) as file:
        for size in (1 << 16, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass

def at_points(what, chosen):
    number = 0
    def point():
        nonlocal number
        number += 1
        if number == chosen:
            fill() if what == "fill" else os.kill(os.getpid(), signal.SIGKILL)
    def around(home, name):
        real = getattr(home, name)
        def counted(*arguments, **options):
            point()
            value = real(*arguments, **options)
            point()
            return value
        setattr(home, name, counted)
    for name in ("fsync", "pwrite", "posix_fallocate", "rename", "replace", "unlink", "ftruncate"):
        around(os, name)
    around(fcntl, "flock")
    around(Curator, "answer")
    around(Session, "receive")
    writing = LedgerFile.writing
    @contextmanager
    def counted(self):
        point()
        with writing(self) as db:
            yield db
            point()
        point()
    LedgerFile.writing = counted
    return lambda: number

def work(task):
    points = at_points(task.get("what", "kill"), task.get("point", 0))
    ledger = Ledger(task["ledger"])
    try:
        if task["kind"] == "recover":
            for each in hazemap.execution.crash_recovery.recoverable(ledger):
                hazemap.execution.crash_recovery.recover(each.record.charge.id, ledger=ledger)
        elif task["kind"] == "nights":
            warnings.simplefilter("ignore")  # of nights with few people
            spec = ScheduleSpec.read(pathlib.Path(task["spec"]))
            for now in task["nights"]:
                run_schedule(spec, ledger=ledger, now=now, memory_limit=1 << 20)
        else:
            options = dict(
                person="person", epsilon=1, box="13.2,52.4,13.6,52.6", dataset=task["dataset"], output=task["output"],
                ledger=ledger, overwrite=task.get("overwrite", False),
            )
            if task["kind"] == "map":
                hazemap.publish.release("visits.parquet", **options)
            else:
                hazemap.publish.stats("visits.parquet", value="lon", low=13, high=14, cells="h3:6", **options)
    except HazemapError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\\n") if task.get("loud") else None
        os._exit(3)
    except OSError as error:
        os._exit(4)
    pathlib.Path("points").write_text(str(points()))
    os._exit(0)

for line in sys.stdin:
    begun, children = time.perf_counter(), []
    for task in json.loads(line):
        time.sleep(task.get("delay", 0))
        child = os.fork()
        if child == 0:
            work(task)
        children.append((child, os.pidfd_open(child), time.perf_counter() + task.get("seconds", 1200)))
    endings = []
    for child, watch, end in children:
        ended, _, _ = select.select([watch], [], [], max(0, end - time.perf_counter()))
        if not ended:
            os.kill(child, signal.SIGKILL)  # it is there, dead or alive, until it is waited for
        _, status = os.waitpid(child, 0)
        os.close(watch)
        endings.append("killed" if os.WIFSIGNALED(status) else str(os.waitstatus_to_exitcode(status)))
    print(json.dumps([endings, time.perf_counter() - begun]), flush=True)
"""

HALVES = """
save = hazemap.releases.Release.save
def in_two_halves(release, path):
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        save(release, pathlib.Path(folder) / "map.parquet")
        content = (pathlib.Path(folder) / "map.parquet").read_bytes()
    with open(path, "wb") as file:
        file.write(content[:1000])
        file.flush()
        time.sleep(1)
        file.write(content[1000:])
hazemap.releases.Release.save = in_two_halves
"""
"""A build that writes the file where everybody can see it."""

LATE = """
from hazemap.privacy.budget import PrivacyAmount
from hazemap.privacy.ledger import LedgerAccount
charge, owed = LedgerAccount.charge, []
def later(self, price):
    owed.append((self, price))
    total = PrivacyAmount("ε", sum(each.epsilon for _, each in owed))
    self._charges.append(type("Promised", (), {"id": (1 << 40) + len(owed), "total": total, "price": price})())
LedgerAccount.charge = later
save = hazemap.releases.Release.save
def save_first(release, path):
    save(release, path)
    time.sleep(1)
    owed[0][0]._charges.clear()
    for account, price in owed:
        charge(account, price)
hazemap.releases.Release.save = save_first
"""
"""A build that pays when the file is there."""

UNSYNCED = """
from hazemap.execution.journal import Journal
Journal.begun_before = Journal.begun
def nowhere(folder, run, head):
    return Journal.begun_before(pathlib.Path("/dev/shm") / "elsewhere", run, head)
Journal.begun = staticmethod(nowhere)
save = hazemap.releases.Release.save
def save_late(release, path):
    time.sleep(1)
    save(release, path)
hazemap.releases.Release.save = save_late
"""
"""A build whose journal is not where `recover` looks for it."""


class Ended(NamedTuple):
    """How the children of one task ended (killed, or their exit code), and the seconds until all had."""

    endings: list[str]
    seconds: float


class Parent:
    """Forks children that make releases in `folder`, where `visits.parquet` is."""

    def __init__(self, folder: Path, sabotage: str = "") -> None:
        program = PARENT.replace("{sabotage}", sabotage)
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )

    def __enter__(self) -> "Parent":
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.stdin.close()
            self.process.wait(600)

    def ended(self, *tasks: dict[str, Any]) -> Ended:
        """What became of these, each begun `delay` seconds after the one before."""
        self.process.stdin.write(json.dumps(tasks) + "\n")
        self.process.stdin.flush()
        return Ended(*json.loads(self.process.stdout.readline()))

    def points(self) -> int:
        """How many points the last child that came to its end has passed."""
        return int((self.folder / "points").read_text())
