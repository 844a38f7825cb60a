"""Writes the test vectors that docs/reference/protocol.md refers to: `python
tests/federated/protocols/secure_aggregation/vectors.py`.

Everything is drawn from SHA-256 of a name and a counter, so that the files are the same every time. All numbers are
as they travel: bytes in hexadecimal. Secrets are shown, for that is what a vector is for.
"""

import json
import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from hazemap.federated.protocols.secure_aggregation import masks
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation import neighbour_graph as graph
from hazemap.federated.protocols.secure_aggregation import shamir_sharing as fields
from hazemap.federated.protocols.secure_aggregation import shamir_sharing as shamir
from hazemap.federated.protocols.secure_aggregation.authenticated_encryption import associated, seal
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import (
    CHALLENGE,
    Challenge,
    challenge_statement,
    enrolment_statement,
)
from hazemap.federated.protocols.secure_aggregation.key_agreement import (
    AgreementKeyPair,
    DeviceCoins,
    agreed,
    expand,
    letter_key,
    pair_mask,
    seed_commitment,
    self_mask,
)
from hazemap.federated.protocols.secure_aggregation.messages import (
    Invitation,
    Neighbours,
    Stage,
    Unmask,
    assent_statement,
    decode,
    keys_statement,
    masked_statement,
)
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, pack, word
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity
from hazemap.vdaf.tls_encoding import TlsWriter

FOLDER = Path(__file__).parents[3] / "vectors" / "secure_aggregation"
SEED = sha256(b"the seed of a ring").digest()
Json = dict[str, object]


class Dice:
    """Bytes that are the same every time, and remembered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.drawn: list[bytes] = []

    def __call__(self, length: int) -> bytes:
        turn = f"{self.name} {len(self.drawn)}"
        blocks = (sha256(f"{turn} {i}".encode()).digest() for i in range(-(-length // 32)))
        self.drawn.append(b"".join(blocks)[:length])
        return self.drawn[-1]


class Loaded:
    """Coins of a client that are the same every time, by what they are for, and remembered."""

    def __init__(self, name: str, noise: bytes) -> None:
        self.name, self.noise = name, noise
        self.dice: dict[bytes, Dice] = {}

    def __call__(self, _session: bytes, purpose: bytes, *_bound: bytes) -> object:
        if purpose == b"noise":
            return Stream.fixed(self.noise)
        dice = self.dice[purpose] = Dice(f"{self.name} {purpose.decode()}")
        return SimpleNamespace(bytes=dice)


class Anything:
    """Floors that every session is above: vectors are small."""

    def check(self, terms: SessionParameters) -> None:
        """Nothing is too little."""


def polynomials(drawn: bytes, threshold: int) -> list[list[str]]:
    """What `split_all` made of its random bytes: the coefficients after the constant, of each of two secrets."""
    each = [bytes([drawn[i] & 1]) + drawn[i + 1 : i + 33] for i in range(0, len(drawn), 33)]
    assert all(map(shamir.is_share, each)), "one was drawn again: name the dice otherwise"
    return [[c.hex() for c in each[i : i + threshold - 1]] for i in (0, threshold - 1)]


def primitives() -> Json:
    """Derivations, letters, masks and signatures' statements, one by one."""
    session = sha256(b"a session").digest()
    ours, theirs = (AgreementKeyPair.from_bytes(sha256(name).digest()) for name in (b"ours", b"theirs"))
    point, seed = ours.exchanged(theirs.public), sha256(b"a self-mask seed").digest()
    letter, address = letter_key(ours, theirs.public, session), associated(session, 3, 7, Stage.SHARES)
    inner = expand(letter, b"hazemap 1 seal" + address, 32)
    plain = bytes(range(66))
    some, fewer = Bitmap.of(11, [0, 2, 3, 7, 10]), Bitmap.of(11, [0, 3, 7, 10])
    return {
        "session": session.hex(),
        "agreement": {
            "private": ours.to_bytes().hex(),
            "public": ours.public.hex(),
            "their_public": theirs.public.hex(),
            "point": point.hex(),
            "letter_key": letter.hex(),
            "mask_key": pair_mask(ours, theirs.public, session, some.bits).hex(),
            "other_purpose_40_bytes": agreed(ours, theirs.public, session, b"other", 40).hex(),
        },
        "self_mask": {"seed": seed.hex(), "key": self_mask(seed, session).hex()},
        "seed_commitment": {
            "position": 3,
            "seed": seed.hex(),
            "commitment": seed_commitment(session, 3, seed).hex(),
        },
        "letter": {
            "sender": 3,
            "receiver": 7,
            "stage": int(Stage.SHARES),
            "address": address.hex(),
            "sealing_key": inner.hex(),
            "plain": plain.hex(),
            "sealed": seal(letter, address, plain).hex(),
        },
        "statements": {
            "position": 3,
            "sharers": some.bits.hex(),
            "survivors": fewer.bits.hex(),
            "keys": keys_statement(session, 3, ours.public, theirs.public, seed).hex(),
            "masked": masked_statement(session, 3, some).hex(),
            "assent": assent_statement(session, 3, some, fewer).hex(),
        },
        "masks": [mask(bytes(range(16)), kind) for kind in ("uint16", "uint32")],
    }


