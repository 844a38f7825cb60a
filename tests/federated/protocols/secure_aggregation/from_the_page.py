"""A client written from docs/reference/protocol*.md alone: it imports nothing of hazemap, slow and plain as the pages.

What it draws it is given, so that its answers can be compared byte by byte with vectors. It checks what the page
says a client checks about the bytes it is sent; floors and tasks are not its business.
"""

import hmac
import struct
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

PRIME = 2**257 - 93
MALICIOUS = 2


class WrongError(Exception):
    """The page says that this is refused."""


def require(condition: object, why: str) -> None:
    if not condition:
        raise WrongError(why)


class Bytes:
    """Reads one field after another."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, n: int) -> bytes:
        require(n <= len(self.data), "missing bytes")
        taken, self.data = self.data[:n], self.data[n:]
        return taken

    def number(self, width: int = 4) -> int:
        return int.from_bytes(self.take(width), "big")

    def bitmap(self) -> "Bits":
        size = self.number()
        bits = self.take((size + 7) // 8)
        some = {i for i in range(size) if bits[i // 8] >> (7 - i % 8) & 1}
        require(sum(byte.bit_count() for byte in bits) == len(some), "a bit beyond the end")
        return Bits(size, bits, some)

    def counted(self, length: int) -> dict[int, bytes]:
        items = [(self.number(), self.take(length)) for _ in range(self.number())]
        require(all(a[0] < b[0] for a, b in pairwise(items)), "not ascending")
        return dict(items)

    def path(self) -> list[bytes]:
        length = self.number(1)
        require(length <= 32, "a proof that is too long")
        return [self.take(32) for _ in range(length)]

    def end(self) -> None:
        require(not self.data, "bytes left over")


@dataclass(frozen=True)
class Bits:
    size: int
    bits: bytes
    some: set[int]


@dataclass
class Peer:
    identity: bytes
    sealing: bytes
    masking: bytes
    letter_key: bytes = b""


def u32(x: int) -> bytes:
    return struct.pack(">I", x)


def expand(key: bytes, info: bytes, length: int) -> bytes:
    out, block = b"", b""
    for i in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([i]), "sha256")
        out += block
    return out[:length]


def derive(session: bytes, secret: bytes, purpose: bytes, length: int) -> bytes:
    return expand(hmac.digest(session, secret, "sha256"), b"hazemap 1 " + purpose, length)


def agree(session: bytes, private: X25519PrivateKey, public: bytes, purpose: bytes, length: int) -> bytes:
    own = private.public_key().public_bytes_raw()
    point = private.exchange(X25519PublicKey.from_public_bytes(public))  # ValueError for a key of low order
    return derive(session, point, purpose + min(own, public) + max(own, public), length)


def letter_nonce(key: bytes, address: bytes, plain: bytes) -> bytes:
    return expand(key, b"hazemap 1 nonce" + address + plain, 12)


def letter_cipher(key: bytes, session: bytes, sender: int, receiver: int) -> tuple[ChaCha20Poly1305, bytes]:
    address = session + u32(sender) + u32(receiver) + b"\x03"
    return ChaCha20Poly1305(expand(key, b"hazemap 1 seal" + address, 32)), address


def coins(key: bytes, session: bytes, purpose: str, *bound: bytes) -> "Bytes":
    about = b"coins " + purpose.encode() + b"\0" + b"".join(sha256(each).digest() for each in bound)
    return Bytes(counter_mode(sha256(derive(session, key, about, 32)).digest(), 1 << 10))


def counter_mode(key: bytes, length: int) -> bytes:
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(length))


def mask(key: bytes, size: int, bits: int) -> list[int]:
    width = 2 if bits <= 16 else 4
    stream = counter_mode(key, size * width)
    return [int.from_bytes(stream[i : i + width], "little") for i in range(0, len(stream), width)]


def share(secret: bytes, coefficients: list[int], x: int) -> bytes:
    value = int.from_bytes(secret, "big") + sum(c * x ** (i + 1) for i, c in enumerate(coefficients))
    return (value % PRIME).to_bytes(33, "big")


def is_share(data: bytes) -> bool:
    return len(data) == 33 and int.from_bytes(data, "big") < PRIME


def joined(shares: dict[int, bytes]) -> bytes:
    """The value at 0 of the polynomial through the shares, by point."""
    total = 0
    for x, data in shares.items():
        top, bottom = 1, 1
        for other in shares:
            if other != x:
                top, bottom = top * other % PRIME, bottom * (other - x) % PRIME
        total += int.from_bytes(data, "big") * top * pow(bottom, -1, PRIME)
    return (total % PRIME).to_bytes(33, "big")[1:]


def packed(words: list[int], bits: int) -> bytes:
    whole = sum(word << (i * bits) for i, word in enumerate(words))
    return whole.to_bytes((len(words) * bits + 7) // 8, "little")


def root_by(path: list[bytes], identity: bytes, position: int, clients: int) -> bytes:
    """RFC 9162, section 2.1.3.2."""
    found, last, rest = sha256(b"\x00" + identity).digest(), clients - 1, list(path)
    while last:
        if position % 2 or position < last:
            require(rest, "a proof that is too short")
            step = rest.pop(0)
            found = sha256(b"\x01" + (step + found if position % 2 else found + step)).digest()
        position, last = position // 2, last // 2
    require(not rest, "a proof that is too long")
    return found


def ring(seed: bytes, members: set[int], degree: int, own: int) -> set[int]:
    key = sha256(b"hazemap 1 graph" + seed).digest()
    if degree >= len(members) - 1:
        return members - {own}

    def word(p: int) -> tuple[int, int]:
        return int.from_bytes(counter_mode(key, 8 * p + 8)[-8:], "little"), p

    order = sorted(members, key=word)
    at = order.index(own)
    return {order[(at + step) % len(order)] for step in range(-(degree // 2), degree // 2 + 1) if step}


def signed_by(identity: bytes, signature: bytes, statement: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, statement)
    except InvalidSignature:
        return False
    return True


@dataclass
class PageClient:
    """A client with everything that it would draw given beforehand."""

    identity: Ed25519PrivateKey
    sealing: X25519PrivateKey
    masking: X25519PrivateKey
    seed: bytes
    coefficients: dict[str, list[int]]
    contribution: list[int]
    noise: list[int]
    picks: set[int] = field(default_factory=set)

    def head(self, kind: int) -> bytes:
        return bytes([1, kind]) + self.session

    def answer(self, message: bytes) -> bytes:
        reader = Bytes(message)
        require(reader.take(1) == b"\x01", "version")
        kind = reader.number(1)
        if kind != 1:
            require(reader.take(32) == self.session, "another session")
        reply = {1: self.keys, 3: self.draws, 5: self.shares, 7: self.masked, 9: self.assents, 11: self.unmasks}[kind]
        answered = reply(reader)
        reader.end()
        return answered

    def listed(self, some: Bits, within: set[int] | None = None) -> set[int]:
        require(some.size == self.clients, "a bitmap of another size")
        require(self.position in some.some and len(some.some) >= self.survivors, "not in it, or too few")
        require(within is None or some.some <= within, "somebody who is gone")
        return some.some

    def keys(self, reader: Bytes) -> bytes:
        encoded = reader.take(reader.number(2))
        self.session = sha256(b"hazemap secure sum 1" + encoded).digest()
        terms = Bytes(encoded)
        self.mode, _task, _nonce = terms.number(1), terms.take(32), terms.take(32)
        self.clients, self.degree, self.threshold = terms.number(), terms.number(), terms.number()
        self.survivors, self.size, self.bits = terms.number(), terms.number(), terms.number(1)
        _scale, _parties = (terms.take(terms.number(1)), terms.take(terms.number(1))), terms.number()
        self.roster, self.graph = terms.take(32), terms.take(32)
        terms.end()
        self.position, path = reader.number(), reader.path()
        public = self.identity.public_key().public_bytes_raw()
        require(root_by(path, public, self.position, self.clients) == self.roster, "not in the roster")
        mine = (key.public_key().public_bytes_raw() for key in (self.sealing, self.masking))
        commitment = sha256(b"hazemap 1 seed" + self.session + u32(self.position) + self.seed).digest()
        body = b"".join(mine) + commitment
        statement = b"hazemap 1 keys" + self.session + u32(self.position) + body
        return self.head(2) + body + self.identity.sign(statement)

    def draws(self, reader: Bytes) -> bytes:
        members = self.listed(reader.bitmap())
        require(self.picks <= members - {self.position}, "picks that are not on the roll")
        require(len(self.picks) == min(self.degree, len(members) - 1), "too few picks")
        return self.head(4) + u32(len(self.picks)) + b"".join(map(u32, sorted(self.picks)))

    def shares(self, reader: Bytes) -> bytes:
        self.roll = self.listed(reader.bitmap())
        seed = reader.take(32)
        self.peers: dict[int, Peer] = {}
        for _ in range(reader.number()):
            position, identity, path = reader.number(), reader.take(32), reader.path()
            body, signature = reader.take(96), reader.take(64)
            require(not self.peers or position > max(self.peers), "not ascending")
            require(root_by(path, identity, position, self.clients) == self.roster, "not in the roster")
            statement = b"hazemap 1 keys" + self.session + u32(position) + body
            require(signed_by(identity, signature, statement), "keys that are not signed")
            key = agree(self.session, self.sealing, body[:32], b"letter", 32)
            self.peers[position] = Peer(identity, body[:32], body[32:64], key)
        if self.mode == MALICIOUS:
            self.holders = self.picks
            require(not any(seed) and self.holders <= set(self.peers), "a seed, or a pick is missing")
            require(len(self.peers) - len(self.holders) <= 3 * self.degree + 32, "too many dealers")
        else:
            require(sha256(b"hazemap 1 graph commitment" + seed).digest() == self.graph, "another seed")
            self.holders = ring(seed, self.roll, self.degree, self.position)
            require(set(self.peers) == self.holders, "not the neighbours on the ring")
        require(set(self.peers) <= self.roll - {self.position}, "a peer that is not on the roll")
        require(len(self.holders) >= self.threshold, "too few holders")
        letters = b""
        for holder in sorted(self.holders):
            x = holder + 1
            plain = share(self.masking.private_bytes_raw(), self.coefficients["masking"], x)
            plain += share(self.seed, self.coefficients["seed"], x)
            cipher, address = letter_cipher(self.peers[holder].letter_key, self.session, self.position, holder)
            nonce = letter_nonce(self.peers[holder].letter_key, address, plain)
            letters += u32(holder) + nonce + cipher.encrypt(nonce, plain, address)
        return self.head(6) + u32(len(self.holders)) + letters

    def masked(self, reader: Bytes) -> bytes:
        self.sharers = reader.bitmap()
        shared = self.listed(self.sharers, self.roll) & set(self.peers)
        letters = reader.counted(94)
        dealers = shared if self.mode != MALICIOUS else shared - self.holders
        require(dealers <= set(letters) <= shared, "letters of others, or missing")
        require(len(self.holders & shared) >= self.threshold, "too few holders")
        self.dealt = {}
        for dealer, letter in letters.items():
            cipher, address = letter_cipher(self.peers[dealer].letter_key, self.session, dealer, self.position)
            try:
                plain = cipher.decrypt(letter[:12], letter[12:], address)
            except InvalidTag:
                continue
            if is_share(plain[:33]) and is_share(plain[33:]):
                self.dealt[dealer] = plain
        self.dealers = set(letters)
        words = [c + n for c, n in zip(self.contribution, self.noise, strict=True)]
        terms, purpose = (
            [(1, derive(self.session, self.seed, b"self", 16))],
            b"mask" + sha256(self.sharers.bits).digest(),
        )
        for peer in shared:
            key = agree(self.session, self.masking, self.peers[peer].masking, purpose, 16)
            terms.append((1 if self.position < peer else -1, key))
        for sign, key in terms:
            words = [w + sign * m for w, m in zip(words, mask(key, self.size, self.bits), strict=True)]
        vector = packed([w % (1 << self.bits) for w in words], self.bits)
        statement = b"hazemap 1 masked" + self.session + u32(self.position) + sha256(self.sharers.bits).digest()
        return self.head(8) + u32(len(vector)) + vector + self.identity.sign(statement)

    def assent_statement(self, position: int) -> bytes:
        told = sha256(self.sharers.bits).digest() + sha256(self.alive.bits).digest()
        return b"hazemap 1 assent" + self.session + u32(position) + told

    def assents(self, reader: Bytes) -> bytes:
        self.alive = reader.bitmap()
        require(
            len(self.listed(self.alive, self.sharers.some) & self.holders) >= self.threshold, "too few holders survive"
        )
        return self.head(10) + self.identity.sign(self.assent_statement(self.position))

    def unmasks(self, reader: Bytes) -> bytes:
        assents, signed = reader.counted(64), reader.counted(64)
        require(set(assents) <= self.holders & self.alive.some, "an assent of somebody else")
        require(set(signed) <= self.dealers & self.alive.some, "a signature of somebody else")
        require(len(assents) >= self.threshold, "too few assents")
        for holder in list(assents)[: self.threshold]:
            statement = self.assent_statement(holder)
            require(signed_by(self.peers[holder].identity, assents[holder], statement), "no assent")
        for dealer in set(self.dealt) & self.alive.some if self.mode == MALICIOUS else ():
            statement = b"hazemap 1 masked" + self.session + u32(dealer) + sha256(self.sharers.bits).digest()
            require(
                signed_by(self.peers[dealer].identity, signed.get(dealer, bytes(64)), statement), "masked otherwise"
            )
        seeds = {d: plain[33:] for d, plain in self.dealt.items() if d in self.alive.some}
        keys = {d: plain[:33] for d, plain in self.dealt.items() if d not in self.alive.some}
        return self.head(12) + b"".join(
            u32(len(some)) + b"".join(u32(d) + some[d] for d in sorted(some)) for some in (seeds, keys)
        )
