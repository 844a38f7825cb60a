"""Prio3 at its edges: what is refused of callers, clients, aggregators; what cheating clients gain."""

import dataclasses
import random
from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from tests.vdaf.prio3_variants import HigherDegree

from hazemap.vdaf.circuits import (
    BitVector,
    Count,
    HistogramCircuit,
    MultihotCountVec,
    Sum,
    bits_of,
    shortest_chunk_length,
    weights_of,
)
from hazemap.vdaf.errors import CodecError, InputError, Refused
from hazemap.vdaf.ntt_field import FIELD64, FIELD128
from hazemap.vdaf.prio3 import (
    Prio3,
    prio3_count,
    prio3_histogram,
    prio3_l1_bound_sum,
    prio3_multihot_count_vec,
    prio3_sum,
    prio3_sum_vec,
)
from hazemap.vdaf.prio3_plain import query
from hazemap.vdaf.vdaf import VDAF_08, VDAF_18, InvalidReport, ReportShare

NAN = float("nan")


def counted(vdaf, measurement, seed=1, **spoilt):
    """The result of one report, from sharding to the end."""
    rng = random.Random(seed)
    nonce, rand, key = rng.randbytes(16), rng.randbytes(vdaf.RAND_SIZE), rng.randbytes(vdaf.VERIFY_KEY_SIZE)
    public, inputs = vdaf.shard(b"", measurement, nonce, rand)
    sent = {"nonce": nonce, "ctx": b""} | spoilt
    begun = [vdaf.verify_init(key, sent["ctx"], i, b"", sent["nonce"], public, each) for i, each in enumerate(inputs)]
    message = vdaf.verifier_shares_to_message(sent["ctx"], b"", [each.verifier_share for each in begun])
    return vdaf.unshard(b"", [vdaf.verify_next(b"", each.state, message) for each in begun])


@pytest.mark.parametrize(
    ("vdaf", "measurement"),
    [
        *((prio3_count(), each) for each in (2, -1, 0.0, NAN, None, "1", [1], np.array(1))),
        *((prio3_sum(5), each) for each in (6, -1, NAN, True, np.float64(1), 2**70)),
        *((prio3_histogram(3, 2), each) for each in (3, -1, NAN, 1.0, True, np.inf)),
        *((prio3_sum_vec(2, 3, 2), each) for each in ([1], [1, 2, 3], [1, 4], [1, NAN], [1, -1], 5, "ab", {1, 2})),
        *((prio3_sum_vec(2, 3, 2), np.array(each)) for each in ([1.0, 2.0], [[1, 2]], [1, NAN], [1, 2**63])),
        *((prio3_multihot_count_vec(3, 2, 2), each) for each in ([1, 1, 1], [2, 0, 0], [NAN, 0, 0], [1, 0])),
        *(
            (prio3_l1_bound_sum(3, 5, 2), each)
            for each in ([0, 6, 0], [-1, 1, 0], [3, 2, 1], [5, 5, 5], [1, 4], [NAN] * 3)
        ),
        *((prio3_l1_bound_sum(3, 1, 2), each) for each in ([2, 0, 0], [1, 0, 1], [0, 0.5, 0], np.array([1, 1, 1]))),
    ],
)
def test_what_cannot_be_measured_is_refused(vdaf, measurement):
    with pytest.raises(InputError, match=r"whole number|at most 2 cells|add up to"):
        vdaf.shard(b"", measurement, bytes(16), bytes(vdaf.RAND_SIZE))


@pytest.mark.parametrize(
    ("vdaf", "measurement", "result"),
    [
        (prio3_count(), True, [1]),
        (prio3_count(), np.uint8(0), [0]),
        (prio3_sum(2**63 + 5), 2**63 + 5, [2**63 + 5]),
        (prio3_sum(1), 1, [1]),
        (prio3_histogram(1, 1), 0, [1]),
        (prio3_sum_vec(2, 3, 4), np.array([3, 0], dtype=np.uint64), [3, 0]),
        (prio3_multihot_count_vec(3, 3, 5), np.array([True, False, True]), [1, 0, 1]),
        (prio3_multihot_count_vec(3, 1, 2), [False, False, False], [0, 0, 0]),
        (prio3_l1_bound_sum(3, 6, 5), np.array([1, 0, 5], dtype=np.uint64), [1, 0, 5]),
        (prio3_l1_bound_sum(1, 1, 2), [False], [0]),
        (prio3_sum(1, version=VDAF_08), 0, [0]),
    ],
)
def test_numbers_of_any_whole_type_are_measured(vdaf, measurement, result):
    assert counted(vdaf, measurement) == result


