"""A study of real devices over HTTP, in this process."""

import asyncio
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from time import time

import httpx
import pytest
from tests.federated.device.serving import AS_OPERATOR, OPERATOR, TOKEN, serving
from tests.federated.server.asking_studies import KEY, SIGNED, judge, recipe, study

import hazemap
from hazemap.codec import dumps
from hazemap.errors import BudgetError, InputError, NotOpened
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.charges import recipe_charges
from hazemap.federated.device.device_process import DeviceProcess
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import store_events
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Feature, PrefixTree
from hazemap.federated.study.searches import FrequentSequences
from hazemap.federated.trust.cohort_assumptions import Cohort

PEOPLE = 60
RULES = Policy(
    campaign=Fraction(20), period=Fraction(40), people=10, survivors=5, modes=("malicious", "semi-honest"),
    corrupt=Fraction(0),
)  # fmt: skip


@contextmanager
def devices(store, server, rules=RULES):
    """The devices of a store at work, in a thread."""
    process = DeviceProcess(store, rules, lean=True)
    asyncio.run(process.enrol(server, TOKEN))
    loop, ready = asyncio.new_event_loop(), threading.Event()

    def live():
        asyncio.set_event_loop(loop)
        running.append(loop.create_task(process.run()))
        ready.set()
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(running[0])

    running = []
    thread = threading.Thread(target=live)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(running[0].cancel)
        thread.join()
        loop.close()


def typists(store, texts):
    ShippedPolicies(store).accept(SIGNED, KEY.public, datetime.now(UTC))
    stream = SIGNED.policy.stream("keyboard")
    own = enrolment.add(store, len(texts))
    store_events(store, stream, {one: [(text, "never read")] for one, text in zip(own, texts, strict=True)}, time())


@pytest.mark.slow
def test_sixty_devices_answer_a_search_in_rounds_and_a_recipe_that_some_refuse(tmp_path):
    texts = ["hello world"] * 40 + ["hello you"] * 15 + ["world"] * 5
    cohort = Cohort(PEOPLE, PEOPLE, Fraction(1, 10), Fraction(0), mode=Mode.SEMI_HONEST)
    asked = recipe(tokens=("a",), local_epsilon=Fraction(8), epsilon=Fraction(6), minimum_cohort=50)
    pairs = replace(asked, id="pairs", features=(Feature("word", PrefixTree(("hello",), ("world", "you"))),))
    with (
        serving(tmp_path / "server", judge=judge) as server,
        EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store,
        httpx.Client(base_url=server, headers=AS_OPERATOR, timeout=300) as http,
    ):
        typists(store, texts)
        with devices(store, server):
            assert http.post("/v1/policies", content=SIGNED.to_json().encode()).status_code == 201
            order = study(cohort=cohort, reports=3, wait=600.0)
            assert http.post("/v1/studies", content=dumps(order).encode()).status_code == 201
            own = hazemap.Study(server, "spring", token=OPERATOR)
            found = own.run(FrequentSequences.evenly(asked, ("hello", "world", "you"), 1))
            again = own.run(FrequentSequences.evenly(asked, ("hello", "world", "you"), 1))
            frame = own.ask(pairs)
            left = own.left
            with pytest.raises(InputError, match="ε₀ = 8 at most"):
                own.ask(recipe("far", local_epsilon=Fraction(9), epsilon=Fraction(8)))
            with pytest.raises(BudgetError, match="may cost"):
                own.ask(recipe("dear", delta=Fraction(1, 10**4)))
            with pytest.raises(InputError, match="knows no study"):
                hazemap.Study(server, "autumn", token=OPERATOR).ask(recipe())
        charges = Counter(len(recipe_charges(store, one)) for one in enrolment.devices(store))
        with devices(store, server, Policy(people=10_000)), pytest.raises(NotOpened, match="Devices refused: "):
            own.ask(replace(asked, id="late"))
        log = ActivityLog(store, enrolment.devices(store)[0]).entries()
    assert again == found
    assert "hello" in found.of_round(1).items, found
    [row] = frame[frame["word"] == "hello world"].to_dict(orient="records")
    assert abs(row["count"] - 40) < 6 * row["standard_error"] + 6, "at most 6 of 60 people may be missing"
    assert frame.attrs["people"] >= 54
    assert frame.attrs["promise"][2:] == cohort.assumed("reports")
    assert left.reports == 1
    assert charges[2] > PEOPLE / 2, "devices paid once a round"
    assert any(getattr(line, "recipe", "") for line in log)


def test_a_server_that_is_not_there_is_said():
    with pytest.raises(hazemap.HazemapError, match="did not answer"):
        hazemap.Study("http://127.0.0.1:1", "spring", token="secret").ask(recipe())
