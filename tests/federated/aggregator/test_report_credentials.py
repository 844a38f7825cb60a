"""Each person whom an issuer admits counts once at each server, whatever devices, leaders and crashes do."""

import asyncio
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from types import SimpleNamespace

import numpy as np
import pytest
from tests.federated.aggregator.test_aggregator_routes import served
from tests.federated.aggregator.test_refusals import HOUR, at_helper, refusal, upload_errors
from tests.federated.aggregator.two_servers import PRECISION, Crash, TwoServers, a_task
from tests.issuing import ISSUER, credential

from hazemap.errors import CodecError, InputError
from hazemap.federated.aggregator.task_records import TaskRecords
from hazemap.federated.aggregator.task_services import ReportRoom, expiry_writes
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import DAP_09, DapRole, ReportError
from hazemap.federated.protocols.dap.blank_reports import MOST_BLANK, BlankReports
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemType
from hazemap.federated.protocols.dap.report_checks import CredentialChecks
from hazemap.federated.protocols.dap.report_credentials import (
    CREDENTIAL,
    HeldCredential,
    ReportAdmission,
    ReportCredential,
    issued,
    report_key,
)
from hazemap.federated.protocols.dap.resource_paths import reports
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import (
    InputShareAad,
    PlaintextInputShare,
    UploadErrors,
    UploadRequest,
)
from hazemap.federated.protocols.dap.vdaf_configuration import (
    CountConfiguration,
    Extension,
    HistogramConfiguration,
    MultihotConfiguration,
    SumConfiguration,
)
from hazemap.privacy.local_randomisers import Asymmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity
from hazemap.vdaf.prio3 import prio3_histogram

INVALID, DROPPED, REPLAYED = ReportError.INVALID_MESSAGE, ReportError.REPORT_DROPPED, ReportError.REPORT_REPLAYED
CELLS = HistogramConfiguration(4, 2)


def admitting(people=9, least=1, seed=0, **options):
    admission = ReportAdmission(ISSUER.public, people)
    return TwoServers(
        seed, least, measured=CELLS, vdaf=prio3_histogram(4, 2), options={"admission": admission}, **options
    )


@pytest.fixture
def two():
    made = admitting()
    yield made
    made.close()


def report(two, person=b"ann", cell=0, held=None, client=None):
    client = client or two.client
    randomness = two.random.randbytes(client.randomness_bytes)
    return client.report(cell, two.now, randomness, credential=held or credential(client.task, person))


def sums(two):
    found = two.collect(HOUR)
    return found.sums, found.count


def test_one_device_with_many_valid_reports_counts_once():
    two = admitting(people=10, least=10)
    honest = [report(two, b"person %d" % number, 1) for number in range(9)]
    assert upload_errors(two, *honest) == []
    stuffed = [report(two, b"a cheat", 0) for _ in range(30)]
    assert upload_errors(two, *stuffed[:20]) == [DROPPED] * 19
    assert upload_errors(two, *stuffed[20:]) == [DROPPED] * 10
    assert two.leader.store.read("SELECT count(*) FROM reports") == [(10,)]
    assert sums(two) == ((1, 9, 0, 0), 10)
    two.close()


def test_the_same_report_again_is_the_same_and_another_one_is_refused_by_both_servers(two):
    mine, other = report(two), report(two, cell=1)
    assert upload_errors(two, mine) == []
    assert upload_errors(two, mine) == [REPLAYED]
    assert upload_errors(two, other) == [DROPPED]
    assert at_helper(two, mine, other) == [None, DROPPED]
    assert at_helper(two, other) == [DROPPED]
    assert at_helper(two, mine, other) == [None, DROPPED], "a request that is sent again gets the same answer"
    assert at_helper(two, mine, report(two, b"ben")) == [REPLAYED, None]
    assert two.helper.store.read("SELECT count(*) FROM credentials") == [(2,)]


def changed(two, mine, public_share=None, **fields):
    """The report with another credential, sealed anew by somebody who may have all but the device's key."""
    metadata = replace(mine.metadata, **fields)
    public_share = mine.public_share if public_share is None else public_share
    return replace(mine, metadata=metadata, public_share=public_share)