@pytest.mark.parametrize(
    "make",
    [
        lambda: prio3_sum(0),
        lambda: prio3_sum(FIELD64.modulus),
        lambda: prio3_sum(2.5),
        lambda: prio3_sum(6, version=VDAF_08),
        lambda: prio3_sum_vec(0, 1, 1),
        lambda: prio3_sum_vec(3, 1, 4),
        lambda: prio3_sum_vec(3, 1, 0),
        lambda: prio3_sum_vec(3, 2**64, 4),
        lambda: prio3_histogram(2**32, 10),
        lambda: prio3_histogram(True, 1),
        lambda: prio3_multihot_count_vec(3, 4, 1),
        lambda: prio3_multihot_count_vec(3, 0, 1),
        lambda: prio3_l1_bound_sum(0, 1, 1),
        lambda: prio3_l1_bound_sum(3, 0, 1),
        lambda: prio3_l1_bound_sum(3, 2**64, 1),
        lambda: prio3_l1_bound_sum(3, 7.0, 1),
        lambda: prio3_l1_bound_sum(3, 1, 5),
        lambda: prio3_count(shares=1),
        lambda: prio3_count(shares=256),
    ],
)
def test_parameters_that_cannot_be_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_what_a_caller_gives_has_its_length():
    vdaf, rand = prio3_histogram(4, 2), bytes(128)
    public, inputs = vdaf.shard(b"", 1, bytes(16), rand)
    right = {"verify_key": bytes(32), "ctx": b"", "agg_id": 0, "agg_param": b"", "nonce": bytes(16)}
    right |= {"public_share": public, "input_share": inputs[0]}
    assert vdaf.verify_init(**right)
    for name, wrong in [("verify_key", bytes(31)), ("nonce", bytes(15)), ("agg_id", 2), ("agg_id", -1)]:
        with pytest.raises(InputError):
            vdaf.verify_init(**right | {name: wrong})
    for name, wrong in [("public_share", public + b"x"), ("input_share", inputs[0][1:]), ("input_share", inputs[1])]:
        with pytest.raises(InvalidReport, match="bytes here") as found:
            vdaf.verify_init(**right | {name: wrong})
        assert found.value.undecodable
    with pytest.raises(Refused, match="no aggregation parameter"):
        vdaf.verify_init(**right | {"agg_param": b"x"})
    with pytest.raises(InputError, match="randomness"):
        vdaf.shard(b"", 1, bytes(16), rand[1:])
    with pytest.raises(InputError, match="context"):
        prio3_count(version=VDAF_08).shard(b"ctx", 1, bytes(16), bytes(48))
    with pytest.raises(InputError, match=r"65,527"):
        prio3_count().shard(bytes(65_528), 1, bytes(16), bytes(64))


def test_a_report_is_aggregated_once():
    vdaf = prio3_count()
    assert vdaf.is_valid(b"", []) and not vdaf.is_valid(b"", [b""])
    with pytest.raises(Refused):
        vdaf.is_valid(b"x", [])


