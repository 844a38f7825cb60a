"""A person's rules: every reason for which a device says no, in words."""

from dataclasses import fields, replace
from fractions import Fraction

import pytest
from tests.federated.device.room import FEW, TREE, task

from hazemap.cells import Leaves, WholeDomain
from hazemap.encoders import Concatenation, CountMinSketch, Counts
from hazemap.errors import FileError, InputError
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.query_description import describe_query
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.device_tasks import parameters_for
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.tables.contribution_bounding import AtMostCells, OneVote, RowIsPerson
from hazemap.temporal.time_slots import Clock
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.rows_with_values import RowsWithValues
from hazemap.values.timed_tree import TimedTree

LEAVES = Leaves.at_level(TREE, 2)


def refusal(policy, made, clients=20):
    return policy.refusal(made, parameters_for(made, bytes(32), clients, bytes(32), bytes(32)))


def asking(encoder):
    made = task()
    object.__setattr__(made, "question", Query(encoder, made.question.share))  # no honest task asks for rows as people
    return made


def test_what_a_policy_allows_is_answered():
    assert refusal(FEW, task()) is None
    assert refusal(FEW, asking(Counts(LEAVES, OneVote()))) is None
    assert refusal(FEW, asking(Concatenation((Counts(LEAVES), Counts(LEAVES, AtMostCells(3))), (1, 2)))) is None
    assert refusal(FEW, asking(CountMinSketch(TREE, 6, 8, 2))) is None


@pytest.mark.parametrize(
    ("policy", "asks", "reason"),
    [
        (replace(FEW, campaign=Fraction(1, 20)), task(), "one campaign may cost 0.05"),
        (replace(FEW, people=21), task(), "a session of 20 clients is too small: at least 21 must be invited"),
        (replace(FEW, survivors=19), task(), "a sum over 18 clients is too small: at least 19 must be in it"),
        (replace(FEW, corrupt=Fraction(1, 5)), task(), "at most 10 % of the others work with the server"),
        (replace(FEW, modes=("malicious",)), task(), "takes part in malicious sessions, not in semi-honest ones"),
        (
            replace(FEW, modes=("semi-honest",)),
            task(mode=Mode.MALICIOUS),
            "takes part in semi-honest sessions, not in malicious ones",
        ),
        (replace(FEW, longest=15), task(), "a vector of 16 numbers is too long: at most 15 are sent"),
        (FEW, asking(Counts(LEAVES, RowIsPerson())), "each row is a person of its own"),
        (replace(FEW, rules=("cells",)), task(), "the rule 'one row a person' is not one of: cells"),
        (replace(FEW, finest=1e8), task(), "m wide, but cells must be at least 1e"),
        (replace(FEW, finest=1e6), asking(CountMinSketch(TREE, 6, 8, 2)), "cells must be at least"),
        (replace(FEW, marks=False), asking(Counts(AttributeCells(LEAVES))), "does not reveal its marks"),
        (replace(FEW, no_campaigns=("home*",)), task(), "does not answer the campaign 'homes'"),
        (replace(FEW, campaigns=("work*",)), task(), "does not answer the campaign 'homes'"),
        (replace(FEW, no_purposes=("*live*",)), task(), "does not answer the purpose"),
        (replace(FEW, purposes=("research*",)), task(), "does not answer the purpose"),
        (FEW, task(campaign="home\x1b[2J"), "cannot be printed"),
        (FEW, task(campaign="h" * 201), "at most 200 letters"),
        (FEW, task(purpose="h" * 2_001), "its purpose 2000"),
    ],
)
def test_each_rule_refuses_with_its_reason(policy, asks, reason):
    assert reason in refusal(policy, asks)


def test_by_default_a_device_takes_part_only_where_the_server_may_do_anything():
    """Where it draws the ring, 22 sybils of 300 stood around one victim, within the tenth that was allowed."""
    assert Policy().modes == ("malicious",)
    default = replace(FEW, modes=Policy().modes)
    assert "takes part in malicious sessions, not in semi-honest ones" in refusal(default, task())
    assert refusal(default, task(mode=Mode.MALICIOUS)) is None


def test_marked_cells_are_known_however_they_are_asked_for():
    tree = BinaryAttribute(TREE)
    for encoder in (Counts(AttributeCells(LEAVES)), Counts(Leaves(tree, tree.children(tree.root)))):
        assert describe_query(asking(encoder)).marked
    assert not describe_query(task()).marked


def test_the_side_is_that_of_the_smallest_cell():
    side = describe_query(task(level=3)).side
    assert side < describe_query(task(level=2)).side
    mixed = Counts(Leaves(TREE, [*TREE.root, *LEAVES.cells]))
    assert describe_query(asking(mixed)).side == describe_query(task(level=2)).side
    assert describe_query(asking(CountMinSketch(TREE, 2, 8, 2))).side == describe_query(task(level=2)).side
    assert (
        describe_query(asking(Counts(WholeDomain(TREE)))).side
        == describe_query(asking(Counts(Leaves(TREE, TREE.root)))).side
    )


