"""What a device says to a server, and what it does not."""

import logging
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.device.reporting import request as report
from tests.federated.device.room import FEW, NOW, TREE, UNTIL, Room, settle, task

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts, HaarWavelet
from hazemap.encoders.encoder import Entries
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.device_account import CLOCKS, DeviceAccount, RecipeReport
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store import answer_records
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.policy import DeviceLimit
from hazemap.federated.recipes.policy_document import SignedPolicy, example
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.privacy.budget import PureDP
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield store


@pytest.mark.parametrize("mode", list(Mode))
def test_devices_answer_to_the_end_and_the_sum_is_theirs_and_some_noise(store, mode):
    settle(store, 20)
    room = Room(store, task(mode=mode))
    opened = room.run(silent={3})
    assert opened.people == 19
    noise = opened.sums - room.exact(set(range(20)) - {3})
    # The noise has scale 10 and 16 cells; a shift by 400 has probability below 16·e^-40
    assert np.abs(noise).max() < 400
    for device in room.devices[:3]:
        [charge] = PrivacyAccount(store, device).charges()
        assert (charge.campaign, charge.round, charge.epsilon) == ("homes", 1, Fraction(1, 10))
        [line] = ActivityLog(store, device).lines()
        assert line.epsilon == charge.epsilon
        assert line.sent > 1_000
        assert "your rows touch 1 of the 16 numbers" in line.question
        assert "noise of scale 10" in line.question
        assert line.outcome == "answered to the end"
    assert PrivacyAccount(store, room.devices[3]).charges() == []
    assert store.read("SELECT 1 FROM sessions WHERE sealed IS NOT NULL") == [], "keys are gone when it is over"


def test_a_device_without_rows_answers_with_zeros_for_silence_would_tell(store):
    settle(store, 19)
    [empty] = enrolment.add(store)
    room = Room(store, task())
    opened = room.run()
    assert opened.people == 20
    [line] = ActivityLog(store, empty).lines()
    assert "touch 0 of the 16" in line.question
    assert line.epsilon == Fraction(1, 10), "who has no rows pays like everybody"


def test_the_same_message_again_gets_the_same_bytes_and_no_second_charge(store):
    [first, *_] = settle(store, 20)
    room = Room(store, task())
    while room.server.stage < 7:
        work = room.work(0)
        step = room.answering(0).answer(work, NOW)
        store.commit([step.writes])
        again = room.answering(0).answer(work, NOW)
        assert again.reply == step.reply and again.writes == ()
        room.server.receive(0, step.reply)
        for position in range(1, 20):
            room.turn(position)
        room.server.advance()
    assert len(PrivacyAccount(store, first).charges()) == 1


@pytest.mark.parametrize("mode", Mode)
def test_every_vector_that_was_sent_counts_toward_what_the_campaign_said_it_would_cost(store, mode):
    """Round 1 could be asked five times of a device that believed its server: nobody else knows what was opened."""
    rich = replace(FEW, campaign=Fraction(10), period=Fraction(10))
    first, *_ = settle(store, 20)
    for nonce in (b"1" * 32, b"2" * 32):
        room = Room(store, task(share=Fraction(3, 5), mode=mode), policy=rich, nonce=nonce)
        while room.server.stage < Stage.MASKED:
            room.turn(0)
            if room.told:
                break
            for position in range(1, 20):
                room.turn(position)
            room.server.advance()
        room.turn(0)
    assert sum(charge.epsilon for charge in PrivacyAccount(store, first).charges()) == Fraction(3, 5)
    assert "but this campaign said it would cost 1 in all" in ActivityLog(store, first).lines()[-1].outcome


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("its budget", {"budget": PureDP(2)}),
        ("its purpose", {"purpose": "advertising"}),
        ("its cohort, or the mode of its protocol", {"mode": Mode.MALICIOUS}),
        ("its cohort, or the mode of its protocol", {"people": 21}),
    ],
)
def test_a_campaign_is_held_to_what_it_said_first(store, what, changes):
    """It said 0.2 and was paid 0.5, because every task was believed anew."""
    [first, *_] = settle(store, 20)
    rich = replace(FEW, campaign=Fraction(10), period=Fraction(10))
    Room(store, task(), policy=rich).turn(0)
    other = Room(store, replace(task(**changes), round=2), policy=rich, nonce=b"2" * 32)
    assert f"has changed {what} since this device first agreed" in other.turn(0).refusal
    assert Room(store, replace(task(), round=2), policy=rich, nonce=b"3" * 32).turn(0).reply
    assert Room(store, replace(task(**changes), campaign="new"), policy=rich, nonce=b"4" * 32).turn(0).reply
    assert PrivacyAccount(store, first).charges() == []


