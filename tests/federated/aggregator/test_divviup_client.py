"""Somebody else's client, @divviup/dap 0.9.1 of npm, uploads to our leader; our collector's sums of it are right."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import httpx
import pytest
from tests.ports import free_port

from hazemap.cli.main import main
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.resource_paths import id_text, reports
from hazemap.federated.protocols.dap.upload_messages import HPKE_CONFIG_LIST, Report09
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

CLIENT = Path(__file__).parents[3] / "web" / "dap-client"
PRECISION = 36_000
RUN = "from hazemap.cli.main import run; run()"
CASES = {
    "count": ({"type": "count"}, [True, False, True, True], [3]),
    "sum:255": ({"type": "sum", "bits": 8}, [0, 255, 7, 100], [362]),
    "vector:3:15": ({"type": "sumVec", "bits": 4, "length": 3}, [[0, 15, 3], [1, 1, 1], [15, 0, 0]], [16, 16, 4]),
    "histogram:10": ({"type": "histogram", "length": 10}, [0, 9, 4, 4, 4], [1, 0, 0, 0, 3, 0, 0, 0, 0, 1]),
}


def uploaded(task: dict, measurements: list) -> subprocess.CompletedProcess:
    """The other client with its measurements."""
    if shutil.which("node") is None or not (CLIENT.parent / "node_modules" / "@divviup" / "dap").exists():
        pytest.skip("the other client of DAP is not installed: `make studio` does it")
    order = json.dumps({"task": task, "measurements": measurements})
    return subprocess.run(
        ["node", "upload.js"], cwd=CLIENT, input=order, capture_output=True, text=True, timeout=1200, check=False
    )


@contextmanager
def two_servers(folder: Path):
    """A leader and a helper as an operator runs them, with a task of each case; the folders of their tasks."""
    ports = {role: free_port() for role in ("leader", "helper")}
    tasks = {measured: folder / measured.replace(":", "-") for measured in CASES}
    for measured, where in tasks.items():
        ends = [part for role, port in ports.items() for part in (f"--{role}", f"http://127.0.0.1:{port}/")]
        asked = ["collector", "task", measured, *ends, "--least", str(len(CASES[measured][1])), "-o", str(where)]
        assert main([*asked, "--seconds", str(PRECISION), "--version", "dap-09", "--open", "99"]) == 0
    running = []
    try:
        for role, port in ports.items():
            command = [sys.executable, "-c", RUN, "aggregator", "--role", role, "--port", str(port)]
            command += ["--data", str(folder / role)]
            command += [part for where in tasks.values() for part in ("--task", str(where / f"{role}.toml"))]
            with (folder / f"{role}.log").open("ab") as log:
                running.append(subprocess.Popen(command, stderr=log, stdout=log, env=dict(os.environ)))
        for port in ports.values():
            await_server(f"http://127.0.0.1:{port}/hpke_config", running)
        yield tasks
    finally:
        for process in running:
            process.terminate()
            process.wait(600)


def await_server(url: str, running: list[subprocess.Popen]) -> None:
    until = time.monotonic() + 600
    while True:
        try:
            httpx.get(url).raise_for_status()
            return
        except httpx.HTTPError:
            assert time.monotonic() < until, "an aggregator does not come up"
            assert all(process.poll() is None for process in running), "an aggregator has ended"
            time.sleep(0.05)


@pytest.mark.slow
def test_the_sums_of_what_it_uploads_to_our_leader_are_right(tmp_path, capsys):
    with two_servers(tmp_path) as tasks:
        start = int(time.time()) // PRECISION * PRECISION
        for measured, (vdaf, measurements, _) in CASES.items():
            task = TaskFile.read(tasks[measured] / "client.toml").task
            chunk = {"chunkLength": task.measured.chunk_length} if hasattr(task.measured, "chunk_length") else {}
            ends = {"leader": task.leader, "helper": task.helper, "timePrecisionSeconds": PRECISION}
            done = uploaded({"id": id_text(task.id), **ends, **vdaf, **chunk}, measurements)
            assert (done.stdout, done.stderr) == (f"{len(measurements)}\n", ""), measured
        capsys.readouterr()
        for measured, (_, measurements, sums) in CASES.items():
            asked = ["collector", "collect", str(tasks[measured] / "collector.toml"), "--start", str(start), "--json"]
            assert main([*asked, "--seconds", str(2 * PRECISION), "--wait", "600"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert (found["reports"], found["sums"]) == (len(measurements), sums), measured


class Rotating(ThreadingHTTPServer):
    """Both aggregators' keys, and a leader that says of its first `rotations` reports that their key is old."""

    task = bytes(range(32))

    def __init__(self, rotations: int) -> None:
        super().__init__(("127.0.0.1", 0), RotatingHandler)
        self.rotations, self.bodies, self.asked = rotations, [], 0
        pair = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(32))
        self.configs = HpkeConfigList((HpkeConfig(99, 0x9999, 1, 1, b"k"), HpkeConfig(1, pair.kem, 1, 1, pair.public)))


class RotatingHandler(BaseHTTPRequestHandler):
    server: Rotating

    def do_GET(self):
        assert urlsplit(self.path).query == f"task_id={id_text(Rotating.task)}"
        self.server.asked += 1
        self.answer(200, HPKE_CONFIG_LIST, self.server.configs.to_bytes())

    def do_PUT(self):
        assert self.path == f"/{reports(Rotating.task)}" and self.headers["Content-Type"] == Report09.media_type()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(Report09.from_bytes(body))
        if len(self.server.bodies) > self.server.rotations:
            self.answer(201, "", b"")
            return
        problem = DapProblem(ProblemType.OUTDATED_CONFIG, "the key is old", Rotating.task).document()
        self.answer(400, "application/problem+json", problem.to_json())

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(("rotations", "ends"), [(1, (0, "1\n", "")), (9, (1, "", "outdatedConfig\n"))])
def test_it_understands_our_problem_documents_and_asks_for_keys_again_once(rotations, ends):
    with Rotating(rotations) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        options = {"timePrecisionSeconds": PRECISION, "type": "count"}
        done = uploaded({"id": id_text(Rotating.task), "leader": base, "helper": base, **options}, [True])
        server.shutdown()
    assert (done.returncode, done.stdout, done.stderr) == ends
    ids = {report.metadata.report_id for report in server.bodies}
    assert len(server.bodies) == len(ids) == 2 and server.asked == 4
