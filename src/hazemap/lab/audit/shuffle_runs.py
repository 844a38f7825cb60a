"""Runs of a real shuffle among a few people, and what each party sees of them.

People's messages go through a shuffler as it is served, with its store, into an analyser. Three parties look on: the
analyser, who enrols people and so knows their numbers; the same with the people who work with it, and know what they
sent; and the shuffler, who knows who sent what and tries to read it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.errors import HazemapError, Refused
from hazemap.federated.protocols.secure_aggregation.modular_packing import lifted, unpack
from hazemap.federated.protocols.shuffle import sealed_parts
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms, ShuffleParameters
from hazemap.federated.protocols.shuffle.submission import SERIAL, issued, submitted
from hazemap.federated.service.store import Store, Write
from hazemap.federated.shuffler import shuffler_service
from hazemap.federated.shuffler.batch_limits import BatchLimits
from hazemap.federated.shuffler.shuffler_service import SCHEMA
from hazemap.lab.audit.audited_settings import AuditedSetting
from hazemap.lab.audit.observed_output import Observation
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity
from hazemap.vdaf.hpke import Kem, KeyPair

ANALYSER, WITH_CORRUPT, SHUFFLER = "the analyser", "the analyser and a part of the people", "the shuffler"
PEOPLE, CORRUPT = 21, 2
"""People of a run, and how many of them work with the analyser. The first one is looked for."""

_SIZE, _SECURITY = 1, 8
_NOW = 1_000_000
KEY_OF_SHUFFLER = b"audited shuffler".ljust(32, b".")
"""What the shuffler's key is made of; a fault may know it, too."""


@dataclass(frozen=True)
class _Sent:
    """What one person sends, as they know it themselves."""

    serial: bytes
    noisy: Ints
    messages: list[bytes]


def answered(setting: AuditedSetting, content: bytes, folder: Path, runs: int) -> list[dict[str, list[float]] | str]:
    """What each party sees, so many times; or the words in which a run ended.

    `content` tells whether the first person has a row.
    """
    there = content == b"there"
    store = Store(folder / "shuffler.sqlite", SCHEMA)
    try:
        return [_words_of_errors(setting, there, store) for _ in range(runs)]
    finally:
        store.close()


def observed(raw: Mapping[str, list[float]]) -> Observation:
    """The same, as it is judged."""
    return Observation(columns={name: np.array(numbers) for name, numbers in raw.items()})


def _words_of_errors(setting: AuditedSetting, there: bool, store: Store) -> dict[str, list[float]] | str:
    try:
        return _once(Fraction(setting.epsilon or "1"), there, store)
    except HazemapError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # whatever it is, somebody sees it
        return f"{type(error).__name__} (no error of hazemap's): {error}"


def _once(epsilon: Fraction, there: bool, store: Store) -> dict[str, list[float]]:
    stream, issuer, secret = Stream.from_os(), Identity.create(), os.urandom(SERIAL)
    own = KeyPair.derived(Kem.X25519_HKDF_SHA256, KEY_OF_SHUFFLER)
    opens = KeyPair.derived(Kem.X25519_HKDF_SHA256, os.urandom(32))
    noise = DistributedNoise(1 / epsilon, PEOPLE - CORRUPT)
    parts = ShuffleParameters(
        bytes(32), _SIZE, noise.bits(PEOPLE, 1, _SIZE), _SIZE, noise.parties, PEOPLE, security=_SECURITY
    )
    terms = BatchTerms(
        version=1,
        nonce=os.urandom(16),
        issuer=issuer.public,
        analyser=opens.public,
        contents=parts.digest,
        messages=parts.messages,
        message_bytes=parts.message_bytes,
        minimum=PEOPLE,
        people=PEOPLE,
        closes=_NOW + 1,
    )
    service = shuffler_service.ShufflerService(store, own, BatchLimits(least=PEOPLE))
    service.announce(terms, _NOW)
    everybody, writes = list[_Sent](), list[Write]()
    for person in range(PEOPLE):
        sums = np.array([there and person == 0], dtype=np.int64)
        noisy = sums + noise.share(stream, _SIZE)
        credential = issued(issuer, secret, terms.digest, b"%d" % person)
        sealed = sealed_parts.messages(parts, opens.public, noisy, stream)
        everybody.append(_Sent(credential[:SERIAL], noisy, sealed))
        request = submitted(terms, own.public, credential, sealed, os.urandom(32))
        writes += service.taking(terms.digest, request, _NOW)
    store.write_now(*writes)
    pieces = service.permute(terms.digest).pieces
    handed_on = b"".join(service.piece(terms.digest, number) for number in range(pieces))
    service.forget(terms.digest)
    size = terms.message_bytes
    every = [handed_on[start : start + size] for start in range(0, len(handed_on), size)]
    seen = {SHUFFLER: _tried(parts, own, everybody[0].messages)}
    return seen | _opened(parts, opens, every, everybody)


def _opened(
    parts: ShuffleParameters, key: KeyPair, every: list[bytes], everybody: list[_Sent]
) -> dict[str, list[float]]:
    """What an analyser makes of a batch: its sums, and the messages where its numbers put the first person."""
    sums = sealed_parts.opened(parts, key, every).sums
    rank = sorted(each.serial for each in everybody).index(everybody[0].serial)
    guessed = _tried(parts, key, every[rank * parts.messages : (rank + 1) * parts.messages])
    known = sum((each.noisy for each in everybody[-CORRUPT:]), np.zeros(_SIZE, dtype=np.int64))
    return {
        ANALYSER: [*map(float, sums), *guessed],
        WITH_CORRUPT: [*map(float, sums - known), *guessed],
    }


def _tried(parts: ShuffleParameters, key: KeyPair, messages: list[bytes]) -> list[float]:
    """How many of some messages a key opens, and what they add up to."""
    opened, total = 0, np.zeros(parts.block, dtype=np.int64)
    for message in messages:
        try:
            plain = sealed_parts.SUITE.open(key, message[:32], sealed_parts.INFO, parts.digest, message[32:])
        except Refused:
            continue
        total += unpack(plain[4:], parts.block, parts.bits)
        opened += 1
    mask = (1 << parts.bits) - 1
    return [float(opened), *map(float, lifted((total & mask).astype(np.uint32), parts.bits))]
