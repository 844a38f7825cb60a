"""Servers and devices as processes that start in a tenth of a second and are killed by `kill -9`.

A parent that has loaded everything, but started no thread, forks each of them; what a child does from then on it does
as `hazemap server` and `hazemap device run --many` do, on folders, over a loopback port, only with less patience.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

PARENT = """
import json, os, sys
from pathlib import Path
import cryptography, httptools, httpx, numba, numpy, pyarrow.parquet, geopandas, shapely, starlette, uvicorn, uvloop
import hazemap.algorithms, hazemap.cli.main
import hazemap.federated.device.store.row_store, hazemap.federated.device.device_process
import hazemap.spatial.h3_hexagons, hazemap.releases.geoparquet, hazemap.federated.server.server_process
from hazemap.federated.device import agent
from hazemap.federated.device.recipes.recipe_check import check_recipe
from hazemap.privacy.ledger import Ledger
from hazemap.federated.server.campaign_house import NO_PEERS, PeerServers
from hazemap.federated.server.announced_rounds import Pace
from hazemap.federated.server.server_process import ServerProcess
from hazemap.federated.service.served_address import ServedAddress
from hazemap.federated.service.state_folder import StateFolder

agent.AGAIN = 0.05
agent.SILENT = 0.5
agent.Backoff.wait = lambda self, failures: agent.jitter(min(1.0, 0.05 * 2.0 ** min(failures, 10)))
PACE = Pace(busy=1e6, idle=1e6, least=0.08, most=0.3, calm=0.1)

def serve(folder, port, peers=None, pages=(), database=None, standby=False, **more):
    import logging
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    ledger, judge = Ledger(Path(folder) / "ledger.sqlite"), lambda *asked: check_recipe(*asked).reasons
    known = PeerServers.read(Path(peers)) if peers else NO_PEERS
    pages = {"page_origins": tuple(pages)}
    kept, here = StateFolder(Path(folder), database, standby), ServedAddress("127.0.0.1", port)
    ServerProcess(kept, here, ledger=ledger, pace=PACE, judge=judge, peers=known, **pages, **more).run()

def hazemap_(*arguments):
    sys.argv = ["hazemap", *arguments]
    hazemap.cli.main.run()

{sabotage}
threads = {Path("/proc/self/task", each, "comm").read_text().strip() for each in os.listdir("/proc/self/task")}
assert len(threads - {"jemalloc_bg_thd"}) == 1, f"{threads}: these would not be there in a child"
for line in sys.stdin:
    what, log, arguments = json.loads(line)
    if what == "wait":
        print(os.waitstatus_to_exitcode(os.waitpid(arguments[0], 0)[1]), flush=True)
        continue
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 1), os.dup2(said, 2)
        code, more = 1, arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        try:
            dict(serve=serve, hazemap=hazemap_)[what](*arguments, **more)
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    print(child, flush=True)
"""


class Parent:
    """The process that forks all others. `sabotage` is Python that spoils it before it does."""

    def __init__(self, sabotage: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PARENT.replace("{sabotage}", sabotage)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )

    def _ask(self, *request: Any) -> int:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def fork(self, log: Path, what: str, *arguments: Any) -> "Child":
        return Child(self, self._ask(what, str(log), arguments))

    def wait(self, child: int) -> int:
        return self._ask("wait", "", [child])

    def __enter__(self) -> "Parent":
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait(600)


@dataclass
class Child:
    """A process. Until its parent has waited for it its id is nobody else's, dead or alive."""

    parent: Parent
    id: int
    ended: int | None = None

    def kill(self, number: int = signal.SIGKILL) -> int:
        """End it, at once, and say how it ended (-9 if it was alive)."""
        if self.ended is None:
            os.kill(self.id, number)
            self.ended = self.parent.wait(self.id)
        return self.ended

    def wait(self) -> int:
        """Wait until it has ended by itself, and say how."""
        if self.ended is None:
            self.ended = self.parent.wait(self.id)
        return self.ended


@dataclass
class Server:
    """`hazemap server` in a folder, with a ledger of its own there."""

    parent: Parent
    folder: Path
    port: int
    peers: Path | None = None
    pages: tuple[str, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)
    child: Child | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.log")

    def start(self) -> None:
        peers = self.peers and str(self.peers)
        self.child = self.parent.fork(self.log, "serve", str(self.folder), self.port, peers, self.pages, self.more)

    def kill(self) -> None:
        assert self.child
        assert self.child.kill() == -signal.SIGKILL, self.log.read_text()[-5_000:]

    def answered(self, path: str, content: bytes | None = None, seconds: float = 120) -> httpx.Response | None:
        """What the server says to its operator; None where nobody answers for so long."""
        until = time.monotonic() + seconds
        token = self.folder / "operator.token"
        while True:
            try:
                headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
                with httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=300) as http:
                    return http.get(path) if content is None else http.post(path, content=content)
            except (httpx.TransportError, FileNotFoundError):
                if time.monotonic() >= until:
                    return None
                time.sleep(0.005)


@dataclass
class Crowd:
    """`hazemap device run --many` on a store: so many devices in one process, with a table or with what they hold."""

    parent: Parent
    folder: Path
    name: str
    server: Server
    people: int
    table: Path | None
    policy: Path
    child: Child | None = field(default=None, init=False)

    @property
    def store(self) -> Path:
        return self.folder / f"{self.name}.sqlite"

    def start(self) -> None:
        options = {
            "--many": self.people,
            **({} if self.table is None else {"--table": self.table, "--person": "person"}),
            "--store": self.store,
            "--policy": self.policy,
            "--server": self.server.url,
            "--token-file": self.server.folder / "enrolment.token",
        }
        words = [str(word) for option in options.items() for word in option]
        self.child = self.parent.fork(self.folder / f"{self.name}.log", "hazemap", "device", "run", *words)

    def kill(self) -> None:
        assert self.child
        assert self.child.kill() == -signal.SIGKILL, (self.folder / f"{self.name}.log").read_text()[-5_000:]
