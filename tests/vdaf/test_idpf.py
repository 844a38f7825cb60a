"""Incremental point functions: the published vectors, and shares of nodes that add up to what was programmed."""

import json
import random

import numpy as np
import pytest

from hazemap.vdaf import aes128_kernels, poplar1_kernels
from hazemap.vdaf.aes128_kernels import GROUP
from hazemap.vdaf.errors import InputError
from hazemap.vdaf.idpf import RAND_SIZE, IdpfBBCGGI21
from hazemap.vdaf.xofs import XofFixedKeyAes128, fixed_key


@pytest.mark.parametrize(("folder", "length_size"), [("vdaf", 2), ("vdaf-08", 1)])
def test_the_published_outputs_of_the_aes_function_are_reproduced(shared, folder, length_size):
    vector = json.loads((shared / "vectors" / folder / "XofFixedKeyAes128.json").read_text())
    seed, dst, binder = (bytes.fromhex(vector[name]) for name in ("seed", "dst", "binder"))
    xof = XofFixedKeyAes128(seed, fixed_key(dst, binder, length_size))
    expanded = bytes.fromhex(vector["expanded_vec_field128"])
    assert vector["length"] * 16 == len(expanded)  # no block of these is drawn again
    assert b"".join(xof.next(length) for length in (5, 0, 11, 600, 24)) == expanded
    assert expanded[:16].hex() == vector["derived_seed"]


@pytest.mark.parametrize(("name", "wire"), [("vdaf/IdpfBBCGGI21_0", 18), ("vdaf-08/IdpfPoplar_0", 8)])
def test_the_published_point_functions_are_reproduced(shared, name, wire):
    vector = json.loads((shared / "vectors" / f"{name}.json").read_text())
    bits, inner = vector["bits"], [[int(x) for x in pair] for pair in vector["beta_inner"]]
    leaf = [int(x) for x in vector["beta_leaf"]]
    if wire == 18:
        alpha = int("".join("01"[bit] for bit in vector["alpha"]), 2)
        ctx, nonce = bytes.fromhex(vector["ctx"]), bytes.fromhex(vector["nonce"])
    else:
        alpha, ctx, nonce = int(vector["alpha"]), b"", bytes.fromhex(vector["binder"])
    keys = tuple(bytes.fromhex(key) for key in vector["keys"])
    idpf = IdpfBBCGGI21(bits, wire=wire)
    words, made = idpf.gen(alpha, inner, leaf, ctx, nonce, b"".join(keys))
    assert made == keys
    assert idpf.encode_public_share(words).hex() == vector["public_share"]
    for level, beta in enumerate((*inner, leaf)):
        on_path = alpha >> (bits - 1 - level)
        shares = [idpf.eval(i, words, keys[i], level, [on_path, on_path ^ 1], ctx, nonce) for i in (0, 1)]
        sums = [
            [(a + b) % idpf.field(level)[0] for a, b in zip(*pair, strict=True)] for pair in zip(*shares, strict=True)
        ]
        assert sums == [beta, [0, 0]]


@pytest.mark.parametrize("bits", [1, 2, 9])
def test_every_node_of_a_tree_is_shared_as_programmed(bits):
    draw = random.Random(bits)
    idpf, alpha, nonce = IdpfBBCGGI21(bits), draw.randrange(1 << bits), draw.randbytes(16)
    values = [[draw.randrange(idpf.field(level)[0]) for _ in range(2)] for level in range(bits)]
    words, keys = idpf.gen(alpha, values[:-1], values[-1], b"task", nonce, draw.randbytes(RAND_SIZE))
    for level in range(bits):
        nodes = range(2 << level)
        shares = [idpf.eval(i, words, keys[i], level, nodes, b"task", nonce) for i in (0, 1)]
        for node, one, other in zip(nodes, *shares, strict=True):
            found = [(a + b) % idpf.field(level)[0] for a, b in zip(one, other, strict=True)]
            assert found == (values[level] if node == alpha >> (bits - 1 - level) else [0, 0])


def test_what_is_no_point_function_is_refused():
    idpf = IdpfBBCGGI21(4)
    good = (5, [(1, 1)] * 3, (1, 1), b"", bytes(16), bytes(32))
    words, keys = idpf.gen(*good)
    for place, wrong in enumerate([16, [(1, 1)] * 2, (1, 1, 1), None, bytes(15), bytes(31)]):
        if wrong is not None:
            with pytest.raises(InputError):
                idpf.gen(*good[:place], wrong, *good[place + 1 :])
    for agg_id, level, prefix in ((2, 0, 0), (0, 4, 0), (0, -1, 0), (0, 1, 4), (0, 1, -1)):
        with pytest.raises(InputError):
            idpf.eval(agg_id, words, keys[0], level, [prefix], b"", bytes(16))
    for bits, wire in ((0, 18), (65, 18), (4, 17)):
        with pytest.raises(InputError):
            IdpfBBCGGI21(bits, wire=wire)


@pytest.mark.parametrize(("draws", "onward"), [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("count", [1, GROUP, 2 * GROUP + 5])
def test_a_step_by_aes_instructions_is_that_of_one_thing_after_another(count, draws, onward):
    if not aes128_kernels.AVAILABLE:
        pytest.skip("a processor without AES instructions")
    draw = np.random.default_rng(count)
    words = lambda *shape: draw.integers(0, 2**64, shape, dtype=np.uint64)  # noqa: E731 - short
    extend, convert, parents = words(11, 2), words(11, 2), words(40, poplar1_kernels.NODE)
    parents[:, 2:] = -draw.integers(0, 2, (40, 1)).astype(np.uint64)
    correction = np.concatenate([words(2), draw.integers(0, 2, 2).astype(np.uint64)])
    steps = np.concatenate([np.zeros(3, dtype=np.int64), draw.integers(0, 80, count), np.zeros(GROUP, dtype=np.int64)])
    found = []
    for step in (poplar1_kernels.step_nodes, poplar1_kernels.step_in_turn.py_func):
        children = np.zeros((count + GROUP, poplar1_kernels.NODE), dtype=np.uint64)
        before, drawn = np.zeros((2, count + GROUP if draws else 0, 2), dtype=np.uint64)
        with np.errstate(over="ignore"):
            step(extend, convert, correction, steps, 3, count, parents, children, before, drawn, onward)
        found.append([each[:count].tolist() for each in (children, before, drawn)])
    assert found[0] == found[1]
    assert not draws or np.any(found[0][2])
