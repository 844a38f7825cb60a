"""Machine code against plain Python: arithmetic, the XOF, proofs, whole reports, and reports that are wrong."""

import random
from itertools import pairwise

import numpy as np
import pytest
from tests.vdaf.prio3_variants import UNREGISTERED, HigherDegree, many_proofs

from hazemap.vdaf import field_kernels as loops
from hazemap.vdaf import prio3_compiled, proof_kernels, turboshake128_kernels
from hazemap.vdaf.circuits import HistogramCircuit
from hazemap.vdaf.compiled_loops import compiled
from hazemap.vdaf.loop_cache import digest
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
from hazemap.vdaf.prio3_plain import Prio3Parameters
from hazemap.vdaf.turboshake128_kernels import hash_messages, take_elements
from hazemap.vdaf.vdaf import VDAF_08, VDAF_18, InvalidReport, ReportShare
from hazemap.vdaf.xofs import RATE, TurboShake128

P, R = FIELD128.modulus, 1 << 128
EDGES = [0, 1, 2, P - 1, P - 2, 2**64 - 1, 2**64, 2**64 + 1, 28 << 64, P >> 1, R % P, R - P, P - R % P]
load, store, add_product = loops.load128, loops.store128, loops.add_product
mul, add, sub, add_element, reduced, nothing = (
    loops.mul128,
    loops.add128,
    loops.sub128,
    loops.add_element,
    loops.reduced128,
    loops.nothing128,
)


@compiled
def arithmetic(x, y, found, times):
    """Products, sums and differences; then the sum of all products `times` over, and of all elements."""
    products, elements = nothing(), nothing()
    for i in range(x.shape[0]):
        a, b = load(x, i), load(y, i)
        store(found[0], i, mul(a, b))
        store(found[1], i, add(a, b))
        store(found[2], i, sub(a, b))
        elements = add_element(elements, a)
        for _ in range(times):
            products = add_product(products, a, b)
    store(found[3], 0, reduced(products))
    store(found[3], 1, reduced(elements))


def test_arithmetic_is_that_of_whole_numbers_at_the_bounds_of_words_and_field():
    rng = random.Random(1)
    xs = [x for x in EDGES for _ in EDGES] + [rng.randrange(P) for _ in range(2000)]
    ys = [y for _ in EDGES for y in EDGES] + [rng.randrange(P) for _ in range(2000)]
    found = np.zeros((4, len(xs), 2), dtype=np.uint64)
    arithmetic(FIELD128.to_words(xs), FIELD128.to_words(ys), found, 1)
    inverse = pow(R, -1, P)
    assert FIELD128.from_words(found[0]) == [x * y * inverse % P for x, y in zip(xs, ys, strict=True)]
    assert FIELD128.from_words(found[1]) == [(x + y) % P for x, y in zip(xs, ys, strict=True)]
    assert FIELD128.from_words(found[2]) == [(x - y) % P for x, y in zip(xs, ys, strict=True)]
    products = sum(x * y for x, y in zip(xs, ys, strict=True))
    assert FIELD128.from_words(found[3, :2]) == [products * inverse % P, sum(xs) * inverse % P]
    most = FIELD128.to_words([P - 1] * 8)
    arithmetic(most, most, found, 100_000)  # the fifth word of the sum is in use
    assert FIELD128.from_words(found[3, :1]) == [800_000 * inverse % P]


def padded(message: bytes) -> bytes:
    """A message with the domain 1, up to whole blocks."""
    data = bytearray(message + b"\x01" + bytes(-(len(message) + 1) % RATE))
    data[-1] ^= 0x80
    return bytes(data)


@pytest.mark.parametrize("field", [FIELD64, FIELD128])
def test_streams_of_many_messages_are_those_of_each_alone(field):
    rng = random.Random(2)
    for count, length in [(1, 0), (1, 400), (2, 166), (7, 167), (8, 168), (9, 335), (19, 1000)]:
        messages = [rng.randbytes(length) for _ in range(count)]
        array = np.frombuffer(b"".join(map(padded, messages)), dtype=np.uint64).reshape(count, -1).copy()
        words, elements = np.empty((count, 4), dtype=np.uint64), np.empty((count, 95, field.words), dtype=np.uint64)
        hash_messages(array, words, elements)
        streams = [TurboShake128(message, 1).next(95 * field.size) for message in messages]
        assert [row.tobytes() for row in words] == [stream[:32] for stream in streams]
        assert [row.tobytes() for row in elements] == streams  # no number of these is passed over


