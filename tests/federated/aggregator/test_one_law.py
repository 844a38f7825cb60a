"""Two servers by their law, and the same questions asked of a real leader and helper: answers are alike.

Each question is a task, each person a report of Prio3, and what the collector opens is the answer. The noise of the
aggregators comes from a stream of ours, so that it can be taken off again. Statistical tests fail by chance with 1e-6,
and have a twin that must fail.
"""

from fractions import Fraction

import numpy as np
import pytest
from tests.federated.aggregator.two_servers import TwoServers as RealServers
from tests.federated.trust.test_one_law import alike
from tests.privacy.polya_law import fit, laplace_law, polya_law

from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, Counts
from hazemap.engines.memory import MemoryTable
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.blank_reports import BlankReports
from hazemap.federated.protocols.dap.privacy_parameters import PrivacyParameters
from hazemap.federated.protocols.dap.vdaf_configuration import HistogramConfiguration, MultihotConfiguration
from hazemap.federated.trust.randomised_reports import debiased, randomised
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.sampled_table import one_by_one
from hazemap.federated.trust.two_servers import TwoServers, histograms, ones_allowed
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.vdaf.circuits import MultihotCountVec
from hazemap.vdaf.prio3 import prio3_histogram, prio3_multihot_count_vec

TREE = Quadtree(0.25, 0.25, 0.25, 4)
SILENT = PureDP(10_000)  # noise of scale 1/10,000 is 0
LEVEL = 1e-6
HOUR = 1_000


def town(people):
    """People about the middle; every fifth is elsewhere, and reports the place that nobody opens."""
    rng = np.random.default_rng(3)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    lon, lat = rng.uniform(west, east, people), rng.uniform(south, north, people)
    lon[::5] = west - 1
    return MemoryTable(np.arange(people), {"lon": lon, "lat": lat})


TOWN = town(20)
BATCH = ReportBatch(20, 20)


def counts(level):
    return Counts(Leaves.at_level(TREE, level), AtMostRows(1))


class RealTwoServers:
    """Answers of a real leader and helper: a task a vector, a report a person, and noise of both from one stream.

    Reports are histograms with a place for those without a row, or, as of campaigns, vectors of at most a single 1.
    """

    def __init__(self, table, stream, with_place=True):
        self.people, self.stream, self.with_place = list(one_by_one(table)), stream, with_place
        self.noise = []

    def sums(self, encoder, price):
        """Of reports of a single 1; the place of those without a row is dropped."""
        law, parts, after = TwoServerNoise.within(price, encoder.sensitivity).each, [], 0
        vectors = [encoder.total(each) for each in self.people]
        for size in histograms(encoder):
            mine = [vector[after : after + size] for vector in vectors]
            if self.with_place:
                reports = [int(vector.argmax()) if vector.any() else size for vector in mine]
                measured, vdaf = HistogramConfiguration(size + 1, 4), prio3_histogram(size + 1, 4)
            else:
                reports = [vector.astype(bool).tolist() for vector in mine]
                measured, vdaf = MultihotConfiguration(size, 4, 1), prio3_multihot_count_vec(size, 1, 4)
            parts.append(self._collected(reports, measured, vdaf, law)[:size])
            self.noise[-1] = self.noise[-1][:, :size]
            after += size
        return np.concatenate(parts)

    def _collected(self, measurements, measured, vdaf, law=None, blank=None):
        privacy = None
        if law is not None:
            budget = measured.norm_1 / law.scale if isinstance(law, DiscreteLaplace) else Fraction(100)
            delta = Fraction(0) if isinstance(law, DiscreteLaplace) else Fraction(1, 10**6)
            privacy = PrivacyParameters.of(law, 1, budget, delta)
        drawn = {role: [] for role in (DapRole.LEADER, DapRole.HELPER)}

        def draw(role, size):
            drawn[role].append((law or blank).draw(self.stream, size))
            return drawn[role][-1]

        servers = RealServers(
            int(self.stream.words(1)[0]),
            len(measurements),
            privacy,
            measured=measured,
            vdaf=vdaf,
            draw=draw,
            options={"blank": blank},
        )
        try:
            assert servers.upload(*(servers.report(each) for each in measurements)) == b""
            found = servers.collect(HOUR)
        finally:
            servers.close()
        assert found.count == len(measurements)
        assert [len(drawn[role]) for role in drawn] == [1, 1]
        self.noise.append(np.array([drawn[role][0] for role in drawn]))
        return np.array(found.sums, dtype=np.int64)

    def randomised(self, encoder, law, most):
        """Of reports that people randomise themselves, of at most so many 1s, and of nobody's, which servers add."""
        configured = MultihotConfiguration(encoder.size, 2, most)
        vectors = []
        for each in self.people:
            vector = encoder.total(each)
            report = randomised(law, vector, self.stream)
            while report.sum() > most:  # all coins are thrown again
                report = randomised(law, vector, self.stream)
            vectors.append(report)
        vdaf = prio3_multihot_count_vec(encoder.size, most, 2)
        blank = BlankReports.of(law, BATCH.honest - 1)
        found = self._collected([vector.astype(bool).tolist() for vector in vectors], configured, vdaf, blank=blank)
        assert np.array_equal(found - self.noise[-1].sum(axis=0), np.sum(vectors, axis=0))
        return found