def spent(mine):
    return ReportCredential.of(mine.metadata.public_extensions)


def with_credential(two, mine, made):
    """Shares that open, under another credential."""
    return resealed(two, replace(mine, metadata=replace(mine.metadata, public_extensions=(made.extension,))), mine)


def resealed(two, target, mine, swap=None):
    """The input shares of one report, sealed for another; `swap` changes what is sealed for each server."""
    task, sealed = two.task, []
    before = InputShareAad(task.id, task.configuration, mine.metadata, mine.public_share).to_bytes()
    after = InputShareAad(task.id, task.configuration, target.metadata, target.public_share).to_bytes()
    for role, share in ((DapRole.LEADER, mine.leader_share), (DapRole.HELPER, mine.helper_share)):
        info = task.version.input_share_info(role)
        plain = two.rings[role].open(share, info, before)
        plain = swap(role, plain) if swap else plain
        key = two.client.leader if role is DapRole.LEADER else two.client.helper
        sealed.append(key.seal(info, after, plain, two.random.randbytes(32)))
    return replace(target, leader_share=sealed[0], helper_share=sealed[1])


def thefts(two):
    """Reports of whoever has seen a report of Ann's, has a credential of their own, and wants another one to count."""
    ann, task = report(two), two.task
    eve_key, mallory = report_key(b"e" * 32, task.id), Identity.from_bytes(b"m" * 32)
    own = issued(ISSUER, bytes(32), task.id, b"eve", eve_key.public)
    seen = spent(ann)
    forged = HeldCredential(task.id, seen.serial, seen.issued, eve_key)
    elsewhere = credential(a_task(measured=CELLS, task_id=b"another task".ljust(32), admission=task.admission))
    eves = report(two, held=HeldCredential.received(own, eve_key, ISSUER.public, task.id))
    return {
        "Ann's serial, with a key of Eve's": report(two, held=forged),
        "Ann's serial, with the signature of Eve's": report(two, held=replace(forged, issued=spent(eves).issued)),
        "a serial that nobody gave out": report(two, held=replace(credential(task), serial=bytes(32))),
        "another issuer": report(two, held=credential(task, issuer=mallory)),
        "a credential for another task": report(two, held=replace(elsewhere, task_id=task.id)),
        "Ann's credential, on Eve's report": with_credential(two, eves, seen),
        "Ann's report, under another id": resealed(two, changed(two, ann, report_id=bytes(16)), ann),
        "Ann's report, at another time": resealed(two, changed(two, ann, time=HOUR - 1), ann),
        "Ann's report, with another public share": resealed(two, changed(two, ann, eves.public_share), ann),
        "no credential": resealed(two, changed(two, ann, public_extensions=()), ann),
        "a credential that is cut off": resealed(
            two, changed(two, ann, public_extensions=(Extension(CREDENTIAL, seen.to_bytes()[:-1]),)), ann
        ),
    }


def test_a_credential_admits_no_report_but_its_own(two):
    for what, theft in thefts(two).items():
        assert upload_errors(two, theft) == [INVALID], what
        assert at_helper(two, theft) == [INVALID], what
    for server in (two.leader, two.helper):
        assert server.store.read("SELECT count(*) FROM credentials") == [(0,)]
    assert two.leader.store.read("SELECT count(*) FROM reports") == [(0,)]


def test_no_credential_is_given_out_or_taken_for_a_key_with_which_anybody_can_sign(two):
    forged = b"\x01" + bytes(31)
    with pytest.raises(InputError, match="anybody could sign"):
        issued(ISSUER, bytes(32), two.task.id, b"ann", forged)
    serial = bytes(32)
    careless = ISSUER.sign(b"hazemap 1 report credential" + two.task.id + serial + forged)
    anybody = SimpleNamespace(public=forged, sign=lambda _: b"\x01" + bytes(63))
    theirs = report(two, held=HeldCredential(two.task.id, serial, careless, anybody))
    assert upload_errors(two, theirs) == [INVALID] and at_helper(two, theirs) == [INVALID]


