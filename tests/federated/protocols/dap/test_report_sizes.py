"""Reports of a task have one length, by which anything else is refused before it is read."""

from dataclasses import replace

import pytest

from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.report_sizes import AT_ONCE, ReportSizes
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import DapReport, ReportMetadata, UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    HpkeConfig,
    Poplar1Configuration,
    SumVecConfiguration,
)
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

KINDS = [
    (CountConfiguration(), 1, DAP_18),
    (HistogramConfiguration(9, 3), 4, DAP_18),
    (HistogramConfiguration(9, 3), 4, DAP_09),
    (SumVecConfiguration(5, 3, 4), [1, 2, 3, 0, 3], DAP_18),
    (Poplar1Configuration(12), 77, DAP_18),
]


@pytest.mark.parametrize(("measured", "measurement", "version"), KINDS)
@pytest.mark.parametrize("kem", [Kem.X25519_HKDF_SHA256, Kem.P521_HKDF_SHA512])
def test_what_clients_send_has_the_lengths_of_their_task_and_nothing_else_has(measured, measurement, version, kem):
    ends = "https://leader.example/", "https://helper.example/"
    task = DapTask.created(b"t" * 32, b"info", *ends, 3600, 10, BatchMode.TIME_INTERVAL, measured, version=version)
    keys = [HpkeConfig(number, kem, 1, 1, HpkeKeyPair.derived(kem, bytes(66)).public) for number in (1, 2)]
    client = DapClient(task, vdaf_of(task), *keys)
    sizes = ReportSizes.of(task, client.vdaf)
    found = client.report(measurement, 10**9, (bytes(range(256)) * 9)[: client.randomness_bytes])
    assert sizes.least <= len(found.to_bytes()) <= sizes.longest_upload == AT_ONCE
    if version == DAP_09:
        found = DapReport(ReportMetadata(bytes(16), 0), found.public_share, found.leader_share, found.helper_share)
    assert len(UploadRequest((found,)).to_bytes()) >= sizes.least
    assert sizes.fit(found)
    for share in ("leader_share", "helper_share"):
        sealed = getattr(found, share)
        for other in (sealed.payload[:-1], sealed.payload + bytes(30_000_000), b""):
            assert not sizes.fit(replace(found, **{share: replace(sealed, payload=other)}))
        assert not sizes.fit(replace(found, **{share: replace(sealed, enc=bytes(60_000))}))
    for public in (found.public_share + b"0", found.public_share[:-1] if found.public_share else b"0"):
        assert not sizes.fit(replace(found, public_share=public))
