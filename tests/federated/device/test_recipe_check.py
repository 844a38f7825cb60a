"""A recipe from the file to the bin: checked against a policy, run over the events that a device keeps."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hazemap.errors import Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.recipes.query_sandbox import QuerySandbox
from hazemap.federated.device.recipes.recipe_check import admit, check_recipe, sum_price
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import PLACE_FIELDS, ApprovedStreams, EventStore
from hazemap.federated.device.store.row_store import DeviceRows, RowStore
from hazemap.federated.recipes.event_stream import EventStream
from hazemap.federated.recipes.policy import Accounting
from hazemap.federated.recipes.policy_document import example
from hazemap.federated.recipes.query_class import AnyQueryOverFields
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.privacy.local_randomisers import Asymmetric

NOW = 20_000.5 * 86_400
RECIPE = recipe_from_toml(EXAMPLE)


@pytest.fixture
def events(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield EventStore(store, enrolment.add(store)[0])


def sandbox(policy):
    return QuerySandbox(tuple(each.schema for each in policy.streams), policy.analyses[0].queries)


def test_the_example_finds_the_bins_of_donated_events(events):
    policy = example()
    admitted = admit(RECIPE, policy)
    approved = ApprovedStreams(events, policy, NOW)
    assert sandbox(policy).run(admitted, approved).rows == ()
    events.donate(policy.stream("profile"), [(33, "en_GB")], NOW)
    words = ("hello world today", "i got", "good bye", "Alas")
    events.donate(policy.stream("keyboard"), [(text, 0.5, int(NOW)) for text in words], NOW)
    found = sandbox(policy).run(admitted, approved)
    assert found.failure is None
    assert [RECIPE.label(place)[1] for place in RECIPE.bins_of(found.rows)] == [
        *("hello world today", "i got (end)", "(other)")
    ]
    assert {RECIPE.label(place)[0] for place in RECIPE.bins_of(found.rows)} == {"[30, 40)"}


def test_places_that_a_device_keeps_are_a_stream_like_others(events):
    policy = replace(example(), streams=(EventStream("places", PLACE_FIELDS, 30),), fields=(), analyses=())
    RowStore(events.store, events.device).add(
        DeviceRows(*(np.array([each]) for each in (NOW, 2.35, 48.85, 1.0, np.nan))), None
    )
    streams = policy.streams[0]
    anything = QuerySandbox((streams.schema,), AnyQueryOverFields(streams.names))
    admitted = anything.admit(SqlQuery("SELECT lon, lat, time, weight, mark FROM places"))
    found = anything.run(admitted, ApprovedStreams(events, policy, NOW))
    assert found.rows == ((2.35, 48.85, int(NOW), 1.0, None),)


def test_a_recipe_that_passes_the_check_is_a_request_that_names_what_it_reads():
    assert check_recipe(RECIPE, example(), RECIPE.minimum_cohort).answered
    price = sum_price(RECIPE, Asymmetric(RECIPE.local_epsilon), RECIPE.minimum_cohort, Accounting.BASIC)
    request = ReportRequest.of(RECIPE, admit(RECIPE, example()).touched, price, bytes(32))
    assert sorted(map(str, request.fields)) == ["keyboard.ngram", "profile.age"]
    assert request.recipe.hex() == RECIPE.digest
    assert request.achieved.epsilon < request.price.epsilon
    with pytest.raises(Refused, match="knows no analysis"):
        admit(replace(RECIPE, analysis="other"), example())


def test_a_policy_that_counts_in_zcdp_admits_what_it_has_the_rho_for_and_refuses_the_rest():
    """The server and `hazemap recipe check` said no to every recipe: they computed no rho, and a device did."""
    policy = replace(example(), accounting=Accounting.ZCDP)
    assert check_recipe(RECIPE, policy, RECIPE.minimum_cohort).reasons == ()
    tight = replace(policy, analyses=tuple(replace(each, epsilon=Fraction(1, 1000)) for each in policy.analyses))
    [reason] = [
        each for each in check_recipe(RECIPE, tight, RECIPE.minimum_cohort).reasons if "rho" in each or "ρ" in each
    ]
    rho = sum_price(RECIPE, Asymmetric(RECIPE.local_epsilon), RECIPE.minimum_cohort, Accounting.ZCDP).rho
    assert reason.endswith(f"with this report it would be {float(rho):.6g}")