def test_a_leader_that_puts_another_share_in_a_report_is_found_out_and_spends_nobodys_credential(two):
    mine, other = report(two, cell=0), report(two, b"ben", cell=1)
    info = two.task.version.input_share_info(DapRole.HELPER)
    aad = InputShareAad(two.task.id, two.task.configuration, other.metadata, other.public_share).to_bytes()
    theirs = two.rings[DapRole.HELPER].open(other.helper_share, info, aad)
    swapped = resealed(two, mine, mine, lambda role, plain: theirs if role is DapRole.HELPER else plain)
    said = PlaintextInputShare((Extension(9, b""),), PlaintextInputShare.from_bytes(theirs).payload).to_bytes()
    more = resealed(two, mine, mine, lambda role, plain: said if role is DapRole.HELPER else plain)
    assert at_helper(two, swapped) == [INVALID] and at_helper(two, more) == [INVALID]
    assert at_helper(two, mine) == [None], "what the leader did has not used up the device's credential"


def test_a_device_that_gives_the_servers_other_shares_than_it_signed_counts_nowhere(two):
    mine, other = report(two), report(two, b"ben")
    info = two.task.version.input_share_info(DapRole.LEADER)
    aad = InputShareAad(two.task.id, two.task.configuration, other.metadata, other.public_share).to_bytes()
    theirs = two.rings[DapRole.LEADER].open(other.leader_share, info, aad)
    assert (
        upload_errors(two, resealed(two, mine, mine, lambda role, plain: theirs if role is DapRole.LEADER else plain))
        == []
    )
    two.run()
    assert two.rejections(two.leader) == {"invalid_message": 1}
    assert two.helper.store.read("SELECT count(*) FROM claims") == [(0,)]


def test_no_more_reports_are_taken_than_credentials_were_announced_whoever_signs_more():
    two = admitting(people=2)
    made = [report(two, b"person %d" % number) for number in range(4)]
    assert upload_errors(two, *made[:3]) == [DROPPED]
    assert upload_errors(two, made[3]) == [DROPPED] and upload_errors(two, made[0]) == [REPLAYED]
    assert at_helper(two, *made) == [None, None, DROPPED, DROPPED]
    assert at_helper(two, made[3]) == [DROPPED]
    assert two.leader.service.longest_upload(two.now) < 2 * two.leader.service.sizes.least
    two.close()


def test_an_open_task_says_so_takes_no_credentials_and_no_more_reports_than_it_says():
    two = TwoServers(measured=CELLS, vdaf=prio3_histogram(4, 2), open_reports=3)
    four = [two.report(0) for _ in range(4)]
    assert upload_errors(two, *four) == [DROPPED] and upload_errors(two, four[0]) == [REPLAYED]
    admitted = admitting()
    body = UploadRequest((report(admitted),)).to_bytes()
    ring = two.rings[DapRole.LEADER]
    assert refusal(two.leader.service.upload, body, ring, two.now) is ProblemType.UNSUPPORTED_EXTENSION
    options = two.task, DapRole.LEADER, two.vdaf, bytes(32), two.collector_config
    for wrong in ({}, {"open_reports": 0}):
        with pytest.raises(InputError, match="open to"):
            AggregatorTask(*options, **wrong)
    with pytest.raises(InputError, match="nowhere else"):
        two.client.report(0, two.now, bytes(two.client.randomness_bytes), credential=credential(two.task))
    with pytest.raises(InputError, match="carries a credential"):
        admitted.report(0)
    for made in (two, admitted):
        made.close()


def test_tasks_whose_shares_a_digest_would_tell_of_or_that_older_clients_know_have_no_issuer():
    admission = ReportAdmission(ISSUER.public, 9)
    for kind in (CountConfiguration(), SumConfiguration(255), SimpleNamespace(NAME="what is new")):
        with pytest.raises(InputError, match="digests would tell"):
            admission.check(kind)
    with pytest.raises(InputError, match="digests would tell"):
        a_task(measured=CountConfiguration(), admission=admission)
    with pytest.raises(InputError, match="DAP-09"):
        a_task(measured=CELLS, version=DAP_09, admission=admission)
    with pytest.raises(InputError, match="1 to"):
        ReportAdmission(ISSUER.public, 0)
    with pytest.raises(CodecError, match="gives out"):
        ReportAdmission.from_bytes(bytes(40))


