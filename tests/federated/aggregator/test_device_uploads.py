"""Devices upload to a leader and helper that run as an operator runs them, over either of their HTTP clients."""

import asyncio
import json
import time

import pytest
from tests.federated.aggregator.test_processes import Processes

from hazemap.cli.main import main
from hazemap.errors import Refused
from hazemap.federated.aggregator.aggregator_routes import CACHED
from hazemap.federated.device.http_client import FleetClient, HttpClient
from hazemap.federated.device.reports.dap_report_upload import HpkeCache, ReportUpload
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of

PRECISION = 36_000


async def uploaded(task: DapTask, kind, measurements) -> tuple[int, float]:
    """A fleet whose devices upload one measurement each, at once: how often they paid, how long keys are kept."""
    charged = 0

    async def charge() -> None:
        nonlocal charged
        charged += 1

    async with kind.to(task.leader) as leader, kind.to(task.helper) as helper:
        caches = [HpkeCache(each, task.version, task.id) for each in (leader, helper)]
        upload = ReportUpload(task, vdaf_of(task), *caches, charge)
        await asyncio.gather(*(upload.uploaded(measurement) for measurement in measurements))
        kept = caches[0]._until - caches[0].clock()
        elsewhere = ReportUpload(DapTask.read(bytes(32), task.configuration), upload.vdaf, *caches, charge)
        with pytest.raises(Refused, match="unrecognizedTask"):
            await elsewhere.uploaded(0)
    return charged - 1, kept


@pytest.mark.slow
def test_what_devices_upload_is_collected_and_each_report_was_paid(tmp_path, capsys):
    two = Processes(tmp_path, "histogram:8", "--least", "40", "--seconds", str(PRECISION))
    try:
        two.wait()
        start = int(time.time()) // PRECISION * PRECISION
        for kind in (HttpClient, FleetClient):
            charged, kept = asyncio.run(uploaded(two.task, kind, [i % 8 for i in range(20)]))
            assert charged == 20 and CACHED - 60 < kept <= CACHED
        capsys.readouterr()
        asked = ["collector", "collect", str(tmp_path / "tasks" / "collector.toml"), "--start", str(start), "--json"]
        assert main([*asked, "--seconds", str(2 * PRECISION), "--wait", "600"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["reports"], found["sums"]) == (40, [6, 6, 6, 6, 4, 4, 4, 4])
    finally:
        two.close()
