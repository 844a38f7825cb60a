"""Keys out of secrets: HKDF-SHA256 (Krawczyk 2010, RFC 5869), each bound to its session and its purpose."""

from hmac import digest

from hazemap.errors import InputError

SESSION = 32
HASH = 32


def extract(salt: bytes, secret: bytes) -> bytes:
    """A uniform 32-byte key out of a secret that is only unpredictable (RFC 5869 §2.2)."""
    return digest(salt, secret, "sha256")


def expand(key: bytes, info: bytes, length: int) -> bytes:
    """`length` bytes out of a uniform key; another `info` gives independent bytes (RFC 5869 §2.3)."""
    if not 1 <= length <= 255 * HASH:
        raise InputError(f"a derivation gives 1 … {255 * HASH} bytes, not {length}")
    block = digest(key, info + b"\x01", "sha256")
    if length <= HASH:
        return block[:length]
    blocks = [block]
    for counter in range(2, -(-length // HASH) + 1):
        blocks.append(digest(key, blocks[-1] + info + bytes([counter]), "sha256"))
    return b"".join(blocks)[:length]


def derived(secret: bytes, session: bytes, purpose: bytes, length: int) -> bytes:
    """`length` bytes for one purpose in one session: HKDF(ikm = secret, salt = session, info = "hazemap 1 " ‖ purpose).

    `session` is the 32-byte name of the session. Costs about 2 µs for up to 32 bytes.

    >>> derived(bytes(32), bytes(32), b"mask", 16).hex()
    '42cd7a636d729e66c868dce4bcbabecd'
    """
    if len(session) != SESSION:
        raise InputError(f"a session is named by {SESSION} bytes, not {len(session)}")
    return expand(extract(session, secret), b"hazemap 1 " + purpose, length)
