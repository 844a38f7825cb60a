"""The public keys that an aggregator offers (draft-ietf-ppm-dap-18, section 4.4.1; the same in draft 09)."""

from dataclasses import dataclass
from typing import Annotated

from hazemap.errors import Refused
from hazemap.federated.protocols.dap.basic_types import HpkeCiphertext
from hazemap.federated.protocols.dap.media_types import Message
from hazemap.vdaf.hpke import CipherSuite
from hazemap.vdaf.tls_encoding import Structure, number, opaque, vector


@dataclass(frozen=True)
class HpkeConfig(Structure):
    """A public key with the algorithms it is for, by their numbers in RFC 9180, section 7; they may be unknown here.

    >>> HpkeConfig(12, 0x10, 3, 2, b"").to_bytes().hex()
    '0c0010000300020000'
    """

    id: Annotated[int, number(1)]
    kem: Annotated[int, number(2)]
    kdf: Annotated[int, number(2)]
    aead: Annotated[int, number(2)]
    public_key: Annotated[bytes, opaque(2)]
    """its length is the KEM's: who uses the key checks that, and so an empty one is never used"""

    @property
    def suite(self) -> CipherSuite | None:
        """The algorithms, or None if one is not known here, or the key cannot be one of theirs."""
        suite = CipherSuite.of(self.kem, self.kdf, self.aead)
        return suite if suite is not None and len(self.public_key) == suite.kem.public_key_bytes else None

    def seal(self, info: bytes, aad: bytes, plain: bytes, randomness: bytes) -> HpkeCiphertext:
        """Something for the holder of the private key; `Refused` where the key or an algorithm is not usable."""
        if (suite := self.suite) is None:
            raise Refused(f"the HPKE configuration {self.id} has an algorithm that is not known here, or no such key")
        return HpkeCiphertext(self.id, *suite.seal(self.public_key, info, aad, plain, randomness))


@dataclass(frozen=True)
class HpkeConfigList(Message, name="hpke-config-list", largest=2 + 0xFFFF):
    """All that an aggregator offers, the preferred first.

    >>> HpkeConfigList((HpkeConfig(12, 0x10, 3, 2, b""),)).to_bytes().hex()
    '00090c0010000300020000'
    """

    configs: Annotated[tuple[HpkeConfig, ...], vector(HpkeConfig, 2)]

    def preferred(self) -> HpkeConfig:
        """The first that can be used here; `Refused` where there is none, or where two have one id.

        >>> usable = HpkeConfig(7, 0x20, 1, 1, bytes(32))
        >>> HpkeConfigList((HpkeConfig(6, 0x9999, 1, 1, b""), usable)).preferred() == usable
        True
        """
        if len({config.id for config in self.configs}) != len(self.configs):
            raise Refused("an aggregator offers two HPKE configurations of one id: its shares could not be told apart")
        for config in self.configs:
            if config.suite is not None:
                return config
        raise Refused("an aggregator offers no HPKE configuration whose algorithms are known here")
