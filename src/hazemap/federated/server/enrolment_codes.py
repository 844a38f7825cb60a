"""One-time enrolment codes: an operator hands each to one person, and only hashes are stored.

A code has 100 random bits, so a stolen database does not help to guess one, and it is found by its hash, so the time
of an answer says nothing about it. That it is used once is a key of the database.
"""

import asyncio
import os
from datetime import UTC, datetime, timedelta

from hazemap.errors import ConversationError, InputError, Refused
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.store import Write, instant

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's: no I, L, O or U."""
LETTERS, GROUP = 20, 5
MOST, LONGEST = 100_000, 3_650
"""Codes made at a time, and days that they last, at most."""

_FIND = (
    "SELECT codes.expires, code_uses.used FROM codes LEFT JOIN code_uses ON code_uses.code = codes.code "
    "WHERE codes.code = ?"
)
_COUNT = "SELECT count(*) FROM codes LEFT JOIN code_uses ON code_uses.code = codes.code WHERE code_uses.code IS NULL"


class CodeInUse(ConversationError):
    """A code that another enrolment is using at this moment."""


def made_up() -> str:
    """A new code.

    >>> len(made_up()), spelled(made_up().lower().replace("-", " ")) is None
    (23, False)
    """
    bits = int.from_bytes(os.urandom(13), "big")
    letters = "".join(ALPHABET[bits >> 5 * at & 31] for at in range(LETTERS))
    return "-".join(letters[at : at + GROUP] for at in range(0, LETTERS, GROUP))


def spelled(text: str) -> str | None:
    """A code as it was made, however it was typed; `None` for what is no code.

    >>> spelled("o1iL7 abcde 00000-zzzzz")
    '01117-ABCDE-00000-ZZZZZ'
    """
    letters = text.upper().replace("-", "").replace(" ", "").translate(str.maketrans("OIL", "011"))
    if len(letters) != LETTERS or not set(letters) <= set(ALPHABET):
        return None
    return "-".join(letters[at : at + GROUP] for at in range(0, LETTERS, GROUP))


class EnrolmentCodes:
    """The codes of a server's store."""

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        self._claimed: set[bytes] = set()

    async def make(self, number: int, days: int) -> list[str]:
        """New codes, on the disk when this returns: the only time that anybody sees them."""
        if not 1 <= number <= MOST or not 1 <= days <= LONGEST:
            raise InputError(f"1 to {MOST:,} codes of 1 to {LONGEST:,} days are made at a time")
        codes = [made_up() for _ in range(number)]
        now = datetime.now(UTC)
        end = instant(now + timedelta(days=days))
        sql = "INSERT INTO codes (code, issued, expires) VALUES (?, ?, ?)"
        await self._store.write(*(Write(sql, (kept(code), instant(now), end)) for code in codes))
        return codes

    async def use(self, text: str, device: str, *writes: Write) -> None:
        """Use a code for a device, together with these writes; `Refused` unless it is good and was never used."""
        code = spelled(text)
        if code is None:
            raise Refused("this is no enrolment code: a code has 20 letters and digits in four groups")
        key = kept(code)
        if key in self._claimed:
            raise CodeInUse("this code is being used at this moment: try again")
        self._claimed.add(key)
        try:
            rows = await asyncio.to_thread(self._store.read, _FIND, key)
            if not rows:
                raise Refused("the server does not know this enrolment code: ask the campaign's operator for one")
            [(expires, used)] = rows
            if used is not None:
                raise Refused("this enrolment code was used before: each serves one device; ask for another")
            if expires <= instant():
                raise Refused(f"this enrolment code ended on {expires}: ask the campaign's operator for another")
            use = Write("INSERT INTO code_uses (code, device, used) VALUES (?, ?, ?)", (key, device, instant()))
            await self._store.write(use, *writes)
        finally:
            self._claimed.discard(key)

    def left(self) -> int:
        """How many were never used, old ones among them."""
        [(number,)] = self._store.read(_COUNT)
        return int(number)
