"""A device before a shuffler: what it computes itself, what it refuses, what it sends, and sends again."""

import asyncio
import json
from dataclasses import replace
from fractions import Fraction
from functools import partial
from hashlib import sha256

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, Refused, Unreachable
from hazemap.federated.device.http_client import HttpReply
from hazemap.federated.device.policy.consent_policy import Policy, carried_refusal
from hazemap.federated.device.reports.dap_report_upload import ReportConnections
from hazemap.federated.device.reports.report_routes import ShufflerRoute
from hazemap.federated.protocols.secure_aggregation.key_agreement import DeviceCoins
from hazemap.federated.protocols.shuffle.sealed_parts import opened
from hazemap.federated.protocols.shuffle.shuffled_reports import summed_reports
from hazemap.federated.protocols.shuffle.submission import issued, read_submission
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.shuffled import (
    ShuffledReportPrices,
    batch_terms,
    shuffled_batch,
    shuffled_contents,
    shuffled_parts,
)
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

URL = "http://127.0.0.1:8473/"
SERVER, STRANGER = Identity.from_bytes(b"s" * 32), Identity.from_bytes(b"x" * 32)
MIX, ANALYSER = (HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, each * 32) for each in (b"m", b"a"))
PIN = sha256(MIX.public).hexdigest()
RULES = Policy(people=60, survivors=45, corrupt=Fraction(1, 10), finest=0, shufflers=(f"{URL}#{PIN}",))
TREE = Quadtree.world(depth=2)
QUERY = Query(Counts(Leaves.at_level(TREE, 1), AtMostRows(1)), Fraction(1))
COHORT = Cohort(60, 60, Fraction(1, 4), Fraction(1, 10))
TASK = Task("homes", "a map", 1, QUERY, PureDP(1), PureDP(1), COHORT)
CARRIED = CarriedTask(TASK, ByShuffler(URL, 45, MIX.public.hex()), "ab" * 32, 1_000_000)
ROWS = MemoryTable(np.arange(1), {"lon": np.array([10.0]), "lat": np.array([50.0])})


COINS = partial(DeviceCoins.from_os(), bytes(32))


def told(carried=CARRIED, issuer=SERVER, person=b"ann", analyser=ANALYSER.public, pinned=SERVER.public):
    terms = batch_terms(carried, pinned, analyser)
    return analyser + issued(issuer, b"s" * 32, terms.digest, person)


class Wire:
    """A shuffler that answers as it is told to."""

    def __init__(self, *statuses, key=MIX.public):
        self.statuses, self.key, self.sent = list(statuses), key.hex(), []

    async def send(self, method, path, ticket="", content=b"", kind=""):
        if method == "GET":
            return HttpReply(200, None, json.dumps({"version": 1, "key": self.key}).encode())
        self.sent.append((path, content))
        status = self.statuses.pop(0)
        if status == 503:
            raise Unreachable("busy")
        return HttpReply(status, None, b"")


def line(carried=CARRIED, own=None, rules=RULES, wire=None):
    async def there(_):
        return wire

    return ShufflerRoute(carried, rules, ReportConnections(there), told(carried) if own is None else own, SERVER.public)


def test_sixty_devices_reports_are_a_batch_that_opens_to_their_sum():
    noiseless = replace(CARRIED, task=replace(TASK, price=PureDP(1_000), budget=PureDP(1_000)))
    terms, every = batch_terms(noiseless, SERVER.public, ANALYSER.public), []
    for person in range(45):
        own = line(noiseless, told(noiseless, person=b"%d" % person))
        parcel, said, trouble = own.parcel(lambda: ROWS, 0, COINS)
        assert trouble is None and "your rows touch 1 of the 4 numbers" in said
        found = read_submission(terms, MIX, parcel[32:])
        size = terms.message_bytes
        every += [found.messages[start : start + size] for start in range(0, len(found.messages), size)]
    sums = opened(shuffled_parts(noiseless), ANALYSER, every)
    assert sums.people == 45 and sorted(sums.sums.tolist()) == [0, 0, 0, 45]