@pytest.mark.parametrize(
    "vdaf", [prio3_count(), prio3_histogram(3, 2), Prio3(prio3_histogram(3, 2).parameters, compiled=True)]
)
def test_shares_of_results_are_read_strictly_and_take_noise(vdaf):
    length, size = vdaf.output_length(b""), vdaf.parameters.circuit.field.size
    modulus = vdaf.modulus(b"")
    for wrong in (b"", bytes(length * size - 1), bytes(length * size + size), b"\xff" * (length * size)):
        with pytest.raises(CodecError):
            vdaf.decode_agg_share(b"", wrong)
    with pytest.raises(CodecError, match="modulus"):
        vdaf.decode_agg_share(b"", bytes(length * size - size) + modulus.to_bytes(size, "little"))
    most = vdaf.decode_agg_share(b"", bytes(length * size - size) + (modulus - 1).to_bytes(size, "little"))
    noise = [vdaf.share_of(b"", [number] * length) for number in (-5, 2)]
    total = vdaf.merge(b"", [most, *noise])
    expected = [number % modulus for number in [-3] * (length - 1) + [-4]]
    assert vdaf.unshard(b"", [total, vdaf.merge(b"", [])]) == expected
    assert vdaf.encode_agg_share(b"", vdaf.decode_agg_share(b"", vdaf.encode_agg_share(b"", total))) == total.tobytes()
    for wrong in (total[:-1], total.astype(np.int64), total[:, :0]):
        with pytest.raises(InputError):
            vdaf.merge(b"", [total, wrong])
    with pytest.raises(InputError):
        vdaf.unshard(b"", [total])
    with pytest.raises(InputError):
        vdaf.share_of(b"", [0] * (length + 1))


class Cheat(list):
    """A measurement that a client encodes as it likes."""


def encode(circuit, numbers):
    """A measurement as it is; a cheat as the client says."""
    honest = next(each for each in type(circuit).__mro__[1:] if "encode" in vars(each)).encode
    return np.array(numbers, dtype=np.uint8) if isinstance(numbers, Cheat) else honest(circuit, numbers)


def cheating(vdaf, compiled):
    """The same function, of which the client's half encodes what it is told."""
    circuit = vdaf.parameters.circuit
    kind = type("Cheating", (type(circuit),), {"encode": encode})
    values = [getattr(circuit, field.name) for field in dataclasses.fields(circuit)]
    return Prio3(dataclasses.replace(vdaf.parameters, circuit=kind(*values)), compiled=compiled)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("version", [VDAF_18, VDAF_08])
def test_a_client_that_encodes_what_cannot_be_measured_is_refused(version, compiled):
    one, three = bits_of([1], 3), bits_of([3], 3)
    for made, good, bad in [
        (prio3_count(version=version), [0], [[2], [255]]),
        (prio3_sum(3, version=version), [1, 1], [[2, 0], [0, 3]]),
        (prio3_sum_vec(2, 3, 3, version=version), [1, 0, 1, 1], [[2, 0, 0, 0], [0, 0, 0, 255]]),
        (prio3_histogram(4, 2, version=version), [0, 0, 1, 0], [[0] * 4, [1, 1, 0, 0], [2, 0, 0, 0], [1] * 4]),
        (
            prio3_multihot_count_vec(4, 3, 3, version=version),
            None,
            [[1, 1, 1, 1, *three], [1, 1, 0, 0, *one], [3, 0, 0, 0, *three], [1, 1, 0, 0, 2, 0]],
        ),
    ]:
        vdaf = cheating(made, compiled)
        assert counted(vdaf, Cheat(good) if good else [1, 0, 0, 1])
        for numbers in bad:
            with pytest.raises(InvalidReport, match="the proof does not hold"):
                counted(vdaf, Cheat(numbers))


@pytest.mark.parametrize("compiled", [True, False])
def test_a_vote_of_two_is_refused_and_so_is_one_vote_given_in_several_places(compiled):
    """However the client writes them and the sum: the bound is 1, then 6 shared over up to four places."""
    for bound, votes in [(1, 2), (6, 7)]:
        vdaf = cheating(prio3_l1_bound_sum(4, bound, 3), compiled)
        whole = bits_of([bound], bound).tolist()
        assert counted(vdaf, [0, bound, 0, 0]) == [0, bound, 0, 0]
        one = bits_of([1], bound).tolist()
        none = [0] * len(whole)
        for claim in (whole, none, one, [votes, *none[1:]], [*whole[:-1], 2]):
            with pytest.raises(InvalidReport, match="the proof does not hold"):
                counted(vdaf, Cheat([votes, *none[1:], *none * 3, *claim]))
            for places in range(2, 5):
                with pytest.raises(InvalidReport, match="the proof does not hold"):
                    counted(vdaf, Cheat([*whole * (places - 1), *one, *none * (4 - places), *claim]))


