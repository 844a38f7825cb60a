"""Leader, helper and collector as processes, by the commands that an operator uses."""

import json
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest
from tests.ports import free_port

from hazemap.cli.main import main
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.resource_paths import reports
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList

RUN = "from hazemap.cli.main import run; run()"


class Processes:
    """Both aggregators of a task; each can be killed and started again."""

    def __init__(self, folder, measurement, *options):
        self.folder, self.ports, self.running = folder, {"leader": free_port(), "helper": free_port()}, {}
        urls = {role: f"http://127.0.0.1:{port}/" for role, port in self.ports.items()}
        asked = [
            measurement,
            "--leader",
            urls["leader"],
            "--helper",
            urls["helper"],
            "-o",
            str(folder / "tasks"),
            "--open",
            "1000",
        ]
        assert main(["collector", "task", *asked, "--open", "1000", *options]) == 0
        self.task = TaskFile.read(folder / "tasks" / "client.toml").task
        for role in self.ports:
            self.start(role)

    def start(self, role):
        command = [sys.executable, "-c", RUN, "aggregator", "--role", role, "--port", str(self.ports[role])]
        command += ["--data", str(self.folder / role), "--task", str(self.folder / "tasks" / f"{role}.toml")]
        with (self.folder / f"{role}.log").open("ab") as log:
            self.running[role] = subprocess.Popen(command, stderr=log, stdout=log, env=dict(os.environ))

    def wait(self):
        until = time.monotonic() + 600
        for port in self.ports.values():
            while True:
                try:
                    httpx.get(f"http://127.0.0.1:{port}/hpke_config").raise_for_status()
                    break
                except httpx.HTTPError:
                    assert time.monotonic() < until, "an aggregator does not come up"
                    assert all(process.poll() is None for process in self.running.values()), "one has ended"
                    time.sleep(0.05)

    def kill(self, role, how=signal.SIGKILL):
        self.running[role].send_signal(how)
        self.running[role].wait(600)

    def close(self):
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
            process.wait(600)

    def client(self):
        keys = [
            HpkeConfigList.from_bytes(httpx.get(f"{url}hpke_config").content).preferred()
            for url in (self.task.leader, self.task.helper)
        ]
        return DapClient(self.task, vdaf_of(self.task), *keys)

    def upload(self, *made):
        url = self.task.leader + reports(self.task.id)
        body, kind = UploadRequest(made).to_bytes(), {"Content-Type": UploadRequest.media_type()}
        until = time.monotonic() + 600
        while True:
            try:
                return httpx.post(url, content=body, headers=kind, timeout=300)
            except httpx.HTTPError:
                assert time.monotonic() < until, "the leader does not take reports"
                time.sleep(0.1)


@pytest.fixture
def processes(tmp_path):
    made = []

    def make(*arguments):
        made.append(Processes(tmp_path, *arguments))
        made[-1].wait()
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.slow
def test_servers_that_are_killed_over_and_over_lose_no_report_and_count_none_twice(processes, tmp_path, capsys):
    two = processes("histogram:8", "--least", "40", "--seconds", "36000")
    client = two.client()
    now = int(time.time())
    made = [client.report(number % 8, now, os.urandom(client.randomness_bytes)) for number in range(60)]
    for number, report in enumerate(made):
        assert two.upload(report).status_code == 200
        if number % 10 == 9:
            role = ("leader", "helper")[number // 10 % 2]
            two.kill(role)
            two.start(role)
            two.wait()
    assert two.upload(*made).status_code == 200  # all of them again
    capsys.readouterr()
    start = now // 36_000 * 36_000
    asked = ["collector", "collect", str(tmp_path / "tasks" / "collector.toml"), "--start", str(start), "--json"]
    assert main([*asked, "--wait", "600"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["reports"], first["sums"]) == (60, [8, 8, 8, 8, 7, 7, 7, 7])
    two.kill("leader", signal.SIGTERM)
    two.start("leader")
    two.wait()
    assert main(asked) == 0
    assert json.loads(capsys.readouterr().out) == first
