"""Hybrid public key encryption (RFC 9180), base mode, one message a key: for whoever holds a private key, from anybody.

`seal` and `open` are the RFC's SealBase and OpenBase: `info` says what a message is for, `aad` what it is bound to.
Nothing is drawn here: the ephemeral key is DeriveKeyPair of the sender's randomness, which must be fresh and uniform.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from hmac import digest
from struct import pack
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec, x448, x25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hazemap.vdaf.errors import InputError, Refused

_VERSION: Final = b"HPKE-v1"
_BASE = b"\0"
_NONCE = 12
TAG: Final = 16
"""Bytes by which a sealed message is longer than what it says."""

PrivateKey = x25519.X25519PrivateKey | x448.X448PrivateKey | ec.EllipticCurvePrivateKey


class Kem(IntEnum):
    """How a secret is agreed on: Diffie–Hellman, and the hash it goes through (RFC 9180, section 7.1).

    >>> Kem.X25519_HKDF_SHA256.public_key_bytes, Kem.P256_HKDF_SHA256.public_key_bytes
    (32, 65)
    """

    P256_HKDF_SHA256 = 0x0010
    P384_HKDF_SHA384 = 0x0011
    P521_HKDF_SHA512 = 0x0012
    X25519_HKDF_SHA256 = 0x0020
    X448_HKDF_SHA512 = 0x0021

    @property
    def public_key_bytes(self) -> int:
        """Npk, which is Nenc too."""
        return _KEMS[self].public

    @property
    def private_key_bytes(self) -> int:
        """Nsk, which is also how much randomness a key pair is derived from."""
        return _KEMS[self].private


class Kdf(IntEnum):
    """HKDF with a hash (section 7.2).

    >>> Kdf.HKDF_SHA256.value
    1
    """

    HKDF_SHA256 = 1
    HKDF_SHA384 = 2
    HKDF_SHA512 = 3


class Aead(IntEnum):
    """What a message is sealed with (section 7.3).

    >>> Aead.CHACHA20_POLY1305.value
    3
    """

    AES_128_GCM = 1
    AES_256_GCM = 2
    CHACHA20_POLY1305 = 3


@dataclass(frozen=True)
class _KemForm:
    kdf: Kdf
    curve: ec.EllipticCurve | None
    public: int
    private: int
    order: int = 0
    """of the group, for a curve of NIST"""


_P256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_P384 = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973
_P521 = 2**521 - 0x5AE79787C40D069948033FEB708F65A2FC44A36477663B851449048E16EC79BF7
_KEMS = {
    Kem.P256_HKDF_SHA256: _KemForm(Kdf.HKDF_SHA256, ec.SECP256R1(), 65, 32, _P256),
    Kem.P384_HKDF_SHA384: _KemForm(Kdf.HKDF_SHA384, ec.SECP384R1(), 97, 48, _P384),
    Kem.P521_HKDF_SHA512: _KemForm(Kdf.HKDF_SHA512, ec.SECP521R1(), 133, 66, _P521),
    Kem.X25519_HKDF_SHA256: _KemForm(Kdf.HKDF_SHA256, None, 32, 32),
    Kem.X448_HKDF_SHA512: _KemForm(Kdf.HKDF_SHA512, None, 56, 56),
}
_HASHES: dict[Kdf, tuple[str, HashAlgorithm]] = {
    Kdf.HKDF_SHA256: ("sha256", SHA256()),
    Kdf.HKDF_SHA384: ("sha384", SHA384()),
    Kdf.HKDF_SHA512: ("sha512", SHA512()),
}
_KEY_BYTES = {Aead.AES_128_GCM: 16, Aead.AES_256_GCM: 32, Aead.CHACHA20_POLY1305: 32}


@dataclass(frozen=True)
class _LabelledHkdf:
    """HKDF whose inputs say which protocol, suite and step they are for (section 4)."""

    kdf: Kdf
    suite: bytes

    def extract(self, salt: bytes, label: bytes, secret: bytes) -> bytes:
        name, hash_ = _HASHES[self.kdf]
        return digest(salt or bytes(hash_.digest_size), _VERSION + self.suite + label + secret, name)

    def expand(self, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
        labelled = pack(">H", length) + _VERSION + self.suite + label + info
        return HKDFExpand(_HASHES[self.kdf][1], length, labelled).derive(key)


@dataclass(frozen=True)
class HpkeKeyPair:
    """A private key of a KEM with its public key; it shows the public half only.

    >>> pair = HpkeKeyPair.derived(Kem.X25519_HKDF_SHA256, bytes(range(32)))
    >>> HpkeKeyPair(pair.kem, pair.private).public == pair.public
    True
    """

    kem: Kem
    private: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.private) != self.kem.private_key_bytes:
            raise InputError(
                f"a private key of {self.kem.name} has {self.kem.private_key_bytes} bytes, not {len(self.private)}"
            )

    @classmethod
    def derived(cls, kem: Kem, randomness: bytes) -> Self:
        """DeriveKeyPair (section 7.1.3): `randomness` is at least as long as a private key, fresh and uniform."""
        form = _KEMS[kem]
        if len(randomness) < form.private:
            raise InputError(f"a key pair of {kem.name} needs {form.private} random bytes, not {len(randomness)}")
        hkdf = _hkdf_of_kem(kem)
        key = hkdf.extract(b"", b"dkp_prk", randomness)
        if form.curve is None:
            return cls(kem, hkdf.expand(key, b"sk", b"", form.private))
        for counter in range(256):
            candidate = bytearray(hkdf.expand(key, b"candidate", bytes([counter]), form.private))
            candidate[0] &= 0xFF >> -form.order.bit_length() % 8
            if 0 < int.from_bytes(candidate, "big") < form.order:
                return cls(kem, bytes(candidate))
        raise InputError("256 candidates for a private key are all too large: this randomness is not random")

    @cached_property
    def _key(self) -> PrivateKey:
        try:
            if self.kem is Kem.X25519_HKDF_SHA256:
                return x25519.X25519PrivateKey.from_private_bytes(self.private)
            if self.kem is Kem.X448_HKDF_SHA512:
                return x448.X448PrivateKey.from_private_bytes(self.private)
            curve = _KEMS[self.kem].curve
            assert curve is not None  # noqa: S101 - the table has one for every other KEM
            return ec.derive_private_key(int.from_bytes(self.private, "big"), curve)
        except ValueError:
            raise InputError(f"these bytes are no private key of {self.kem.name}") from None

    @cached_property
    def public(self) -> bytes:
        """The public key, as it is sent."""
        key = self._key.public_key()
        if isinstance(key, ec.EllipticCurvePublicKey):
            return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return key.public_bytes_raw()

    def exchanged(self, public: bytes) -> bytes:
        """What is shared with another public key; Refused for one that is not on the curve, or of low order."""
        if len(public) != self.kem.public_key_bytes:
            raise Refused(f"a public key of {self.kem.name} has {self.kem.public_key_bytes} bytes, not {len(public)}")
        key = self._key
        try:
            if isinstance(key, x25519.X25519PrivateKey):
                return key.exchange(x25519.X25519PublicKey.from_public_bytes(public))
            if isinstance(key, x448.X448PrivateKey):
                return key.exchange(x448.X448PublicKey.from_public_bytes(public))
            return key.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(key.curve, public))
        except ValueError:
            raise Refused(
                f"these bytes are no public key of {self.kem.name} that a secret can be shared with"
            ) from None


@dataclass(frozen=True)
class CipherSuite:
    """The three algorithms of a message.

    >>> suite = CipherSuite(Kem.X25519_HKDF_SHA256, Kdf.HKDF_SHA256, Aead.AES_128_GCM)
    >>> receiver = HpkeKeyPair.derived(suite.kem, bytes(32))
    >>> enc, payload = suite.seal(receiver.public, b"what for", b"bound to", b"hello", bytes(range(32)))
    >>> suite.open(receiver, enc, b"what for", b"bound to", payload)
    b'hello'
    """

    kem: Kem
    kdf: Kdf
    aead: Aead

    @classmethod
    def of(cls, kem: int, kdf: int, aead: int) -> "CipherSuite | None":
        """The suite of these numbers, or None if one of them is not known here."""
        try:
            return cls(Kem(kem), Kdf(kdf), Aead(aead))
        except ValueError:
            return None

    def seal(self, public: bytes, info: bytes, aad: bytes, plain: bytes, randomness: bytes) -> tuple[bytes, bytes]:
        """(enc, payload) for the holder of a private key; `randomness` is used for nothing else, ever.

        Costs two multiplications on the curve, 60 to 200 µs.
        """
        ephemeral = HpkeKeyPair.derived(self.kem, randomness)
        secret = self._shared(ephemeral.exchanged(public), ephemeral.public, public)
        key, nonce = self.key_schedule(secret, info)
        return ephemeral.public, self.cipher(key).encrypt(nonce, plain, aad)

    def open(self, receiver: HpkeKeyPair, enc: bytes, info: bytes, aad: bytes, payload: bytes) -> bytes:
        """What was sealed; Refused if it was for another key or purpose, or bound to something else, or changed."""
        if receiver.kem is not self.kem:
            raise InputError(f"a key of {receiver.kem.name} opens nothing of {self.kem.name}")
        secret = self._shared(receiver.exchanged(enc), enc, receiver.public)
        key, nonce = self.key_schedule(secret, info)
        try:
            return self.cipher(key).decrypt(nonce, payload, aad)
        except InvalidTag:
            raise Refused(
                "a sealed message does not open: it is for another key or purpose, or it was changed"
            ) from None

    def key_schedule(self, secret: bytes, info: bytes) -> tuple[bytes, bytes]:
        """The key and the base nonce, which is the nonce of the first and, here, only message (section 5.1)."""
        hkdf = self._hkdf
        context = _BASE + self._no_psk + hkdf.extract(b"", b"info_hash", info)
        key = hkdf.extract(secret, b"secret", b"")
        return (
            hkdf.expand(key, b"key", context, _KEY_BYTES[self.aead]),
            hkdf.expand(key, b"base_nonce", context, _NONCE),
        )

    def cipher(self, key: bytes) -> AESGCM | ChaCha20Poly1305:
        """The AEAD under a key."""
        return ChaCha20Poly1305(key) if self.aead is Aead.CHACHA20_POLY1305 else AESGCM(key)

    def _shared(self, point: bytes, enc: bytes, public: bytes) -> bytes:
        """ExtractAndExpand (section 4.1)."""
        hkdf = _hkdf_of_kem(self.kem)
        length = _HASHES[hkdf.kdf][1].digest_size
        return hkdf.expand(hkdf.extract(b"", b"eae_prk", point), b"shared_secret", enc + public, length)

    @cached_property
    def _hkdf(self) -> _LabelledHkdf:
        return _LabelledHkdf(self.kdf, b"HPKE" + pack(">HHH", self.kem, self.kdf, self.aead))

    @cached_property
    def _no_psk(self) -> bytes:
        return self._hkdf.extract(b"", b"psk_id_hash", b"")


def _hkdf_of_kem(kem: Kem) -> _LabelledHkdf:
    return _LabelledHkdf(_KEMS[kem].kdf, b"KEM" + pack(">H", kem))
