"""What every trust model of a coordinator works with: its store, its devices, and the servers of others."""

from concurrent.futures import Executor
from dataclasses import dataclass

from hazemap.federated.server.announced_rounds import AnnouncedRounds, Pace
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import EnrolledDevices
from hazemap.federated.server.peer_servers import PeerServers
from hazemap.federated.server.shard import RunningShards
from hazemap.privacy.signing_identities import Identity


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
