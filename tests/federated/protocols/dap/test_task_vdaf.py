"""Reports of every VDAF, from a measurement through both aggregators to sums."""

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18, VERSIONS
from hazemap.federated.protocols.dap.client import DapClient
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import (
    InputShareAad,
    InputShareAad09,
    PlaintextInputShare,
    PlaintextInputShare09,
)
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    HistogramConfiguration,
    HpkeConfig,
    MultihotConfiguration,
    Poplar1Configuration,
    SumConfiguration,
    SumVecConfiguration,
)
from hazemap.vdaf import ping_pong
from hazemap.vdaf.hpke import CipherSuite, HpkeKeyPair, Kem
from hazemap.vdaf.ping_pong import Continued
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter
from hazemap.vdaf.vdaf import ReportShare

PAIRS = [HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes([i]) * 32) for i in range(2)]
CONFIGS = [HpkeConfig(i, pair.kem, 1, 1, pair.public) for i, pair in enumerate(PAIRS)]
SUITE = CipherSuite.of(0x20, 1, 1)
NOW = 1_000_000
CASES = {
    "count": (CountConfiguration(), [1, 0, 1], b"", [2]),
    "sum": (SumConfiguration(7), [7, 0, 5], b"", [12]),
    "sum of vectors": (SumVecConfiguration(3, 3, 2), [[3, 0, 1], [1, 1, 1]], b"", [4, 1, 2]),
    "histogram": (HistogramConfiguration(5, 2), [4, 0, 4], b"", [1, 0, 0, 0, 2]),
    "weights": (MultihotConfiguration(4, 2, 2), [[1, 0, 0, 1], [0, 0, 0, 0]], b"", [1, 0, 0, 1]),
    "prefixes": (
        Poplar1Configuration(4),
        [0b1010, 0b1011, 0b0001],
        Poplar1Parameter(1, np.array([0b00, 0b10, 0b11], dtype=np.uint64)).to_bytes(),
        [1, 2, 0],
    ),
}


def task(measured, version) -> DapTask:
    ends = "https://leader.example/", "https://helper.example/"
    return DapTask.created(b"t" * 32, b"i", *ends, 60, 1, BatchMode.LEADER_SELECTED, measured, version=version)


def aggregated(of: DapTask, measurements, agg_param: bytes) -> list[int]:
    """The sums of reports of these measurements."""
    vdaf = vdaf_of(of)
    client = DapClient(of, vdaf, *CONFIGS)
    sides = [], []
    for i, measurement in enumerate(measurements):
        report = client.report(measurement, NOW, bytes([i]) * client.randomness_bytes)
        new = of.version == DAP_18
        bound = (of.id, of.configuration) if new else (of.id,)
        aad = (InputShareAad if new else InputShareAad09)(*bound, report.metadata, report.public_share).to_bytes()
        for pair, role, sealed, side in zip(
            PAIRS, (2, 3), (report.leader_share, report.helper_share), sides, strict=True
        ):
            info = of.version.tag + b" input share" + bytes([1, role])
            plain = SUITE.open(pair, sealed.enc, info, aad, sealed.payload)
            share = (PlaintextInputShare if new else PlaintextInputShare09).from_bytes(plain)
            side.append(ReportShare(report.metadata.report_id, report.public_share, share.payload))
    key = bytes(vdaf.VERIFY_KEY_SIZE)
    leader = ping_pong.leader_init(vdaf, key, of.context, agg_param, sides[0])
    helper = ping_pong.helper_init(vdaf, key, of.context, agg_param, sides[1], [each.outbound for each in leader])
    stored = [Continued.from_bytes(vdaf, agg_param, each.to_bytes(vdaf, agg_param)) for each in leader]
    leader = ping_pong.leader_continued(vdaf, of.context, agg_param, stored, [each.outbound for each in helper])
    if vdaf.ROUNDS == 2:
        said = [each.outbound for each in leader]
        helper = ping_pong.helper_continued(vdaf, of.context, agg_param, helper, said)
    totals = [vdaf.merge(agg_param, [each.out_share for each in side]) for side in (leader, helper)]
    return vdaf.unshard(agg_param, totals)


@pytest.mark.parametrize("version", VERSIONS.values(), ids=lambda version: version.tag.decode())
@pytest.mark.parametrize("case", CASES)
def test_reports_become_sums(case, version):
    measured, measurements, agg_param, sums = CASES[case]
    if version == DAP_09 and isinstance(measured, MultihotConfiguration | Poplar1Configuration):
        with pytest.raises(InputError):
            task(measured, version)
        return
    assert aggregated(task(measured, version), measurements, agg_param) == sums
    if version == DAP_18:
        assert vdaf_of(task(measured, version)).ID == measured.VDAF


def test_the_largest_and_the_smallest_configurations_have_a_vdaf():
    for measured in (
        SumConfiguration(1),
        SumConfiguration(2**64 - 2**32),
        SumVecConfiguration(1, 1, 1),
        SumVecConfiguration(65_536, (1 << 64) - 1, 1 << 22),
        HistogramConfiguration(1, 1),
        HistogramConfiguration(1 << 22, 2048),
        MultihotConfiguration(1, 1, 1),
        MultihotConfiguration(1 << 22, 2048, 1 << 22),
        Poplar1Configuration(1),
        Poplar1Configuration(64),
    ):
        assert vdaf_of(task(measured, DAP_18)).NONCE_SIZE == 16
