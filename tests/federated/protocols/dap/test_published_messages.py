"""The encodings of DAP-18's messages that another implementation publishes: byte for byte, both ways."""

import json
import re
from pathlib import Path

import pytest

from hazemap.errors import CodecError
from hazemap.federated.protocols.dap import aggregation_messages as aggregation
from hazemap.federated.protocols.dap import basic_types, collection_messages, task, vdaf_configuration
from hazemap.federated.protocols.dap import upload_messages as upload
from hazemap.federated.protocols.dap.basic_types import DapRole, HpkeCiphertext, ReportError, TimeInterval
from hazemap.federated.protocols.dap.collection_messages import BatchQuery, BatchSelector, CollectionJobReq
from hazemap.federated.protocols.dap.task import BatchMode, TaskConfiguration
from hazemap.federated.protocols.dap.vdaf_configuration import Extension, HpkeConfig, HpkeConfigList
from hazemap.vdaf.tls_encoding import TlsReader, TlsWriter

FILE = Path(__file__).parents[4] / ".." / "shared" / "vectors" / "dap" / "messages_dap18.json"
UP, DOWN = bytes(range(1, 17)), bytes(range(16, 0, -1))
FIRST, SECOND = HpkeCiphertext(42, b"012345", b"543210"), HpkeCiphertext(13, b"abce", b"abfd")
BEGUN, LATER = b"\0" + b"\0\0\0\x06012345", TimeInterval(50821, 84354)
INTERVAL = TimeInterval(54321, 12345)


def continued(message: bytes, share: bytes) -> bytes:
    return TlsWriter().number(1, 1).opaque(message, 4).opaque(share, 4).done()


def share_of(report_id: bytes, time: int) -> aggregation.DapReportShare:
    return aggregation.DapReportShare(upload.ReportMetadata(report_id, time), b"", FIRST)


def collected(query: BatchQuery, agg_param: bytes) -> CollectionJobReq:
    return CollectionJobReq(query, agg_param)


def answer(message: bytes, share: bytes) -> aggregation.VerifyResp:
    return aggregation.VerifyResp.continued(UP, continued(message, share))


