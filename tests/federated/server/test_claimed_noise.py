"""An answer of any trust model claims the standard error that its price buys, and a forged one does not."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap import AtMostRows, MemoryTable, Quadtree
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.federated.server.privacy_statement import claimable
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.shuffled import ShuffledParts, ShuffledReports
from hazemap.federated.trust.two_servers import TwoServers
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Query

TREE, PEOPLE = Quadtree.world(depth=2), 3_000
RNG = np.random.default_rng(5)
TABLE = MemoryTable(np.arange(PEOPLE), {"lon": RNG.normal(0, 60, PEOPLE), "lat": RNG.normal(0, 40, PEOPLE)})
QUERY = Query(Counts(Leaves.at_level(TREE, 2), AtMostRows(1)), Fraction(1, 3))
PURE, APPROX = PureDP(1), ApproxDP(1, "1e-6")
COHORT, BATCH = Cohort(2_500, 1_000), ReportBatch(2_000, 1_500, Fraction(1, 20))
DROPPED = {"stream": Stream.fixed(b"claims"), "dropping": Fraction(1, 20)}
MODELS = {
    "secure aggregation": (SimulatedSecureAggregation(TABLE, COHORT, **DROPPED), PURE),
    "reports": (SimulatedSecureAggregation(TABLE, COHORT, **DROPPED, local_epsilon=Fraction(4)), APPROX),
    "two servers": (TwoServers(TABLE, BATCH, **DROPPED), PURE),
    "shuffled": (ShuffledParts(TABLE, BATCH, **DROPPED), PURE),
    "shuffled reports": (ShuffledReports(TABLE, BATCH, APPROX, **DROPPED), APPROX),
}


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_claims_what_its_price_buys(model):
    trust, budget = MODELS[model]
    answer = trust.answer(QUERY, budget.part(QUERY.share))
    errors = claimable(trust.prices(budget), QUERY, answer)
    assert errors.fits(answer.stddev)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert not errors.fits(answer.stddev * factor)
    few = replace(answer, people=1, stddev=answer.stddev / 40)  # of fewer than any round is opened with
    assert not claimable(trust.prices(budget), QUERY, few).fits(few.stddev)
