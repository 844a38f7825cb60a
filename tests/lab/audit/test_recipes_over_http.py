"""The audit's evidence, on what real devices say over HTTP: from their event stores to the sums that a server opened.

`hazemap audit` runs the same devices in one process, thousands of times; a round over HTTP takes seconds. So here every
person of a round is a trial: each has a bin of their own, and typed its word or nothing. The bits of a report, and so
the bins of a sum, are independent of each other.
"""

from dataclasses import replace
from fractions import Fraction

import httpx
import numpy as np
import pytest
from tests.federated.device.serving import AS_OPERATOR, OPERATOR, serving
from tests.federated.server.asking_studies import SIGNED, judge, recipe, study
from tests.federated.study.test_study_over_http import devices, typists

import hazemap
from hazemap.codec import dumps
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.lab.audit.evidence.distinguishing_events import distinguished
from hazemap.lab.audit.findings import Claim
from hazemap.privacy.local_randomisers import Asymmetric

PEOPLE = 60
LOCAL = Fraction(1, 2)
WORDS = tuple(f"w{number}" for number in range(PEOPLE))


def bare(law, stream, place, size):
    """The fault: the true bit alone."""
    return np.eye(size, dtype=np.uint8)[place]


@pytest.mark.slow
def test_sums_of_real_devices_over_http_tell_no_more_than_a_report_does_and_a_planted_fault_is_found(
    tmp_path, monkeypatch
):
    """A sound build is called broken with a probability of 1e-9. Without noise a round of 60 is enough, for certain."""
    typed = np.random.default_rng(5).permutation(PEOPLE) < PEOPLE // 2
    texts = [word if own else "nothing known" for word, own in zip(WORDS, typed, strict=True)]
    cohort = Cohort(PEOPLE, PEOPLE, Fraction(1, 10), Fraction(0), mode=Mode.SEMI_HONEST)
    asked = recipe(tokens=WORDS, local_epsilon=LOCAL, epsilon=LOCAL, minimum_cohort=50)
    with (
        serving(tmp_path / "server", judge=judge) as server,
        EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store,
        httpx.Client(base_url=server, headers=AS_OPERATOR, timeout=300) as http,
    ):
        typists(store, texts)
        with devices(store, server):
            assert http.post("/v1/policies", content=SIGNED.to_json().encode()).status_code == 201
            order = study(cohort=cohort, reports=4, wait=600.0)
            assert http.post("/v1/studies", content=dumps(order).encode()).status_code == 201
            own = hazemap.Study(server, "spring", token=OPERATOR)
            sound = [_counts(own.ask(replace(asked, id=name))) for name in ("first", "second")]
            monkeypatch.setattr(Asymmetric, "report", bare)
            faulty = [_counts(own.ask(replace(asked, id="third")))]
    claim = Claim("ε", float(LOCAL))
    assert distinguished(claim, *_sides(sound, typed)).lower(1e-9) <= LOCAL
    assert distinguished(claim, *_sides(faulty, typed)).lower(0.01) > LOCAL


def _counts(frame):
    counts = frame.set_index("word")["count"]
    return [float(counts[word]) for word in WORDS]


def _sides(rounds, typed):
    """Numbers of the bins whose person typed its word, and of the others."""
    each = [({"number": number}, own) for counts in rounds for number, own in zip(counts, typed.tolist(), strict=True)]
    return [[facts for facts, own in each if own is side] for side in (True, False)]
