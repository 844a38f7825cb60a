"""How a device proves, to one server and once, that it holds the key of its identity.

The server answers the device's origin and identity with a challenge, signed by the server's own identity. The device
signs the challenge together with the origin it sees and the server's identity, so a proof is worth nothing at another
server, and nothing at a later time. Lengths are fixed or written before what they measure, so that no two statements
have the same bytes.
"""

import re
from dataclasses import dataclass

from hazemap.errors import InputError
from hazemap.privacy.signing_identities import KEY, Identity, verified

VERSION = 2
"""Of these messages. 1 had no challenge and named no server."""
CHALLENGE = 56
"""Bytes of a challenge: opaque to the device."""
LONGEST_ORIGIN = 300
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(?:/[!-~]*)?")


def origin(url: str) -> str:
    """The web origin of a URL (RFC 6454 §6.2): scheme, host and port in one spelling, nothing behind them.

    >>> origin("HTTPS://Maps.Example:443/under/a/path")
    'https://maps.example'
    """
    found = _URL.fullmatch(url.lower()) if len(url) <= LONGEST_ORIGIN else None
    if found is None:
        raise InputError(f"a server's address is such as https://maps.example; found {url!r:.80}")
    scheme, host, port = found[1], found[2], int(found[3] or 0)
    return f"{scheme}://{host}" if port in (0, _PORTS[scheme]) else f"{scheme}://{host}:{port}"


def challenge_statement(at: str, identity: bytes, challenge: bytes) -> bytes:
    """What a server signs: this challenge is this server's, under this origin, for this device."""
    return b"hazemap challenge 2" + _sized(at.encode()) + _exact(identity, KEY) + _exact(challenge, CHALLENGE)


def enrolment_statement(at: str, server: bytes, challenge: bytes, identity: bytes, token: str) -> bytes:
    """What a device signs to enrol: the server's origin and identity, its challenge, its own identity, the token."""
    fixed = _exact(server, KEY) + _exact(challenge, CHALLENGE) + _exact(identity, KEY)
    return b"hazemap enrol 2" + _sized(at.encode()) + fixed + _sized(token.encode())


@dataclass(frozen=True)
class Challenge:
    """What a server answers to a device that wants to enrol.

    >>> server, device = Identity.create(), Identity.create()
    >>> asked = Challenge.signed(server, "https://maps.example", device.public, bytes(CHALLENGE))
    >>> asked.genuine("https://maps.example", device.public), asked.genuine("https://evil.example", device.public)
    (True, False)
    """

    server: bytes
    nonce: bytes
    signature: bytes

    @classmethod
    def signed(cls, server: Identity, at: str, identity: bytes, nonce: bytes) -> "Challenge":
        """A challenge of this server's."""
        return cls(server.public, nonce, server.sign(challenge_statement(at, identity, nonce)))

    def genuine(self, at: str, identity: bytes) -> bool:
        """Whether the server that has this identity made it for this device, under this origin."""
        if len(self.nonce) != CHALLENGE or len(self.server) != KEY:
            return False
        return verified(self.server, self.signature, challenge_statement(at, identity, self.nonce))

    def answered(self, device: Identity, at: str, token: str) -> bytes:
        """The device's signature."""
        return device.sign(enrolment_statement(at, self.server, self.nonce, device.public, token))


def _sized(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


def _exact(found: bytes, size: int) -> bytes:
    if len(found) != size:
        raise InputError(f"{size} bytes are signed here, not {len(found)}")
    return found