def test_a_campaign_that_was_refused_has_said_nothing_yet(store):
    settle(store, 20)
    assert Room(store, task(), policy=replace(FEW, people=1_000)).turn(0).refusal
    assert Room(store, replace(task(), purpose="another"), nonce=b"2" * 32).turn(0).reply


def test_work_whose_time_is_over_is_refused_at_any_stage(store):
    [first, *_] = settle(store, 20)
    room = Room(store, task())
    over, edge = (NOW.timestamp() - CLOCKS - seconds for seconds in (1, 0))
    late = room.answering(1).answer(replace(room.work(1), until=over), NOW)
    assert late.reply is None and "time for this answer is over" in late.refusal
    assert room.answering(2).answer(replace(room.work(2), until=float("nan")), NOW).reply is None
    assert room.answering(0).answer(replace(room.work(0), until=edge), NOW).reply
    room.turn(0)
    for position in range(3, 20):
        room.turn(position)
    room.server.advance()
    assert room.answering(0).answer(replace(room.work(0), until=over), NOW).refusal
    assert PrivacyAccount(store, first).charges() == []


def test_a_second_session_of_the_same_round_is_charged_again_if_a_vector_was_sent(store):
    [first, *_] = settle(store, 20)
    Room(store, task()).run()
    Room(store, task(), nonce=b"2" * 32).run()
    assert [charge.epsilon for charge in PrivacyAccount(store, first).charges()] == [Fraction(1, 10)] * 2


def test_a_session_that_failed_before_the_vector_costs_nothing(store):
    [first, *_] = settle(store, 20)
    room = Room(store, task())
    for _ in range(2):  # keys and shares
        for position in range(20):
            room.turn(position)
        room.server.advance()
    assert PrivacyAccount(store, first).charges() == []


def test_a_campaign_is_refused_where_its_budget_or_the_devices_is_spent(store):
    [first, *_] = settle(store, 20)
    asked = task(share=Fraction(2, 5))
    for nonce in (b"1" * 32, b"2" * 32):
        assert Room(store, asked, nonce=nonce).run().people == 20
    room = Room(store, asked, nonce=b"3" * 32)
    room.turn(0)
    assert room.told == {0: "this device has nothing left to spend on this round"}
    assert "0.8 is spent, but one campaign may cost 1 in all" in ActivityLog(store, first).lines()[-1].outcome
    other = Room(store, replace(asked, campaign="another"), policy=replace(FEW, period=Fraction(1)), nonce=b"4" * 32)
    other.turn(0)
    assert other.told == {0: "this device has nothing left to spend on this round"}, "what others were told is private"
    assert "0.8 was spent in 30 days" in ActivityLog(store, first).lines()[-1].outcome
    room = Room(store, replace(asked, round=2), policy=replace(FEW, campaign=Fraction(9)), nonce=b"5" * 32)
    room.turn(0)
    assert (
        "0.8 is spent, but this campaign said it would cost 1 in all" in ActivityLog(store, first).lines()[-1].outcome
    )


def test_two_sessions_at_once_cannot_both_spend_the_last_of_a_budget(store):
    [first, *_] = settle(store, 20)
    asked = task(share=Fraction(3, 5))
    one, other = Room(store, asked, nonce=b"1" * 32), Room(store, asked, nonce=b"2" * 32)
    for room in (one, other):
        for _ in range(2):
            for position in range(20):
                room.turn(position)
            room.server.advance()
    one.turn(0)
    other.turn(0)
    assert other.told == {0: "this device has nothing left to spend on this round"}
    assert [charge.epsilon for charge in PrivacyAccount(store, first).charges()] == [Fraction(3, 5)]


def test_a_session_that_was_left_is_never_answered_again(store):
    [first, *_] = settle(store, 20)
    room = Room(store, task(), policy=replace(FEW, people=1_000))
    work = room.work(0)
    assert "at least 1000" in room.turn(0).refusal
    room.policy = FEW
    step = room.answering(0).answer(work, NOW)
    assert step.refusal and "does not come back" in step.refusal and step.writes == ()
    assert len(ActivityLog(store, first).lines()) == 1


def test_a_finished_session_is_never_answered_again(store):
    settle(store, 20)
    room = Room(store, task())
    invitation = room.work(0)
    room.run()
    assert "does not come back" in room.answering(0).answer(invitation, NOW).refusal


