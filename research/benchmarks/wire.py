"""The secure sum's primitives beside what bounds them, and a server's unmasking made of them: CPU microseconds.

    python -m research.benchmarks.wire

The bounds are the same library's bare AES and X25519 and, for shared secrets, Python's integers. The unmasking is
that of 1,000 clients × 65,536 numbers of 32 bits, 100 neighbours each, 10 % dropped out after sharing: keys and
seeds joined from 51 shares and checked, keys agreed again, masks taken off. No messages: the protocol's own cost
comes on top. Results go to results/wire.json beside this script. It judges nothing.
"""

import json
import os
import platform
import time
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.federated.protocols.secure_aggregation.authenticated_encryption import associated, seal, unseal
from hazemap.federated.protocols.secure_aggregation.key_agreement import AgreementKeyPair, agreed, derived
from hazemap.federated.protocols.secure_aggregation.masks import add_mask, subtract_mask
from hazemap.federated.protocols.secure_aggregation.modular_packing import pack, unpack
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import (
    PRIME,
    join,
    join_all,
    join_with_errors,
    split,
    split_all,
)
from hazemap.privacy.signing_identities import Identity, verified

SIZE, CLIENTS, DEGREE, THRESHOLD = 65_536, 1_000, 100, 51
SESSION = bytes(32)
RESULTS = Path(__file__).with_name("results") / "wire.json"


def micros(work: Callable[[], object], seconds: float = 0.05) -> float:
    """CPU microseconds of one call: the least mean of five groups of calls, each about this long."""
    work()
    start = time.process_time()
    work()
    calls = max(1, int(seconds / max(time.process_time() - start, 1e-6)))
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(calls):
            work()
        best = min(best, (time.process_time() - start) / calls)
    return best * 1e6


def masks() -> dict[str, float]:
    """A mask of 65,536 numbers beside AES-128 in counter mode over as many bytes."""
    vector, short, key = np.zeros(SIZE, np.uint32), np.zeros(SIZE, np.uint16), os.urandom(16)
    zeros, out = bytes(4 * SIZE), bytearray(4 * SIZE)
    cipher = Cipher(algorithms.AES128(key), modes.CTR(bytes(16))).encryptor()
    return {
        "mask, 65,536 × 32 bits": micros(lambda: add_mask(vector, key)),
        "  AES alone": micros(lambda: cipher.update_into(zeros, out)),
        "mask, 65,536 × 16 bits": micros(lambda: add_mask(short, key)),
        "mask, 16 × 32 bits": micros(lambda: add_mask(vector[:16], key)),
    }


def keys() -> dict[str, float]:
    """Agreements, signatures and letters."""
    ours, theirs, identity = AgreementKeyPair.create(), AgreementKeyPair.create(), Identity.create()
    message, key, address = os.urandom(100), os.urandom(32), associated(SESSION, 1, 2, 3)
    signature, letter = identity.sign(message), seal(key, address, bytes(66))
    private, public = ours._private, theirs._private.public_key()
    return {
        "agreed key of 16 bytes": micros(lambda: agreed(ours, theirs.public, SESSION, b"mask", 16)),
        "  X25519 alone": micros(lambda: private.exchange(public)),
        "key derived from a seed": micros(lambda: derived(key, SESSION, b"mask", 16)),
        "signature": micros(lambda: identity.sign(message)),
        "signature verified": micros(lambda: verified(identity.public, signature, message)),
        "letter of 66 bytes sealed": micros(lambda: seal(key, address, bytes(66))),
        "letter of 66 bytes unsealed": micros(lambda: unseal(key, address, letter)),
    }


def by_whole_numbers(secret: bytes, points: list[int]) -> list[int]:
    """The same shares by Horner's rule in Python's integers: what the field's limbs are compared with."""
    coefficients = [int.from_bytes(secret, "big"), *(int.from_bytes(os.urandom(32), "big") for _ in range(50))]
    shares = []
    for point in points:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * point + coefficient) % PRIME
        shares.append(value)
    return shares


