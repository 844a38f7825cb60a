"""Reports, opened again as each aggregator does, by the words of the standard."""

from dataclasses import replace

import pytest
from tests.vdaf.additive_vdaf import AdditiveVdaf

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18, HpkeCiphertext, TimeInterval
from hazemap.federated.protocols.dap.client import DapClient, ReportExtensions
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.upload_messages import (
    DapReport,
    PlaintextInputShare,
    PlaintextInputShare09,
    Report09,
)
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    Extension,
    HpkeConfig,
    HpkeConfigList,
    InvalidExtensions,
)
from hazemap.vdaf.hpke import CipherSuite, HpkeKeyPair, Kem

LEADER, HELPER = (
    HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, b"l" * 32),
    HpkeKeyPair.derived(Kem.P256_HKDF_SHA256, b"h" * 32),
)
LEADER_CONFIG = HpkeConfig(1, LEADER.kem, 1, 1, LEADER.public)
HELPER_CONFIG = HpkeConfig(2, HELPER.kem, 2, 3, HELPER.public)
NOW = 1_000_000_000


def client(version=DAP_18, **options) -> DapClient:
    ends = "https://leader.example/", "https://helper.example/"
    measured = CountConfiguration()
    task = DapTask.created(
        b"t" * 32, b"info", *ends, 3600, 10, BatchMode.TIME_INTERVAL, measured, version=version, **options
    )
    return DapClient(task, AdditiveVdaf(), LEADER_CONFIG, HELPER_CONFIG)


def made(client: DapClient, measurement: int = 7, extensions: ReportExtensions | None = None):
    size = client.randomness_bytes
    return client.report(measurement, NOW, bytes(range(size)), extensions or ReportExtensions())


def opened(pair: HpkeKeyPair, config: HpkeConfig, sealed: HpkeCiphertext, info: bytes, aad: bytes) -> bytes:
    assert sealed.config_id == config.id
    suite = CipherSuite.of(config.kem, config.kdf, config.aead)
    return suite.open(pair, sealed.enc, info, aad, sealed.payload)


def length(data: bytes, width: int) -> bytes:
    return len(data).to_bytes(width, "big")


def both(report, tag: bytes, aad: bytes) -> list[bytes]:
    return [
        opened(LEADER, LEADER_CONFIG, report.leader_share, tag + b" input share\1\2", aad),
        opened(HELPER, HELPER_CONFIG, report.helper_share, tag + b" input share\1\3", aad),
    ]


def aad_18(client: DapClient, report: DapReport) -> bytes:
    extensions = b"".join(each.to_bytes() for each in report.metadata.public_extensions)
    metadata = report.metadata.report_id + (NOW // 3600).to_bytes(8, "big") + length(extensions, 2) + extensions
    public = report.public_share
    return b"t" * 32 + client.task.configuration + metadata + length(public, 4) + public


def test_a_report_opens_for_its_aggregators_under_the_data_it_is_bound_to():
    sender = client()
    more = ReportExtensions((Extension(5, b"for all"),), (Extension(3, b"leader"),), (Extension(4, b"helper"),))
    report = DapReport.from_bytes(made(sender, 7, more).to_bytes())
    assert report.metadata.report_id == bytes(range(16)) and report.metadata.public_extensions == more.public
    assert report.public_share == b"dap-18" + b"t" * 32
    shares = [PlaintextInputShare.from_bytes(plain) for plain in both(report, b"dap-18", aad_18(sender, report))]
    assert [share.private_extensions for share in shares] == [more.leader, more.helper]
    values = [int.from_bytes(share.payload[:8], "little") for share in shares]
    assert sum(values) % sender.vdaf.modulus(b"") == 7


def test_a_report_of_draft_09_opens_under_its_own_data():
    sender = client(DAP_09)
    report = Report09.from_bytes(made(sender).to_bytes())
    assert report.metadata.time == NOW - NOW % 3600
    metadata = report.metadata.report_id + report.metadata.time.to_bytes(8, "big")
    aad = b"t" * 32 + metadata + length(report.public_share, 4) + report.public_share
    shares = [PlaintextInputShare09.from_bytes(plain).payload for plain in both(report, b"dap-09", aad)]
    assert sum(int.from_bytes(share[:8], "little") for share in shares) % sender.vdaf.modulus(b"") == 7
    with pytest.raises(InputError, match="no public extensions"):
        made(sender, 7, ReportExtensions((Extension(5, b""),)))


def test_a_share_does_not_open_in_another_task_report_or_place():
    sender = client()
    report = made(sender)
    assert both(report, b"dap-18", aad_18(sender, report))
    elsewhere = client(interval=TimeInterval(1, 1 << 40))
    later = replace(report, metadata=replace(report.metadata, report_id=bytes(16)))
    others = replace(report, public_share=b"another")
    swapped = replace(report, leader_share=report.helper_share, helper_share=report.leader_share)
    for wrong in (
        lambda: both(report, b"dap-18", aad_18(elsewhere, report)),
        lambda: both(report, b"dap-18", aad_18(sender, later)),
        lambda: both(report, b"dap-18", aad_18(sender, others)),
        lambda: both(report, b"dap-09", aad_18(sender, report)),
        lambda: opened(LEADER, LEADER_CONFIG, report.leader_share, b"dap-18 input share\1\3", aad_18(sender, report)),
    ):
        with pytest.raises(Refused):
            wrong()
    assert swapped.leader_share.config_id == 2


def test_reports_are_as_long_as_each_other():
    assert len({len(made(client(), measurement).to_bytes()) for measurement in range(10)}) == 1


def test_a_report_takes_exactly_its_randomness():
    sender = client()
    assert sender.randomness_bytes == 16 + 8 + 32 + 32
    for size in (0, 87, 89):
        with pytest.raises(InputError, match="needs 88 random bytes"):
            sender.report(1, NOW, bytes(size))
    changed = bytearray(range(88))
    changed[-1] ^= 1
    other = sender.report(7, NOW, bytes(changed))
    assert other.leader_share == made(sender).leader_share and other.helper_share != made(sender).helper_share


def test_no_report_is_made_before_or_after_the_task():
    for version in (DAP_18, DAP_09):
        made(client(version, interval=TimeInterval(NOW // 3600, 1)))
        for outside in (TimeInterval(NOW // 3600 + 1, 9), TimeInterval(1, NOW // 3600 - 1)):
            with pytest.raises(InputError, match="takes no reports now"):
                made(client(version, interval=outside))


def test_extensions_that_no_aggregator_would_take_are_not_sent():
    one, two = Extension(1, b""), Extension(2, b"")
    ReportExtensions((one,), (two,), (two,))
    with pytest.raises(InvalidExtensions):
        ReportExtensions((two, one))
    with pytest.raises(InvalidExtensions):
        ReportExtensions((), (one, one))
    with pytest.raises(InputError, match="not both"):
        ReportExtensions((one,), (), (one,))


def test_the_preferred_configuration_is_the_first_that_can_be_used():
    unknown, short = HpkeConfig(3, 0x9999, 1, 1, bytes(32)), HpkeConfig(4, 0x20, 1, 1, bytes(31))
    assert HpkeConfigList((unknown, short, LEADER_CONFIG, HELPER_CONFIG)).preferred() == LEADER_CONFIG
    for wrong in ((), (unknown, short), (LEADER_CONFIG, replace(HELPER_CONFIG, id=1))):
        with pytest.raises(Refused):
            HpkeConfigList(wrong).preferred()
    with pytest.raises(Refused):
        unknown.seal(b"", b"", b"", bytes(32))
    with pytest.raises(InputError):
        made(replace(client(), helper=short))
