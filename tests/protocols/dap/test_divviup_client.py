"""Somebody else's client, @divviup/dap 0.9.1 of npm: its reports are opened and verified, and their sums are right."""

import json
import shutil
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from hazemap.protocols.dap.basic_types import Role
from hazemap.protocols.dap.hpke_configs import HpkeConfig, HpkeConfigList
from hazemap.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.protocols.dap.resource_paths import id_text, reports
from hazemap.protocols.dap.task import Task
from hazemap.protocols.dap.task_configuration import BatchMode
from hazemap.protocols.dap.task_vdaf import vdaf_of
from hazemap.protocols.dap.upload_messages_09 import (
    HPKE_CONFIG_LIST,
    InputShareAad09,
    PlaintextInputShare09,
    Report09,
)
from hazemap.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    SumConfiguration,
    SumVecConfiguration,
)
from hazemap.protocols.dap.versions import DAP_09
from hazemap.protocols.hpke import CipherSuite, Kem, KeyPair
from hazemap.protocols.vdaf import ping_pong
from hazemap.protocols.vdaf.vdaf import ReportShare

CLIENT = Path(__file__).parents[3] / "studio" / "dap-client"
TASK = bytes(range(32))
PRECISION = 300
ROLES = (Role.LEADER, Role.HELPER)
PAIRS = {role: KeyPair.derived(Kem.X25519_HKDF_SHA256, bytes([role]) * 32) for role in ROLES}


def config(role: Role, number: int | None = None) -> HpkeConfig:
    pair = PAIRS[role]
    return HpkeConfig(number or role.value, pair.kem, 1, 1, pair.public)


class Receiver(ThreadingHTTPServer):
    """Both aggregators' keys, and a leader's reports resource; its first `rotations` answers are that a key is old."""

    def __init__(self, rotations: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.rotations, self.bodies, self.asked = rotations, [], 0


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_GET(self):
        parts = urlsplit(self.path)
        role = {"/leader/hpke_config": Role.LEADER, "/helper/hpke_config": Role.HELPER}[parts.path]
        assert parts.query == f"task_id={id_text(TASK)}" and self.headers["Accept"] == HPKE_CONFIG_LIST
        self.server.asked += 1
        unknown = HpkeConfig(99, 0x9999, 1, 1, b"key")
        self.answer(200, HPKE_CONFIG_LIST, HpkeConfigList((unknown, config(role))).to_bytes())

    def do_PUT(self):
        assert self.path == f"/leader/{reports(TASK)}" and self.headers["Content-Type"] == Report09.media_type()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.rotations:
            self.server.rotations -= 1
            problem = DapProblem(ProblemType.OUTDATED_CONFIG, "the key is old", TASK).document()
            self.answer(400, "application/problem+json", problem.to_json())
            return
        self.server.bodies.append(body)
        self.answer(201, "", b"")

    def answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def receiving(rotations: int = 0):
    with Receiver(rotations) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def upload(server: Receiver, vdaf: dict, measurements: list) -> subprocess.CompletedProcess:
    if shutil.which("node") is None or not (CLIENT / "node_modules").exists():
        pytest.skip("the other client of DAP is not installed: `make studio` does it")
    base = f"http://127.0.0.1:{server.server_address[1]}"
    task = {"id": id_text(TASK), "leader": f"{base}/leader", "helper": f"{base}/helper/", **vdaf}
    order = json.dumps({"task": {**task, "timePrecisionSeconds": PRECISION}, "measurements": measurements})
    command = ["node", "upload.js"]
    return subprocess.run(command, cwd=CLIENT, input=order, capture_output=True, text=True, timeout=60, check=False)


def opened(report: Report09, role: Role) -> ReportShare:
    """An aggregator's part of a report, by the words of the draft."""
    sealed = report.leader_share if role is Role.LEADER else report.helper_share
    suite = CipherSuite.of(config(role).kem, 1, 1)
    aad = InputShareAad09(TASK, report.metadata, report.public_share).to_bytes()
    plain = suite.open(PAIRS[role], sealed.enc, DAP_09.input_share_info(role), aad, sealed.payload)
    share = PlaintextInputShare09.from_bytes(plain)
    assert sealed.config_id == config(role).id and share.extensions == ()
    return ReportShare(report.metadata.report_id, report.public_share, share.payload)


def verified(measured, bodies: list[bytes]) -> list[int]:
    """Both aggregators verify the reports together, and a collector adds up."""
    ends = "https://leader.example/", "https://helper.example/"
    task = Task.created(TASK, b"npm", *ends, PRECISION, 1, BatchMode.TIME_INTERVAL, measured, version=DAP_09)
    vdaf, key = vdaf_of(task), b"k" * 16
    received = [Report09.from_bytes(body) for body in bodies]
    assert all(report.metadata.time % PRECISION == 0 for report in received)
    leader, helper = ([opened(report, role) for report in received] for role in ROLES)
    begun = ping_pong.leader_init(vdaf, key, task.context, b"", leader)
    answered = ping_pong.helper_init(vdaf, key, task.context, b"", helper, [state.outbound for state in begun])
    ended = ping_pong.leader_continued(vdaf, task.context, b"", begun, [state.outbound for state in answered])
    sides = [vdaf.merge(b"", [state.out_share for state in side]) for side in (ended, answered)]
    return vdaf.unshard(b"", sides)


CASES = {
    "count": ({"type": "count"}, CountConfiguration(), [True, False, True, True], [3]),
    "sum": ({"type": "sum", "bits": 8}, SumConfiguration(255), [0, 255, 7, 100], [362]),
    "sum of vectors": (
        {"type": "sumVec", "bits": 4, "length": 3, "chunkLength": 2},
        SumVecConfiguration(3, 15, 2),
        [[0, 15, 3], [1, 1, 1], [15, 0, 0]],
        [16, 16, 4],
    ),
    "histogram": (
        {"type": "histogram", "length": 10, "chunkLength": 3},
        HistogramConfiguration(10, 3),
        [0, 9, 4, 4, 4],
        [1, 0, 0, 0, 3, 0, 0, 0, 0, 1],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_sums_of_what_it_uploads_are_right(case):
    vdaf, measured, measurements, sums = CASES[case]
    with receiving() as server:
        done = upload(server, vdaf, measurements)
    assert (done.stdout, done.stderr) == (f"{len(measurements)}\n", "")
    assert len(server.bodies) == len(measurements) and verified(measured, server.bodies) == sums


@pytest.mark.slow
def test_it_asks_for_keys_again_once_where_a_leader_does_not_know_its_key():
    vdaf, measured, *_ = CASES["count"]
    with receiving(rotations=1) as server:
        assert upload(server, vdaf, [True]).stdout == "1\n"
    assert server.asked == 4 and verified(measured, server.bodies) == [1]
    with receiving(rotations=9) as server:
        done = upload(server, vdaf, [True])
    assert done.returncode == 1 and done.stderr == "outdatedConfig\n"
