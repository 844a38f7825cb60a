import json

import pytest

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.dap import aggregation_messages as aggregation
from hazemap.federated.protocols.dap import basic_types, resource_paths
from hazemap.federated.protocols.dap import collection_messages as collection
from hazemap.federated.protocols.dap.aggregation_messages import AggregationJobResp, VerifyResp, VerifyRespType
from hazemap.federated.protocols.dap.basic_types import (
    DAP_09,
    DAP_18,
    LATEST,
    VERSIONS,
    DapRole,
    HpkeCiphertext,
    ReportError,
    TimeInterval,
)
from hazemap.federated.protocols.dap.collection_messages import BatchQuery, BatchSelector, CollectionJobReq, checksum
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemDocument, ProblemType, read_problem
from hazemap.federated.protocols.dap.resource_paths import collection_jobs, id_text, message_name, read_id, reports
from hazemap.federated.protocols.dap.task import BatchMode, TaskConfiguration
from hazemap.federated.protocols.dap.upload_messages import (
    DapReport,
    InputShareAad09,
    PlaintextInputShare,
    Report09,
    ReportMetadata,
    ReportMetadata09,
    ReportUploadStatus,
    UploadErrors,
    UploadRequest,
)
from hazemap.federated.protocols.dap.vdaf_configuration import (
    Extension,
    HpkeConfig,
    HpkeConfigList,
    InvalidExtensions,
    UnsupportedExtensions,
    check_extensions,
)

REPORT = bytes(range(16))
SEALED = HpkeCiphertext(1, b"key", b"sealed")
CONFIGURATION = TaskConfiguration(b"i", b"l", b"h", 60, 9, BatchMode.TIME_INTERVAL, b"", 1, b"", ()).to_bytes()


def test_drafts_differ_by_their_tag_and_by_what_their_table_says():
    task = b"t" * 32
    assert list(VERSIONS) == ["dap-18", "dap-09"]
    assert DAP_18.vdaf_context(task) == b"dap-18" + task and DAP_09.vdaf_context(task) == b""
    assert DAP_18.input_share_info(DapRole.LEADER) == b"dap-18 input share\1\2"
    assert DAP_09.input_share_info(DapRole.HELPER) == b"dap-09 input share\1\3"
    assert DAP_18.aggregate_share_info(DapRole.HELPER) == b"dap-18 aggregate share\3\0"
    assert DAP_18.report_time(1_234_567_899, 10) == 123_456_789
    assert DAP_09.report_time(1_234_567_899, 10) == 1_234_567_890
    for wrong in (
        lambda: DAP_18.input_share_info(DapRole.CLIENT),
        lambda: DAP_18.vdaf_context(b"short"),
        lambda: DAP_18.report_time(-1, 10),
        lambda: DAP_18.report_time(1, 0),
    ):
        with pytest.raises(InputError):
            wrong()


def test_names_have_the_numbers_of_the_standard():
    errors = "reserved batch_collected report_replayed report_dropped hpke_unknown_config_id hpke_decrypt_error"
    errors += " vdaf_verify_error task_expired invalid_message report_too_early task_not_started outdated_config"
    for kind, names in {
        DapRole: "collector client leader helper",
        ReportError: errors,
        BatchMode: "reserved time_interval leader_selected",
        VerifyRespType: "continue finish reject",
    }.items():
        assert [(each.name.lower(), each.value) for each in kind] == [(n, i) for i, n in enumerate(names.split())]
    assert (basic_types.REPORT_ID, basic_types.TASK_ID, basic_types.BATCH_ID, basic_types.JOB_ID) == (16, 32, 32, 16)