def test_parameters_that_do_not_follow_from_the_task_are_refused():
    made = task()
    terms = parameters_for(made, bytes(32), 20, bytes(32), bytes(32))
    assert "does not follow" in FEW.refusal(made, replace(terms, threshold=terms.threshold + 1))
    assert "is too low" in FEW.refusal(made, replace(terms, threshold=terms.threshold - 1))
    assert "at most 20" in FEW.refusal(made, parameters_for(made, bytes(32), 30, bytes(32), bytes(32)))


def test_the_floors_of_the_wire_are_the_policys():
    floors = Policy(people=200, survivors=150, corrupt=Fraction(1, 5), longest=99, modes=("malicious",)).floors()
    assert (floors.clients, floors.survivors, floors.corrupt, floors.longest) == (200, 150, Fraction(1, 5), 99)
    assert floors.modes == {Mode.MALICIOUS}
    assert Policy(people=10).floors().clients == 50, "no sum is opened over more people than are asked"


def test_the_printed_policy_is_read_back_and_holds_every_rule():
    strict = Policy(
        campaign=Fraction(1, 3),
        period=Fraction("0.1"),
        days=7,
        rules=("one vote",),
        marks=False,
        times=False,
        campaigns=('a "quoted" \\ name',),
        no_purposes=(),
    )
    for policy in (Policy(), strict):
        text = policy.to_toml()
        assert Policy.parse(text) == policy
        keys = [line for line in text.splitlines() if " = " in line and not line.startswith("#")]
        assert len(keys) == len(fields(Policy))
    assert Policy.parse("") == Policy()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[budget", "not TOML"),
        ("[budgets]\nday = 1", "'budgets.day'"),
        ("[budget]\nday = 1", "'budget.day'"),
        ("campaign = 1", "'campaign'"),
        ("[budget]\ncampaign = -1", "0 or more"),
        ("[budget]\ncampaign = 'much'", "finite number"),
        ("[budget]\ncampaign = [1]", "budget.campaign is a number"),
        ("[budget]\ndays = 0", "at least 1"),
        ("[budget]\ndays = 1.5", "whole number"),
        ("[cohort]\npeople = true", "cohort.people is a number"),
        ("[cohort]\ncorrupt = 1", "0 to below 1"),
        ("[cohort]\nmodes = ['friendly']", "found friendly"),
        ("[question]\nrules = 'rows'", "a list of texts"),
        ("[question]\nrules = ['row']", "found row"),
        ("[question]\nmarks = 1", "true or false"),
        ("[question]\nfinest = 'small'", "side in metres"),
    ],
)
def test_a_policy_that_cannot_be_understood_is_refused(text, reason):
    with pytest.raises(InputError, match=reason.replace("[", r"\[")):
        Policy.parse(text)


def test_a_policy_file_is_read(tmp_path):
    (tmp_path / "policy.toml").write_text(Policy(days=3).to_toml())
    assert Policy.read(tmp_path / "policy.toml").days == 3
    with pytest.raises(FileError, match="cannot be read"):
        Policy.read(tmp_path / "none.toml")


def test_a_price_above_its_campaign_is_refused():
    made = task()
    object.__setattr__(made, "budget", PureDP("0.01"))  # no honest task can be like this
    assert "more than its whole campaign" in refusal(FEW, made)


def test_buckets_are_called_so():
    assert "in each of 16 buckets of cells" in str(describe_query(asking(CountMinSketch(TREE, 2, 8, 2))))
    assert "in each of 16 cells" in str(describe_query(task()))
    assert "with your mark apart" in str(describe_query(asking(Counts(AttributeCells(LEAVES)))))


@pytest.mark.parametrize(
    "tree", [RowsWithValues(TREE), BinaryAttribute(RowsWithValues(TREE))], ids=["valued", "marked"]
)
def test_cells_whose_size_a_device_cannot_tell_soon_are_refused(tree):
    """Squares of districts took seconds to measure; nobody asks devices for them."""
    for encoder in (
        Counts(Leaves(tree, tree.root)),
        Counts(WholeDomain(tree)),
        CountMinSketch(tree, 1, 8, 2),
        Concatenation((Counts(Leaves(tree, tree.root)),), (1,)),
    ):
        assert "does not know how to judge cells of type RowsWithValues" in refusal(FEW, asking(encoder))


@pytest.mark.parametrize("cells", [Leaves.at_level(TREE, 2), WholeDomain(TREE)], ids=["cells", "everything"])
@pytest.mark.parametrize("partition", [AllSlots, EachSlot])
def test_slots_are_judged_by_the_cells_in_them(partition, cells):
    timed = TimedTree(TREE, Clock.hours("UTC"))
    assert refusal(FEW, asking(Counts(partition(timed, cells)))) is None
    assert "does not reveal when" in refusal(replace(FEW, times=False), asking(Counts(partition(timed, cells))))
    assert "must be at least" in refusal(replace(FEW, finest=10**9), asking(Counts(partition(timed, cells))))
    assert "does not know how to judge cells of type TimedTree" in refusal(FEW, asking(Counts(WholeDomain(timed))))


def test_a_cell_without_a_size_is_not_large_enough(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(type(TREE), "area", lambda _, cells: cells * float("nan"))
        assert "must be at least" in (refusal(FEW, asking(Counts(Leaves.at_level(TREE, 3)))) or "")
