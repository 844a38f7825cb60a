"""A server of a test's own: a real process on a free port."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from tests.ports import free_port

COMMAND = "import sys; from hazemap.cli.main import run; sys.argv[0] = 'hazemap'; run()"


@dataclass
class Process:
    """`hazemap server` in a folder; its ledger is there as well."""

    folder: Path
    options: tuple[str, ...] = ()
    scheme: str = "http"
    verify: object = True
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "coordinator"

    @property
    def operator(self) -> tuple[str, ...]:
        return "--server", self.url, "--token-file", str(self.data / "operator.token")

    @property
    def token(self) -> str:
        return (self.data / "enrolment.token").read_text().strip()

    def start(self) -> "Process":
        arguments = ["server", "--data", str(self.data), "--port", str(self.port), *self.options]
        environment = {**os.environ, "HAZEMAP_HOME": str(self.folder / "home")}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, *arguments], env=environment, stdout=log, stderr=log
            )
        until = time.monotonic() + 600
        while time.monotonic() < until:
            try:
                httpx.get(f"{self.url}/v1/status", verify=self.verify)
            except httpx.TransportError:
                assert self.process.poll() is None, self.log
                time.sleep(0.05)
            else:
                return self
        raise AssertionError(f"no server came up: {self.log}")

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(600)
