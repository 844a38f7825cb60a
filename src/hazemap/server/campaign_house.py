"""What every trust model of a coordinator works with: its store, its devices, and the servers of others."""

from concurrent.futures import Executor
from dataclasses import dataclass

from hazemap.privacy.signing_identities import Identity
from hazemap.server.announced_rounds import Announcing
from hazemap.server.campaign_store import CampaignStore
from hazemap.server.device_enrolment import Enrolled
from hazemap.server.peer_servers import PeerServers
from hazemap.server.polling_interval import Pace
from hazemap.server.shard import Seating


@dataclass(frozen=True)
class CampaignHouse:
    """The parts of one coordinator that its campaigns share."""

    store: CampaignStore
    enrolled: Enrolled
    seating: Seating
    pool: Executor
    pace: Pace
    announcing: Announcing
    peers: PeerServers
    identity: Identity
    """the coordinator's own, which devices pin when they enrol"""
