"""Whom a campaign trusts: by name, in its text, and refused where a coordinator cannot do it."""

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.server.fleet import AS_OPERATOR, Town
from tests.federated.server.test_campaign_spec import campaign

from hazemap.algorithms import Flat, PrivateBoundingBox
from hazemap.cli.federated.trust_options import LEVELS
from hazemap.codec import dumps
from hazemap.errors import FileError, InputError
from hazemap.federated.server.campaign_house import NO_PEERS, PeerServers
from hazemap.federated.server.campaign_spec import TrustOptions, campaign_from
from hazemap.federated.server.campaign_worker import WIRED
from hazemap.federated.server.networked_one_report import check_walk
from hazemap.federated.server.privacy_statement import prices, statement
from hazemap.federated.trust.report_carriers import (
    CARRIERS,
    TRUSTS,
    USUAL_LEVELS,
    ByOneReport,
    ByShuffler,
    ByTwoServers,
)
from hazemap.federated.trust.two_servers import TwoServerPrices
from hazemap.privacy.budget import PureDP
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import QuadtreeCells
from hazemap.tables.contribution_bounding import AtMostRows, Outside

ONE, TWO = "https://one.example/", "https://two.example/"
PEERS = '[[server]]\nurl = "{0}"\ntoken = "0123456789abcdef"\n'
EACH = (ByTwoServers(ONE, TWO, 9), ByOneReport(ONE, TWO, 9, 4), ByShuffler(ONE, 9, 64 * "a"))


@pytest.mark.parametrize("carrier", EACH, ids=lambda each: each.trust)
def test_a_campaign_says_in_its_text_who_carries_its_reports(carrier):
    ordered = campaign(carrier=carrier)
    assert campaign_from(dumps(ordered)) == ordered
    assert ordered.trust == carrier.trust in TRUSTS
    assert "carrier" not in dumps(campaign())  # texts of older campaigns stay what they were


def test_a_local_campaign_relies_on_nobody():
    assert campaign().trust == "secure-sum"
    assert campaign(local_epsilon=Fraction(2)).trust == "local"
    assert TrustOptions("local").local_epsilon(None, PureDP(3)) == 6


def test_plans_are_for_as_many_levels_as_campaigns_have():
    assert LEVELS == USUAL_LEVELS


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"carrier": ByTwoServers(ONE, TWO, 13)}, "only 12 people are asked"),
        ({"carrier": EACH[0], "local_epsilon": Fraction(1)}, "leave out one"),
    ],
)
def test_a_campaign_that_cannot_be_carried_is_refused(wrong, why):
    with pytest.raises(InputError, match=why):
        campaign(**wrong)


TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 6)


@pytest.mark.parametrize(
    ("algorithm", "levels", "why"),
    [
        (Flat(TREE, 6), 14, "have no 14 levels"),
        (PrivateBoundingBox(Flat(TREE, 6)), 4, "say the box"),
        (method_from_name("sketch", QuadtreeCells(6), Box(13.2, 52.4, 13.6, 52.6), AtMostRows(1)), 4, "each round"),
        (Flat(TREE, 6, AtMostRows(2)), 4, "one row"),
    ],
)
def test_what_one_report_does_not_answer_is_refused_before_anything_is_paid(algorithm, levels, why):
    with pytest.raises(InputError, match=why):
        check_walk(campaign(algorithm=algorithm), ByOneReport(ONE, TWO, 9, levels))
    check_walk(campaign(algorithm=Flat(TREE, 6)), ByOneReport(ONE, TWO, 9, 4))
    for outside in (Outside.PEOPLE, Outside.COUNT):
        with pytest.raises(InputError, match="who is nowhere"):
            check_walk(campaign(algorithm=Flat(TREE, 6, AtMostRows(1, outside))), ByOneReport(ONE, TWO, 9, 4))


@pytest.mark.parametrize(
    "url", ["https://one.example", "ftp://one.example/", "https://one.example/?a=b", "https://[/\n"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(InputError, match="slash"):
        ByTwoServers(url, TWO, 9)


def test_one_server_is_not_two():
    with pytest.raises(InputError, match="both shares"):
        ByTwoServers(ONE, ONE, 9)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (TrustOptions("nobody"), "--trust is one of"),
        (TrustOptions("two-servers", ONE), "given with --helper"),
        (TrustOptions("secure-sum", ONE), "given without --leader"),
        (TrustOptions("two-servers", ONE, TWO, levels=3), "--levels is for"),
        (TrustOptions("shuffled"), "given with --shuffler"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, why):
    with pytest.raises(InputError, match=why):
        given.carrier(9)


def test_peers_are_known_by_their_address_and_their_tokens_are_not_shown(tmp_path):
    found = PeerServers.from_toml(PEERS.format(ONE))
    assert found.token(ONE) not in repr(found)
    with pytest.raises(InputError, match="does not know"):
        found.token(TWO)
    (tmp_path / "peers.toml").write_text(PEERS.format("http://elsewhere.example/"))
    with pytest.raises(FileError, match="not HTTPS"):
        PeerServers.read(tmp_path / "peers.toml")
    for text in ("", PEERS.format(ONE) * 2, '[[server]]\nurl = "x"', "server = 3"):
        with pytest.raises(InputError):
            PeerServers.from_toml(text)


def test_a_campaign_by_a_server_that_is_not_known_is_refused_and_costs_nothing(tmp_path):
    asyncio.run(_refused(tmp_path))


async def _refused(tmp_path):
    async with Town(tmp_path / "town", []) as town:
        assert town.coordinator.house.peers is NO_PEERS
        for carrier in EACH:
            ordered = campaign(carrier=carrier)
            answer = await town.http.post("/v1/campaigns", headers=AS_OPERATOR, content=dumps(ordered))
            wanted = "does not know" if carrier.trust in WIRED else "cannot carry"
            assert answer.status_code == 422 and wanted in answer.text
        assert not town.ledger.datasets()


def test_a_statement_names_both_servers_and_what_it_assumes_of_them():
    ordered = campaign(carrier=EACH[0], budget=PureDP(1))
    said = statement(ordered)
    assert any(ONE in each and TWO in each and "must not work together" in each for each in said.assumptions)
    assert any("proved of every report" in each for each in said.assumptions)
    assert said.trust == "two servers" and said.circumstances.cohort.trust == "two-servers"
    assert type(said).from_json(said.to_json()) == said
    assert prices(said) == TwoServerPrices(PureDP(1))
    plain = statement(replace(ordered, carrier=None))
    assert "trust" not in plain.circumstances.cohort.to_json()


def test_every_carrier_has_a_name_of_its_own():
    assert len({each.trust for each in CARRIERS}) == len(CARRIERS)
