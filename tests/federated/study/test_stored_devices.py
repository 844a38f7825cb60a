"""A study of a store of devices: they answer, pay and refuse as they would a server."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from time import time

import pytest
from tests.federated.server.asking_studies import KEY, POLICY, SIGNED, recipe

import hazemap
from hazemap.errors import NotOpened, Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.charges import recipe_charges
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import store_events
from hazemap.federated.study.population_study import StoredDevices


def test_devices_of_a_store_answer_and_pay_and_say_why_they_do_not(tmp_path):
    rules = Policy(campaign=Fraction(20), period=Fraction(40), people=8)
    asked = recipe(minimum_cohort=16)
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        own = enrolment.add(store, 20)
        with pytest.raises(Refused, match="accepted no policy"):
            StoredDevices(store, rules).recipe_bins(asked)
        ShippedPolicies(store).accept(SIGNED, KEY.public, datetime.now(UTC))
        events = {one: [("hello", "never read")] for one in own[:15]}
        store_events(store, POLICY.stream("keyboard"), events, time())
        devices = StoredDevices(store, rules)
        bins = devices.recipe_bins(asked).tolist()
        assert sorted(asked.label(place)[0] for place in bins) == ["(none)"] * 5 + ["hello"] * 15
        assert {len(recipe_charges(store, one)) for one in own} == {1}
        study = hazemap.Study(devices, "keyboard", policy=POLICY)
        assert study.ask(replace(asked, id="again")).attrs["people"] == 20
        shy = StoredDevices(store, replace(rules, local=Fraction(1)))
        with pytest.raises(NotOpened, match=r"0 answered. Devices refused: 20 because one report that reads"):
            hazemap.Study(shy, "keyboard", policy=POLICY).ask(replace(asked, id="more"))
        denied = StoredDevices(store, replace(rules, no_fields=("keyboard.*",)))
        assert not len(denied.recipe_bins(asked))
        assert sum(denied.refusals.values()) == 20
        assert {len(recipe_charges(store, one)) for one in own} == {2}
