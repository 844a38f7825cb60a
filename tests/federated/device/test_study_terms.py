"""A device holds a study to what it said first: its budget, mode, cohort, purpose and analysis."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.device.recipe_room import OPEN, POLICY, TINY, recipe, recipe_task, typing
from tests.federated.device.room import NOW, TREE, Room
from tests.federated.device.room import task as map_task

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.recipes.recipe_answer import Audience
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.queries.noisy_queries import Query

TWENTY = [["so"]] * 20
STUDY = ApproxDP(10, 5 * TINY)
ROOMY = replace(
    POLICY,
    analyses=(
        replace(POLICY.analyses[0], epsilon=Fraction(90)),
        replace(POLICY.analyses[0], name="places", epsilon=Fraction(90)),
    ),
    fields=tuple(replace(each, epsilon=Fraction(90)) for each in POLICY.fields),
    limits=tuple(replace(each, epsilon=Fraction(90)) for each in POLICY.limits),
)


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        typing(store, TWENTY, policy=ROOMY)
        yield store


def asked(number=1, **changes):
    return recipe_task(**{"budget": STUDY, "share": Fraction(1, 2), "number": number, **changes})


def begun(store, task, nonce=bytes(32), upto=Stage.KEYS):
    """A session of all devices, up to this stage; what the first of them said to its last message."""
    room = Room(store, task, enrolment.devices(store)[: task.cohort.people], OPEN, nonce)
    while True:
        step = room.turn(0)
        if step.refusal is not None or room.server.stage >= upto:
            return step
        for position in range(1, len(room.devices)):
            room.turn(position)
        room.server.advance()


CHANGED = {
    "a higher budget": (asked(2, budget=ApproxDP(11, 5 * TINY)), "its budget"),
    "a lower budget": (asked(2, budget=ApproxDP(9, 5 * TINY)), "its budget"),
    "a pure budget": (asked(2, asked=recipe(delta=Fraction(0)), budget=PureDP(10)), "its budget"),
    "another mode": (asked(2, mode=Mode.MALICIOUS), "the mode of its protocol"),
    "fewer people": (asked(2, people=19), "its cohort"),
    "another analysis": (asked(2, asked=recipe(analysis="places")), "what it asks about"),
    "a map": (
        replace(
            map_task(share=Fraction(1, 2), budget=PureDP(10), campaign="study"),
            question=Query(Counts(Leaves.at_level(TREE, 2)), Fraction(1, 2)),
        ),
        "its budget",
    ),
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_study_that_changes_its_word_is_refused_in_words_that_its_person_can_read(store, what):
    task, words = CHANGED[what]
    assert begun(store, asked()).refusal is None
    refusal = begun(store, task, nonce=b"2" * 32).refusal
    assert words in refusal and "since this device first agreed to it" in refusal
    line = ActivityLog(store, enrolment.devices(store)[0]).entries()[-1]
    assert words in (line.verdict if task.recipe else line.outcome)


def test_another_recipe_and_another_study_are_answered_as_before(store):
    assert begun(store, asked()).refusal is None
    assert (
        begun(
            store, asked(2, asked=recipe(id="others", local_epsilon=Fraction(3), epsilon=Fraction(3))), nonce=b"2" * 32
        ).refusal
        is None
    )
    elsewhere = replace(asked(budget=ApproxDP(20, 5 * TINY)), campaign="autumn")
    assert begun(store, elsewhere, nonce=b"3" * 32).refusal is None


def test_the_first_word_of_a_study_stays_through_a_restart_and_an_update_of_the_policy(store):
    assert begun(store, asked()).refusal is None
    with EncryptedStore.opened(store.path) as again:
        refusal = begun(again, asked(2, budget=ApproxDP(90, 5 * TINY)), nonce=b"2" * 32).refusal
        assert "the study 'study' has changed its budget" in refusal


def test_a_study_never_costs_more_than_it_said_however_often_its_rounds_are_begun_again(store):
    """Its server said 10, and asks recipes of 4 until the policy's 90 are spent: the third is refused."""
    first = enrolment.devices(store)[0]
    told = [
        begun(store, asked(number), nonce=nonce * 32, upto=Stage.MASKED).refusal
        for number, nonce in ((1, b"1"), (1, b"2"), (2, b"3"))
    ]
    assert told == [None, None, "this device has nothing left to spend on this round"]
    charges = RecipeAccount(store, first).charges()
    assert [(each.study, each.price.epsilon) for each in charges] == [("study", 4)] * 2
    verdict = ActivityLog(store, first).entries()[-1].verdict
    assert "the study study would cost (ε, δ) = (12, 3e-06), but it said that it would cost" in verdict


def test_a_study_may_be_spent_to_the_last_whatever_others_cost(store):
    exact = ApproxDP(8, 2 * TINY)
    for number, study in ((1, "study"), (1, "autumn"), (2, "study")):
        task = replace(asked(number, budget=exact), campaign=study)
        nonce = f"{number} {study}".ljust(32).encode()
        assert begun(store, task, nonce=nonce, upto=Stage.MASKED).refusal is None


def test_a_studys_delta_is_its_word_too(store):
    first, small = enrolment.devices(store)[0], ApproxDP(90, Fraction(3, 2) * TINY)
    told = [
        begun(store, asked(number, budget=small, share=Fraction(1)), nonce=bytes([number]) * 32, upto=Stage.MASKED)
        for number in (1, 2)
    ]
    assert [each.refusal for each in told] == [None, "this device has nothing left to spend on this round"]
    assert "would cost (ε, δ) = (8, 2e-06)" in ActivityLog(store, first).entries()[-1].verdict


def test_what_a_study_cost_before_the_period_still_counts_toward_its_word(store):
    """The policy forgets charges after its days; a study's own word has no end."""
    first = enrolment.devices(store)[0]
    for number in (1, 2):
        begun(store, asked(number), nonce=bytes([number]) * 32, upto=Stage.MASKED)
    room = Room(store, asked(3), policy=OPEN, nonce=b"9" * 32)
    asked_again = room.answering(0)._recipes().weighed(room.task, Audience.of_session(room.terms)).asked
    later = NOW.replace(year=NOW.year + 3)
    refused = RecipeAccount(store, first).refusal(asked_again.request, asked_again.policy, later)
    assert refused is not None and refused.private and "it said that it would cost" in refused.reason
    assert len(RecipeAccount(store, first).charges()) == 2
