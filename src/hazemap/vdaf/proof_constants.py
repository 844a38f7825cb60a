"""What the loops of `proof_kernels` need to know of a circuit: roots of unity and weights, times R = 2^128."""

from functools import lru_cache
from typing import NamedTuple

from hazemap.machine_code.arrays import Words
from hazemap.vdaf.bit_vector_circuits import BitVector
from hazemap.vdaf.ntt_field import FIELD128, roots

R = 1 << 128
P = FIELD128.modulus


class ProofConstants(NamedTuple):
    """Arguments of the loops, by their names there."""

    nodes: Words
    inverses: Words
    shifts: Words
    backward: Words
    constants: Words
    output_weights: Words
    other_weights: Words
    truncation: Words


@lru_cache(maxsize=64, typed=True)
def proof_constants(circuit: BitVector, shares: int, sends_values: bool) -> ProofConstants:
    """Of a circuit whose measurements are split into so many shares."""
    p = circuit.wire_length
    nodes = roots(FIELD128, 2 * p)
    inverses = [1, *nodes[:0:-1]]
    reverse = [int(format(i, f"0{p.bit_length() - 1}b")[::-1], 2) for i in range(p)]
    each = FIELD128.inverse(shares)
    if sends_values:
        wanted = {2 * (call + 1) for call in range(circuit.calls)}
        outputs = [int(i in wanted) for i in range(circuit.gadget_length)]
    else:
        ends = [nodes[2 * i * (circuit.calls + 1) % (2 * p)] for i in range(p)]
        cycle = [circuit.calls] + [
            (ends[i] - nodes[2 * i]) * FIELD128.inverse(nodes[2 * i] - 1) % P for i in range(1, p)
        ]  # the sums of the geometric series w^(i · call) over all calls
        outputs = [cycle[i % p] for i in range(circuit.gadget_length)]
    return ProofConstants(
        _times_r(nodes),
        _times_r(inverses),
        _times_r([nodes[i] * FIELD128.inverse(p) for i in reverse]),
        _times_r([FIELD128.inverse(2 * p)]),
        FIELD128.to_words(
            [
                R * R % P,
                FIELD128.inverse(p) * R % P,
                FIELD128.inverse(2 * p) * R % P,
                each,
                circuit.constant * each % P,
            ]
        ),
        _times_r(outputs),
        _times_r(list(circuit.other_weights)),
        _times_r(list(circuit.output_weights)),
    )


def _times_r(numbers: list[int]) -> Words:
    return FIELD128.to_words([number * R % P for number in numbers])
