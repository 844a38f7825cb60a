"""Proofs of bit vectors in Field128, in machine code: the twin of `prio3_plain` for them. This module imports numba.

Elements are plain; constants and powers of what is multiplied often are c · R. Names are those of `prio3_plain`.
"""

from typing import Any

import numpy as np

from hazemap.vdaf.compiled_loops import Bools, Words, compiled
from hazemap.vdaf.field_kernels import (
    add128,
    add_element,
    add_product,
    load128,
    mul128,
    nothing128,
    reduced128,
    store128,
    sub128,
)


@compiled
def lagrange_basis(
    point: tuple[int, int], nodes: Words, step: int, scale: tuple[int, int], basis: Words
) -> tuple[int, int]:  # pragma: no cover - compiled
    """The values at a point of the polynomials that are 1 at one node and 0 at the others; everything times R.

    The nodes are every `step`th of all, `scale` is one over their number. The product of all distances is returned; it
    is 0 if the point is a node. Products from below and from above spare inversions (Faz-Hernández 2025).
    """
    count = basis.shape[0]
    before = scale
    for i in range(count):
        node = load128(nodes, i * step)
        store128(basis, i, mul128(before, node))
        before = mul128(before, sub128(point, node))
    after = load128(nodes, 0)
    for i in range(count - 1, -1, -1):
        store128(basis, i, mul128(load128(basis, i), after))
        after = mul128(after, sub128(point, load128(nodes, i * step)))
    return after


@compiled
def point_weights(
    point: tuple[int, int], nodes: Words, scale: tuple[int, int], sends_values: bool, weights: Words
) -> None:  # pragma: no cover - compiled
    """The weights with which the numbers of a gadget polynomial give its value at a point; times R.

    The last value is not sent: it is such that the highest coefficient is 0.
    """
    if not sends_values:
        value = load128(nodes, 0)
        for i in range(weights.shape[0]):
            store128(weights, i, value)
            value = mul128(value, point)
        return
    size = nodes.shape[0]
    basis = np.empty((size, 2), dtype=np.uint64)
    lagrange_basis(point, nodes, 1, scale, basis)
    last = mul128(load128(basis, size - 1), load128(nodes, 1))
    for i in range(weights.shape[0]):
        store128(weights, i, sub128(load128(basis, i), mul128(last, load128(nodes, i))))


@compiled
def dot(weights: Words, values: Words) -> Any:  # pragma: no cover - compiled
    """The sum of products; of weights times R and plain values it is plain."""
    total = nothing128()
    for i in range(weights.shape[0]):
        total = add_product(total, load128(weights, i), load128(values, i))
    return reduced128(total)