def test_another_task_than_the_session_was_formed_for_is_refused(store):
    settle(store, 20)
    room = Room(store, task())
    work = room.work(0)
    for text, reason in (
        (codec.dumps(task(share=Fraction(1, 20))), "does not follow from its task"),
        (None, "begins with a task"),
        ('{"Box": {"west": 0, "south": 0, "east": 1, "north": 1}}', "is to be Task"),
        ("no JSON", "not JSON"),
    ):
        step = room.answering(1).answer(replace(work, task=text, session=work.session), NOW)
        assert reason in step.refusal
        assert step.reply is None


def test_a_session_under_another_name_is_refused(store):
    settle(store, 20)
    room = Room(store, task())
    step = room.answering(0).answer(replace(room.work(0), session=bytes(32)), NOW)
    assert "not the one that its terms name" in step.refusal


def test_a_message_that_is_none_of_the_protocol_ends_the_session(store):
    [first, *_] = settle(store, 20)
    room = Room(store, task())
    for position in range(20):
        room.turn(position)
    room.server.advance()
    step = room.answering(0).answer(replace(room.work(0), message=b"\x01\x63nothing"), NOW)
    assert step.refusal
    store.commit([step.writes])
    assert "refused" in ActivityLog(store, first).lines()[-1].outcome


def test_what_a_server_never_came_back_to_is_closed_a_day_after_its_end(store):
    [first, *_] = settle(store, 20)
    room = Room(store, task())
    room.turn(0)
    answering = room.answering(0)
    assert answering.forsaken(NOW) == ()
    later = NOW.fromtimestamp(UNTIL + 86_401, tz=NOW.tzinfo)
    assert store.commit([answering.forsaken(later)]) == [None]
    assert ActivityLog(store, first).lines()[-1].outcome == "sent its keys; left there"
    assert store.read("SELECT 1 FROM sessions WHERE sealed IS NOT NULL") == []


@pytest.mark.parametrize(("name", "most"), [("MOST_OPEN", 3), ("LARGEST_OPEN", 5_000)])
def test_a_server_that_begins_sessions_and_never_goes_on_fills_no_disk(store, monkeypatch, name, most):
    settle(store, 20)
    monkeypatch.setattr(answer_records, name, most)
    rooms = [Room(store, task(), nonce=bytes([n]) * 32) for n in range(20)]
    for room in rooms[:-1]:
        room.turn(0)
    held = sum(not room.told for room in rooms[:-1])
    assert 2 <= held <= 4 and "and begins no other" in rooms[-2].told[0]
    later = NOW.fromtimestamp(UNTIL + 86_401, tz=NOW.tzinfo)
    assert store.commit([rooms[0].answering(0).forsaken(later)]) == [None]
    assert not rooms[-1].turn(0).refusal


def test_each_campaign_draws_its_own_sample_of_a_person_and_keeps_it(store):
    devices = settle(store, 20)
    own = enrolment.read(store, devices[0])
    keys = [rows.RowStore(store, devices[0]).table(own.sampling, name).key for name in ("a", "a", "b")]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("crash", ["before the transaction", "after it, before the reply", "after the reply"])
@pytest.mark.parametrize("stage", range(5))
def test_a_crash_at_any_point_costs_nothing_twice_and_says_nothing_else(tmp_path, stage, crash):
    path = tmp_path / "devices.sqlite"
    store = EncryptedStore.opened(path, create=True)
    devices = settle(store, 20)
    room = Room(store, task())
    sent = []
    for number in range(5):
        work = room.work(0)
        step = room.answering(0).answer(work, NOW)
        if number == stage:
            if crash != "before the transaction":
                store.commit([step.writes])
            if crash == "after the reply":
                room.server.receive(0, step.reply)
            store.close()  # the process is gone, and with it every object
            room.store = store = EncryptedStore.opened(path)
            again = room.answering(0).answer(work, NOW)
            assert again.reply == step.reply, "its coins are the same"
            if crash == "before the transaction":
                assert store.commit([again.writes]) == [None]
            else:
                assert again.writes == (), "what may have been sent is sent again, for nothing"
            step = again
        else:
            store.commit([step.writes])
        if number != stage or crash != "after the reply":
            room.server.receive(0, step.reply)
        sent.append(step.reply)
        for position in range(1, 20):
            room.turn(position)
        room.server.advance()
    assert room.server.result.people == 20 and not room.server.culprits
    assert [charge.epsilon for charge in PrivacyAccount(store, devices[0]).charges()] == [Fraction(1, 10)]
    [line] = ActivityLog(store, devices[0]).lines()
    assert line.sent == sum(map(len, sent))
    store.close()


