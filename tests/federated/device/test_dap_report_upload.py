import asyncio
from collections import deque

import pytest
from tests.vdaf.additive_vdaf import AdditiveVdaf

from hazemap.errors import BudgetExceeded, Refused, Unreachable
from hazemap.federated.device.http_client import Backoff, HttpReply
from hazemap.federated.device.reports.dap_report_upload import (
    ATTEMPTS,
    LONGEST,
    SILENT,
    HpkeCache,
    OutdatedKeys,
    ReportUpload,
)
from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18, ReportError
from hazemap.federated.protocols.dap.problem_types import ProblemDocument, ProblemType
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.upload_messages import (
    HPKE_CONFIG_LIST,
    Report09,
    ReportUploadStatus,
    UploadErrors,
    UploadRequest,
)
from hazemap.federated.protocols.dap.vdaf_configuration import CountConfiguration, HpkeConfig, HpkeConfigList
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

TASK = b"t" * 32
TASK_TEXT = "dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHQ"


def key(number: int) -> HpkeConfig:
    return HpkeConfig(number, 0x20, 1, 1, HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes([number]) * 32).public)


class Aggregator:
    """A transport to an aggregator whose answers to uploads are in a row; after the last it takes everything."""

    def __init__(self, number: int, answers=(), fresh: float | None = None, kind: str = "") -> None:
        self.config, self.fresh = key(number), fresh
        self.kind = kind or HpkeConfigList.media_type()
        self.answers = deque(answers)
        self.asked, self.uploads = [], []

    async def send(self, method, path, ticket="", content=b"", kind=""):
        await asyncio.sleep(0)
        if method == "GET":
            self.asked.append(path)
            return HttpReply(200, None, HpkeConfigList((self.config,)).to_bytes(), self.kind, self.fresh)
        self.uploads.append((method, path, kind, content))
        answer = self.answers.popleft() if self.answers else HttpReply(200, None, b"")
        if callable(answer):
            answer = answer(content)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Device:
    """A device with its clock, which sleeps at once, and its account."""

    def __init__(self, leader: Aggregator, helper: Aggregator | None = None, version=DAP_18, reports: int = 9) -> None:
        self.time, self.slept, self.charged, self.reports = 1_000_000.0, [], 0, reports
        ends = "https://leader.example/", "https://helper.example/"
        task = DapTask.created(
            TASK, b"i", *ends, 60, 10, BatchMode.TIME_INTERVAL, CountConfiguration(), version=version
        )
        caches = [HpkeCache(each, version, TASK, clock=lambda: self.time) for each in (leader, helper or Aggregator(2))]
        self.upload = ReportUpload(
            task, AdditiveVdaf(), *caches, self.charge, clock=lambda: self.time, sleep=self.sleep, backoff=Backoff()
        )

    async def charge(self) -> None:
        if self.charged == self.reports:
            raise BudgetExceeded("nothing is left")
        self.charged += 1

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds

    def uploads(self, measurement: int = 3) -> None:
        asyncio.run(self.upload.uploaded(measurement))


def errors(error: ReportError, kind: str = ""):
    """What a leader answers to an upload whose one report it does not take."""

    def answer(content: bytes) -> HttpReply:
        (report,) = UploadRequest.from_bytes(content).reports
        body = UploadErrors((ReportUploadStatus(report.metadata.report_id, error),)).to_bytes()
        return HttpReply(200, None, body, kind or UploadErrors.media_type())

    return answer


def twice(content: bytes) -> HttpReply:
    """An answer that speaks of one report two times."""
    once = errors(ReportError.TASK_EXPIRED)(content)
    return once._replace(content=once.content * 2)


def problem(type_: ProblemType, wait: float | None = None) -> HttpReply:
    return HttpReply(400, wait, ProblemDocument(type_.urn, 400, "why").to_json(), "application/problem+json")


