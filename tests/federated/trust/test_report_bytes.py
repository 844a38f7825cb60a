"""What a device sends: as long as the messages are that it would send."""

from fractions import Fraction

import numpy as np
from tests.federated.trust.test_two_servers import COUNTS, TOWN

from hazemap.algorithms import Flat
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.protocols.shuffle.sealed_parts import messages
from hazemap.federated.trust import report_bytes
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.prefix_walk import CellStrings
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.shuffled import noise_of, terms_of
from hazemap.federated.trust.two_servers import TwoServers, ones_allowed
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator
from hazemap.vdaf.circuits import shortest_chunk_length
from hazemap.vdaf.hpke import HpkeKeyPair, Kem
from hazemap.vdaf.poplar1 import Poplar1
from hazemap.vdaf.prio3 import prio3_histogram, prio3_multihot_count_vec

TREE = COUNTS.cells.tree
TRANSCRIPT = run(Flat(TREE, 2, AtMostRows(1)), Curator(TOWN), PureDP(1), Unrecorded()).transcript


def sharded(vdaf, measurement):
    public, shares = vdaf.shard(b"ctx", measurement, bytes(16), bytes(vdaf.RAND_SIZE))
    return len(public) + sum(map(len, shares))


def test_reports_to_two_servers_are_as_long_as_prio3_makes_them():
    made = sharded(prio3_histogram(17, shortest_chunk_length(17)), 16)
    assert report_bytes.of_two_servers(TRANSCRIPT) == made + report_bytes.UPLOAD
    bits = sharded(prio3_multihot_count_vec(9, 3, shortest_chunk_length(11)), [0, 1] * 3 + [0] * 3)
    assert report_bytes.of_weighed_bits(9, 3) == bits + report_bytes.UPLOAD


def test_one_report_is_as_long_as_poplar1_makes_it():
    assert report_bytes.of_path(13) == sharded(Poplar1(13), 5) + report_bytes.UPLOAD
    bits = CellStrings(TREE).bits
    assert report_bytes.of_one_report(TRANSCRIPT) == sharded(Poplar1(bits), 0) + report_bytes.UPLOAD


def test_shuffled_parts_are_as_long_as_a_person_s_messages():
    batch = ReportBatch(300, 300)
    terms = terms_of(COUNTS, noise_of(COUNTS, PureDP(1), batch), batch)
    key = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(32))
    sent = messages(terms, key.public, np.zeros(terms.size, dtype=np.int64), Stream.fixed(b"sizes"))
    assert sum(map(len, sent)) == terms.bytes_a_person
    assert report_bytes.of_shuffled_parts(TRANSCRIPT, PureDP(1), batch) > 16


def test_masked_vectors_and_bits_are_packed():
    cohort = Cohort(100, 100, Fraction(0), Fraction(0), mode=Mode.SEMI_HONEST)
    assert report_bytes.of_secure_sums(TRANSCRIPT, PureDP(1), cohort) == 16 * 9 // 8
    assert report_bytes.of_bits(TRANSCRIPT, sealed=False) == 2
    assert report_bytes.of_bits(TRANSCRIPT, sealed=True) == 50


def test_servers_let_more_ones_through_where_more_people_have_to_get_through():
    few, many = (TwoServers(TOWN, ReportBatch(n, n), local_epsilon=Fraction(5)) for n in (1, 10**9))
    law = few.prices(PureDP(5)).law(Fraction(1), 64)
    assert ones_allowed(law, 64, few.batch) < ones_allowed(law, 64, many.batch) <= 64