def test_structures_are_laid_out_as_the_standard_says():
    """Where the published encodings are not at hand: each field once, by its width."""
    sealed, interval = "01" + "0003" + b"key".hex() + "00000006" + b"sealed".hex(), f"{7:016x}{8:016x}"
    extension = "0004" + "0009" + "0000"
    by_time = "01" + "0010" + interval
    job = by_time + "00000005" + b"param".hex() + extension
    request = CollectionJobReq(BatchQuery.of_interval(TimeInterval(7, 8)), b"param", (Extension(9, b""),))
    report = DapReport(ReportMetadata(REPORT, 7, (Extension(9, b""),)), b"pub", SEALED, SEALED)
    begun = REPORT.hex() + f"{7:016x}" + extension + "00000003" + b"pub".hex() + sealed
    share = aggregation.VerifyInit(aggregation.DapReportShare(report.metadata, b"pub", SEALED), b"said")
    said = "00000004" + b"said".hex()
    for written, layout in (
        (report, begun + sealed),
        (PlaintextInputShare((Extension(9, b""),), b"said"), extension + said),
        (UploadErrors((ReportUploadStatus(REPORT, ReportError.TASK_EXPIRED),)), REPORT.hex() + "07"),
        (share, begun + said),
        (aggregation.AggregationJobInitReq(3, b"", (), (share,) * 2), "03" + "00000000" + "0000" + (begun + said) * 2),
        (
            aggregation.AggregationJobContinueReq(2, (aggregation.VerifyContinue(REPORT, b"said"),)),
            "0002" + REPORT.hex() + said,
        ),
        (request, job),
        (collection.CollectionJobResp(9, TimeInterval(7, 8), SEALED, SEALED), f"{9:016x}" + interval + sealed * 2),
        (
            collection.AggregateShareReq(request, BatchSelector.of_batch(bytes(32)), 9, b"c" * 32),
            job + "02" + "0020" + "00" * 32 + f"{9:016x}" + "63" * 32,
        ),
        (collection.AggregateShare(SEALED), sealed),
        (collection.AggregateShareAad(b"t" * 32, CONFIGURATION, request), "74" * 32 + CONFIGURATION.hex() + job),
        (HpkeConfigList((HpkeConfig(1, 2, 3, 4, b"k"),)), "000a" + "01" + "0002" + "0003" + "0004" + "0001" + "6b"),
    ):
        assert written.to_bytes().hex() == layout
        assert type(written).from_bytes(bytes.fromhex(layout)) == written


def test_a_report_of_draft_09_has_no_public_extensions_and_its_shares_no_configuration():
    metadata = ReportMetadata09(REPORT, 1000)
    report = Report09(metadata, b"public", SEALED, SEALED)
    sealed = "01" + "0003" + b"key".hex() + "00000006" + b"sealed".hex()
    written = REPORT.hex() + f"{1000:016x}" + "00000006" + b"public".hex() + sealed + sealed
    assert report.to_bytes().hex() == written and Report09.from_bytes(report.to_bytes()) == report
    assert InputShareAad09(b"t" * 32, metadata, b"public").to_bytes() == b"t" * 32 + bytes.fromhex(
        REPORT.hex() + f"{1000:016x}" + "00000006" + b"public".hex()
    )
    assert Report09.media_type() == "application/dap-report"


def test_an_upload_is_reports_to_the_end_of_the_message():
    one = DapReport(ReportMetadata(REPORT, 7), b"", SEALED, SEALED)
    two = DapReport(ReportMetadata(REPORT[::-1], 8, (Extension(9, b"x"),)), b"public", SEALED, SEALED)
    upload = UploadRequest((one, two))
    assert upload.to_bytes() == one.to_bytes() + two.to_bytes()
    assert UploadRequest.from_bytes(upload.to_bytes()) == upload
    with pytest.raises(CodecError):
        UploadRequest.from_bytes(upload.to_bytes()[:-1])


@pytest.mark.parametrize("empty", ["enc", "payload"])
def test_a_ciphertext_is_never_empty(empty):
    fields = {"config_id": 1, "enc": b"key", "payload": b"sealed", empty: b""}
    with pytest.raises(InputError):
        HpkeCiphertext(**fields).to_bytes()
    with pytest.raises(CodecError):
        HpkeCiphertext.from_bytes(bytes.fromhex("010000" + "0000000161" if empty == "enc" else "01000161" + "00000000"))


