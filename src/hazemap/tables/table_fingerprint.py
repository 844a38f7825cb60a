"""A table's keyed fingerprint: does the table look like one whose budget is charged under another name?

It is a sample of the people of a table. A keyed hash of the id decides who is in it, whatever table the person is in.
For each of them it keeps a code of the id and a code of one of their places (the outermost in a direction that the hash
decides), both by HMAC-SHA256. So it recognises a table that was renamed, reordered or converted, and one with most of
its people; 7 as a number and "7" as text are one id. A fingerprint is no private number: it depends on the rows,
without noise. Like the rows, only the curator may see it. It never enters a release, a statement or a list.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil

MOST = 512
"""People kept at most; of a table with more, at least about half as many are."""

SAME_PEOPLE = 0.75
"""Tables look alike where this part of the people of the smaller one is in the larger one …"""

SAME_PLACES, MORE = 1 / 4, 6
"""… and this part of them plus this number (all of them where they are few) has the same place."""

FEWEST = 4
"""Tables of fewer people are not compared."""

_FORM = b"1"


@dataclass(frozen=True)
class Fingerprint:
    """The people sampled of a table: how rare each is (a person of rarity r is kept at levels up to r), and its codes.

    `kind` says of whom: `people`, told apart by ids, or `rows`. `key` names the key; fingerprints of two keys cannot
    be compared.

    >>> one = Fingerprint("people", "k", 0, tuple((i % 3, bytes([i] * 8), b"home") for i in range(100)))
    >>> one.looks_like(one), one.looks_like(Fingerprint("people", "k", 0, one.sample[:30] + one.sample[40:]))
    (True, True)
    >>> Fingerprint.from_bytes(one.to_bytes()) == one
    True
    """

    kind: str
    key: str
    level: int
    sample: tuple[tuple[int, bytes, bytes], ...]

    @classmethod
    def of(cls, kind: str, key: bytes, level: int, kept: Iterable[tuple[int, bytes]]) -> "Fingerprint":
        """The fingerprint of the people whose keyed hashes (64 bits, uniform) and places were kept."""
        sample = []
        for person, place in kept:
            name = person.to_bytes(8, "little")
            who, where = (hmac.digest(key, text, "sha256") for text in (b"id" + name, b"place" + name + place))
            sample.append((64 - person.bit_length(), who[:8], where[:4]))
        return cls(kind, key_name(key), level, tuple(sorted(sample, key=lambda each: each[1])))

    def looks_like(self, other: "Fingerprint") -> bool:
        """Whether most of the people of the smaller table seem to be in the larger, in the same places.

        Of one table in another order, format or name: always (with `FEWEST` people or more, at the same rows). Of
        tables of which one holds nine tenths of the other's people, and perhaps others instead of the rest: with
        probability 1 − 10⁻⁶ at least (of some 200 people compared fewer than three quarters: Chernoff, exp(−18)). Of
        tables of other people with other ids: with probability below 10⁻²⁰; with the same ids (numbered from 1, say),
        below 10⁻⁶ where two people share a place of 100 m with probability 1/50 at most.
        """
        if (self.kind, self.key) != (other.kind, other.key):
            return False
        level = max(self.level, other.level)
        mine, others = self._at(level), other._at(level)
        smaller = min(len(mine), len(others))
        common = mine.keys() & others.keys()
        if smaller < FEWEST or len(common) < max(FEWEST, SAME_PEOPLE * smaller):
            return False
        alike = sum(mine[person] == others[person] for person in common)
        return alike >= min(len(common), ceil(SAME_PLACES * len(common)) + MORE)

    def _at(self, level: int) -> dict[bytes, bytes]:
        return {person: place for rarity, person, place in self.sample if rarity >= level}

    def to_bytes(self) -> bytes:
        """A compact form: 13 bytes a person."""
        head = b"\0".join((_FORM, self.kind.encode(), self.key.encode(), str(self.level).encode())) + b"\n"
        return head + b"".join(bytes([rarity]) + person + place for rarity, person, place in self.sample)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Fingerprint | None":
        """The inverse of `to_bytes`; `None` for anything else."""
        head, _, body = data.partition(b"\n")
        try:
            form, kind, key, level = head.split(b"\0")
            if form != _FORM or len(body) % 13:
                return None
            rows = [body[at : at + 13] for at in range(0, len(body), 13)]
            return cls(kind.decode(), key.decode(), int(level), tuple((row[0], row[1:9], row[9:]) for row in rows))
        except ValueError:
            return None


def key_name(key: bytes) -> str:
    """A public name of a key, from which nothing of it follows."""
    return blake2b(key, digest_size=8, person=b"name").hexdigest()