def test_what_is_sent_again_are_the_same_bytes_to_the_same_batch_until_they_are_there():
    async def work():
        wire = Wire(503, 204, 204)
        own = line(wire=wire)
        await own.ready()
        parcel, _, _ = own.parcel(lambda: ROWS, 0, COINS)
        with pytest.raises(Unreachable):
            await own.sent(parcel)
        await line(wire=wire).sent(parcel)
        await line(wire=wire, own=b"").sent(parcel)  # whatever the coordinator says by now
        assert len(set(wire.sent)) == 1
        assert (
            wire.sent[0][0]
            == f"/v1/batches/{batch_terms(CARRIED, SERVER.public, ANALYSER.public).digest.hex()}/messages"
        )

    asyncio.run(work())


@pytest.mark.parametrize(("status", "words"), [(410, "takes no more"), (403, "HTTP 403"), (404, "HTTP 404")])
def test_a_report_that_the_shuffler_does_not_take_is_not_sent_again(status, words):
    own = line(wire=Wire(status))
    parcel, _, _ = own.parcel(lambda: ROWS, 0, COINS)
    with pytest.raises(Refused, match=words):
        asyncio.run(own.sent(parcel))


@pytest.mark.parametrize("rows", [ROWS, MemoryTable(np.arange(0), {"lon": np.zeros(0), "lat": np.zeros(0)}), None])
def test_every_report_has_one_length_whatever_the_rows_are(rows):
    def broken():
        raise ValueError("a damaged row")

    parcel, _, trouble = line().parcel(broken if rows is None else lambda: rows, 0, COINS)
    assert (trouble is None) == (rows is not None)
    assert len(parcel) == 32 + 48 + 96 + batch_terms(CARRIED, SERVER.public, ANALYSER.public).bytes_a_person


def test_an_honest_announcement_is_answered():
    assert carried_refusal(RULES, CARRIED) is None and line().refusal() is None


HOSTILE = {
    "nothing of its own": (CARRIED, b"", "comes with the analyser's key"),
    "a credential of somebody else": (CARRIED, told(issuer=STRANGER), "not of the server that this device enrolled"),
    "a credential of another issuer's batch": (CARRIED, told(pinned=STRANGER.public), "not of the server"),
    "another analyser": (CARRIED, STRANGER.public + told()[32:], "not of the server"),
    "another round": (replace(CARRIED, batch="cd" * 32), told(), "not of the server"),
    "a smaller minimum": (replace(CARRIED, carrier=replace(CARRIED.carrier, minimum=46)), told(), "not of the server"),
    "another price": (
        replace(CARRIED, task=replace(TASK, price=PureDP("1/2"), budget=PureDP("1/2"))),
        told(),
        "not of the server",
    ),
    "another key of the shuffler": (
        replace(CARRIED, carrier=replace(CARRIED.carrier, key=STRANGER.public.hex())),
        told(),
        "another key here than this device's policy pins",
    ),
    "too few to hide among": (
        replace(CARRIED, carrier=replace(CARRIED.carrier, minimum=20)),
        b"x" * 128,
        "ask more people",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_does_not_follow_from_the_announcement_is_refused_in_words(name):
    carried, own, words = HOSTILE[name]
    assert words in line(carried, own).refusal()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"shufflers": ()}, "is none of them: add it to shufflers"),
        ({"shufflers": ("http://127.0.0.1:1/",)}, "is none of them"),
        ({"people": 61}, "only 60 people are asked together"),
        ({"survivors": 46}, "sums of 45 reports would be opened"),
        ({"campaign": Fraction(1, 2)}, "may cost 0.5 in all"),
        ({"corrupt": Fraction(1, 5)}, "this device assumes 20 %"),
        ({"longest": 3}, "at most 3 are allowed"),
    ],
)
def test_a_person_s_rules_bind_a_shuffled_campaign(rules, words):
    assert words in carried_refusal(replace(RULES, **rules), CARRIED)


def test_a_report_is_no_longer_than_the_person_allows():
    assert "on this device it may have 1,000" in line(rules=replace(RULES, upload=1_000)).refusal()


