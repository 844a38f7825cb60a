"""What rounds of campaigns and studies share: the parts of a coordinator, other parties' servers, devices, tasks."""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TypeVar

from hazemap.errors import FileError, InputError, NotOpened, Unanswerable
from hazemap.federated.aggregator.leader_driver import check_endpoint
from hazemap.federated.server.announced_rounds import AnnouncedRounds, Pace
from hazemap.federated.server.campaign_spec import Campaign, DevicePrices, prices_of
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import Device, EnrolledDevices
from hazemap.federated.server.shard import RunningShards
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.trust.device_tasks import Task, round_price
from hazemap.federated.trust.randomised_reports import ReportLaw
from hazemap.federated.trust.report_carriers import ReportCarrier, addresses
from hazemap.files.text_files import read_text, toml_table
from hazemap.privacy.budget import Budget
from hazemap.privacy.random_stream import Stream, in_any_order
from hazemap.privacy.signing_identities import Identity
from hazemap.queries.noisy_queries import Query, Question

T = TypeVar("T")

LONGEST = 1 << 18
MOST = 256


@dataclass(frozen=True)
class PeerServers:
    r"""Aggregators and shufflers: their tokens by address; `certificate` is an authority of their own, if any.

    >>> PeerServers.from_toml('[[server]]\nurl = "https://one.example/"\ntoken = "0123456789abcdef"').known
    ('https://one.example/',)
    """

    tokens: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    certificate: Path | None = None

    @classmethod
    def read(cls, path: Path, certificate: Path | None = None) -> "PeerServers":
        """Those in a file; `FileError` for one that holds none."""
        text = read_text(path, "the list of peers", advice="see that the file is there, and yours")
        try:
            return cls.from_toml(text, certificate)
        except InputError as error:
            raise FileError(f"{path} names no peers: {error}") from error

    @classmethod
    def from_toml(cls, text: str, certificate: Path | None = None) -> "PeerServers":
        """Those in a text: `[[server]]` with `url` and `token` for each."""
        found = toml_table(text, "a list of peers", LONGEST)
        servers = found.get("server")
        if set(found) != {"server"} or not isinstance(servers, list) or not 1 <= len(servers) <= MOST:
            raise InputError(f"a list of peers is 1 to {MOST} times [[server]], each with a url and a token")
        tokens = dict[str, str]()
        for each in servers:
            if not isinstance(each, dict) or set(each) != {"url", "token"}:
                raise InputError("each [[server]] has a url and a token, and nothing else")
            url, token = each["url"], each["token"]
            if not isinstance(url, str) or not isinstance(token, str) or not token.isprintable() or len(token) < 16:
                raise InputError("the url of a server is text, and its token 16 characters or more, in one line")
            if url in tokens:
                raise InputError(f"the server {url!r:.80} is named twice")
            check_endpoint(url)
            tokens[url] = token
        return cls(MappingProxyType(tokens), certificate)

    @property
    def known(self) -> tuple[str, ...]:
        """Their addresses."""
        return tuple(sorted(self.tokens))

    def token(self, url: str) -> str:
        """The token of a server; `InputError` for one that the operator has not named."""
        if url not in self.tokens:
            raise InputError(
                f"this coordinator does not know {url!r:.80}: its operator names such servers in the file of "
                f"`hazemap server run --peers`; known {', '.join(self.known) or 'are none'}"
            )
        return self.tokens[url]

    def check(self, carrier: ReportCarrier) -> None:
        """`InputError` unless every party of a carrier is known."""
        for url in addresses(carrier):
            self.token(url)

    def trusting(self) -> ssl.SSLContext:
        """The authorities that lines to these servers trust."""
        try:
            return ssl.create_default_context(cafile=self.certificate)
        except OSError as error:
            raise FileError(f"{self.certificate} holds no certificates in PEM") from error


NO_PEERS = PeerServers()


@dataclass(frozen=True)
class CampaignHouse:
    """The parts of one coordinator that its campaigns share."""

    store: CampaignStore
    enrolled: EnrolledDevices
    seating: RunningShards
    pool: Executor
    pace: Pace
    announcing: AnnouncedRounds
    peers: PeerServers
    identity: Identity
    """the coordinator's own, which devices pin when they enrol"""


LOOK = 0.5
"""Seconds between two counts of the devices that are there."""


@dataclass
class OrderedRounds:
    """Rounds of one campaign or study. `missing` devices are waited for before a round can begin."""

    campaign: Campaign | StudySpec
    house: CampaignHouse
    missing: int = 0

    @property
    def store(self) -> CampaignStore:
        """Where everything is kept."""
        return self.house.store

    async def _enough(self, round_: int, serves: Callable[[Device], bool] = lambda _: True) -> list[Device]:
        """The devices that are there and serve, once they are enough; `NotOpened` after the order's `wait`."""
        wanted, enrolled, until = self.campaign.cohort.people, self.house.enrolled, monotonic() + self.campaign.wait
        while True:
            there = [each for each in enrolled.recent(self.house.pace.recent(len(enrolled))) if serves(each)]
            self.missing = max(0, wanted - len(there))
            if not self.missing:
                return there
            if monotonic() >= until:
                raise NotOpened(
                    f"round {round_} asks {wanted:,} people, but within {self.campaign.wait:g} s only "
                    f"{len(there):,} devices were there: ask fewer people, or wait for longer"
                )
            await asyncio.sleep(LOOK)


@dataclass
class CampaignRounds(OrderedRounds):
    """The rounds of a campaign: each answers the next question of its method. `rounds` have been answered."""

    campaign: Campaign
    rounds: int = 0

    def prices(self, budget: Budget) -> DevicePrices:
        """What a share of this budget buys among the campaign's people."""
        return prices_of(self.campaign, budget)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return issubclass(question, Query)

    def task(self, question: Question, price: Budget, law: ReportLaw | None = None) -> Task:
        """The next round as devices weigh it, with the law of their reports where they randomise them."""
        if not isinstance(question, Query) or question.cohort is not None:
            raise Unanswerable("devices answer queries for sums, and ask everybody in the campaign")
        campaign, number = self.campaign, self.rounds + 1
        own = round_price(price)
        return Task(campaign.name, campaign.purpose, number, question, own, campaign.budget, campaign.cohort, law)


def sample(everyone: Sequence[T], people: int, stream: Stream) -> list[T]:
    """`people` of them in random order; each set and each order is as likely as any other.

    >>> sorted(sample(["a", "b", "c"], 3, Stream.from_os()))
    ['a', 'b', 'c']
    """
    if not 0 <= people <= len(everyone):
        raise InputError(f"a sample of {people} cannot be drawn from {len(everyone)} without drawing somebody twice")
    return [everyone[at] for at in in_any_order(stream, len(everyone))[:people]]