def test_two_processes_that_answer_for_one_device_never_both_charge(store, tmp_path):
    devices = settle(store, 20)
    room = Room(store, task())
    for _ in range(2):
        for position in range(20):
            room.turn(position)
        room.server.advance()
    work = room.work(0)
    with EncryptedStore.opened(store.path) as other:
        steps = [room.answering(0, each).answer(work, NOW) for each in (store, other)]
        outcomes = [each.commit([step.writes])[0] for each, step in zip((store, other), steps, strict=True)]
    assert outcomes[0] is None and "another process" in str(outcomes[1])
    assert steps[0].reply == steps[1].reply, "and whichever is sent says the same"
    assert len(PrivacyAccount(store, devices[0]).charges()) == 1


@pytest.mark.parametrize("look", ["a campaign's", "a recipe's"])
def test_who_charges_between_a_look_at_the_account_and_a_charge_keeps_that_charge_out(store, monkeypatch, look):
    [first, *_] = settle(store, 20)
    account, kind = PrivacyAccount(store, first), PrivacyAccount if look == "a campaign's" else RecipeAccount
    judge = kind.refusal

    def judged(own, *args):
        reason = judge(own, *args)
        with EncryptedStore.opened(store.path) as other:  # another process, in the moment after the look
            charge = PrivacyAccount(other, first).charge(task(campaign="other"), bytes(32), NOW)
            assert other.commit([[charge]]) == [None]
        return reason

    if look == "a campaign's":
        room = Room(store, task())
        for _ in range(2):
            for position in range(20):
                room.turn(position)
            room.server.advance()
        monkeypatch.setattr(kind, "refusal", judged)
        step = room.answering(0).answer(room.work(0), NOW)
    else:
        monkeypatch.setattr(kind, "refusal", judged)
        own = DeviceAccount(store, first, enrolment.read(store, first), FEW)
        step = own.paid(RecipeReport(report(), example()), NOW, bytes)
    [lost] = store.commit([step.writes])
    assert "another process" in str(lost) and [each.campaign for each in account.charges()] == ["other"]


def test_campaigns_are_within_the_shipped_limits_over_everything_recipes_too(store):
    [first, *_] = settle(store, 20)
    limited = replace(example(), limits=(DeviceLimit(365, Fraction(1), Fraction(1, 10**5), 50),))
    signed = SignedPolicy.sign(limited, Identity.from_bytes(b"1" * 32))
    ShippedPolicies(store).accept(signed, signed.key, NOW)
    charge = RecipeAccount(store, first).charge(report("0.5"), NOW)
    assert store.commit([[charge]]) == [None]
    Room(store, task(share=Fraction(1, 2))).turn(0)
    room = Room(store, task(share=Fraction(3, 5), campaign="another"), nonce=b"1" * 32)
    for position in (0, 1):
        room.turn(position)
    assert room.told == {0: "this device has nothing left to spend on this round"}
    assert "this device may cost ε = 1 in 365 days; with this report it would be 1.1" in (
        ActivityLog(store, first).lines()[-1].outcome
    )


def test_no_row_no_key_and_no_share_is_in_any_process_log(store, caplog):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="hazemap.federated.device")
    devices = settle(store, 20)
    room = Room(store, task())
    opened = room.run(silent={7})
    assert opened.people == 19
    refused = Room(store, task(), policy=replace(FEW, people=1_000), nonce=b"2" * 32)
    refused.turn(0)
    text = caplog.text
    assert "answers round 1 of homes" in text and "refuses to answer" in text
    for position, device in enumerate(devices):
        own = enrolment.read(store, device)
        for secret in (own.identity, own.sampling):
            assert secret.hex() not in text and repr(secret) not in text
        for coordinate in (3.6 * position - 170, 60 - position):
            assert f"{coordinate:.1f}" not in text.replace("0.1", "")
    assert "touch" not in text


def test_a_question_that_puts_a_vote_past_the_vectors_end_is_no_question(store):
    """`nowhere=-1` made the vector one shorter: who was in the last cell stopped, who was elsewhere answered."""
    settle(store, 20)
    room = Room(store, replace(task(), question=Query(HaarWavelet(TREE, 2, AtMostCells(100)), Fraction(1, 10))))
    work = room.work(0)
    assert room.answering(0).answer(work, NOW).reply is not None
    for lie in ("-1", "1", "0", "1.0", '"no"'):
        hostile = replace(work, task=work.task.replace('"nowhere":false', f'"nowhere":{lie}'), session=bytes(32))
        assert hostile.task != work.task
        step = room.answering(0).answer(hostile, NOW)
        assert "'nowhere' of a bounding rule must be" in step.refusal
        assert step.reply is None