def mask(key: bytes, kind: str) -> Json:
    """The first and some later words of a mask: 20,000 of them pass the end of the first piece."""
    vector = np.zeros(20_000, dtype=kind)
    masks.add_mask(vector, key)
    return {"key": key.hex(), "words": kind, "first": vector[:8].tolist(), "19990": vector[19_990:].tolist()}


def sharing() -> Json:
    """Shamir's shares, with the polynomial; the secret comes back from any of them, and from some with liars."""
    dice, secret = Dice("sharing"), sha256(b"a secret").digest()
    points = [1, 2, 5, 300, 70_000, 4_294_967_295, 8]
    other = sha256(b"another").digest()
    both = shamir.split_all([secret, other], 3, points, dice)
    shares = {str(p): share.hex() for p, share in zip(points, both[0], strict=True)}
    return {
        "prime": f"{fields.PRIME:066x}",
        "threshold": 3,
        "secret": secret.hex(),
        "coefficients": polynomials(dice.drawn[0], 3)[0],
        "shares": shares,
        "with_liars": {"shares": shares | {"5": "00" * 33, "8": "01" + "00" * 32}, "liars": [5, 8]},
        "not_shares": [f"{fields.PRIME:066x}", "02" + "00" * 32, "ff" * 33, "00" * 32],
    }


def packing() -> list[Json]:
    """Vectors of every kind of width, and what does not unpack."""
    found: list[Json] = []
    for bits in (1, 3, 8, 12, 16, 17, 31, 32):
        words = [int.from_bytes(sha256(f"{bits} {i}".encode()).digest()[:4], "big") % (1 << bits) for i in range(9)]
        packed = pack(np.array(words, dtype=word(bits)), bits)
        signed = lifted(np.array(words, dtype=word(bits)), bits).tolist()
        spare = -9 * bits % 8
        wrong = [packed[:-1].hex(), (packed + b"\0").hex()]
        wrong += [(packed[:-1] + bytes([packed[-1] | 0x80])).hex()] if spare else []
        found.append({"bits": bits, "words": words, "signed": signed, "packed": packed.hex(), "refused": wrong})
    return found


def rosters() -> list[Json]:
    """Roots and proofs of rosters of a few sizes, of powers of two and beside them."""
    found: list[Json] = []
    for size in (1, 2, 3, 6, 8, 11):
        people = [sha256(f"identity {i}".encode()).digest() for i in range(size)]
        found.append(
            {
                "identities": [identity.hex() for identity in people],
                "root": roster.root(people).hex(),
                "proofs": [[step.hex() for step in path] for path in roster.proofs(people)],
            }
        )
    return found


def enrolment() -> Json:
    """A challenge of a server's, and the answer of a device."""
    server, device = (Identity.from_bytes(sha256(name.encode()).digest()) for name in ("a server", "a device"))
    at, token, nonce = "https://maps.example:8470", "7K3QD-00000-ABCDE-ZZZZZ", bytes(range(CHALLENGE))
    challenge = Challenge.signed(server, at, device.public, nonce)
    return {
        "origin": at,
        "token": token,
        "challenge": nonce.hex(),
        "server": {"private": server.to_bytes().hex(), "public": server.public.hex()},
        "device": {"private": device.to_bytes().hex(), "public": device.public.hex()},
        "challenge_statement": challenge_statement(at, device.public, nonce).hex(),
        "challenge_signature": challenge.signature.hex(),
        "enrolment_statement": enrolment_statement(at, server.public, nonce, device.public, token).hex(),
        "enrolment_signature": challenge.answered(device, at, token).hex(),
    }


def coins() -> list[Json]:
    """What devices draw, by key, session, purpose and all that is bound; and the first words of contributions."""
    found: list[Json] = []
    for number, (purpose, bound) in enumerate(
        (("keys", [b"position", b"said"]), ("noise", [b"said"]), ("noise", [b"other"]), ("report", []), ("row", [b""]))
    ):
        key, session = sha256(b"key %d" % (number % 2)).digest(), sha256(b"session").digest()
        drawn = DeviceCoins(key)(session, purpose.encode(), *bound)
        found.append(
            {
                "key": key.hex(),
                "session": session.hex(),
                "purpose": purpose,
                "bound": [each.hex() for each in bound],
                "draws": [drawn.bytes(length).hex() for length in (96, 1, 33, 8)],
            }
        )
    return found