def holds(circuit, encoded, rng):
    """Whether a circuit finds a vector of elements valid, by itself: a wrong answer has a chance below 2^-120."""
    modulus = circuit.field.modulus
    lengths = circuit.joint_rand_length, circuit.checks
    joint, query_rand = ([rng.randrange(modulus) for _ in range(length)] for length in lengths)
    outputs = [circuit.gadget.evaluate(circuit.field, each) for each in circuit.gadget_inputs(encoded, joint, 1)]
    return circuit.reduced(outputs, encoded, joint, query_rand, 1) == 0


@pytest.mark.parametrize(
    ("length", "bound", "elements"),
    [
        *((1, 1, range(-3, 6)), (1, 2, range(-2, 4)), (2, 1, range(-3, 5)), (2, 2, (-1, 0, 1)), (3, 1, range(-2, 4))),
        *((3, 2, (0, 1)), (2, 5, (0, 1)), (1, 7, (0, 1, 2)), (4, 3, (0, 1)), (5, 1, (-1, 0, 1, 2))),
    ],
)
def test_exactly_the_vectors_within_their_bound_have_a_proof(length, bound, elements):
    """All that a client can encode from these elements of the field, minus ones among them."""
    circuit, rng = prio3_l1_bound_sum(length, bound, 2).parameters.circuit, random.Random(7)
    taken = set()
    for encoded in product(elements, repeat=circuit.measurement_length):
        wires = [each % FIELD128.modulus for each in encoded]
        if holds(circuit, wires, rng):
            taken.add(tuple(circuit.truncate(wires)))
    within = {each for each in product(range(bound + 1), repeat=length) if sum(each) <= bound}
    assert taken == within
    for numbers in product(range(bound + 2), repeat=length):
        if numbers in within:
            assert holds(circuit, circuit.encode(list(numbers)).tolist(), rng)
        else:
            with pytest.raises(InputError):
                circuit.encode(list(numbers))


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("length", "bound"), [(2, 2), (3, 1), (5, 1), (1, 5)])
def test_whole_reports_are_taken_for_exactly_the_vectors_within_their_bound(length, bound, compiled):
    """Every report that a client can write with elements 0, 1 and 2, through both aggregators."""
    vdaf, taken = cheating(prio3_l1_bound_sum(length, bound, 2), compiled), set()
    for encoded in product(range(3), repeat=vdaf.parameters.circuit.measurement_length):
        with suppress(InvalidReport):
            taken.add(tuple(counted(vdaf, Cheat(encoded))))
    assert taken == {each for each in product(range(bound + 1), repeat=length) if sum(each) <= bound}


def test_a_report_is_bound_to_its_nonce_and_context():
    vdaf = prio3_histogram(4, 2)
    assert counted(vdaf, 2) == [0, 0, 1, 0]
    for spoilt in ({"nonce": bytes(16)}, {"ctx": b"another task"}):
        with pytest.raises(InvalidReport):
            counted(vdaf, 2, **spoilt)


def test_shares_that_change_places_are_refused():
    vdaf = prio3_count(shares=3)
    public, inputs = vdaf.shard(b"", 1, bytes(16), bytes(range(96)))
    swapped = [inputs[0], inputs[2], inputs[1]]
    begun = [vdaf.verify_init(bytes(32), b"", i, b"", bytes(16), public, each) for i, each in enumerate(swapped)]
    with pytest.raises(InvalidReport):
        vdaf.verifier_shares_to_message(b"", b"", [each.verifier_share for each in begun])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_query_at_a_root_of_unity_is_refused(compiled, monkeypatch):
    """No key is known that leads to one, so the loops are handed the point."""
    circuit = prio3_histogram(4, 2).parameters.circuit
    point = FIELD128.root(4)
    if not compiled:
        for each in (1, point):
            with pytest.raises(InvalidReport, match="root of unity"):
                query(circuit, [0] * 4, [0] * circuit.proof_length, [1, 1, each], [1, 1], 2, sends_values=True)
        return
    from hazemap.vdaf.prio3_compiled import Prio3Streams

    kept = Prio3Streams.query_rands

    def query_rands(streams, verify_key, nonces):
        found = kept(streams, verify_key, nonces)
        found[1, 0, -1] = FIELD128.to_words([point])[0]
        return found

    monkeypatch.setattr(Prio3Streams, "query_rands", query_rands)
    vdaf = Prio3(prio3_histogram(4, 2).parameters, compiled=True)
    public, inputs = vdaf.shard(b"", 1, bytes(16), bytes(128))
    found = vdaf.verify_init_all(bytes(32), b"", 0, b"", [ReportShare(bytes(16), public, inputs[0])] * 3)
    assert [isinstance(each, InvalidReport) for each in found] == [False, True, False]
    assert "root of unity" in str(found[1])