def test_a_report_is_uploaded_to_the_leader_for_the_keys_of_both():
    leader, helper = Aggregator(1), Aggregator(2)
    device = Device(leader, helper)
    device.uploads()
    ((method, path, kind, content),) = leader.uploads
    assert (method, path) == ("POST", f"/tasks/{TASK_TEXT}/reports") and kind == UploadRequest.media_type()
    (report,) = UploadRequest.from_bytes(content).reports
    assert (report.leader_share.config_id, report.helper_share.config_id) == (1, 2)
    assert not helper.uploads and leader.asked == helper.asked == ["/hpke_config"] and device.charged == 1


def test_a_report_of_draft_09_is_put_as_that_draft_says():
    leader, helper = (Aggregator(i, kind=HPKE_CONFIG_LIST) for i in (1, 2))
    leader.answers.append(HttpReply(201, None, b"no matter"))
    device = Device(leader, helper, DAP_09)
    device.uploads()
    ((method, _, kind, content),) = leader.uploads
    assert (method, kind) == ("PUT", "application/dap-report") and Report09.from_bytes(content).metadata.time == 999_960
    assert leader.asked == [f"/hpke_config?task_id={TASK_TEXT}"]


def test_what_is_sent_again_is_the_same_report_which_counts_once():
    lost = [Unreachable("no answer"), Unreachable("busy", 40.0), problem(ProblemType.REPORT_TOO_EARLY, 90.0)]
    leader = Aggregator(1, [*lost, errors(ReportError.REPORT_TOO_EARLY), errors(ReportError.REPORT_REPLAYED)])
    device = Device(leader)
    device.uploads()
    assert len(leader.uploads) == 5 and len(set(leader.uploads)) == 1 and device.charged == 1
    assert device.slept[0] < 2 and device.slept[1:3] == [40.0, 90.0] and device.slept[3] > 2


@pytest.mark.parametrize(
    ("version", "answer"),
    [(DAP_18, errors(ReportError.OUTDATED_CONFIG)), (DAP_09, problem(ProblemType.OUTDATED_CONFIG))],
)
def test_a_leader_that_does_not_know_the_key_gets_one_new_report_that_is_charged_too(version, answer):
    kind = HPKE_CONFIG_LIST if version == DAP_09 else ""
    leader, helper = (Aggregator(i, kind=kind) for i in (1, 2))

    def rotated(content: bytes) -> HttpReply:
        leader.config = key(7)
        return answer(content) if callable(answer) else answer

    leader.answers.append(rotated)
    device = Device(leader, helper, version)
    device.uploads()
    assert len(leader.asked) == 2 and device.charged == 2
    sent = [content for _, _, _, content in leader.uploads]
    assert len(sent) == 2 and sent[0][:16] != sent[1][:16]

    leader.answers.extend([answer, answer])
    with pytest.raises(OutdatedKeys):
        device.uploads()
    assert len(leader.uploads) == 4


def test_a_report_that_is_not_paid_for_is_not_made():
    leader = Aggregator(1, [errors(ReportError.OUTDATED_CONFIG)])
    with pytest.raises(BudgetExceeded):
        Device(leader, reports=1).uploads()
    assert len(leader.uploads) == 1


@pytest.mark.parametrize(
    "answer",
    [
        errors(ReportError.TASK_EXPIRED),
        problem(ProblemType.UNRECOGNIZED_TASK),
        HttpReply(404, None, b"", "text/html"),
        HttpReply(400, None, b"{", "application/problem+json"),
        HttpReply(302, None, b""),
    ],
)
def test_a_leader_that_does_not_want_a_report_is_not_asked_again(answer):
    leader = Aggregator(1, [answer])
    with pytest.raises(Refused, match="does not take a report"):
        Device(leader).uploads()
    assert len(leader.uploads) == 1


