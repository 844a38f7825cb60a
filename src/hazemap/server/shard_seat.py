"""A device's place in a shard, and what it is asked there."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from hazemap.errors import ConversationError

if TYPE_CHECKING:
    from hazemap.server.shard import Shard


class Late(ConversationError):
    """A reply came when it was not, or no longer, asked for. It does no harm, and nobody is blamed."""


class SeatTask(NamedTuple):
    """What a device is to answer: a message of the protocol; the task only where it is invited."""

    session: bytes
    stage: int
    task: str | None
    message: bytes
    until: datetime


@dataclass(frozen=True, eq=False)
class ShardSeat:
    """A device's position in one shard."""

    shard: "Shard"
    position: int
