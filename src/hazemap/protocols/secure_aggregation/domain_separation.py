"""What is signed, hashed and derived in a session: always the session's name first, and never twice for two ends."""

from hashlib import sha256
from struct import pack

from hazemap.protocols.secure_aggregation import masks
from hazemap.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.protocols.secure_aggregation.key_agreement import KeyPair, agreed
from hazemap.protocols.secure_aggregation.key_derivation import derived


def commitment(session: bytes, position: int, seed: bytes) -> bytes:
    """What a client shows of its self-mask seed: binding, and hiding since the seed is 32 uniform bytes."""
    return sha256(b"hazemap 1 seed" + session + pack(">I", position) + seed).digest()


def keys_statement(session: bytes, position: int, sealing: bytes, masking: bytes, commitment: bytes) -> bytes:
    """What an identity signs about its keys of a session."""
    return b"hazemap 1 keys" + session + pack(">I", position) + sealing + masking + commitment


def masked_statement(session: bytes, position: int, sharers: Bitmap) -> bytes:
    """What an identity signs about whom its vector is masked among: its neighbours of these."""
    return b"hazemap 1 masked" + session + pack(">I", position) + sha256(sharers.bits).digest()


def assent_statement(session: bytes, position: int, sharers: Bitmap, survivors: Bitmap) -> bytes:
    """What an identity signs about whose vectors the sum is over: the one such statement it makes in a session."""
    told = sha256(sharers.bits).digest() + sha256(survivors.bits).digest()
    return b"hazemap 1 assent" + session + pack(">I", position) + told


def self_mask(seed: bytes, session: bytes) -> bytes:
    """The key of the mask that a client adds alone."""
    return derived(seed, session, b"self", masks.KEY)


def pair_mask(private: KeyPair, public: bytes, session: bytes) -> bytes:
    """The key of the mask that two clients share: the one of the lower position adds it, the other subtracts it."""
    return agreed(private, public, session, b"mask", masks.KEY)


def letter_key(private: KeyPair, public: bytes, session: bytes) -> bytes:
    """The key of the letters between two clients (`sealing` makes of it one for each direction)."""
    return agreed(private, public, session, b"letter", 32)