def test_a_helper_sends_a_message_a_reason_or_nothing_as_its_answer_says():
    answers = (VerifyResp.continued(REPORT, b"m"), VerifyResp.finished(REPORT))
    answers += tuple(VerifyResp.rejected(REPORT, error) for error in ReportError)
    assert AggregationJobResp.from_bytes(AggregationJobResp(answers).to_bytes()).verify_resps == answers
    for wrong in (
        (VerifyRespType.CONTINUE, b"", None),
        (VerifyRespType.FINISH, b"m", None),
        (VerifyRespType.REJECT, b"", None),
        (VerifyRespType.FINISH, b"", ReportError.RESERVED),
        (VerifyRespType.REJECT, b"m", ReportError.RESERVED),
    ):
        with pytest.raises(InputError):
            VerifyResp(REPORT, *wrong)
    for wrong in ("00" + "00000000", "03", "02" + "0c", "02", "0000000002aa"):
        with pytest.raises(CodecError):
            VerifyResp.from_bytes(REPORT + bytes.fromhex(wrong))


def test_extensions_ascend_strictly_and_must_be_known():
    some = (Extension(1, b"a"), Extension(7, b""))
    assert check_extensions(some, {1, 7}) == {1: b"a", 7: b""}
    for wrong in (some[::-1], (some[0], some[0])):
        with pytest.raises(InvalidExtensions):
            check_extensions(wrong, {1, 7})
    with pytest.raises(UnsupportedExtensions) as refused:
        check_extensions((*some, Extension(9, b"")), {7})
    assert refused.value.types == (1, 9)


def test_a_batch_answers_a_query_of_its_own_mode_that_holds_it():
    asked = BatchQuery.of_interval(TimeInterval(10, 5))
    assert BatchSelector.of_interval(TimeInterval(10, 5)).answers(asked)
    assert BatchSelector.of_interval(TimeInterval(11, 2)).answers(asked)
    for outside in (TimeInterval(9, 2), TimeInterval(14, 2), TimeInterval(15, 1)):
        assert not BatchSelector.of_interval(outside).answers(asked)
    assert BatchSelector.of_batch(bytes(32)).answers(BatchQuery.next_batch())
    assert not BatchSelector.of_batch(bytes(32)).answers(asked)
    assert not BatchSelector.of_interval(TimeInterval(10, 5)).answers(BatchQuery.next_batch())


@pytest.mark.parametrize(
    ("mode", "config"),
    [
        (BatchMode.RESERVED, b""),
        (BatchMode.TIME_INTERVAL, b""),
        (BatchMode.TIME_INTERVAL, TimeInterval(1, 0).to_bytes()),
        (BatchMode.TIME_INTERVAL, TimeInterval(1, LATEST).to_bytes()),
        (BatchMode.TIME_INTERVAL, TimeInterval(1, 1).to_bytes() + b"\0"),
        (BatchMode.LEADER_SELECTED, b"x"),
    ],
)
def test_a_query_or_a_batch_that_cannot_be_is_refused(mode, config):
    with pytest.raises(CodecError):
        BatchQuery(mode, config).interval()
    with pytest.raises(CodecError):
        BatchSelector(mode, config).batch()
    assert (
        CollectionJobReq.from_bytes(CollectionJobReq(BatchQuery(mode, config), b"").to_bytes()).query.config == config
    )


def test_a_checksum_does_not_depend_on_the_order_of_the_reports():
    a, b, c = (bytes([i]) * 16 for i in range(3))
    assert checksum([a, b, c]) == checksum([c, a], before=checksum([b])) != checksum([a, b])


def test_a_message_that_is_too_long_is_refused_before_it_is_read(monkeypatch):
    with pytest.raises(CodecError, match="at most 65537 bytes, not 65538"):
        HpkeConfigList.from_bytes(bytes(65538))
    monkeypatch.setattr(UploadRequest, "LARGEST_MESSAGE", 10)
    with pytest.raises(CodecError, match="'upload-req' has at most 10"):
        UploadRequest.from_bytes(bytes(11))


