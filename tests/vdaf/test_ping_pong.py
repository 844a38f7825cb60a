import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.vdaf.additive_vdaf import AdditiveVdaf

from hazemap.vdaf import ping_pong
from hazemap.vdaf.errors import CodecError
from hazemap.vdaf.ping_pong import Continued, Finished, FinishedWithOutbound, MessageType, PingPongMessage, Rejected
from hazemap.vdaf.vdaf import ReportShare

KEY, CTX = bytes(32), b"task"


def shared(vdaf, measurements, ctx=CTX):
    """The two aggregators' shares of reports of these measurements."""
    both = [], []
    for i, measurement in enumerate(measurements):
        nonce, rand = bytes([i]) * 16, bytes(range(i, i + 8))
        public, shares = vdaf.shard(ctx, measurement, nonce, rand)
        for side, share in zip(both, shares, strict=True):
            side.append(ReportShare(nonce, public, share))
    return both


def played(vdaf, leader_reports, helper_reports):
    """Both aggregators to the end, with every state through a store; the requests that were sent."""
    leader = ping_pong.leader_init(vdaf, KEY, CTX, b"", leader_reports)
    sent = [state.outbound for state in leader]
    helper = ping_pong.helper_init(vdaf, KEY, CTX, b"", helper_reports, sent)
    requests = 1
    while True:
        alive = [i for i, state in enumerate(helper) if not isinstance(state, Rejected)]
        if isinstance(leader[alive[0]], Finished | FinishedWithOutbound):
            return leader, helper, requests
        stored = [Continued.from_bytes(vdaf, b"", leader[i].to_bytes(vdaf, b"")) for i in alive]
        told = ping_pong.leader_continued(vdaf, CTX, b"", stored, [helper[i].outbound for i in alive])
        for i, state in zip(alive, told, strict=True):
            leader[i] = state
        going = [i for i in alive if isinstance(leader[i], Continued | FinishedWithOutbound)]
        if going and isinstance(helper[going[0]], Continued):
            requests += 1
            told = ping_pong.helper_continued(
                vdaf, CTX, b"", [helper[i] for i in going], [leader[i].outbound for i in going]
            )
            for i, state in zip(going, told, strict=True):
                helper[i] = state


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_both_sides_reach_shares_of_the_measurements_in_as_many_requests_as_the_standard_says(rounds):
    vdaf, measurements = AdditiveVdaf(rounds), [0, 9, 5, 3]
    leader, helper, requests = played(vdaf, *shared(vdaf, measurements))
    assert requests == (rounds + 2) // 2
    sides = [vdaf.merge(b"", [state.out_share for state in side]) for side in (leader, helper)]
    assert vdaf.unshard(b"", sides) == [sum(measurements)]
    ends = {1: (Finished, FinishedWithOutbound), 2: (FinishedWithOutbound, Finished)}
    assert {(type(one), type(other)) for one, other in zip(leader, helper, strict=True)} == {ends[2 - rounds % 2]}


@pytest.mark.parametrize("rounds", [1, 2])
def test_what_one_report_does_wrong_rejects_that_report_alone(rounds):
    vdaf = AdditiveVdaf(rounds)
    leader_reports, helper_reports = shared(vdaf, [1, 10, 2, 3, 4])
    helper_reports[2] = helper_reports[2]._replace(input_share=b"short")
    helper_reports[3] = helper_reports[3]._replace(public_share=b"another task")
    leader, helper, _ = played(vdaf, leader_reports, helper_reports)
    assert [isinstance(state, Rejected) for state in helper] == [False, True, True, True, False]
    assert [state.error.undecodable for state in helper[1:4]] == [False, True, False]
    sides = [vdaf.merge(b"", [side[i].out_share for i in (0, 4)]) for side in (leader, helper)]
    assert vdaf.unshard(b"", sides) == [5]


def test_a_leader_rejects_its_own_bad_shares_before_it_says_anything():
    vdaf = AdditiveVdaf(1)
    reports, _ = shared(vdaf, [1, 2])
    begun = ping_pong.leader_init(vdaf, KEY, CTX, b"", [reports[0], reports[1]._replace(input_share=b"")])
    assert isinstance(begun[0], Continued) and isinstance(begun[1], Rejected)


def message(kind, said=b"m" * 16, share=b"s" * 8):
    return PingPongMessage(kind, b"" if kind == 0 else said, b"" if kind == 2 else share).to_bytes()


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_message_out_of_turn_damaged_or_empty_rejects_the_report(rounds):
    vdaf = AdditiveVdaf(rounds)
    leader_reports, helper_reports = shared(vdaf, [1])
    (begun,) = ping_pong.leader_init(vdaf, KEY, CTX, b"", leader_reports)
    for wrong in (
        b"",
        b"\3",
        begun.outbound + b"\0",
        begun.outbound[:-1],
        message(1),
        message(2),
        message(0, share=b""),
    ):
        (state,) = ping_pong.helper_init(vdaf, KEY, CTX, b"", helper_reports, [wrong])
        assert isinstance(state, Rejected)
    (answered,) = ping_pong.helper_init(vdaf, KEY, CTX, b"", helper_reports, [begun.outbound])
    other = MessageType.CONTINUE if rounds == 1 else MessageType.FINISH
    for wrong in (b"", answered.outbound[:-1], message(0), message(other), message(3 - other)):
        (state,) = ping_pong.leader_continued(vdaf, CTX, b"", [begun], [wrong])
        assert isinstance(state, Rejected)
    (state,) = ping_pong.leader_continued(vdaf, CTX, b"", [begun], [answered.outbound])
    assert not isinstance(state, Rejected)


def test_messages_have_one_encoding():
    for kind in MessageType:
        data = message(kind)
        assert PingPongMessage.from_bytes(data).to_bytes() == data
        for wrong in (data + b"\0", data[:-1], b"\3" + data[1:]):
            with pytest.raises(CodecError):
                PingPongMessage.from_bytes(wrong)


def test_a_state_comes_back_from_a_store_or_is_refused():
    vdaf = AdditiveVdaf(2)
    (begun,) = ping_pong.leader_init(vdaf, KEY, CTX, b"", shared(vdaf, [1])[0])
    data = begun.to_bytes(vdaf, b"")
    assert Continued.from_bytes(vdaf, b"", data) == begun
    for wrong in (b"\2" + data[1:], data[:-1], data + b"\0", b""):
        with pytest.raises(CodecError):
            Continued.from_bytes(vdaf, b"", wrong)


def test_the_reports_of_a_job_are_verified_in_step():
    vdaf = AdditiveVdaf(3)
    begun = ping_pong.leader_init(vdaf, KEY, CTX, b"", shared(vdaf, [1, 2])[0])
    with pytest.raises(ValueError, match="in step"):
        ping_pong.leader_continued(vdaf, CTX, b"", [begun[0], replace(begun[1], round=1)], [b"", b""])
    assert ping_pong.leader_continued(vdaf, CTX, b"", [], []) == []


def test_published_messages_are_reached_byte_for_byte():
    file = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "dap" / "messages_dap18.json"
    if not file.exists():
        pytest.skip("the published messages in ../shared/vectors are not here")
    share = PingPongMessage(MessageType.INITIALIZE, b"", b"012345").to_bytes().hex()
    both = PingPongMessage(MessageType.CONTINUE, b"012345", b"6789").to_bytes().hex()
    published = {each["test"]: each["hex"] for each in reversed(json.loads(file.read_text())["vectors"])}
    assert published["roundtrip_verify_init"].endswith("0000000b" + share)
    assert published["roundtrip_verify_resp"].endswith("00000013" + both)