def first_messages() -> list[Json]:
    """The keys that a client shows of a contribution: another contribution shows others."""
    found: list[Json] = []
    key, identity = sha256(b"a device").digest(), Identity.create(Dice("a first message"))
    terms = SessionParameters(
        Mode.MALICIOUS, sha256(b"a task").digest(), bytes(32), 6, 4, 3, 5, 5, 11, DistributedNoise(Fraction(7, 2), 4),
        roster.root([identity.public] * 6), bytes(32),
    )  # fmt: skip
    invitation = Invitation(terms, 2, roster.proof([identity.public] * 6, 2)).encode()
    for sums in ([0, 0, 0, 0, 0], [0, 1, 0, 0, 3], [-1, 0, 0, 0, 2]):
        exact = np.array(sums, dtype=np.int64)
        client = SecureSumClient(identity, Anything(), lambda _terms, exact=exact: exact, coins=DeviceCoins(key))
        reply = client.receive(invitation)
        found.append(
            {
                "key": key.hex(),
                "identity_private": identity.to_bytes().hex(),
                "invitation": invitation.hex(),
                "contribution": sums,
                "reply": reply.hex(),
            }
        )
    return found


def graphs() -> Json:
    """The ring of some members, and of few."""
    members = [0, 2, 3, 5, 6, 7, 11, 12, 19, 23]
    rings = [
        {"degree": degree, "neighbours": graph.ring_neighbours(SEED, np.array(members), degree).tolist()}
        for degree in (2, 4, 8, 9, 12)
    ]
    return {"seed": SEED.hex(), "commitment": graph.commitment(SEED).hex(), "members": members, "rings": rings}


@dataclass
class Person:
    """One client of a session, with all that it draws."""

    position: int
    identity: Identity
    contribution: list[int]
    size: int
    coins: Loaded = field(init=False)

    def __post_init__(self) -> None:
        self.coins = Loaded(f"client {self.position}", b"noise %d" % self.position)

    def client(self) -> SecureSumClient:
        """It answers as this vector says."""
        exact = np.array(self.contribution, dtype=np.int64)
        return SecureSumClient(self.identity, Anything(), lambda _terms: exact, coins=self.coins)

    def secrets(self, terms: SessionParameters) -> Json:
        """All that another implementation needs, to say the same."""
        drawn = self.coins.dice[b"keys"].drawn[0]
        sealing, masking, seed = drawn[:32], drawn[32:64], drawn[64:]
        noise = terms.noise.share(Stream.fixed(b"noise %d" % self.position), terms.size)
        return {
            "position": self.position,
            "identity_private": self.identity.to_bytes().hex(),
            "sealing_private": sealing.hex(),
            "masking_private": masking.hex(),
            "self_mask_seed": seed.hex(),
            "coefficients": dict(
                zip(
                    ("masking", "seed"), polynomials(self.coins.dice[b"shares"].drawn[-1], terms.threshold), strict=True
                )
            ),
            "contribution": self.contribution,
            "noise": noise.tolist(),
        }


def played(mode: Mode) -> Json:
    """A session of six, of whom one is gone after it has shared: every message, and the sum."""
    people = [
        Person(i, Identity.create(Dice(f"identity {i}")), [(i * j) % 4 - 1 for j in range(5)], 5) for i in range(6)
    ]
    identities = [person.identity.public for person in people]
    terms = SessionParameters(
        mode,
        task=sha256(b"a task").digest(),
        nonce=sha256(f"nonce {mode.name}".encode()).digest(),
        clients=6,
        degree=4,
        threshold=3,
        survivors=5,
        size=5,
        bits=11,
        noise=DistributedNoise(Fraction(7, 2), 4),
        roster=roster.root(identities),
        graph=graph.commitment(SEED) if mode is Mode.SEMI_HONEST else bytes(32),
    )
    server = Server(terms, identities, SEED if mode is Mode.SEMI_HONEST else None)
    clients, gone, messages = [person.client() for person in people], 4, []
    while server.result is None:
        for position, client in enumerate(clients):
            down = server.message_for(position)
            if down is None or (position == gone and server.stage >= Stage.MASKED):
                continue
            up = client.receive(down)
            server.receive(position, up)
            messages.append({"stage": server.stage.name, "client": position, "down": down.hex(), "up": up.hex()})
        server.advance()
    return {
        "terms": {
            "mode": mode.value,
            **{name: getattr(terms, name).hex() for name in ("task", "nonce", "roster", "graph")},
            **{name: getattr(terms, name) for name in ("clients", "degree", "threshold", "survivors", "size", "bits")},
            "noise": {"scale": str(terms.noise.scale), "parties": terms.noise.parties},
        },
        "terms_bytes": terms.to_bytes().hex(),
        "session": terms.session.hex(),
        "clients": [person.secrets(terms) for person in people],
        "gone_after_shares": gone,
        "messages": messages,
        "sums": server.result.sums.tolist(),
    }