DONE = aggregation.VerifyResp.finished(DOWN)
BY_INTERVAL = BatchQuery.of_interval(INTERVAL)
BATCH = BatchSelector.of_batch(b"\x0c" * 32)
TASK = TaskConfiguration(
    b"foobar",
    b"https://example.com/",
    b"https://another.example.com/",
    3600,
    10000,
    BatchMode.TIME_INTERVAL,
    b"",
    1,
    b"",
    (Extension(1, TimeInterval(1_000_000 // 3600, 28).to_bytes()),),
)
NO_KEY = HpkeConfig(12, 0x10, 3, 2, b"")
STRUCTURES = {
    "roundtrip_report_share": [share_of(UP, 54321)],
    "roundtrip_verify_init": [aggregation.VerifyInit(share_of(UP, 54321), BEGUN)],
    "roundtrip_verify_resp": [answer(b"012345", b"6789"), DONE],
    "roundtrip_aggregation_job_continue_req": [
        aggregation.AggregationJobContinueReq(
            42405, (aggregation.VerifyContinue(UP, BEGUN), aggregation.VerifyContinue(DOWN, BEGUN))
        )
    ],
    "roundtrip_aggregation_job_resp": [aggregation.AggregationJobResp((answer(b"01234", b"56789"), DONE))],
    "roundtrip_collection_job_req": [
        collected(BY_INTERVAL, b""),
        collected(BatchQuery.of_interval(TimeInterval(48913, 44721)), b"012345"),
        collected(BatchQuery.next_batch(), b""),
        collected(BatchQuery.next_batch(), b"012345"),
    ],
    "roundtrip_collection_job_resp": [
        collection_messages.CollectionJobResp(
            0, INTERVAL, HpkeCiphertext(10, b"0123", b"4567"), HpkeCiphertext(12, b"01234", b"567")
        )
    ],
    "roundtrip_batch_selector": [BatchSelector.of_interval(INTERVAL), BatchSelector.of_interval(LATER), BATCH],
    "roundtrip_aggregate_share_req": [
        collection_messages.AggregateShareReq(
            collected(BY_INTERVAL, b""), BatchSelector.of_interval(INTERVAL), 439, bytes(32)
        ),
        collection_messages.AggregateShareReq(
            collected(BatchQuery.of_interval(LATER), b"012345"), BatchSelector.of_interval(LATER), 8725, b"\xff" * 32
        ),
        collection_messages.AggregateShareReq(collected(BatchQuery.next_batch(), b""), BATCH, 439, bytes(32)),
    ],
    "roundtrip_aggregate_share": [collection_messages.AggregateShare(HpkeCiphertext(10, b"0123", b"4567"))],
    "roundtrip_interval": [TimeInterval(0, 2**64 - 1), INTERVAL],
    "roundtrip_hpke_ciphertext": [HpkeCiphertext(10, b"0123", b"4567")],
    "roundtrip_hpke_config": [
        NO_KEY,
        HpkeConfig(23, 0x20, 1, 3, b"0123456789abcdef"),
        HpkeConfig(12, 0x9999, 3, 2, b""),
        HpkeConfig(12, 0x10, 0x9999, 2, b""),
    ],
    "roundtrip_hpke_config_list": [HpkeConfigList((NO_KEY, HpkeConfig(12, 0x10, 3, 0x9999, b"")))],
    "roundtrip_query": [BY_INTERVAL, BatchQuery.of_interval(TimeInterval(48913, 44721))],
    "roundtrip_task_configuration": [TASK],
    "roundtrip_task_extension": [Extension(0, b""), Extension(0, b"0123")],
    "unknown_task_extension_roundtrips": [Extension(0x1234, b"hello")],
    "roundtrip_extension": [Extension(0, b"")],
    "roundtrip_report_metadata": [upload.ReportMetadata(UP, 12345)],
    "roundtrip_plaintext_input_share": [upload.PlaintextInputShare((), b"0123")],
    "roundtrip_report": [upload.DapReport(upload.ReportMetadata(UP, 12345), b"", FIRST, SECOND)],
}
NUMBERS = {
    "roundtrip_report_share_error": (1, list(ReportError)[:10]),
    "roundtrip_time_precision": (8, [1, 12345]),
    "roundtrip_duration": (8, [0, 12345]),
    "roundtrip_time": (8, [0, 12345]),
    "roundtrip_role": (1, [DapRole.COLLECTOR, DapRole.CLIENT, DapRole.LEADER]),
    "roundtrip_hpke_config_id": (1, [0, 10]),
    "roundtrip_hpke_kem_id": (2, [0x10]),
    "roundtrip_hpke_kdf_id": (2, [1, 2]),
    "roundtrip_hpke_aead_id": (2, [1, 2]),
    "roundtrip_code": (1, [BatchMode.RESERVED, BatchMode.TIME_INTERVAL]),
    "roundtrip_extension_type": (2, [0]),
    "roundtrip_task_extension_type": (2, [0]),
    "unknown_task_extension_type_roundtrips": (2, [0x1234]),
}
LENGTHS = {
    "roundtrip_task_id": basic_types.TASK_ID,
    "roundtrip_batch_id": basic_types.BATCH_ID,
    "roundtrip_report_id": basic_types.REPORT_ID,
    "roundtrip_hpke_public_key": None,
}
BATCH_CONFIGS = {"roundtrip_batch_config": list(BatchMode)}
VDAF_CONFIGURATIONS = {"roundtrip_vdaf_config", "unknown_vdaf_config_roundtrips"}
"""They are in test_vdaf_configuration."""
LENGTH_BEFORE = {"roundtrip_aggregation_job_continue_req": 2, "roundtrip_aggregation_job_resp": 0}
"""These have a uint32 length at this place, which draft 16 took away (its change log: "Use HTTP message content length
to determine length of vectors in …"); the rest is as draft 18 says."""


@pytest.fixture(scope="module")
def published() -> dict[str, list[bytes]]:
    """By the name of a test, the encodings, in order; those of an older draft are left out."""
    if not FILE.exists():
        pytest.skip("the published messages in ../shared/vectors are not here")
    found: dict[str, list[bytes]] = {}
    for vector in json.loads(FILE.read_text())["vectors"]:
        if vector["dap18_wire"]:
            found.setdefault(vector["test"], []).append(bytes.fromhex(vector["hex"]))
    return found


def test_every_published_message_is_written_and_read_byte_for_byte(published):
    for name, structures in STRUCTURES.items():
        assert len(structures) == len(published[name]), name
        for structure, vector in zip(structures, published[name], strict=True):
            encoded, at = vector, LENGTH_BEFORE.get(name)
            if at is not None:
                assert int.from_bytes(vector[at : at + 4], "big") == len(vector) - at - 4
                encoded = vector[:at] + vector[at + 4 :]
            assert structure.to_bytes() == encoded, name
            assert type(structure).from_bytes(encoded) == structure, name


def test_the_published_job_of_an_older_draft_holds_the_reports_of_ours():
    """It has a batch selector (3 bytes) where draft 18 has extensions, and a length before the reports."""
    if not FILE.exists():
        pytest.skip("the published messages in ../shared/vectors are not here")
    (older,) = (
        bytes.fromhex(vector["hex"])
        for vector in json.loads(FILE.read_text())["vectors"]
        if vector["test"] == "roundtrip_aggregation_job_initialize_req"
    )
    metadata = upload.ReportMetadata(DOWN, 73542, (Extension(0, b"0123"),))
    finish = TlsWriter().number(2, 1).opaque(b"", 4).done()
    inits = (
        aggregation.VerifyInit(share_of(UP, 54321), BEGUN),
        aggregation.VerifyInit(aggregation.DapReportShare(metadata, b"0123", SECOND), finish),
    )
    job = aggregation.AggregationJobInitReq(7, b"012345", (), inits)
    assert older[11:14] == bytes.fromhex("010000") and int.from_bytes(older[14:18], "big") == len(older) - 18
    assert job.to_bytes() == older[:11] + b"\0\0" + older[18:]
    assert aggregation.AggregationJobInitReq.from_bytes(job.to_bytes()) == job


def test_every_published_number_and_id_is_read(published):
    for name, (width, numbers) in NUMBERS.items():
        assert [data.hex() for data in published[name]] == [f"{number:0{2 * width}x}" for number in numbers], name
    for name, length in LENGTHS.items():
        assert all(length is None or len(data) == length for data in published[name]), name
    for mode, data in zip(BATCH_CONFIGS["roundtrip_batch_config"], published["roundtrip_batch_config"], strict=True):
        assert TlsWriter().number(mode, 1).opaque(b"", 2).done() == data


def test_no_published_message_is_forgotten(published):
    known = {*STRUCTURES, *NUMBERS, *LENGTHS, *BATCH_CONFIGS, *VDAF_CONFIGURATIONS}
    assert set(published) == known and sum(map(len, published.values())) >= 80


def test_every_published_message_is_refused_when_a_byte_is_missing_or_too_many(published):
    for name in set(STRUCTURES) - set(LENGTH_BEFORE):
        for structure in STRUCTURES[name]:
            encoded, read = structure.to_bytes(), type(structure).from_bytes
            for cut in range(len(encoded)):
                if cut or not re.search("Resp|Errors", type(structure).__name__):
                    with pytest.raises(CodecError):
                        read(encoded[:cut])
            with pytest.raises(CodecError):
                read(encoded + b"\0")


def test_a_configuration_within_another_structure_is_kept_as_it_came(published):
    (encoded,) = published["roundtrip_task_configuration"]
    bound = upload.InputShareAad(b"t" * 32, encoded, upload.ReportMetadata(UP, 7), b"public")
    assert bound.to_bytes() == b"t" * 32 + encoded + UP + (7).to_bytes(8, "big") + b"\0\0" + b"\0\0\0\x06public"
    assert upload.InputShareAad.from_bytes(bound.to_bytes()) == bound
    assert task.TaskConfiguration.read(TlsReader(encoded + b"more")) == TASK
    assert vdaf_configuration.HpkeConfigList.from_bytes(b"\0\0").configs == ()
    assert vdaf_configuration.check_extensions(TASK.extensions, {1})[1] == TimeInterval(277, 28).to_bytes()
