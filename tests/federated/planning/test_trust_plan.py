"""Plans of trust models: public, the same every time, and ordered as trust is."""

from fractions import Fraction

import pytest

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.federated.planning.trust_plan import MOST_PEOPLE, TRUSTS, named_trusts, planned_trusts
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.networked_two_servers import check_first_round
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_bytes import of_randomised, of_weighed_bits
from hazemap.federated.trust.report_carriers import ByTwoServers
from hazemap.federated.trust.two_servers import TwoServers, ones_allowed
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.queries.algorithm_session import Exchange
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.release_spec import ReleaseSpec

BOX = "13.2,52.4,13.6,52.6"
SPEC = ReleaseSpec.of(box=BOX, epsilon=1)
QUICK = tuple(name for name in TRUSTS if name != "shuffled-reports")


@pytest.mark.slow
def test_a_plan_of_trusts_is_the_same_every_time_and_costs_nothing(home):
    made = {each.name: each for each in planned_trusts(SPEC, 20_000, QUICK)}
    assert planned_trusts(SPEC, 20_000, ("two-servers",)) == (made["two-servers"],)
    assert not home.exists()
    assert made["local"].misplaced > 1.5 * made["two-servers"].misplaced
    assert made["local"].total > 10 * made["curator"].total
    assert made["curator"].bytes is None
    assert made["one-report"].bytes < made["secure-sum"].bytes < made["two-servers"].bytes < made["shuffled"].bytes
    assert made["secure-sum"].total > made["two-servers"].total > made["shuffled"].total


def test_budgets_are_those_that_a_trust_model_can_spend_and_are_told():
    approximate = ReleaseSpec.of(box=BOX, epsilon=2, delta="1e-8", method="flat:3")
    budgets = {each.name: each.budget for each in planned_trusts(approximate, 1_000, ("shuffled", "two-servers"))}
    assert budgets == {"shuffled": PureDP(2), "two-servers": ApproxDP(2, "1e-8")}
    assert TRUSTS["shuffled-reports"].budget(PureDP(1)) == ApproxDP(1, "1e-6")
    in_rho = ReleaseSpec.of(box=BOX, rho="0.1", method="flat:3")
    made = {each.name: each for each in planned_trusts(in_rho, 1_000, ("shuffled", "one-report", "shuffled-reports"))}
    assert made["one-report"].refused is None
    assert "give epsilon alone" in made["shuffled"].refused
    assert "spend (ε, δ)" in made["shuffled-reports"].refused


def test_reports_that_people_randomise_are_planned_over_two_servers():
    flat = ReleaseSpec.of(box=BOX, epsilon=2, delta="1e-8", method="flat:3")
    [made] = planned_trusts(flat, 1_000, ("two-servers-randomised",))
    asked = tuple(Exchange(Query(Counts(cells), 1), None) for cells in [Leaves.at_level(Quadtree.world(depth=3), 3)])
    batch = ReportBatch(1_000, 1_000)
    trust = TwoServers(None, batch, local_epsilon=Fraction(8))
    ones = ones_allowed(trust.prices(flat.budget).law(Fraction(1), 64), 64, trust.batch)
    assert of_randomised(asked, flat.budget, batch, Fraction(8)) == of_weighed_bits(64, ones)
    assert made.bytes >= of_weighed_bits(64, ones)
    assert made.budget == flat.budget
    assert planned_trusts(flat, 1_000, ("two-servers",))[0].total < made.total


def test_methods_that_a_report_does_not_fit_are_told_so_and_the_others_planned():
    """Wavelets add and take away, which no report of a single 1 says."""
    wavelets = ReleaseSpec.of(box=BOX, epsilon=1, method="privlet:3")
    made = {each.name: each for each in planned_trusts(wavelets, 1_000, ("curator", "two-servers", "shuffled"))}
    assert made["two-servers"].misplaced is None and "single 1" in made["two-servers"].refused
    assert made["shuffled"].refused is None and made["shuffled"].bytes > 0


def test_a_plan_shows_no_method_that_no_campaign_over_two_servers_can_run():
    """`geometric` weighs its levels, which reports of a single 1 cannot: it was planned, and campaigns refused it."""
    for method, runs in (("geometric:3", False), ("hierarchical:3", True), ("privlet:3", False)):
        spec = ReleaseSpec.of(box=BOX, epsilon=1, method=method, bounding="one row", outside="drop")
        [made] = planned_trusts(spec, 1_000, ("two-servers",))
        assert (made.refused is None) is runs
        carrier = ByTwoServers("https://one.example/", "https://two.example/", 900)
        campaign = Campaign("homes", "a map", "town", spec.algorithm, PureDP(1), Cohort(1_000, 1_000), carrier=carrier)
        if runs:
            check_first_round(campaign)
        else:
            with pytest.raises(InputError, match="choose"):
                check_first_round(campaign)


@pytest.mark.parametrize(
    ("spec", "people", "words"),
    [
        (SPEC, MOST_PEOPLE + 1, "10,000,000"),
        (SPEC, 1, "needs 100"),
        (ReleaseSpec.of(epsilon=1), 1_000, "needs a box"),
        (ReleaseSpec.of(box=BOX, epsilon=1, method="kd-tree"), 1_000, "only a curator"),
    ],
)
def test_what_cannot_be_planned_is_refused(spec, people, words):
    with pytest.raises(InputError, match=words):
        planned_trusts(spec, people, ("curator",))


def test_names_of_trusts_are_checked():
    assert named_trusts("all") == tuple(TRUSTS)
    with pytest.raises(InputError, match="all, or one of"):
        named_trusts("everybody")


def test_a_plan_of_trusts_is_of_the_ground():
    with pytest.raises(InputError, match="leave the plane out"):
        planned_trusts(ReleaseSpec.of(plane="1000,800", epsilon=1), 1_000, ("curator",))