def test_a_media_type_names_its_message_once():
    assert message_name(UploadRequest.media_type()) == "upload-req"
    for wrong in (
        "",
        "application/ppm-dap",
        "application/dap-report",
        "application/ppm-dap;message=",
        "application/ppm-dap;message=a;message=b",
        resource_paths.MEDIA_TYPE + ";message=" + "x" * 300,
    ):
        with pytest.raises(CodecError):
            message_name(wrong)


def test_an_id_has_one_text():
    task = bytes.fromhex("f0163447364ccf1bc0e3affcca6873c9c381f64acdf9020662f83f46c07219e7")
    assert reports(task) == "tasks/8BY0RzZMzxvA46_8ymhzycOB9krN-QIGYvg_RsByGec/reports"
    job = bytes.fromhex("95ceda51e1a9752368b0d961f9466128")
    assert collection_jobs(task, job).endswith("/collection_jobs/lc7aUeGpdSNosNlh-UZhKA")
    assert read_id(id_text(task), 32) == task
    text = id_text(job)
    for wrong in (text[:-1], text + "=", text[:-1] + "B", text[:-1] + "+", " " + text[1:], "é" + text[1:], ""):
        with pytest.raises(CodecError):
            read_id(wrong, 16)


def test_a_problem_travels_as_a_document_and_comes_back():
    problem = DapProblem(ProblemType.UNSUPPORTED_EXTENSION, "23 and 42", bytes(32), (23, 42))
    sent = problem.document()
    assert ProblemDocument.from_json(sent.to_json()) == sent
    assert (sent.problem, sent.status, sent.task_id) == (ProblemType.UNSUPPORTED_EXTENSION, 400, "A" * 43)
    other = ProblemDocument.from_json(b'{"type": "https://other.example/full", "status": 503, "more": [1]}')
    assert other.problem is None and other.status == 503
    assert ProblemDocument.from_json(b"{}").type == "about:blank"
    assert ProblemDocument("urn:ietf:params:ppm:dap:error:unheardOf", 400).problem is None
    most = {"status": 599, "unsupported_extensions": [0, 65535] * 500, "detail": "d" * 2000}
    read = ProblemDocument.from_json(json.dumps(most).encode())
    assert (read.status, len(read.unsupported_extensions), len(read.detail)) == (599, 1000, 1000)


def test_a_response_of_an_error_is_told_by_its_document_or_by_its_status():
    body = DapProblem(ProblemType.BATCH_OVERLAP, "collected", bytes(32)).document().to_json()
    told = read_problem(422, "Application/Problem+JSON; charset=utf-8", body)
    assert (told.problem, told.status) == (ProblemType.BATCH_OVERLAP, 422)
    assert told.in_words() == "HTTP 422, batchOverlap: 'collected'"
    for kind, content in (("text/html", body), ("application/problem+json", b"{"), ("", b"")):
        assert read_problem(500, kind, content) == ProblemDocument("about:blank", 500)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 70_000,
        b"[" * 60_000,
        b'{"type": 1}',
        b'{"status": 200}',
        b'{"status": 399}',
        b'{"status": 600}',
        b'{"status": true}',
        b'{"taskid": []}',
        b'{"unsupported_extensions": ["1"]}',
        b'{"unsupported_extensions": [65536]}',
        b'{"unsupported_extensions": [-1]}',
        b'{"unsupported_extensions": [%s]}' % b",".join([b"1"] * 1001),
        b'{"status": 4e2}',
        b'{"status": %s}' % (b"9" * 5000),
        b'{"type": "\\ud800"}',
        b'{"type": "a\\nb"}',
        b'{"unsupported_extensions": {}}',
        b'{"detail": null}',
    ],
)
def test_a_problem_that_is_none_is_refused(data):
    with pytest.raises(CodecError):
        ProblemDocument.from_json(data)