@pytest.mark.parametrize("field", [FIELD64, FIELD128])
def test_numbers_that_are_not_below_the_modulus_are_passed_over(field):
    rng = random.Random(3)
    near = [field.modulus + d for d in (-2, -1, 0, 1)] + [0, 256**field.size - 1]
    for _ in range(50):
        numbers = [rng.choice(near) for _ in range(200)]
        stream = b"".join(x.to_bytes(field.size, "little") for x in numbers)
        blocks = (len(stream) - 1) // RATE
        expected = [x for x in numbers[: blocks * RATE // field.size] if x < field.modulus]
        elements = np.zeros((rng.randrange(1, 60), field.words), dtype=np.uint64)
        progress, half = np.zeros((8, 2), dtype=np.int64), np.zeros(8, dtype=np.uint64)
        lane = rng.randrange(8)
        for start in range(0, blocks * RATE, RATE):
            states = np.zeros((25, 8), dtype=np.uint64)
            states[:21, lane] = np.frombuffer(stream[start : start + RATE], dtype=np.uint64)
            take_elements(states, lane, elements, progress, half)
        taken = int(progress[lane, 0])
        assert taken == min(len(elements), len(expected))
        assert field.from_words(elements[:taken]) == expected[:taken]


def test_the_published_rejection_is_met_by_the_loops_too():
    seed = bytes.fromhex("d195ec90c1bcf1f2cb2c7e74c5c5f6da")
    message = np.frombuffer(padded(b"\x00" + seed), dtype=np.uint64).reshape(1, -1).repeat(3, axis=0)
    elements = np.empty((3, 140, 1), dtype=np.uint64)
    hash_messages(message, np.empty((3, 0), dtype=np.uint64), elements)
    assert elements[:, -1, 0].tolist() == [9734340616212735019] * 3


def variants(shapes, options):
    rng = random.Random(4)
    for version, shares in options:
        more = {"shares": shares, "version": version}
        for length, chunk in shapes:
            yield prio3_histogram(length, chunk, **more), rng.randrange(length)
            yield prio3_sum_vec(length, 1, chunk, **more), [rng.randrange(2) for _ in range(length)]
            most = rng.randrange(1, length + 1)
            ones = rng.sample(range(length), rng.randrange(most + 1))
            yield prio3_multihot_count_vec(length, most, chunk, **more), [int(i in ones) for i in range(length)]
        for most in (1, 255, 2**64 - 1)[: len(shapes) - 1]:
            yield (
                prio3_sum_vec(3, most, 4, **more) if most > 1 else prio3_sum_vec(5, 1, 4, **more),
                ([rng.randrange(most + 1) for _ in range(3)] if most > 1 else [1, 0, 0, 1, 1]),
            )
        yield prio3_count(**more), rng.randrange(2)
        yield prio3_sum(1 if version is VDAF_18 else 255, **more), 1
        yield many_proofs(3, 3, 2, **more), [1, 2, 3]
    for length, chunk in shapes:
        for most in (1, 5, 2**64 - 1)[: 3 if length < 9 else 2]:
            marks = sorted(rng.randrange(most + 1) for _ in range(length - 1))
            numbers = [b - a for a, b in pairwise([0, *marks, most])]
            yield prio3_l1_bound_sum(length, most, chunk, shares=options[-1][1]), numbers
    yield prio3_sum_vec(4, 5, 3), [5, 4, 3, 0]
    yield prio3_sum(1000), 999
    yield Prio3(Prio3Parameters(HigherDegree(), VDAF_18, UNREGISTERED)), 2


def test_reports_are_the_same_by_both_and_add_up():
    check(variants([(1, 1), (7, 3)], [(VDAF_18, 2), (VDAF_08, 3)]))


@pytest.mark.slow
def test_reports_of_any_shape_are_the_same_by_both_and_add_up():
    shapes = [(1, 1), (2, 2), (3, 1), (7, 3), (33, 33), (40, 1), (64, 7), (100, 9)]
    check(variants(shapes, [(VDAF_18, 2), (VDAF_08, 2), (VDAF_18, 5), (VDAF_08, 3)]))


def check(pairs):
    rng = random.Random(5)
    for made, measurement in pairs:
        plain, fast = Prio3(made.parameters, compiled=False), Prio3(made.parameters, compiled=True)
        ctx = b"context" if made.parameters.version is VDAF_18 else b""
        nonce, rand, key = (rng.randbytes(size) for size in (16, made.RAND_SIZE, made.VERIFY_KEY_SIZE))
        public, inputs = fast.shard(ctx, measurement, nonce, rand)
        assert plain.shard(ctx, measurement, nonce, rand) == (public, inputs)
        said = []
        for agg_id, share in enumerate(inputs):
            state, verifier = fast.verify_init(key, ctx, agg_id, b"", nonce, public, share)
            other, same = plain.verify_init(key, ctx, agg_id, b"", nonce, public, share)
            assert (verifier, state.joint_rand_seed) == (same, other.joint_rand_seed)
            assert (state.out_share == other.out_share).all()
            said.append((state, verifier))
        shares = [verifier for _, verifier in said]
        message = fast.verifier_shares_to_message(ctx, b"", shares)
        assert message == plain.verifier_shares_to_message(ctx, b"", shares)
        result = fast.unshard(b"", [fast.verify_next(ctx, state, message) for state, _ in said])
        if isinstance(made.parameters.circuit, HistogramCircuit):
            assert result == [int(i == measurement) for i in range(len(result))]
        else:
            assert result == (measurement if isinstance(measurement, list) else [measurement])


@pytest.mark.parametrize(
    ("made", "measurement", "result"),
    [
        (prio3_multihot_count_vec(20, 3, 5), [1, 1] + [0] * 18, [1, 1] + [0] * 18),
        (prio3_l1_bound_sum(6, 5, 4), [0, 3, 0, 0, 2, 0], [0, 3, 0, 0, 2, 0]),
        (prio3_count(), 1, [1]),
        (prio3_sum(7, version=VDAF_08), 5, [5]),
    ],
)
def test_what_one_report_does_wrong_rejects_that_report_alone_and_alike_by_both(made, measurement, result):
    """Every fifth report is changed somewhere: in one byte, in its length, or to a number that is no element."""
    rng = random.Random(6)
    plain, fast = Prio3(made.parameters, compiled=False), Prio3(made.parameters, compiled=True)
    modulus, size = fast.modulus(b""), fast.parameters.circuit.field.size
    key, reports, changed = rng.randbytes(made.VERIFY_KEY_SIZE), [], set()
    for i in range(80):
        nonce = rng.randbytes(16)
        public, inputs = fast.shard(b"", measurement, nonce, rng.randbytes(made.RAND_SIZE))
        parts = [*map(bytearray, inputs), bytearray(public)]
        if i % 5 == 0:
            changed.add(i)
            part = rng.choice([each for each in parts if each])
            match rng.randrange(3):
                case 0:
                    part[rng.randrange(len(part))] ^= 1 << rng.randrange(8)
                case 1:
                    del part[-rng.choice([1, 8, 16, 32]) :]
                case 2:
                    place = size * rng.randrange(made.parameters.circuit.measurement_length + 2)
                    wrong = modulus + rng.choice([0, 1, 256**size - modulus - 1])
                    parts[0][place : place + size] = wrong.to_bytes(size, "little")
        leader, helper, public = map(bytes, parts)
        reports.append((nonce, public, leader, helper))

    def outcomes(vdaf):
        both = [
            vdaf.verify_init_all(key, b"", agg_id, b"", [ReportShare(*each[:2], each[2 + agg_id]) for each in reports])
            for agg_id in (0, 1)
        ]
        found = []
        for pair in zip(*both, strict=True):
            wrong = [each for each in pair if isinstance(each, InvalidReport)]
            if wrong:
                found.append((str(wrong[0]), wrong[0].undecodable))
                continue
            (message,) = vdaf.verifier_shares_to_messages(b"", b"", [[each.verifier_share for each in pair]])
            if isinstance(message, InvalidReport):
                found.append((str(message), message.undecodable))
                continue
            ends = vdaf.verify_next_all(b"", [each.state for each in pair], [message] * 2)
            wrong = [each for each in ends if isinstance(each, InvalidReport)]
            found.append((str(wrong[0]), wrong[0].undecodable) if wrong else vdaf.unshard(b"", ends))
        return found

    found = outcomes(fast)
    assert found == outcomes(plain)
    assert {i for i, each in enumerate(found) if each != result} == changed


def test_verifier_shares_that_are_no_elements_are_refused():
    made = prio3_histogram(3, 2)
    size = made.parameters.verifier_share_size
    for twin in (True, False):
        vdaf = Prio3(made.parameters, compiled=twin)
        with pytest.raises(InvalidReport, match="below the modulus"):
            vdaf.verifier_shares_to_message(b"", b"", [bytes(size), P.to_bytes(16, "little") + bytes(size - 16)])
        with pytest.raises(InvalidReport, match="verifier share has"):
            vdaf.verifier_shares_to_message(b"", b"", [bytes(size), bytes(size + 16)])


def test_machine_code_of_every_loop_is_kept():
    """A loop that names what has no digest would be compiled again in every process."""
    for module in (prio3_compiled, proof_kernels, turboshake128_kernels):
        for loop in vars(module).values():
            if hasattr(loop, "py_func"):
                assert digest(loop.py_func)
