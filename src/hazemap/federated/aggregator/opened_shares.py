"""Shares of reports that were opened, in memory: a walk verifies each report level after level, and opens it once.

To open a share costs a key agreement, as much as a level of verification does besides. What is kept is what was sealed
for this server, in the memory of the process that holds its keys, and never on a disk.
"""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Final

from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.input_share_opening import DecryptionKeys

MOST_BYTES: Final = 128 << 20
"""Of all shares that a process keeps, with what Python adds: those of some 100,000 reports of 46 bits."""
_AROUND: Final = 256


class OpenedShares:
    """The shares that were opened last.

    >>> OpenedShares().size
    0
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._lock = most, Lock()
        self._shares: OrderedDict[bytes, bytes] = OrderedDict()
        self.size = 0

    def get(self, name: bytes) -> bytes | None:
        """A share by its name; None for one that is not kept."""
        with self._lock:
            if name in self._shares:
                self._shares.move_to_end(name)
            return self._shares.get(name)

    def put(self, name: bytes, share: bytes) -> None:
        """Keep a share, and let go of the oldest where there are too many."""
        with self._lock:
            if name not in self._shares:
                self._shares[name] = share
                self.size += len(share) + _AROUND
            while self.size > self._most:
                self.size -= len(self._shares.popitem(last=False)[1]) + _AROUND


@dataclass(frozen=True)
class RememberingKeys:
    """Keys that open the same share, bound to the same data, once."""

    keys: DecryptionKeys
    shares: OpenedShares

    def knows(self, config_id: int) -> bool:
        """Whether there is such a key."""
        return self.keys.knows(config_id)

    def open(self, sealed: HpkeCiphertext, info: bytes, aad: bytes) -> bytes:
        """What was sealed; `Refused` if it does not open: that is not kept."""
        name = sha256(b"".join(len(part).to_bytes(4, "big") + part for part in (sealed.to_bytes(), info, aad))).digest()
        found = self.shares.get(name)
        if found is None:
            found = self.keys.open(sealed, info, aad)
            self.shares.put(name, found)
        return found
