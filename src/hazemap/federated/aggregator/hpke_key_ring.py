"""An aggregator's HPKE keys, and the shares that they opened.

    made ── pending (1 h) ── active (12 weeks) ── expired (1 week) ── forgotten

Every key that is not deleted opens reports, so that a clock that was ahead for a while costs no report. A key is
pending so that every process of an aggregator knows it before a client does; while it is expired, reports of clients
that have cached it still open. Private keys are stored under a key that is in the aggregator's folder.

Opening a share costs a key agreement, as much as a level of verification does besides, and a walk verifies each report
level after level. So opened shares are kept in the memory of the process that holds the keys, and never on a disk.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from types import MappingProxyType
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from hazemap.errors import InputError, Refused, StoreError
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.report_checks import DecryptionKeys
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList
from hazemap.federated.service.store import Store, Write
from hazemap.vdaf.hpke import Aead, CipherSuite, HpkeKeyPair, Kdf, Kem

PENDING: Final = 3_600
ACTIVE: Final = 12 * 7 * 86_400
EXPIRED: Final = 7 * 86_400
"""Seconds of each part of a key's life."""
SUITE: Final = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
_NONCE = 12


@dataclass(frozen=True)
class HpkeKey:
    """A key, and when it was made (seconds after the epoch)."""

    config: HpkeConfig
    pair: HpkeKeyPair = field(repr=False)
    created: int

    def state(self, now: int) -> str:
        """Where in its life it is.

        >>> pair = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(32))
        >>> key = HpkeKey(HpkeConfig(1, 0x20, 1, 1, bytes(32)), pair, 0)
        >>> [key.state(at) for at in (0, PENDING, PENDING + ACTIVE, PENDING + ACTIVE + EXPIRED)]
        ['pending', 'active', 'expired', 'forgotten']
        """
        age = now - self.created
        for name, seconds in (("pending", PENDING), ("active", ACTIVE), ("expired", EXPIRED)):
            if age < seconds:
                return name
            age -= seconds
        return "forgotten"


@dataclass(frozen=True)
class DecryptionKeyRing:
    """The keys that open something, by their ids."""

    keys: Mapping[int, HpkeKey]

    @classmethod
    def of(cls, keys: Iterable[HpkeKey]) -> "DecryptionKeyRing":
        """A ring of these."""
        return cls(MappingProxyType({key.config.id: key for key in keys}))

    def knows(self, config_id: int) -> bool:
        """Whether it has this key."""
        return config_id in self.keys

    def open(self, sealed: HpkeCiphertext, info: bytes, aad: bytes) -> bytes:
        """What was sealed; `Refused` if it does not open, or the key is gone."""
        key = self.keys.get(sealed.config_id)
        suite = None if key is None else key.config.suite
        if key is None or suite is None:
            raise Refused("a report is sealed for a key that is not known here any more")
        return suite.open(key.pair, sealed.enc, info, aad, sealed.payload)


class HpkeKeyStore:
    """The keys in an aggregator's store. `secret` is 32 bytes that are not in the store."""

    def __init__(self, store: Store, secret: bytes) -> None:
        self._store, self._aead = store, AESGCM(secret)
        self._keys = self._read()

    def ring(self) -> DecryptionKeyRing:
        """What opens reports: every key that is not deleted."""
        return DecryptionKeyRing.of(self._keys)

    def announced(self, now: int) -> HpkeConfigList:
        """What clients are told: the active keys, the newest first; before there is one, the pending."""
        for state in ("active", "pending"):
            found = [key for key in self._keys if key.state(now) == state]
            if found:
                newest = sorted(found, key=lambda key: key.created, reverse=True)
                return HpkeConfigList(tuple(key.config for key in newest))
        raise InputError("this aggregator has no HPKE key yet: rotate its keys first")

    def made(self, now: int, randomness: bytes) -> list[Write]:
        """What to write so that there is a key now and, in time, the next one; then call `reload`.

        `randomness` is 64 fresh bytes. A key that is of a time to come, by a clock that was ahead, is not waited for.
        """
        newest = max((key.created for key in self._keys if key.created <= now), default=None)
        if newest is not None and now < newest + ACTIVE:
            return []
        taken = {key.config.id for key in self._keys}
        config = next((number for number in (*range(1, 256), 0) if number not in taken), None)
        if config is None:
            raise StoreError("all 256 ids of HPKE keys are taken: see that the clock is right, and wait a day")
        return [self._write(config, HpkeKeyPair.derived(SUITE.kem, randomness[:32]), now, randomness[32 : 32 + _NONCE])]

    def forgotten(self, now: int) -> list[Write]:
        """What deletes the keys whose life is over, for good; then call `reload`."""
        over = [key.config.id for key in self._keys if key.state(now) == "forgotten"]
        return [Write("DELETE FROM hpke_keys WHERE config = ?", (config,)) for config in over]

    def reload(self) -> None:
        """Read the keys anew."""
        self._keys = self._read()

    def _write(self, config: int, pair: HpkeKeyPair, now: int, nonce: bytes) -> Write:
        sealed = nonce + self._aead.encrypt(nonce, pair.private, _bound(config, pair.kem))
        sql = "INSERT INTO hpke_keys VALUES (?, ?, ?, ?, ?, ?)"
        return Write(sql, (config, int(SUITE.kem), int(SUITE.kdf), int(SUITE.aead), sealed, now))

    def _read(self) -> list[HpkeKey]:
        keys = []
        for config, kem, kdf, aead, sealed, created in self._store.read("SELECT * FROM hpke_keys"):
            data = bytes(sealed)
            try:
                private = self._aead.decrypt(data[:_NONCE], data[_NONCE:], _bound(config, kem))
            except InvalidTag:
                raise InputError(
                    "the HPKE keys of this database were written with another folder's secret: "
                    "give this aggregator the folder that it was started with"
                ) from None
            pair = HpkeKeyPair(Kem(kem), private)
            keys.append(HpkeKey(HpkeConfig(config, kem, kdf, aead, pair.public), pair, created))
        return keys


def _bound(config: int, kem: int) -> bytes:
    return b"hazemap hpke key" + bytes([config]) + int(kem).to_bytes(2, "big")


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