def secrets() -> dict[str, float]:
    """Secrets of 32 bytes in 100 shares of which any 51 tell them."""
    rng = np.random.default_rng(1)
    secret = os.urandom(32)
    sets = [sorted(map(int, rng.permutation(CLIENTS)[:DEGREE] + 1)) for _ in range(200)]
    dealings = [dict(zip(points, split(secret, THRESHOLD, points), strict=True)) for points in sets]
    lies = dealings[0] | {point: b"\0" + os.urandom(32) for point in sets[0][:24]}
    return {
        "split into 100 shares, t = 51": micros(lambda: split(secret, THRESHOLD, sets[0])),
        "  each of two at the same points": micros(lambda: split_all([secret] * 2, THRESHOLD, sets[0])) / 2,
        "  by Python's integers": micros(lambda: by_whole_numbers(secret, sets[0])),
        "join of 51 shares": micros(lambda: join(dealings[0], THRESHOLD)),
        "  each of 200 at points of their own": micros(lambda: join_all(dealings, THRESHOLD)) / 200,
        "  each of 200 at the same points": micros(lambda: join_all([dealings[0]] * 200, THRESHOLD)) / 200,
        "join of 100 shares, 24 of them lies": micros(lambda: join_with_errors(lies, THRESHOLD)),
    }


def packing() -> dict[str, float]:
    """A vector of 65,536 numbers to bytes and back."""
    found = {}
    for bits in (12, 16, 20, 32):
        vector = np.random.default_rng(1).integers(0, 1 << bits, SIZE).astype(np.uint16 if bits <= 16 else np.uint32)
        data = pack(vector, bits)
        found[f"pack 65,536 × {bits} bits"] = micros(lambda vector=vector, bits=bits: pack(vector, bits))
        found[f"unpack 65,536 × {bits} bits"] = micros(lambda data=data, bits=bits: unpack(data, SIZE, bits))
    return found


def unmasking() -> dict[str, float]:
    """CPU seconds in which a server takes the masks off a sum, by part; it checks that the sum is then right."""
    rng = np.random.default_rng(2)
    dropped = {int(position) for position in rng.permutation(CLIENTS)[: CLIENTS // 10]}
    near = [step for step in range(-DEGREE // 2, DEGREE // 2 + 1) if step]
    pairs = [AgreementKeyPair.create() for _ in range(CLIENTS)]
    seeds = [os.urandom(32) for _ in range(CLIENTS)]
    commitments = [sha256(seed).digest() for seed in seeds]
    dealings, peers = [], []
    for position in range(CLIENTS):
        around = [(position + step) % CLIENTS for step in near]
        secret = pairs[position].to_bytes() if position in dropped else seeds[position]
        shares = zip(around, split(secret, THRESHOLD, [peer + 1 for peer in around]), strict=True)
        dealings.append({peer + 1: share for peer, share in shares if peer not in dropped})
        peers.append([peer for peer in around if peer not in dropped])
    total = rng.integers(0, 1 << 32, SIZE).astype(np.uint32)
    wanted = total.copy()
    for position in range(CLIENTS):
        if position not in dropped:
            add_mask(total, derived(seeds[position], SESSION, b"self mask", 16))
        for peer in peers[position] if position in dropped else ():
            mask = agreed(pairs[peer], pairs[position].public, SESSION, b"pair mask", 16)
            (add_mask if peer < position else subtract_mask)(total, mask)

    start = time.process_time()
    told = join_all(dealings, THRESHOLD)
    joined = time.process_time()
    off: list[tuple[Callable[..., None], bytes]] = []
    for position, secret in enumerate(told):
        assert secret is not None
        if position not in dropped:
            assert sha256(secret).digest() == commitments[position]
            off.append((subtract_mask, derived(secret, SESSION, b"self mask", 16)))
            continue
        pair = AgreementKeyPair.from_bytes(secret)
        assert pair.public == pairs[position].public
        for peer in peers[position]:
            mask = agreed(pair, pairs[peer].public, SESSION, b"pair mask", 16)
            off.append((subtract_mask if peer < position else add_mask, mask))
    derived_all = time.process_time()
    for take, mask in off:
        take(total, mask)
    done = time.process_time()
    assert np.array_equal(total, wanted)
    return {
        "masks": len(off),
        "secrets joined": joined - start,
        "keys agreed": derived_all - joined,
        "masks taken off": done - derived_all,
        "all": done - start,
        "AES alone": len(off) * masks()["  AES alone"] / 1e6,
    }


def main() -> None:
    """Measure, print, write."""
    figures = masks() | keys() | secrets() | packing()
    for what, cost in figures.items():
        print(f"{what:40} {cost:10.1f} µs")
    server = unmasking()
    for what, cost in server.items():
        print(f"unmasking: {what:29} {cost:10.3f} s" if what != "masks" else f"unmasking: {what:29} {cost:10,}")
    result = {
        "cpu_microseconds": {what.strip(): round(cost, 2) for what, cost in figures.items()},
        "unmasking_cpu_seconds": {what: round(cost, 3) for what, cost in server.items()},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "versions": {name: version(name) for name in ("numpy", "numba", "cryptography")},
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(f"written to {RESULTS.name}")


if __name__ == "__main__":
    main()