QUESTIONS = {
    "a level": counts(2),
    "two levels": Concatenation((counts(1), counts(2)), (1, 1)),
}


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("price", [PureDP("0.5"), ZCDP("0.02")], ids=str)
@pytest.mark.parametrize("with_place", [True, False])
def test_less_their_noise_both_give_the_sums(asked, price, with_place):
    exact = asked.total(TOWN)
    assert 0 < exact.sum() < 20 * len(histograms(asked)), "some have no row"
    assert np.array_equal(TwoServers(TOWN, BATCH).answer(Query(asked, 1), SILENT).sums, exact)
    real = RealTwoServers(TOWN, Stream.fixed(b"sums"), with_place)
    sums = real.sums(asked, price)
    drawn = np.concatenate([each.sum(axis=0) for each in real.noise])
    assert drawn.any()
    assert np.array_equal(sums - drawn, exact)


def test_sums_of_both_carry_noise_of_one_law():
    """Chi-square, also against the law itself; the twins have one server's noise alone, and half the scale."""
    asked, price = counts(4), PureDP("0.5")
    exact = asked.total(TOWN)
    real = RealTwoServers(TOWN, Stream.fixed(b"real"))
    noise = np.concatenate([real.sums(asked, price) - exact for _ in range(8)])
    simulated = TwoServers(TOWN, BATCH, Stream.fixed(b"simulated"))

    def of_law(price):
        return np.concatenate([simulated.answer(Query(asked, 1), price).sums - exact for _ in range(80)])

    assert alike(noise, of_law(price)) > LEVEL > alike(noise, of_law(PureDP(1)))
    assert fit(noise, polya_law(Fraction(2), Fraction(2))) > LEVEL
    alone = np.concatenate([leader for leader, _ in real.noise])
    assert fit(alone, laplace_law(Fraction(2))) > LEVEL > fit(noise, laplace_law(Fraction(2)))


@pytest.mark.slow
def test_sums_of_randomised_reports_have_one_law():
    """Two-sample chi-square; the twin's reports have another ε."""
    asked, budget, local = counts(1), ApproxDP(16, "1e-6"), Fraction(3)
    simulated = TwoServers(TOWN, BATCH, Stream.fixed(b"coins"), local_epsilon=local)
    twin = TwoServers(TOWN, BATCH, Stream.fixed(b"twin"), local_epsilon=Fraction(1))
    law = simulated.prices(budget).law(Fraction(1), asked.size)
    assert law != twin.prices(budget).law(Fraction(1), asked.size)
    real, stream = RealTwoServers(TOWN, Stream.fixed(b"devices")), Stream.fixed(b"luck")
    most = ones_allowed(law, asked.size, simulated.batch)
    sums = [real.randomised(asked, law, most) for _ in range(150)]
    found = [debiased(law, each, 20, stream, BATCH.blank).sums for each in sums]
    of_law, of_twin = (
        [trust.answer(Query(asked, 1), budget.part(1)).sums for _ in range(3_000)] for trust in (simulated, twin)
    )
    for cell in range(asked.size):
        mine, law_s, twin_s = ([int(sums[cell]) for sums in every] for every in (found, of_law, of_twin))
        assert alike(mine, law_s) > LEVEL > alike(mine, twin_s)


def test_a_report_of_more_ones_than_honest_coins_make_is_counted_by_nobody(monkeypatch):
    """The bound on 1s that simulated servers state is the one that real ones enforce."""
    asked = counts(2)
    trust = TwoServers(TOWN, ReportBatch(20, 10), local_epsilon=Fraction(8))
    most = ones_allowed(trust.prices(ApproxDP(16, "1e-6")).law(Fraction(1), asked.size), asked.size, trust.batch)
    assert 1 < most < asked.size
    configured, vdaf = MultihotConfiguration(asked.size, 2, most), prio3_multihot_count_vec(asked.size, most, 2)
    servers = RealServers(1, 2, None, measured=configured, vdaf=vdaf)
    vectors = [[place < ones for place in range(asked.size)] for ones in (0, 1, most)]
    try:
        servers.upload(*(servers.report(each) for each in vectors))
        encode = MultihotCountVec.encode

        def one_more(self, measurement):
            """Says that there are `most`, and sets another bit."""
            encoded = encode(self, measurement).copy()
            encoded[most] = 1
            return encoded

        monkeypatch.setattr(MultihotCountVec, "encode", one_more)
        servers.upload(servers.report(vectors[-1]))
        found = servers.collect(HOUR)
        assert (found.count, list(found.sums)) == (3, np.sum(vectors, axis=0).tolist())
        assert sum((servers.rejections(servers.leader) + servers.rejections(servers.helper)).values()) > 0
    finally:
        servers.close()