@pytest.mark.parametrize(
    "answer",
    [
        HttpReply(200, None, b"what", UploadErrors.media_type()),
        HttpReply(200, None, bytes(16) + b"\2", UploadErrors.media_type()),
        twice,
        errors(ReportError.TASK_EXPIRED, "text/html"),
        errors(ReportError.TASK_EXPIRED, UploadRequest.media_type()),
    ],
)
def test_an_answer_that_cannot_be_read_is_no_answer(answer):
    leader = Aggregator(1, [answer])
    device = Device(leader)
    device.uploads()
    assert len(leader.uploads) == 2 and len(set(leader.uploads)) == 1


def test_a_device_gives_up_for_now_after_some_attempts():
    leader = Aggregator(1, [Unreachable("gone", 10_000.0)] * 99)
    device = Device(leader)
    with pytest.raises(Unreachable):
        device.uploads()
    assert len(leader.uploads) == ATTEMPTS and len(device.slept) == ATTEMPTS - 1 and max(device.slept) == 3_600


def test_keys_are_fetched_once_for_many_devices_and_again_when_they_are_old():
    for fresh, kept in ((None, SILENT), (100.0, 100.0), (0.0, 0.0), (1e12, LONGEST)):
        aggregator, now = Aggregator(1, fresh=fresh), [0.0]
        cache = HpkeCache(aggregator, DAP_18, TASK, clock=lambda now=now: now[0])

        async def many(cache=cache):
            return await asyncio.gather(*(cache.config() for _ in range(5)))

        assert asyncio.run(many()) == [key(1)] * 5
        assert len(aggregator.asked) == 1
        now[0] = max(kept - 1, 0)
        asyncio.run(cache.config())
        assert len(aggregator.asked) == 1 + (not kept)
        now[0] = kept
        asyncio.run(cache.config())
        assert len(aggregator.asked) == 2 + (not kept)


def test_devices_that_ask_a_silent_aggregator_at_once_wait_for_it_once():
    class Silent:
        asked = 0

        async def send(self, *_):
            self.asked += 1
            await asyncio.sleep(0)
            raise Unreachable("silent")

    aggregator = Silent()
    cache = HpkeCache(aggregator, DAP_18, TASK, clock=lambda: 0.0)

    async def many():
        gone = asyncio.create_task(cache.config())
        rest = asyncio.gather(*(cache.config() for _ in range(5)), return_exceptions=True)
        await asyncio.sleep(0)
        gone.cancel()
        return await rest

    assert all(isinstance(each, Unreachable) for each in asyncio.run(many()))
    assert aggregator.asked == 1
    assert all(isinstance(each, Unreachable) for each in asyncio.run(many()))
    assert aggregator.asked == 2


def test_a_key_that_another_device_has_replaced_is_not_forgotten():
    aggregator = Aggregator(1)
    cache = HpkeCache(aggregator, DAP_18, TASK, clock=lambda: 0.0)
    asyncio.run(cache.config())
    cache.forget(9)
    asyncio.run(cache.config())
    assert len(aggregator.asked) == 1
    cache.forget(1)
    asyncio.run(cache.config())
    assert len(aggregator.asked) == 2


@pytest.mark.parametrize(
    "reply",
    [
        HttpReply(404, None, b"", ""),
        HttpReply(200, None, HpkeConfigList((key(1),)).to_bytes(), "text/html"),
        HttpReply(200, None, HpkeConfigList((key(1),)).to_bytes(), UploadErrors.media_type()),
        HttpReply(200, None, HpkeConfigList((key(1),)).to_bytes(), HPKE_CONFIG_LIST),
        HttpReply(200, None, b"what", HpkeConfigList.media_type()),
        HttpReply(200, None, b"\0\0", HpkeConfigList.media_type()),
    ],
)
def test_keys_that_are_none_are_refused(reply):
    class Server:
        async def send(self, *_):
            return reply

    with pytest.raises(Refused):
        asyncio.run(HpkeCache(Server(), DAP_18, TASK).config())
