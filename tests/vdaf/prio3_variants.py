"""Variants of Prio3 for tests: those of the published vectors, with two that the vectors alone have."""

from dataclasses import dataclass

import numpy as np

from hazemap.vdaf.circuits import BitVector, Circuit, PolyEval, weights_of
from hazemap.vdaf.ntt_field import FIELD64, NttField
from hazemap.vdaf.prio3 import (
    Prio3,
    prio3_count,
    prio3_histogram,
    prio3_l1_bound_sum,
    prio3_multihot_count_vec,
    prio3_sum,
    prio3_sum_vec,
)
from hazemap.vdaf.prio3_plain import Prio3Parameters
from hazemap.vdaf.vdaf import VDAF_08, VDAF_18

UNREGISTERED = 0xFFFFFFFF


@dataclass(frozen=True)
class HigherDegree(Circuit):
    """0, 1 or 2, by a gadget of degree 3."""

    field: NttField = FIELD64
    measurement_length = output_length = checks = calls = 1
    joint_rand_length = 0
    gadget = PolyEval((0, 2, -3, 1))

    def encode(self, measurement):
        return np.array([measurement], dtype=np.uint8)

    def gadget_inputs(self, meas, joint_rand, shares):
        return [meas]

    def reduced(self, outputs, meas, joint_rand, query_rand, shares):
        return outputs[0]

    def truncate(self, meas):
        return meas


def many_proofs(length, max_measurement, chunk_length, proofs=3, shares=2, version=VDAF_18):
    """SumVec in the small field, with many proofs."""
    weights = tuple(weights_of(max_measurement))
    circuit = BitVector(FIELD64, length, chunk_length, version.reduces_by_query, output_weights=weights)
    return Prio3(Prio3Parameters(circuit, version, UNREGISTERED, shares, proofs))


def variant(name: str, vector: dict) -> Prio3:
    """The variant of a published vector, by the name of its file."""
    version = VDAF_08 if name.startswith("vdaf-08/") else VDAF_18
    kind = name.partition("/Prio3")[2].partition("_")[0]
    options = {"shares": vector["shares"], "version": version}
    length, chunk = vector.get("length"), vector.get("chunk_length")
    most = vector.get("max_measurement") or (1 << vector.get("bits", 0)) - 1
    weight = vector.get("max_weight") or vector.get("max_count")
    make = {
        "Count": lambda: prio3_count(**options),
        "Sum": lambda: prio3_sum(most, **options),
        "SumVec": lambda: prio3_sum_vec(length, most, chunk, **options),
        "SumVecWithMultiproof": lambda: many_proofs(length, most, chunk, 3 if version == VDAF_18 else 4, **options),
        "Histogram": lambda: prio3_histogram(length, chunk, **options),
        "MultihotCountVec": lambda: prio3_multihot_count_vec(length, weight, chunk, **options),
        "MultiHotHistogram": lambda: prio3_multihot_count_vec(length, weight, chunk, **options),
        "L1BoundSum": lambda: prio3_l1_bound_sum(length, vector["max_value"], chunk, shares=vector["shares"]),
        "HigherDegree": lambda: Prio3(Prio3Parameters(HigherDegree(), version, UNREGISTERED, vector["shares"])),
    }
    return make[kind]()