def test_what_holds_no_reports_is_refused_by_its_head_and_one_of_two_at_once_is_taken():
    admission = ReportAdmission(ISSUER.public, 9)

    async def story():
        options = {"admission": admission}
        async with served(measured=CELLS, vdaf=prio3_histogram(4, 2), options=options) as net:
            two, client = net.two, await net.client()
            path, read = reports(two.task.id), []

            async def parts():
                read.append(True)
                yield b""

            one = len(report(two, client=client).to_bytes())
            for size, code in ((30_000_000, 413), (one - 1, 400), (int(2.5 * one), 400), (0, 400)):
                kind = {"Content-Type": UploadRequest.media_type(), "Content-Length": str(size)}
                assert (await net.leader.post(path, content=parts(), headers=kind)).status_code == code
            assert read == []
            mine = [report(two, cell=cell, client=client) for cell in range(4)]
            answers = await asyncio.gather(
                *(net.post(net.leader, path, UploadRequest((each,))) for each in mine for _ in range(2))
            )
            assert [each.text for each in answers if each.status_code != 200] == []
            said = [UploadErrors.from_bytes(each.content).statuses for each in answers if each.content]
            assert sorted(status.error for [status] in said) == [REPLAYED, *[DROPPED] * 6]
            assert two.leader.store.read("SELECT count(*) FROM reports") == [(1,)]

    asyncio.run(story())


def test_a_credential_is_spent_for_as_long_as_the_task_is_served_though_its_report_has_expired():
    two = admitting(report_expiry=3 * PRECISION)
    mine = report(two)
    assert upload_errors(two, mine) == [] and at_helper(two, mine) == [None]
    two.now += 5 * PRECISION
    for server in (two.leader, two.helper):
        server.store.write_now(*expiry_writes(1, server.task, two.now))
    assert two.leader.store.read("SELECT count(*) FROM reports") == [(0,)]
    assert upload_errors(two, mine) == [DROPPED], "it is too old"
    later = report(two)
    assert upload_errors(two, later) == [DROPPED] and at_helper(two, later) == [DROPPED]
    assert upload_errors(two, report(two, b"ben")) == []
    two.close()


def test_what_is_spent_is_counted_seldom_and_never_beyond_what_was_announced(monkeypatch):
    counts, spent = [], [0]
    records = SimpleNamespace(all_spent=lambda: counts.append(spent[0]) or spent[0])
    task = SimpleNamespace(task=SimpleNamespace(admission=ReportAdmission(ISSUER.public, 1_000_000)))
    two_processes = [ReportRoom(task, records) for _ in range(2)]
    for turn in range(5_000):
        room = two_processes[turn % 2]
        new = min(256, room.left(0))
        spent[0] += new
        room.taken(new)
    assert spent[0] == 1_000_000 and len(counts) < 200
    two, seen = admitting(people=1_000), []
    monkeypatch.setattr(TaskRecords, "all_spent", lambda _: seen.append(1) or 0)
    two.helper.start()
    for number in range(20):
        assert at_helper(two, report(two, b"person %d" % number)) == [None]
    assert len(seen) == 1
    two.close()


def test_a_report_that_a_server_knows_is_known_without_its_signatures(two, monkeypatch):
    mine = report(two)
    asked = [(mine.metadata, mine.public_share)]
    at_helper(two, mine)
    monkeypatch.setattr(ReportCredential, "is_genuine", lambda *_: pytest.fail("it was looked at again"))
    records = TaskRecords(two.helper.store.read, 1)
    checks = CredentialChecks.of(two.helper.task, records, asked, 0)
    checks.check(*asked[0])
    checks.spend(*asked[0])
    assert checks.changes({mine.metadata.report_id}) == ()