def test_a_shuffler_that_no_policy_pins_must_have_the_key_that_was_announced():
    free = replace(RULES, shufflers=(URL,))
    asyncio.run(line(rules=free, wire=Wire()).ready())
    with pytest.raises(Refused, match="another key than the campaign says"):
        asyncio.run(line(rules=free, wire=Wire(key=STRANGER.public)).ready())
    with pytest.raises(Unreachable, match="is no shuffler"):
        asyncio.run(line(rules=free, wire=NoShuffler()).ready())


class NoShuffler(Wire):
    async def send(self, *_, **__):
        return HttpReply(200, None, b"<html>")


def test_terms_follow_from_the_announcement_and_name_another_batch_for_anything_else():
    terms = batch_terms(CARRIED, SERVER.public, ANALYSER.public)
    assert (terms.minimum, terms.people, terms.messages) == (45, 60, shuffled_parts(CARRIED).messages)
    others = [
        batch_terms(CARRIED, STRANGER.public, ANALYSER.public),
        batch_terms(CARRIED, SERVER.public, STRANGER.public),
        batch_terms(replace(CARRIED, begun=2), SERVER.public, ANALYSER.public),
        batch_terms(replace(CARRIED, task=replace(TASK, purpose="another")), SERVER.public, ANALYSER.public),
    ]
    assert len({terms.digest, *(each.digest for each in others)}) == 5
    with pytest.raises(InputError, match="by others than a shuffler"):
        shuffled_batch(replace(CARRIED, carrier=ByTwoServers("https://a.example/", "https://b.example/", 45)))
    with pytest.raises(Refused, match="for other servers"):
        line(replace(CARRIED, carrier=ByTwoServers("https://a.example/", "https://b.example/", 45)), b"")


REPORTED = replace(CARRIED.carrier, local=Fraction(8))
BUDGET = ApproxDP(2, "1e-6")


def reporting(law=None, **changes):
    """A round whose reports the analyser sees."""
    batch = ReportBatch(60, 45, Fraction(1, 10))
    law = law or ShuffledReportPrices(BUDGET, batch, Fraction(8)).law(Fraction(1))
    task = replace(TASK, price=ZCDP(BUDGET.rho), budget=BUDGET, randomiser=law, **changes)
    return replace(CARRIED, task=task, carrier=REPORTED)


def test_a_report_is_one_message_whose_law_follows_from_price_and_people():
    carried = reporting()
    own = line(carried)
    assert own.refusal() is None and carried_refusal(replace(RULES, campaign=Fraction(2)), carried) is None
    parcel, said, _ = own.parcel(lambda: ROWS, 0, COINS)
    terms = batch_terms(carried, SERVER.public, ANALYSER.public)
    assert terms.messages == 1 and len(parcel) == 32 + 48 + 96 + terms.message_bytes
    found = read_submission(terms, MIX, parcel[32:])
    sums = summed_reports(replace(shuffled_contents(carried), minimum=1), ANALYSER, [found.messages])
    assert sums.people == 0, "bound to its own batch"
    assert "randomised by" in said and "in 1 sealed messages" in said


def test_reports_that_hide_less_than_price_and_people_have_it_are_refused():
    mean = reporting(Asymmetric(reporting().task.randomiser.epsilon + Fraction(1, 16)))
    assert "but its price and its people make it" in line(mean).refusal()
    assert "may cost 0.5" in carried_refusal(replace(RULES, campaign=Fraction(2), local=Fraction(1, 2)), reporting())


def test_a_round_says_one_way_in_which_it_hides_people():
    for carrier in (replace(REPORTED, local=None), ByTwoServers("https://a.example/", "https://b.example/", 45)):
        with pytest.raises(InputError, match="its carrier says how they are hidden"):
            replace(reporting(), carrier=carrier)
    with pytest.raises(InputError, match="its carrier says how they are hidden"):
        replace(CARRIED, carrier=REPORTED)
    pure = replace(reporting().task, price=PureDP(2), budget=PureDP(2))
    with pytest.raises(InputError, match="give a delta"):
        shuffled_contents(replace(CARRIED, task=pure, carrier=REPORTED))
