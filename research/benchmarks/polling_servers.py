"""What `polling` asks: one server, or two of one PostgreSQL behind a proxy, of which whichever serves is killed.

Two servers stand by for each other (`hazemap server run --standby`). HAProxy passes each request on to the one that
serves, and holds it back while neither does. Whoever serves is ended by SIGKILL every so often, and started again a
second later, when it stands by.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

COMMAND = "from hazemap.cli.main import run; run()"
AGAIN = 1.0
"""Seconds until a server that was killed is started again."""
PROXY = """
global
    maxconn 4096
    tune.bufsize 65536
defaults
    mode http
    timeout connect 20ms
    timeout client 2m
    timeout server 2m
    retries 1000
    option redispatch 2
    retry-on conn-failure empty-response
    default-server check inter 100ms rise 1 fall 50
frontend devices
    bind 127.0.0.1:{port}
    default_backend servers
backend servers
    balance first
    option httpchk GET /v1/status
    server a 127.0.0.1:{first}
    server b 127.0.0.1:{second}
"""
"""A server that does not listen is taken for gone after five seconds; until then requests are tried again, for 20 ms a
time. One whose connection broke before its answer began is sent once more, as devices do themselves.
"""
WANTED = ("VmRSS", "Threads")


def free_ports(number: int) -> list[int]:
    """So many ports that nobody listens on."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in probes:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in probes]


@contextmanager
def process(folder: Path, name: str, *command: str, program: str = sys.executable) -> Iterator[subprocess.Popen]:
    """A process that is told to end, and waited for; what it says is in the folder."""
    started = begun(folder, name, *command, program=program)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(60)
        except subprocess.TimeoutExpired:
            started.kill()


def begun(folder: Path, name: str, *command: str, program: str = sys.executable) -> subprocess.Popen:
    """A process whose log goes on where an earlier one's of this name ended."""
    environment = os.environ | {"HAZEMAP_HOME": str(folder)}
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen([program, *command], stdout=log, stderr=log, env=environment)


def memory(pid: int) -> dict[str, float]:
    """Megabytes that a process has in memory now, and its threads."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if name in WANTED}
    return {"megabytes": round(found["VmRSS"] / 1024, 1), "threads": found["Threads"]}


def cpu(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Servers(Protocol):
    """Whatever answers at `url`."""

    url: str
    data: Path

    def look(self) -> dict[str, float]:
        """The memory and threads of what serves now, and the CPU seconds of all so far."""

    def check(self) -> None:
        """Raise unless all is as it should be."""


@dataclass
class OneServer:
    """A server, and nothing before it."""

    url: str
    data: Path
    process: subprocess.Popen

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator["OneServer"]:
        """Until the context ends."""
        [port], data = free_ports(1), folder / "server"
        with process(folder, "server", "-c", COMMAND, "server", "--data", str(data), "--port", str(port)) as started:
            yield cls(f"http://127.0.0.1:{port}", data, started)

    def look(self) -> dict[str, float]:
        """Of the one process."""
        return memory(self.process.pid) | {"cpu": cpu(self.process.pid)}

    def check(self) -> None:
        """It runs."""
        assert self.process.poll() is None


@dataclass
class Life:
    """A process of one of the two servers: when it began, when it was killed, and its megabytes when it was seen."""

    name: str
    port: int
    process: subprocess.Popen
    begun: float
    killed: float | None = None
    megabytes: list[float] = field(default_factory=list)


@dataclass
class Pair:
    """Two servers that stand by for each other, and the proxy before them."""

    url: str
    data: Path
    folder: Path
    database: str
    proxy: subprocess.Popen
    lives: list[Life] = field(default_factory=list)
    spent: float = 0.0
    """CPU seconds of those that were killed."""
    changing: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextmanager
    def running(cls, folder: Path, database: str) -> Iterator["Pair"]:
        """Until the context ends."""
        haproxy = shutil.which("haproxy")
        if haproxy is None:
            raise SystemExit("two servers need a proxy: apt-get install --no-install-recommends haproxy")
        port, *ports = free_ports(3)
        file = folder / "haproxy.cfg"
        file.write_text(PROXY.format(port=port, first=ports[0], second=ports[1]))
        with process(folder, "haproxy", "-db", "-f", str(file), program=haproxy) as proxy:
            pair = cls(f"http://127.0.0.1:{port}", folder / "server", folder, database, proxy)
            try:
                for name, each in zip("ab", ports, strict=True):
                    pair.start(name, each)
                yield pair
            finally:
                for life in pair.lives:
                    life.process.kill()
                    life.process.wait()

    def start(self, name: str, port: int) -> None:
        """Start a server: it serves if the other does not, else it stands by."""
        options = ("--standby", "--data", str(self.data), "--port", str(port), "--database", self.database)
        started = begun(self.folder, f"server-{name}", "-c", COMMAND, "server", *options)
        self.lives.append(Life(name, port, started, time.time()))

    @property
    def alive(self) -> list[Life]:
        """Those that were not killed."""
        return [life for life in self.lives if life.killed is None]

    def serving(self) -> Life | None:
        """Which one listens."""
        for life in self.alive:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", life.port)) == 0:
                    return life
        return None

    def kill(self) -> None:
        """End whichever serves, and start it again a second later."""
        while (life := self.serving()) is None:
            time.sleep(0.01)
        with self.changing:
            self.spent += cpu(life.process.pid)
            life.killed = time.time()
            life.process.kill()
            life.process.wait()
        time.sleep(AGAIN)
        with self.changing:
            self.start(life.name, life.port)

    @contextmanager
    def killed_every(self, seconds: float) -> Iterator[None]:
        """Kill one so often, the first time after half as long, while the context lasts."""

        def live() -> None:
            wait = seconds / 2
            while not over.wait(wait):
                wait = seconds - AGAIN
                self.kill()

        over = threading.Event()
        thread = threading.Thread(target=live)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def look(self) -> dict[str, float]:
        """Of the one that serves, and of the other; the CPU seconds of both, and of the proxy."""
        while (serving := self.serving()) is None:
            time.sleep(0.01)
        with self.changing, suppress(FileNotFoundError, KeyError):
            found = {life.name: memory(life.process.pid) for life in self.alive}
            for life in self.alive:
                life.megabytes.append(found[life.name]["megabytes"])
            spent = self.spent + sum(cpu(life.process.pid) for life in self.alive)
            return found[serving.name] | {"cpu": spent, "proxy_cpu": cpu(self.proxy.pid)}
        return self.look()

    def check(self) -> None:
        """Both run, and the proxy."""
        assert self.proxy.poll() is None
        assert len(self.alive) == 2
        assert all(life.process.poll() is None for life in self.alive)

    def told(self, start: float) -> list[dict]:
        """The processes of servers, and their memory."""
        return [
            {
                "server": life.name,
                "began_after_seconds": round(life.begun - start),
                "killed_after_seconds": None if life.killed is None else round(life.killed - start, 2),
                "megabytes": [life.megabytes[0], max(life.megabytes), life.megabytes[-1]] if life.megabytes else [],
            }
            for life in self.lives
        ]


def kept(file: Path, name: str, result: dict) -> None:
    """Write a result under its name, beside those of other names."""
    every = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(every | {name: result}, indent=2) + "\n")