ACTIONS = ("first", "first again", "other", "before", "after", "turn", "leader dies", "helper dies")
"""What can happen: uploads of Ann's first report or of another of hers, crashes at such, turns of the leader."""


def played(history):
    """The sum after a history, when all servers are well again, and how many reports of Ann's it counts."""
    two = admitting(seed=1)
    first, other, ben = report(two, cell=0), report(two, cell=1), report(two, b"ben", 3)
    try:
        for action in (*history, "ben"):
            two.leader.store.dies = action if action in ("before", "after") else None
            try:
                if action in ("turn", "leader dies", "helper dies"):
                    server = two.helper if action == "helper dies" else two.leader
                    server.store.dies = "after" if action.endswith("dies") else None
                    two.exchange()
                else:
                    two.upload({"other": other, "ben": ben}.get(action, first))
            except Crash:
                two.leader.start()
        two.run()
        return two.collect(HOUR).sums
    except DapProblem as problem:  # Ben came after nothing, and the batch was not ready: it is never that
        raise AssertionError(problem) from problem
    finally:
        two.close()


def check_histories(histories):
    for history in histories:
        ann_first, ann_other, none, ben = played(history)
        assert (none, ben) == (0, 1), history
        assert ann_first + ann_other <= 1, history
        if any(each in ("first", "first again", "other", "after") for each in history):
            assert ann_first + ann_other == 1, history


def test_no_crash_between_an_upload_and_a_sum_counts_a_person_twice_or_loses_one():
    check_histories(islice(product(ACTIONS, repeat=3), 5, None, 37))


@pytest.mark.slow
def test_no_history_of_three_events_counts_a_person_twice_or_loses_one():
    check_histories(product(ACTIONS, repeat=3))


def test_each_server_adds_reports_of_nobody_once_and_one_alone_hides_a_report():
    """Of 200 sums, each of one report among 40 of nobody at each server: 7 standard errors, below 10^-11 a mean."""
    law = Asymmetric(Fraction(4))
    blank = BlankReports.of(law, 40)
    assert BlankReports.from_bytes(blank.to_bytes()) == blank
    options = {"admission": ReportAdmission(ISSUER.public, 9), "blank": blank}
    stream, drawn = Stream.fixed(b"20"), []

    def draw(role, size):
        drawn.append((role, blank.draw(stream, size)))
        return drawn[-1][1]

    bits = MultihotConfiguration(4, 2, 4)
    two = TwoServers(least=1, measured=bits, vdaf=vdaf_of(a_task(measured=bits)), options=options, draw=draw)
    mine = report(two, cell=[True, False, False, True])
    assert upload_errors(two, mine) == []
    found, _ = sums(two)
    assert {role for role, _ in drawn} == {DapRole.LEADER, DapRole.HELPER} and len(drawn) == 2
    assert list(found) == (np.array([1, 0, 0, 1]) + drawn[0][1] + drawn[1][1]).tolist()
    two.close()
    alone = np.array([blank.draw(stream, 4) for _ in range(200)])
    chance = law.chances[1]
    assert (np.abs(alone.mean(axis=0) - 40 * chance) < 7 * np.sqrt(40 * chance / 200)).all() and alone.any()


@pytest.mark.parametrize(
    "wrong", [{"reports": MOST_BLANK + 1}, {"numerator": 0}, {"denominator": 2}, {"numerator_2": 1}]
)
def test_reports_of_nobody_that_cannot_be_are_refused(wrong):
    good = BlankReports.of(Asymmetric(Fraction(4)), 40)
    with pytest.raises(InputError):
        replace(good, **wrong)
    with pytest.raises(InputError, match="sums of bits"):
        a_task(measured=CELLS, blank=good)
    with pytest.raises(CodecError):
        BlankReports.from_bytes(good.to_bytes()[:-1])
    chances = BlankReports.of(UnaryEncoding(Fraction(3, 4), Fraction(1, 8)), 3)
    assert BlankReports.from_bytes(chances.to_bytes()).law == UnaryEncoding(Fraction(3, 4), Fraction(1, 8))
