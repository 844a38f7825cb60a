"""Fully linear proofs (draft-irtf-cfrg-vdaf-20, 7.3; Boneh et al. 2019), in plain Python: prove, query, decide.

The twin of `proof_kernels`. A wire polynomial has a random value at 1 and a wire's inputs at the other powers of the
p-th root of unity; the gadget polynomial is the gadget of the wire polynomials, so its values there are the outputs.
"""

from hazemap.vdaf.circuits import Circuit
from hazemap.vdaf.ntt_field import power_of_two_from, roots
from hazemap.vdaf.prio3_verification import root_of_unity


def prove(
    circuit: Circuit, meas: list[int], prove_rand: list[int], joint_rand: list[int], *, sends_values: bool
) -> list[int]:
    """A proof that an encoded measurement is valid. O(calls · arity · log calls)."""
    field, p = circuit.field, circuit.wire_length
    calls = circuit.gadget_inputs(meas, joint_rand, 1)
    size = power_of_two_from(circuit.gadget_length)
    wires = []
    for wire, seed in enumerate(prove_rand):
        values = [seed] + [inputs[wire] for inputs in calls] + [0] * (p - 1 - len(calls))
        wires.append(field.ntt(field.inverse_ntt(values), size))
    values = [circuit.gadget.evaluate(field, list(inputs)) for inputs in zip(*wires, strict=True)]
    polynomial = values if sends_values else field.inverse_ntt(values)
    return prove_rand + polynomial[: circuit.gadget_length]


def query(
    circuit: Circuit,
    meas: list[int],
    proof: list[int],
    query_rand: list[int],
    joint_rand: list[int],
    shares: int,
    *,
    sends_values: bool,
) -> list[int]:
    """A share of the verifier, from shares of measurement and proof; `InvalidReport` for a point of no use."""
    field, p = circuit.field, circuit.wire_length
    *factors, point = query_rand
    if pow(point, p, field.modulus) == 1:
        raise root_of_unity()
    arity, size = circuit.gadget.arity, power_of_two_from(circuit.gadget_length)
    seeds, polynomial = proof[:arity], proof[arity:]
    if sends_values:
        values = polynomial + [
            _dot(field.lagrange_basis(size, missing, len(polynomial)), polynomial, field.modulus)
            for missing in roots(field, size)[len(polynomial) :]
        ]
        gadget_at_point = _dot(field.lagrange_basis(size, point), values, field.modulus)
    else:
        values = field.ntt(polynomial, size)
        gadget_at_point = sum(c * pow(point, i, field.modulus) for i, c in enumerate(polynomial)) % field.modulus
    calls = circuit.gadget_inputs(meas, joint_rand, shares)
    outputs = [values[(call + 1) * size // p] for call in range(circuit.calls)]
    basis = field.lagrange_basis(p, point)
    wires = [_dot(basis, [seed] + [inputs[wire] for inputs in calls], field.modulus) for wire, seed in enumerate(seeds)]
    return [circuit.reduced(outputs, meas, joint_rand, factors, shares), *wires, gadget_at_point]


def decide(circuit: Circuit, verifier: list[int]) -> bool:
    """Whether a verifier, the sum of all shares, says that the measurement is valid."""
    checks, *wires, gadget_at_point = verifier
    return checks == 0 and circuit.gadget.evaluate(circuit.field, wires) == gadget_at_point


def _dot(weights: list[int], values: list[int], modulus: int) -> int:
    return sum(w * x for w, x in zip(weights, values, strict=False)) % modulus
