"""The public keys that an aggregator offers (draft-ietf-ppm-dap-18, section 4.4.1; the same in draft 09)."""

from dataclasses import dataclass
from typing import Annotated

from hazemap.protocols.dap.media_types import Message
from hazemap.protocols.tls_encoding import Structure, number, opaque, vector


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


@dataclass(frozen=True)
class HpkeConfigList(Message, name="hpke-config-list", largest=2 + 0xFFFF):
    """All that an aggregator offers, the preferred first.

    >>> HpkeConfigList((HpkeConfig(12, 0x10, 3, 2, b""),)).to_bytes().hex()
    '00090c0010000300020000'
    """

    configs: Annotated[tuple[HpkeConfig, ...], vector(HpkeConfig, 2)]