def refused(session: Json) -> list[Json]:
    """Bytes that no decoder takes, each one step away from a message that it does."""
    messages: list[Json] = session["messages"]  # type: ignore[assignment]
    by_kind = {bytes.fromhex(str(m[way]))[1]: bytes.fromhex(str(m[way])) for m in messages for way in ("down", "up")}
    invitation, neighbours, unmask = (decode(by_kind[k]) for k in (1, 5, 12))
    assert isinstance(invitation, Invitation) and isinstance(neighbours, Neighbours) and isinstance(unmask, Unmask)
    head = bytes([1, 4]) + invitation.session
    body, prime = by_kind[2][34:], fields.PRIME.to_bytes(33, "big")
    scale = invitation.terms.to_bytes()
    at = scale.index(bytes([1, 7, 1, 2]))  # 7/2 as 14/4
    twice = scale[:at] + bytes([1, 14, 1, 4]) + scale[at + 4 :]
    padded = scale[:at] + bytes([2, 0, 7, 1, 2]) + scale[at + 4 :]
    rest = TlsWriter().number(invitation.position, 4).done() + by_kind[1][2 + 2 + len(scale) + 4 :]
    mixed = replace(unmask, keys={min(unmask.seeds): bytes(33)})
    too_large = replace(unmask, seeds={min(unmask.seeds): prime})
    a, b = neighbours.peers[:2]
    wrong = {
        "no byte at all": b"",
        "a version that is not 1": b"\x02" + by_kind[2][1:],
        "type 0": b"\x01\x00" + by_kind[2][2:],
        "type 13": b"\x01\x0d" + by_kind[2][2:],
        "a byte too many": by_kind[2] + b"\0",
        "a byte too few": by_kind[2][:-1],
        "numbers that do not ascend": head + bytes.fromhex("000000020000000300000002"),
        "a number twice": head + bytes.fromhex("000000020000000300000003"),
        "a count beyond the end": head + bytes.fromhex("ffffffff00000003"),
        "a bitmap with a bit for a client there is not": bytes([1, 3]) + head[2:] + bytes.fromhex("00000006fe"),
        "a bitmap that is too short": bytes([1, 3]) + head[2:] + bytes.fromhex("0000000aff"),
        "an X25519 key of 2^255 - 19": by_kind[2][:34] + (2**255 - 19).to_bytes(32, "little") + body[32:],
        "a share that is the prime": too_large.encode(),
        "both shares of one client": mixed.encode(),
        "neighbours that do not ascend": replace(neighbours, peers=(b, a)).encode(),
        "a proof of 33 hashes": replace(invitation, proof=(bytes(32),) * 33).encode(),
        "a scale that is not in lowest terms": b"\x01\x01" + len(twice).to_bytes(2, "big") + twice + rest,
        "a scale with a leading zero": b"\x01\x01" + len(padded).to_bytes(2, "big") + padded + rest,
        "terms of mode 3": b"\x01\x01" + len(scale).to_bytes(2, "big") + b"\x03" + scale[1:] + rest,
        "a threshold above the degree": _renumbered(by_kind[1], 2 + 2 + 65 + 8, 5),
        "a malicious session with a graph": by_kind[1][:4] + b"\x02" + by_kind[1][5:],
    }
    return [{"why": why, "bytes": data.hex()} for why, data in wrong.items()]


def _renumbered(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + value.to_bytes(4, "big") + data[at + 4 :]


def everything() -> dict[str, object]:
    """By file name, what it holds."""
    semi_honest = played(Mode.SEMI_HONEST)
    return {
        "primitives": primitives(),
        "sharing": sharing(),
        "packing": packing(),
        "rosters": rosters(),
        "coins": {"draws": coins(), "first_messages": first_messages()},
        "enrolment": enrolment(),
        "graphs": graphs(),
        "session-semi-honest": semi_honest,
        "session-malicious": played(Mode.MALICIOUS),
        "refused": refused(semi_honest),
    }


def text(vector: object) -> str:
    """JSON as it is kept: a line for every entry."""
    return json.dumps(vector, indent=1) + "\n"


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, vector in everything().items():
        (FOLDER / f"{name}.json").write_text(text(vector))
        sys.stdout.write(f"{name}.json\n")


if __name__ == "__main__":
    main()
