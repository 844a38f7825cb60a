"""Fixed-key AES-128 over many blocks: by the processor's instructions and without, as `cryptography` has it."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.vdaf import aes128_kernels
from hazemap.vdaf.aes128_kernels import GROUP, expand_key


def hashes(key: bytes, blocks: np.ndarray) -> list[bytes]:
    """H(x) = AES(k, s) xor s, one block after another, by another's AES."""
    cipher = Cipher(algorithms.AES128(key), modes.ECB()).encryptor()
    out = []
    for block in blocks:
        low, high = int(block[0]), int(block[1])
        sigma = (high | (high ^ low) << 64).to_bytes(16, "little")
        out.append(bytes(a ^ b for a, b in zip(cipher.update(sigma), sigma, strict=True)))
    return out


def schedule(key: bytes) -> np.ndarray:
    keys = np.empty((11, 2), dtype=np.uint64)
    expand_key(*np.frombuffer(key, dtype=np.uint64), keys)
    return keys


@pytest.mark.parametrize("count", [1, GROUP, 7 * GROUP + 3])
def test_aes_instructions_hash_as_another_aes_does(count):
    if not aes128_kernels.AVAILABLE:
        pytest.skip("a processor without AES instructions")
    draw = np.random.default_rng(count)
    key = draw.bytes(16)
    blocks = draw.integers(0, 2**64, (-(-count // GROUP) * GROUP, 2), dtype=np.uint64)
    expected = hashes(key, blocks[:count])
    aes128_kernels.hash_blocks_by_instructions(schedule(key), blocks, count)
    assert [block.tobytes() for block in blocks[:count]] == expected


def test_the_round_keys_are_those_of_the_standard():
    """FIPS 197, appendix A.1: the last round key."""
    keys = schedule(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"))
    assert keys[10].tobytes().hex() == "d014f9a8c9ee2589e13f0cc8b6630ca6"


def test_bitsliced_aes_without_a_compiler_hashes_as_another_aes_does(monkeypatch):
    for name in ("transpose", "substitute", "mix_columns", "key_masks", "encrypt"):
        monkeypatch.setattr(aes128_kernels, name, getattr(aes128_kernels, name).py_func)
    draw = np.random.default_rng(5)
    key, blocks = draw.bytes(16), draw.integers(0, 2**64, (65, 2), dtype=np.uint64)
    expected = hashes(key, blocks)
    with np.errstate(over="ignore"):
        aes128_kernels.hash_blocks_bitsliced.py_func(schedule(key), blocks, 65)
    assert [block.tobytes() for block in blocks] == expected


@pytest.mark.slow  # compiles for six seconds
def test_bitsliced_aes_in_machine_code_hashes_as_another_aes_does():
    draw = np.random.default_rng(6)
    for count in (1, 63, 64, 65, 300):
        key, blocks = draw.bytes(16), draw.integers(0, 2**64, (count + 3, 2), dtype=np.uint64)
        expected = hashes(key, blocks[:count]) + [block.tobytes() for block in blocks[count:]]
        aes128_kernels.hash_blocks_bitsliced(schedule(key), blocks, count)
        assert [block.tobytes() for block in blocks] == expected
