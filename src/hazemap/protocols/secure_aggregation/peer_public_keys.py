"""What a client shows of itself in a session, and how a server presents it to its neighbours."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

from hazemap.errors import CodecError
from hazemap.protocols.secure_aggregation import merkle_roster as roster
from hazemap.protocols.secure_aggregation.key_agreement import KEY
from hazemap.protocols.secure_aggregation.session_parameters import HASH
from hazemap.protocols.secure_aggregation.signing_identities import SIGNATURE
from hazemap.protocols.secure_aggregation.tls_encoding import TlsReader, TlsWriter

_FIELD = 2**255 - 19  # a public key is a number below this, or it is another key in disguise (RFC 7748, section 5)
_PATH = 32  # a roster has fewer than 2³² clients: no proof is longer


@dataclass(frozen=True)
class PublicKeys:
    """What a client shows of its secrets in one session: signed, so that nobody can put others in their place."""

    sealing: bytes
    """X25519: letters to it are sealed under what is agreed with this key"""
    masking: bytes
    """X25519: pair masks"""
    commitment: bytes
    """SHA-256 of the self-mask seed, bound to session and position"""
    signature: bytes
    """Ed25519, by the client's identity, over `bindings.keys_statement`"""

    def write(self, writer: TlsWriter) -> None:
        """Four fields of known length."""
        writer.fixed(self.sealing, KEY).fixed(self.masking, KEY)
        writer.fixed(self.commitment, HASH).fixed(self.signature, SIGNATURE)

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """What `write` wrote; a key that is not a number below 2²⁵⁵ − 19 is refused: each key has one encoding."""
        keys = cls(reader.fixed(KEY), reader.fixed(KEY), reader.fixed(HASH), reader.fixed(SIGNATURE))
        if any(int.from_bytes(key, "little") >= _FIELD for key in (keys.sealing, keys.masking)):
            raise CodecError("a public key is not written as it should be")
        return keys


@dataclass(frozen=True)
class Peer:
    """A neighbour as the server presents it: each part is proven, by the roster's root or by a signature."""

    position: int
    identity: bytes
    proof: tuple[bytes, ...]
    keys: PublicKeys

    @cached_property
    def encoded(self) -> bytes:
        """Its encoding, made once: the server sends it to all its neighbours."""
        writer = TlsWriter().number(self.position, 4).fixed(self.identity, KEY)
        write_path(writer, self.proof)
        self.keys.write(writer)
        return writer.done()

    @classmethod
    def read(cls, reader: TlsReader) -> Self:
        """The next peer."""
        return cls(reader.number(4), reader.fixed(KEY), read_path(reader), PublicKeys.read(reader))


def write_path(writer: TlsWriter, path: tuple[bytes, ...]) -> None:
    """A proof of the roster: uint8 how many hashes, then the hashes."""
    writer.number(len(path), 1)
    for sibling in path:
        writer.fixed(sibling, roster.LENGTH)


def read_path(reader: TlsReader) -> tuple[bytes, ...]:
    """What `write_path` wrote."""
    length = reader.number(1)
    if length > _PATH:
        raise CodecError(f"a proof has at most {_PATH} hashes, not {length}")
    path = reader.fixed(length * roster.LENGTH)
    return tuple(path[start : start + roster.LENGTH] for start in range(0, len(path), roster.LENGTH))