TROUBLE = {
    "past the end": lambda entries, size: entries._replace(position=entries.position + size),
    "before the beginning": lambda entries, size: entries._replace(position=entries.position - size),
    "more than a person may": lambda entries, _: entries._replace(value=entries.value * 2),
    "not a number": lambda *_: 1 / 0,
    "out of memory": lambda *_: (each for each in ()).throw(MemoryError),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_whatever_goes_wrong_with_somebodys_rows_they_answer_and_pay_like_everybody(store, monkeypatch, name):
    """From outside it is an answer like any other, of somebody without rows; the owner's log says what happened."""
    settle(store, 20)
    room = Room(store, task())
    encode = Counts.encode

    def wrong(self, table):
        entries = encode(self, table)
        return TROUBLE[name](entries, self.size) if len(entries.position) else entries

    monkeypatch.setattr(Counts, "encode", wrong)
    opened = room.run()
    assert opened.people == 20
    assert np.abs(opened.sums).max() < 400, "noise alone"
    for device in room.devices:
        assert len(PrivacyAccount(store, device).charges()) == 1
        [line] = ActivityLog(store, device).lines()
        assert line.epsilon == Fraction(1, 10)
        assert "could not be counted" in line.question
        assert line.outcome == "answered to the end"


def test_damaged_rows_are_no_reason_to_fall_silent(store, monkeypatch):
    settle(store, 20)
    room = Room(store, task())
    monkeypatch.setattr(rows.DeviceRows, "from_bytes", classmethod(lambda cls, _: cls(*np.zeros((5, 2, 2)))))
    assert room.run().people == 20


def test_the_parts_of_a_stack_are_bounded_one_by_one(monkeypatch):
    """A vote past the end of the first part would stand in the second, within the vector."""
    from hazemap.engines.memory import MemoryTable

    cells = Leaves.at_level(TREE, 1)
    stack = Concatenation((Counts(cells, AtMostRows(1)), Counts(cells, AtMostRows(1))), (1, 3))
    table = MemoryTable(np.zeros(1, dtype=np.int64), {"lon": np.array([2.0]), "lat": np.array([48.0])})
    assert contribution(stack, lambda: table).sums.sum() == 4
    monkeypatch.setattr(Counts, "encode", lambda *_: Entries(*np.array([[0], [4], [1]])))
    found = contribution(stack, lambda: table)
    assert (found.sums.tolist(), found.trouble) == ([0] * 8, "Refused")


def test_a_message_that_nobody_thought_of_is_refused_and_stops_no_device(store, monkeypatch):
    settle(store, 20)
    room = Room(store, task())
    monkeypatch.setattr("hazemap.federated.device.server_task.ParsedTask.refusal", lambda *_: 1 / 0)
    step = room.answering(0).answer(room.work(0), NOW)
    assert (step.reply, step.refusal) == (None, "this device cannot deal with the message")


def test_a_device_answers_so_many_rounds_in_a_period_and_no_more_whatever_they_cost(store):
    """40,000 rounds of nearly nothing made each look at the account cost a second."""
    [first, *_] = settle(store, 20)
    few = replace(FEW, rounds=2)
    for number in (1, 2, 3):
        room = Room(store, task(share=Fraction(1, 100)), policy=few, nonce=bytes([number]) * 32)
        while room.server.stage < Stage.ASSENT and not room.told:
            for position in range(20):
                room.turn(position)
            room.server.advance() if not room.told else None
        assert (room.told.get(0) == "this device has nothing left to spend on this round") == (number == 3)
    assert "has answered 2 rounds and reports in 30 days" in ActivityLog(store, first).lines()[-1].outcome
    assert len(PrivacyAccount(store, first).charges()) == 2


def test_a_session_whose_round_costs_nearly_nothing_is_not_begun(store):
    settle(store, 20)
    assert "a round costs ε = 0.001 or more" in Room(store, task(share=Fraction(1, 1_001))).turn(0).refusal
    assert Room(store, task(share=Fraction(1, 1_000)), nonce=b"2" * 32).turn(0).reply


def test_who_deletes_their_rows_leaves_the_sessions_that_have_counted_them(store):
    settle(store, 20)
    room = Room(store, task())
    for position in range(20):
        room.turn(position)
    room.server.advance()
    rows.forget(store, room.devices[0])
    assert "does not come back" in room.turn(0).refusal and room.turn(1).reply