@compiled
def query_all(
    meas: Words,
    sums: Words,
    proofs: Words,
    query_rands: Words,
    joint_rands: Words,
    chunk: int,
    calls: int,
    outputs: int,
    affine: bool,
    new_version: bool,
    nodes: Words,
    constants: Words,
    output_weights: Words,
    other_weights: Words,
    verifiers: Words,
    points: Bools,
) -> None:  # pragma: no cover - compiled
    """Write a share of the verifier of each proof of each report: uint64[n, proofs, …, 2].

    Clear `points` of a report if a point is a root of unity. `sums` begin with the outputs. `constants` are R²,
    1 / p · R, 1 / (2 p) · R, 1 / shares and the affine check's constant / shares.
    """
    arity, squared = 2 * chunk, load128(constants, 0)
    basis = np.empty((nodes.shape[0] // 2, 2), dtype=np.uint64)
    weights = np.empty((proofs.shape[2] - arity, 2), dtype=np.uint64)
    factors, steps = np.empty((calls, 2), dtype=np.uint64), np.empty((calls, 2), dtype=np.uint64)
    for index in range(meas.shape[0] * proofs.shape[1]):
        report, proof_index = index // proofs.shape[1], index % proofs.shape[1]
        vector, proof, verifier = meas[report], proofs[report, proof_index], verifiers[report, proof_index]
        query_rand, joint_rand = query_rands[report, proof_index], joint_rands[report, proof_index]
        point = mul128(load128(query_rand, query_rand.shape[0] - 1), squared)
        product = lagrange_basis(point, nodes, 2, load128(constants, 1), basis)
        if product[0] == 0 and product[1] == 0:
            points[report] = False
        point_weights(point, nodes, load128(constants, 2), new_version, weights)
        store128(verifier, arity + 1, dot(weights, proof[arity:]))
        shift, first = nothing128(), mul128(load128(joint_rand, 0), squared)
        begin = first
        for call in range(calls):
            r = mul128(load128(joint_rand, call), squared) if new_version else first
            store128(steps, call, r)
            store128(factors, call, mul128(load128(basis, call + 1), r if new_version else begin))
            shift = add_product(shift, load128(basis, call + 1), load128(constants, 3))
            if not new_version:
                for _ in range(chunk):
                    begin = mul128(begin, first)
        shifted = reduced128(shift)
        for j in range(chunk):
            even = add_product(nothing128(), load128(basis, 0), load128(proof, 2 * j))
            odd = add_product(nothing128(), load128(basis, 0), load128(proof, 2 * j + 1))
            for call in range(calls):
                if call * chunk + j < vector.shape[0]:
                    x, factor = load128(vector, call * chunk + j), load128(factors, call)
                    even = add_product(even, factor, x)
                    odd = add_product(odd, load128(basis, call + 1), x)
                    store128(factors, call, mul128(factor, load128(steps, call)))
            store128(verifier, 1 + 2 * j, reduced128(even))
            store128(verifier, 2 + 2 * j, sub128(reduced128(odd), shifted))
        check = dot(output_weights, proof[arity:])
        if affine:
            total = nothing128()
            for i in range(outputs):
                total = add_element(total, load128(sums[report], i))
            other = add128(mul128(reduced128(total), squared), load128(constants, 4))
            other = add128(other, dot(other_weights, vector[vector.shape[0] - other_weights.shape[0] :]))
            left, right = (
                mul128(load128(query_rand, 0), squared),
                mul128(load128(query_rand, 1), squared) if new_version else first,
            )
            if not new_version:
                left = mul128(load128(joint_rand, 1), squared)
                right = mul128(left, left)
            check = add128(mul128(left, check), mul128(right, other))
        store128(verifier, 0, check)


@compiled
def decide(verifier: Words) -> Any:  # pragma: no cover - compiled
    """Whether a verifier, the sum of all shares, says that the measurement is valid."""
    total, last = nothing128(), verifier.shape[0] - 1
    for i in range(1, last, 2):
        total = add_product(total, load128(verifier, i), load128(verifier, i + 1))
    one = (np.uint64(1), np.uint64(0))
    expected, found = mul128(load128(verifier, last), one), reduced128(total)
    zero = verifier[0, 0] == 0 and verifier[0, 1] == 0
    return zero and found[0] == expected[0] and found[1] == expected[1]


@compiled
def transformed(rows: Words, roots: Words) -> None:  # pragma: no cover - compiled
    """Replace values at powers of the root 1 / w by coefficients in bit-reversed order (without a division by n).

    Rows are uint64[n, columns, 2], all columns at once; `roots` are the powers of the root, times R.
    """
    n, columns = rows.shape[0], rows.shape[1]
    half = n // 2
    while half:
        step = roots.shape[0] // (2 * half)
        for i in range(half):
            w = load128(roots, i * step)
            for start in range(i, n, 2 * half):
                above, below = rows[start], rows[start + half]
                for column in range(columns):
                    x, y = load128(above, column), load128(below, column)
                    store128(above, column, add128(x, y))
                    store128(below, column, mul128(sub128(x, y), w))
        half //= 2


@compiled
def evaluated(rows: Words, roots: Words) -> None:  # pragma: no cover - compiled
    """Replace coefficients in bit-reversed order by values at the powers of the root."""
    n, columns = rows.shape[0], rows.shape[1]
    half = 1
    while half < n:
        step = roots.shape[0] // (2 * half)
        for i in range(half):
            w = load128(roots, i * step)
            for start in range(i, n, 2 * half):
                above, below = rows[start], rows[start + half]
                for column in range(columns):
                    x, y = load128(above, column), mul128(load128(below, column), w)
                    store128(above, column, add128(x, y))
                    store128(below, column, sub128(x, y))
        half *= 2


@compiled
def products(rows: Words, squared: tuple[int, int], values: Words, first: int) -> None:  # pragma: no cover - compiled
    """The gadget of each row, to every second value."""
    for i in range(rows.shape[0]):
        total, row = nothing128(), rows[i]
        for column in range(0, rows.shape[1], 2):
            total = add_product(total, load128(row, column), load128(row, column + 1))
        store128(values, first + 2 * i, mul128(reduced128(total), squared))


@compiled
def prove(
    meas: Words,
    prove_rand: Words,
    joint_rand: Words,
    calls: int,
    new_version: bool,
    nodes: Words,
    inverses: Words,
    shifts: Words,
    backward: Words,
    constants: Words,
    proof: Words,
) -> None:  # pragma: no cover - compiled
    """Write a proof. O(bits · log calls).

    `nodes` and `inverses` are powers of the 2p-th root and of its inverse; `shifts[i]` takes coefficient i,
    bit-reversed, to the odd points and divides it by p; `backward` divides by 2p.
    """
    points, arity = nodes.shape[0] // 2, prove_rand.shape[0]
    chunk, squared = arity // 2, load128(constants, 0)
    rows = np.zeros((points, arity, 2), dtype=np.uint64)
    for column in range(arity):
        store128(proof, column, load128(prove_rand, column))
        store128(rows[0], column, load128(prove_rand, column))
    one = (np.uint64(1), np.uint64(0))
    first = mul128(load128(joint_rand, 0), squared)
    factor = first
    for call in range(calls):
        r = mul128(load128(joint_rand, call), squared) if new_version else first
        factor = r if new_version else factor
        row = rows[call + 1]
        for j in range(chunk):
            index = call * chunk + j
            x = (meas[index, 0], meas[index, 1]) if index < meas.shape[0] else (np.uint64(0), np.uint64(0))
            store128(row, 2 * j, mul128(factor, x))
            store128(row, 2 * j + 1, sub128(x, one))
            factor = mul128(factor, r)
    values = np.empty((2 * points, 1, 2), dtype=np.uint64)
    flat = values[:, 0]
    products(rows, squared, flat, 0)
    transformed(rows, inverses)
    for i in range(points):
        row, shift = rows[i], load128(shifts, i)
        for column in range(arity):
            store128(row, column, mul128(load128(row, column), shift))
    evaluated(rows, nodes)
    products(rows, squared, flat, 1)
    length = proof.shape[0] - arity
    if not new_version:
        transformed(values, inverses)
    for i in range(2 * points):
        if new_version:
            if i < length:
                store128(proof, arity + i, load128(flat, i))
            continue
        place = 0
        for bit in range(64):
            if 1 << bit < 2 * points and i >> bit & 1:
                place += points >> bit
        if place < length:
            store128(proof, arity + place, mul128(load128(flat, i), load128(backward, 0)))


@compiled
def decide_all(verifiers: Words, valid: Bools) -> None:  # pragma: no cover - compiled
    """Add up shares of verifiers, uint64[n, shares, proofs, …, 2], and clear `valid` where a proof does not hold."""
    for i in range(verifiers.shape[0]):
        for proof in range(verifiers.shape[2]):
            total = verifiers[i, 0, proof].copy()
            for share in range(1, verifiers.shape[1]):
                for j in range(total.shape[0]):
                    store128(total, j, add128(load128(total, j), load128(verifiers[i, share, proof], j)))
            valid[i] &= decide(total)
