"""A study over two servers: a coordinator, a leader, a helper and devices over HTTP, in this process."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from time import time

import httpx
import numpy as np
import pytest
from tests.federated.device.serving import AS_OPERATOR, OPERATOR, aggregating, serving
from tests.federated.server.asking_studies import KEY, POLICY, judge, recipe, study
from tests.federated.study.test_study_over_http import RULES, devices

import hazemap
from hazemap.codec import dumps
from hazemap.errors import InputError, NotOpened
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.charges import recipe_charges
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import store_events
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.policy_document import SignedPolicy
from hazemap.federated.server.campaign_house import PeerServers
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.report_carriers import ByTwoServers
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.local_randomisers import UnaryEncoding

PEOPLE, LEAST = 60, 50
COHORT = Cohort(PEOPLE, PEOPLE, Fraction(1, 6), Fraction(0), mode=Mode.SEMI_HONEST)
TWO = tuple(replace(each, carriers=(Carrier.TWO_SERVERS, Carrier.SECURE_SUMS)) for each in POLICY.analyses)
SIGNED = SignedPolicy.sign(replace(POLICY, analyses=TWO), KEY)
CLEAR = UnaryEncoding(Fraction(31, 32), Fraction(1, 32))
"""ε₀ = 6.87."""
ASKED = recipe(
    carrier=Carrier.TWO_SERVERS, local_epsilon=Fraction(7), epsilon=Fraction(7), minimum_cohort=LEAST, randomiser=CLEAR
)


def typists(store, texts):
    ShippedPolicies(store).accept(SIGNED, KEY.public, datetime.now(UTC))
    own = enrolment.add(store, len(texts))
    events = {one: [(text, "never read")] for one, text in zip(own, texts, strict=True)}
    store_events(store, SIGNED.policy.stream("keyboard"), events, time())


def reported(store, asked):
    """The sums of what the devices' own logs say that they reported."""
    bits = np.zeros(asked.size, dtype=np.int64)
    for one in enrolment.devices(store):
        for line in ActivityLog(store, one).entries():
            if getattr(line, "recipe", "") == asked.digest and line.report:
                bits += np.unpackbits(np.frombuffer(line.report, np.uint8), count=asked.size)
    return bits


@pytest.mark.slow
def test_sixty_devices_answer_a_recipe_over_two_servers_and_each_pays_once(tmp_path):
    texts = ["hello"] * 40 + ["world"] * 15 + [""] * 5
    with (
        aggregating(tmp_path / "leader", "leader") as (leader, one),
        aggregating(tmp_path / "helper", "helper") as (helper, two),
        serving(tmp_path / "server", judge=judge, peers=PeerServers({leader: one, helper: two})) as server,
        EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store,
        httpx.Client(base_url=server, headers=AS_OPERATOR, timeout=300) as http,
    ):
        typists(store, texts)
        carrier, rules = ByTwoServers(leader, helper, LEAST), replace(RULES, aggregators=(leader, helper))
        order = study(cohort=COHORT, reports=3, wait=600.0, deadlines=Deadlines.all(600), carrier=carrier)
        with devices(store, server, rules):
            assert http.post("/v1/policies", content=SIGNED.to_json().encode()).status_code == 201
            stranger = replace(order, name="strange", carrier=ByTwoServers(leader, "http://127.0.0.1:1/", LEAST))
            refused = http.post("/v1/studies", content=dumps(stranger).encode())
            assert refused.status_code == 422 and "does not know" in refused.json()["error"]
            assert http.post("/v1/studies", content=dumps(order).encode()).status_code == 201
            own = hazemap.Study(server, "spring", token=OPERATOR)
            frame = own.ask(ASKED)
            again = own.ask(ASKED)
            with pytest.raises(InputError, match="carried by secure sums, but the study spring by two servers"):
                own.ask(recipe())
            with pytest.raises(InputError, match="is summed over 51 people or more"):
                own.ask(replace(ASKED, id="more", minimum_cohort=51))
            left, status = own.left, http.get("/v1/studies/spring").json()
            file = tmp_path / "words.parquet"
            own.release(file)
        sums = reported(store, ASKED)
        charges = Counter(len(recipe_charges(store, each)) for each in enrolment.devices(store))
        with devices(store, server, replace(rules, aggregators=())), pytest.raises(NotOpened) as nobody:
            own.ask(replace(ASKED, id="nobody"))
        ledger = [each.charge.what for each in Ledger(tmp_path / "server" / "ledger.sqlite").history("keyboard")]
    people = frame.attrs["people"]
    assert LEAST <= people <= PEOPLE and charges[1] == people and charges[0] == PEOPLE - people
    exact = CLEAR.unbiased(sums, people)
    found = dict(zip(frame["word"], frame["count"], strict=True)) | {"": frame.attrs["none"]["count"]}
    beside = 7 * frame["standard_error"].max() + 1  # the servers' reports of nobody, and a rounding
    assert np.abs(np.sort([*found.values()]) - np.sort(exact)).max() < beside, "the answer is that of the reports"
    [hello] = frame[frame["word"] == "hello"].to_dict(orient="records")
    # Each of at most 178 bits, nobody's too, is wrong with probability 1/32: 24 of them at once with one below 10^-7
    assert abs(hello["count"] - 40) < 25 and hello["low"] < hello["count"] < hello["high"]
    assert frame.equals(again) and left.reports == 2
    promise = " ".join(frame.attrs["promise"])
    assert "proved of every report" in promise and "NOT proved: honest coins" in promise and leader in promise
    assert status["trust"] == "two-servers" and status["rounds"][0]["survivors"] == people
    said = hazemap.open(file).statement
    assert (said.trust, said.circumstances.cohort.trust, said.circumstances.cohort.minimum) == (
        *("two servers", "two-servers"),
        LEAST,
    )
    assert "ε₀ = 7 at most" in " ".join(said.assumptions) and "can send any vector" not in " ".join(said.assumptions)
    assert "reports only to servers that its policy names" in str(nobody.value)
    assert "waits for the same people and batch" in str(nobody.value)
    assert len(ledger) == 2 and ledger[0].endswith("round 1")
