"""The parts of a coordinator that its campaigns share, and other parties' servers with the tokens they accept."""

import ssl
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from hazemap.errors import FileError, InputError
from hazemap.federated.aggregator.leader_driver import check_endpoint
from hazemap.federated.server.announced_rounds import AnnouncedRounds, Pace
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import EnrolledDevices
from hazemap.federated.server.shard import RunningShards
from hazemap.federated.trust.report_carriers import ReportCarrier, addresses
from hazemap.files.text_files import read_text, toml_table
from hazemap.privacy.signing_identities import Identity

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
