"""XofTurboShake128 (draft-irtf-cfrg-vdaf-20, 6.2.1): a seed as a stream of bytes or of elements, in plain Python."""

from hazemap.errors import InputError
from hazemap.vdaf.ntt_field import NttField
from hazemap.vdaf.turboshake128 import TurboShake128
from hazemap.vdaf.vdaf_versions import VdafVersion

DOMAIN = 1


def message(version: VdafVersion, seed: bytes, tag: bytes, binder: bytes) -> bytes:
    """What the hash function takes in, with domain 1."""
    if len(tag) >> 8 * version.tag_length_size or len(seed) > 255:
        raise InputError("a seed or a tag of the XOF is too long")
    length = bytes([len(seed)]) if version.writes_seed_length else b""
    return len(tag).to_bytes(version.tag_length_size, "little") + tag + length + seed + binder


class XofTurboShake128:
    """A seed's stream.

    >>> from hazemap.vdaf.vdaf_versions import VDAF_18
    >>> XofTurboShake128(VDAF_18, bytes(32), b"tag", b"binder").next(4).hex()
    '034ea674'
    """

    def __init__(self, version: VdafVersion, seed: bytes, tag: bytes, binder: bytes) -> None:
        self._stream = TurboShake128(message(version, seed, tag, binder), DOMAIN)

    def next(self, length: int) -> bytes:
        """The next bytes."""
        return self._stream.next(length)

    def next_vector(self, field: NttField, length: int) -> list[int]:
        """The next field elements: numbers that are not below the modulus are passed over."""
        vector: list[int] = []
        while len(vector) < length:
            x = int.from_bytes(self._stream.next(field.size), "little")
            if x < field.modulus:
                vector.append(x)
        return vector
