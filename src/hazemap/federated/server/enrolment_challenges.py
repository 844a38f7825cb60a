"""Challenges for devices that enrol: short-lived, of one use, and remembered only once they were used.

A challenge is a time, a random number, and a MAC of both with origin and identity under a key that this process made
up: the server stores nothing for those who only ask. What was answered is remembered until it would have ended.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as mac
from time import monotonic
from urllib.parse import urlsplit

from hazemap.errors import ConversationError, InputError
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import (
    CHALLENGE,
    Challenge,
    enrolment_statement,
    origin,
)
from hazemap.privacy.signing_identities import KEY, Identity, verified

LIFE = 120.0
"""Seconds between a challenge and its answer; only the server's clock counts."""
MOST = 100_000
"""Answered challenges that are remembered at a time; beyond them nobody enrols for a moment."""
LOCAL = ("localhost", "127.0.0.1", "::1")


class Stale(ConversationError):
    """A challenge that is not, or no longer, this server's: ask for another."""


class OtherServer(ConversationError):
    """A device that means a server of another name."""


def server_identity(secret: str) -> Identity:
    """The server's own identity, from the secret in its folder."""
    return Identity.from_bytes(sha256(b"hazemap server identity 1" + secret.encode()).digest())


@dataclass(eq=False)
class Challenges:
    """Gives challenges out, and takes each answer once.

    `origins` are the server's own names. Without any it serves this machine alone, under each name of it.

    >>> challenges, device = Challenges(Identity.create(), ("https://maps.example",)), Identity.create()
    >>> asked = challenges.given("https://maps.example", device.public)
    >>> answer = asked.answered(device, "https://maps.example", "code")
    >>> challenges.take("https://maps.example", device.public, asked.nonce, "code", answer)
    True
    """

    server: Identity
    origins: Sequence[str] = ()
    clock: Callable[[], float] = monotonic
    _key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    _used: OrderedDict[bytes, float] = field(default_factory=OrderedDict)

    def given(self, at: str, identity: bytes) -> Challenge:
        """A challenge for this identity; `OtherServer` where the device sees an origin that is not the server's."""
        if len(identity) != KEY:
            raise InputError(f"an identity has {KEY} bytes, not {len(identity)}")
        self._own(at)
        head = int(self.clock() * 1_000).to_bytes(8, "big") + os.urandom(16)
        return Challenge.signed(self.server, at, identity, head + self._mac(head, at, identity))

    def take(self, at: str, identity: bytes, nonce: bytes, token: str, signature: bytes) -> bool:
        """Whether the identity made this signature; the challenge is used up if it did. `Stale` for an old one."""
        self._own(at)
        if len(identity) != KEY or len(nonce) != CHALLENGE:
            raise Stale("this challenge is not the server's: ask for another")
        now, given = self.clock(), int.from_bytes(nonce[:8], "big") / 1_000
        while self._used and next(iter(self._used.values())) < now:
            self._used.popitem(last=False)
        if not compare_digest(nonce[24:], self._mac(nonce[:24], at, identity)) or not 0 <= now - given + 1 <= LIFE + 1:
            raise Stale("this challenge is not the server's, or it is older than two minutes: ask for another")
        if nonce in self._used:
            raise Stale("this challenge was answered before: ask for another")
        if len(self._used) >= MOST:
            raise Stale("too many devices enrol at once: ask for another challenge in a minute")
        if not verified(identity, signature, enrolment_statement(at, self.server.public, nonce, identity, token)):
            return False
        self._used[nonce] = now + LIFE + 1
        return True

    def _own(self, at: str) -> None:
        if origin(at) != at:
            raise InputError(f"an origin is written as {origin(at)}; found {at!r:.80}")
        if at in self.origins or (not self.origins and urlsplit(at).hostname in LOCAL):
            return
        names = ", ".join(self.origins) or "a name of its own machine"
        raise OtherServer(f"this server is {names}, not {at}: use that address, or ask its operator to add --url {at}")

    def _mac(self, head: bytes, at: str, identity: bytes) -> bytes:
        return mac(self._key, head + identity + at.encode(), "sha256")[: CHALLENGE - 24]