def test_every_number_in_range_has_bits_and_none_out_of_range_has_any():
    for most in range(1, 40):
        weights = weights_of(most)
        sums = {sum(w for i, w in enumerate(weights) if bits >> i & 1) for bits in range(1 << len(weights))}
        assert sums == set(range(most + 1))
        assert (bits_of(list(range(most + 1)), most).reshape(most + 1, -1) @ weights == np.arange(most + 1)).all()


def test_the_shortest_chunk_is_the_shortest_of_all():
    for bits in (*range(1, 70), 1000, 4096):
        lengths = {chunk: BitVector(FIELD128, bits, chunk, True).proof_length for chunk in range(1, bits + 1)}
        assert lengths[shortest_chunk_length(bits)] == min(lengths.values())


def test_transforms_are_evaluations():
    rng = random.Random(3)
    for field in (FIELD64, FIELD128):
        for n in (1, 2, 8):
            coefficients = [rng.randrange(field.modulus) for _ in range(n)]
            root = field.root(n)
            values = [
                sum(c * pow(root, i * k, field.modulus) for i, c in enumerate(coefficients)) % field.modulus
                for k in range(n)
            ]
            assert field.ntt(coefficients, n) == values and field.inverse_ntt(values) == coefficients
            at = rng.randrange(field.modulus)
            value = sum(c * pow(at, i, field.modulus) for i, c in enumerate(coefficients)) % field.modulus
            basis = field.lagrange_basis(n, at)
            assert sum(b * v for b, v in zip(basis, values, strict=True)) % field.modulus == value
        assert pow(field.generator, 1 << field.log_order, field.modulus) == 1
        assert pow(field.generator, 1 << field.log_order - 1, field.modulus) == field.modulus - 1


@pytest.mark.parametrize("field", [FIELD64, FIELD128])
def test_vectors_are_decoded_alike_as_numbers_and_as_words(field):
    high = field.modulus >> 64 << 64
    near = [field.modulus + d for d in (-2, -1)] + [0, 1, high, 2**64 - 2**33, 2 ** (8 * field.size - 1)]
    data = field.encode(near)
    assert field.from_words(field.decode_words(data)) == field.decode(data) == near
    for wrong in (field.modulus, field.modulus + 1, 256**field.size - 1):
        spoilt = data + wrong.to_bytes(field.size, "little") + data
        for read in (field.decode, field.decode_words):
            with pytest.raises(CodecError, match="modulus"):
                read(spoilt)
            with pytest.raises(CodecError, match="whole number"):
                read(data[:-1])


def test_circuits_say_how_long_their_messages_are():
    """The numbers of the draft's formulas, worked out by hand."""
    for circuit, lengths in [
        (Count(FIELD64), (1, 0, 5, 4, 1)),
        (Sum(FIELD64, 255, True), (8, 0, 32, 3, 9)),
        (HistogramCircuit(FIELD128, 4, 2, True, constant=-1, affine=True), (4, 2, 11, 6, 3)),
        (MultihotCountVec(FIELD128, 4, 2, True, other_weights=(-1, -1), affine=True, max_weight=2), (6, 3, 11, 6, 3)),
        (prio3_l1_bound_sum(10, 240, 9).parameters.circuit, (88, 10, 49, 20, 3)),
        (HigherDegree(), (1, 0, 5, 3, 1)),
    ]:
        found = circuit.measurement_length, circuit.joint_rand_length, circuit.proof_length
        assert (*found, circuit.verifier_length, circuit.query_rand_length) == lengths
