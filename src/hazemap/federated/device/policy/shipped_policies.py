"""The policies that a store has accepted: the last one rules all of its devices, the others keep it from going back.

The first one pins its key: the owner of the device accepts it by name. A later one needs a signature by the same key,
a higher version, and nothing that would let a device forget what it has spent (`federated.recipes.policy_document`).
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from hazemap.errors import Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.store import event_store
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.recipes.policy_document import SignedPolicy, update_refusal

STORE = 0
"""A policy is the store's, of no single device: it is sealed under this number."""


@dataclass(frozen=True)
class AcceptedPolicy:
    """A policy with its signature, and when it was accepted."""

    signed: SignedPolicy
    time: datetime

    @property
    def policy(self) -> ShippedPolicy:
        """What it says."""
        return self.signed.policy


@dataclass(frozen=True)
class ShippedPolicies:
    """All policies that a store has accepted."""

    store: EncryptedStore

    def accepted(self) -> list[AcceptedPolicy]:
        """Every one, the oldest first."""
        found = self.store.read("SELECT version, sealed FROM policies ORDER BY version")
        return [_read(self.store.unseal("policies", STORE, version, sealed)) for version, sealed in found]

    def current(self) -> AcceptedPolicy | None:
        """The one that rules; None where none was accepted, so that no recipe is answered."""
        found = self.accepted()
        return found[-1] if found else None

    def accept(self, signed: SignedPolicy, key: bytes | None, now: datetime) -> AcceptedPolicy:
        """Take a policy, in one transaction with what follows from it for the events that are kept.

        `key` is the one that its owner pins with the first policy; later the pinned one rules. `Refused` says why not.
        Retention that became shorter holds for what is stored, and events of a stream that is no longer listed are
        deleted.
        """
        with self.store.writing() as database:
            before = self.accepted()
            pinned = before[0].signed.key if before else key
            if pinned is None:
                raise Refused(
                    "the first policy of a device needs the key that it is to be signed by: give it with --key"
                )
            if key is not None and key != pinned:
                raise Refused(f"this device has pinned the key {pinned.hex()[:16]}…, and takes no other")
            new = signed.verify(pinned)
            if before and signed == before[-1].signed:
                return before[-1]
            if reason := update_refusal(new, [each.policy for each in before]):
                raise Refused(reason)
            accepted = AcceptedPolicy(signed, now)
            sealed = self.store.seal("policies", STORE, new.version, _plain(accepted))
            database.execute("INSERT INTO policies VALUES (?, ?)", (new.version, sealed))
            for old in before[-1].policy.streams if before else ():
                for device in enrolment.devices(self.store):
                    event_store.shorten(self.store, device, old, new.stream(old.name))
        self.store.emptied()
        return accepted


def _plain(accepted: AcceptedPolicy) -> bytes:
    return json.dumps({"signed": accepted.signed.to_json(), "time": accepted.time.isoformat()}).encode()


def _read(plain: bytes) -> AcceptedPolicy:
    found = json.loads(plain)
    return AcceptedPolicy(
        SignedPolicy.from_json(found["signed"]), datetime.fromisoformat(found["time"]).astimezone(UTC)
    )
