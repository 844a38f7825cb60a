"""Poplar1: the published vectors, the loops against plain Python, and reports, servers and requests that cheat."""

import json
import random
import struct
from functools import partial

import numpy as np
import pytest
from tests.vdaf import plain_poplar1

from hazemap.vdaf import aes128_kernels, field255, poplar1_kernels
from hazemap.vdaf.compiled_loops import compiled
from hazemap.vdaf.errors import CodecError, InputError, Refused
from hazemap.vdaf.idpf import MODULUS_INNER, IdpfBBCGGI21
from hazemap.vdaf.poplar1 import Poplar1, SketchState
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter
from hazemap.vdaf.vdaf import Continuation, InvalidReport, ReportShare, Vdaf

KEY, CTX = bytes(range(32)), b"a task"
OPERATIONS = {"shard", "verify_init", "verifier_shares_to_message", "verify_next", "aggregate", "unshard"}


def index(bits: list[bool]) -> int:
    return int("".join("01"[bit] for bit in bits), 2)


@pytest.mark.parametrize("number", [0, 1, 3, 4])
def test_the_published_reports_are_reproduced(shared, number):
    vector = json.loads((shared / "vectors" / "vdaf" / f"Poplar1_{number}.json").read_text())
    poplar1 = Poplar1(vector["bits"])
    ctx, key, parameter = (bytes.fromhex(vector[name]) for name in ("ctx", "verify_key", "agg_param"))
    states, shares, done = {}, {}, set()
    for operation in vector["operations"]:
        done.add(operation["operation"])
        assert operation["success"]
        report = vector["reports"][operation.get("report_index", 0)]
        server, turn = operation.get("aggregator_id", 0), operation.get("round", 0)
        nonce, public = (bytes.fromhex(report[name]) for name in ("nonce", "public_share"))
        private = [bytes.fromhex(share) for share in report["input_shares"]]
        match operation["operation"]:
            case "shard":
                rand = bytes.fromhex(report["rand"])
                assert poplar1.shard(ctx, index(report["measurement"]), nonce, rand) == (public, private)
            case "verify_init":
                states[server] = poplar1.verify_init(key, ctx, server, parameter, nonce, public, private[server])
                assert states[server].verifier_share.hex() == report["verifier_shares"][0][server]
            case "verifier_shares_to_message":
                said = [bytes.fromhex(share) for share in report["verifier_shares"][turn]]
                assert (
                    poplar1.verifier_shares_to_message(ctx, parameter, said).hex() == report["verifier_messages"][turn]
                )
            case "verify_next":
                message = bytes.fromhex(report["verifier_messages"][turn - 1])
                stored = poplar1.decode_state(parameter, poplar1.encode_state(parameter, states[server].state))
                found = poplar1.verify_next(ctx, stored, message)
                if isinstance(found, Continuation):
                    states[server] = found
                    assert found.verifier_share.hex() == report["verifier_shares"][turn][server]
                else:
                    shares[server] = found
                    assert poplar1.encode_agg_share(parameter, found).hex() == "".join(report["out_shares"][server])
            case "aggregate":
                share = poplar1.merge(parameter, [shares[server]])
                assert poplar1.encode_agg_share(parameter, share).hex() == vector["agg_shares"][server]
            case "unshard":
                both = [poplar1.decode_agg_share(parameter, bytes.fromhex(share)) for share in vector["agg_shares"]]
                assert poplar1.unshard(parameter, both) == [int(count) for count in vector["agg_result"]]
    assert done == OPERATIONS


def reported(draw: random.Random, poplar1: Poplar1, leaf: int, ctx: bytes = CTX) -> tuple[ReportShare, ReportShare]:
    nonce = draw.randbytes(16)
    public, shares = poplar1.shard(ctx, leaf, nonce, draw.randbytes(poplar1.RAND_SIZE))
    return tuple(ReportShare(nonce, public, share) for share in shares)


def parameter_of(level: int, prefixes: list[int]) -> bytes:
    return Poplar1Parameter(level, np.array(sorted(set(prefixes)), dtype=np.uint64)).to_bytes()


def deeper(draw: random.Random, above: list[int], levels: int, leaf: int, most: int = 12) -> list[int]:
    """Some nodes so many levels below others, among them that on the way to a leaf's node."""
    below = [node << levels | draw.getrandbits(levels) for node in draw.choices(above, k=most)]
    return sorted({*below, leaf})


@pytest.mark.parametrize("bits", [1, 2, 3, 9, 46, 64])
def test_loops_evaluate_reports_as_plain_python_does_from_the_root_and_from_kept_nodes(bits):
    draw = random.Random(bits)
    poplar1, ctx = Poplar1(bits), draw.randbytes(draw.choice([0, 40, 200]))
    leaves = [draw.getrandbits(bits) for _ in range(9)]
    pairs = [reported(draw, poplar1, leaf, ctx) for leaf in leaves]
    levels = sorted({*draw.sample(range(bits), min(bits, 3)), bits - 1})
    for server in (0, 1):
        prefixes, last, nodes = [0], -1, None
        reports = [pair[server] for pair in pairs]
        for level in levels:
            prefixes = deeper(draw, prefixes, level - last, leaves[0] >> (bits - 1 - level))
            parameter, last = parameter_of(level, prefixes), level
            found, kept = poplar1.verify_init_below(KEY, ctx, server, parameter, reports, nodes, keep=True)
            from_root = poplar1.verify_init_all(KEY, ctx, server, parameter, reports)
            for report, one, other in zip(reports, found, from_root, strict=True):
                plain = plain_poplar1.verify_init(bits, KEY, ctx, server, level, prefixes, report)
                assert plain_poplar1.numbers(one.verifier_share, len(one.verifier_share) // 3) == plain.sketch
                assert list(one.state.masks) == plain.masks
                assert poplar1.unshard(parameter, [one.state.out_share, 0 * one.state.out_share]) == plain.data
                assert one.verifier_share == other.verifier_share
                assert np.array_equal(one.state.out_share, other.state.out_share)
            assert (kept is None) == (level == bits - 1)
            if level < bits - 1:
                nodes = kept.of(list(range(len(reports))))


def test_an_adaptive_tree_counts_every_leaf_at_every_level():
    draw = random.Random(3)
    poplar1, leaves = Poplar1(20), [draw.choice([5, 1 << 19, 0xABCDE, draw.getrandbits(20)]) for _ in range(40)]
    pairs = [reported(draw, poplar1, leaf) for leaf in leaves]
    above, last, before = [0], -1, []
    for level in (3, 4, 11, 19):
        prefixes = [node << (level - last) | i for node in above for i in range(1 << (level - last))][:3000]
        parameter = parameter_of(level, prefixes)
        assert poplar1.is_valid(parameter, before)
        found = plain_poplar1.counted(poplar1, KEY, CTX, parameter, pairs)
        totals = np.sum(found, axis=0)
        nodes = [leaf >> (19 - level) for leaf in leaves]
        assert totals.tolist() == [nodes.count(prefix) for prefix in prefixes]
        above, last = [prefix for prefix, total in zip(prefixes, totals, strict=True) if total > 2], level
        before.append(parameter)


def test_one_report_that_is_wrong_changes_no_other():
    draw = random.Random(4)
    poplar1 = Poplar1(9)
    pairs = [reported(draw, poplar1, leaf) for leaf in (0, 3, 511)]
    spoilt = [
        pairs[1][0]._replace(nonce=bytes(15)),
        pairs[1][0]._replace(public_share=pairs[1][0].public_share[:-1]),
        pairs[1][0]._replace(input_share=pairs[1][0].input_share + b"\0"),
        pairs[1][0]._replace(input_share=b""),
        with_bytes(pairs[1][0], "public_share", 2, b"\x04"),  # control bits of nine levels end in two bits of a byte
        with_bytes(pairs[1][0], "public_share", 2, b"\x80"),
        with_bytes(pairs[1][0], "public_share", 3 + 16 * 9, (2**64 - 2**32 + 1).to_bytes(8, "little")),
        with_bytes(pairs[1][0], "public_share", -32, (2**255 - 19).to_bytes(32, "little")),
        with_bytes(pairs[1][0], "input_share", 48, b"\xff" * 8),
        with_bytes(pairs[1][0], "input_share", -64, b"\xff" * 32),
    ]
    for level, prefixes in ((4, [0, 31]), (8, [0, 511])):
        parameter = parameter_of(level, prefixes)
        for bad in spoilt:
            good = poplar1.verify_init_all(KEY, CTX, 0, parameter, [pairs[0][0], pairs[2][0]])
            found = poplar1.verify_init_all(KEY, CTX, 0, parameter, [pairs[0][0], bad, pairs[2][0]])
            assert isinstance(found[1], InvalidReport)
            assert found[1].undecodable
            assert [found[0].verifier_share, found[2].verifier_share] == [each.verifier_share for each in good]
            with pytest.raises(InvalidReport):
                poplar1.verify_init(KEY, CTX, 0, parameter, *bad)


def with_bytes(report: ReportShare, part: str, at: int, data: bytes) -> ReportShare:
    whole = bytearray(getattr(report, part))
    at %= len(whole)
    whole[at : at + len(data)] = data
    return report._replace(**{part: bytes(whole)})


def programmed(
    draw: random.Random, poplar1: Poplar1, leaf: int, data: int, auth: int
) -> tuple[ReportShare, ReportShare]:
    """A report whose path bears `data` where 1 belongs, and `auth` times the authenticator, at every level."""
    idpf = poplar1._idpf
    gen = idpf.gen

    def cheat(alpha, inner, last, *rest):
        pairs = [(data % idpf.field(i)[0], auth * k % idpf.field(i)[0]) for i, (_, k) in enumerate((*inner, last))]
        return gen(alpha, pairs[:-1], pairs[-1], *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IdpfBBCGGI21, "gen", lambda _, *arguments: cheat(*arguments))
        return reported(draw, poplar1, leaf)


@pytest.mark.parametrize(("data", "auth"), [(2, 2), (2, 1), (2, 4), (0, 1), (-1, -1), (-1, 1), (1, 2), (2**40, 2**40)])
def test_a_client_that_puts_another_number_into_a_cell_is_refused_at_every_level(data, auth):
    draw = random.Random(5)
    poplar1 = Poplar1(6)
    pair = programmed(draw, poplar1, 44, data, auth)
    for level in range(6):
        here = 44 >> (5 - level)
        [found] = plain_poplar1.counted(poplar1, KEY, CTX, parameter_of(level, [here, here ^ 1]), [pair])
        assert isinstance(found, InvalidReport)
        assert not found.undecodable
        [elsewhere] = plain_poplar1.counted(poplar1, KEY, CTX, parameter_of(level, [here ^ 1]), [pair])
        assert elsewhere == [0]  # it counts for nothing where nobody looks
    assert plain_poplar1.counted(poplar1, KEY, CTX, parameter_of(5, [44]), [programmed(draw, poplar1, 44, 1, 1)]) == [
        [1]
    ]


def test_a_client_whose_path_forks_is_refused_where_both_branches_are_asked():
    """Seeds of both children differ between servers, and both have one control bit: two cells of a level are not 0."""
    draw = random.Random(6)
    poplar1 = Poplar1(6)
    first, second = reported(draw, poplar1, 0b101100)
    packed = bytearray(first.public_share)
    packed[0] ^= 0b1000  # the right child of level 1, off the path, gets a control bit of its own
    pair = [report._replace(public_share=bytes(packed)) for report in (first, second)]
    for level, prefixes in ((1, [0b10, 0b11]), (1, [0b11]), (2, [0b101, 0b110]), (5, [0b101100, 0b110000])):
        [found] = plain_poplar1.counted(poplar1, KEY, CTX, parameter_of(level, prefixes), [pair])
        assert isinstance(found, InvalidReport)


def shares_of(draw: random.Random, modulus: int, vector: list[int]) -> list[list[int]]:
    one = [draw.randrange(modulus) for _ in vector]
    return [one, [(x - y) % modulus for x, y in zip(vector, one, strict=True)]]


def passes(draw: random.Random, vector: list[int], auth: list[int], k: int, leaf: bool) -> bool:
    """Whether the sketch of any vector is accepted, with masks that a client makes for an authenticator k."""
    modulus = field255.MODULUS if leaf else MODULUS_INNER
    random_numbers = [draw.randrange(modulus) for _ in vector]
    a, b, c = (draw.randrange(modulus) for _ in range(3))
    masks = [(k - 2 * a) % modulus, (a * a + b - k * a + c) % modulus]
    shares = [shares_of(draw, modulus, values) for values in ([a, b, c], masks, vector, auth)]
    words = 4 if leaf else 1
    sketches, states = [], []
    for server in (0, 1):
        correlated, mask, data, authenticators = (each[server] for each in shares)
        to_words = lambda xs: np.array([[x >> 64 * w & 2**64 - 1 for w in range(words)] for x in xs], dtype=np.uint64)  # noqa: E731
        sums, out = to_words(correlated)[None], np.empty((1, len(vector), words), dtype=np.uint64)
        if leaf:
            values = np.stack([to_words(data), to_words(authenticators)])[None]
            poplar1_kernels.finish255(values, False, to_words(random_numbers)[None], out, sums)
        else:
            drawn = np.stack([to_words(data)[:, 0], to_words(authenticators)[:, 0]], axis=1)[None]
            nothing = np.zeros((1, len(vector)), dtype=np.uint8), np.zeros((1, 2), dtype=np.uint64)
            random_words = to_words(random_numbers)[None, :, 0]
            poplar1_kernels.finish64(drawn, *nothing, False, random_words, out[:, :, 0], sums[:, :, 0])
        sketches.append(np.ascontiguousarray(sums).astype("<u8").tobytes())
        states.append(SketchState(server, 1 if leaf else 0, tuple(mask), out[0]))
    poplar1, parameter = Poplar1(2), parameter_of(1 if leaf else 0, [0])
    message = poplar1.verifier_shares_to_message(CTX, parameter, sketches)
    said = [poplar1.verify_next(CTX, state, message).verifier_share for state in states]
    try:
        return poplar1.verifier_shares_to_message(CTX, parameter, said) == b""
    except InvalidReport:
        return False


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_the_sketch_in_halves_of_words_is_that_of_whole_numbers(largest, negative):
    """Of more nodes than are added up before a reduction; of numbers that are all as large as they can be, too."""
    draw, nodes, p = np.random.default_rng(3), 4_096 + 77, MODULUS_INNER
    number = lambda *shape: draw.integers(p - 1 if largest else 0, p, shape, dtype=np.uint64)  # noqa: E731 - short
    drawn, random_words, corrections, sums = number(2, nodes, 2), number(2, nodes), number(2, 2), number(2, 3)
    drawn[1, 5, 0] = 0
    controls = np.ones((2, nodes), dtype=np.uint8) if largest else draw.integers(0, 2, (2, nodes), dtype=np.uint8)
    controls[1, 5] = 0
    data, before = np.empty((2, nodes), dtype=np.uint64), sums.tolist()
    poplar1_kernels.finish64(drawn, controls, corrections, negative, random_words, data, sums)
    for report in range(2):
        rows = [each[report].tolist() for each in (drawn, controls, random_words)]
        (w0, w1), sign = corrections[report].tolist(), -1 if negative else 1
        corrected = [(r, x + w0 * bit, y + w1 * bit) for (x, y), bit, r in zip(*rows, strict=True)]
        sketch = (
            sum(r * x for r, x, _ in corrected),
            sum(r * r * x for r, x, _ in corrected),
            sum(r * y for r, _, y in corrected),
        )
        assert data[report].tolist() == [sign * x % p for _, x, _ in corrected]
        assert sums[report].tolist() == [(a + sign * b) % p for a, b in zip(before[report], sketch, strict=True)]


@pytest.mark.parametrize("leaf", [False, True])
def test_the_sketch_takes_zero_and_single_ones_and_nothing_else(leaf):
    """Soundness is 2/|F| for each of these vectors: below 1e-18."""
    draw = random.Random(7)
    for k in (1, 0, draw.getrandbits(60)):
        assert passes(draw, [0] * 5, [0] * 5, k, leaf)
        for i in range(5):
            one_hot = [int(i == j) for j in range(5)]
            assert passes(draw, one_hot, [k * x for x in one_hot], k, leaf)
            assert k == 0 or not passes(draw, one_hot, [0] * 5, k, leaf)
    k = draw.getrandbits(60)
    for wrong in ([2, 0, 0], [1, 1, 0], [1, -1, 0], [1, 0, 1], [0, 0, -1], [1, 1, 1], [1 << 32, 0, 0]):
        modulus = field255.MODULUS if leaf else MODULUS_INNER
        for auth in ([k * x for x in wrong], [0, 0, 0], [k, 0, 0], [k * x * x for x in wrong]):
            assert not passes(draw, [x % modulus for x in wrong], [x % modulus for x in auth], k, leaf)


def test_reports_for_another_task_nonce_key_or_server_are_refused():
    draw = random.Random(8)
    poplar1 = Poplar1(6)
    pair, other = reported(draw, poplar1, 44), reported(draw, poplar1, 44)
    for level in (2, 5):
        here = 44 >> (5 - level)
        parameter = parameter_of(level, [here, here ^ 1])
        swapped = tuple(pair[::-1])
        renamed = tuple(report._replace(nonce=bytes(16)) for report in pair)
        crossed = pair[0], other[1]
        mixed = pair[0], pair[1]._replace(public_share=other[1].public_share)
        wrong = plain_poplar1.counted(poplar1, KEY, CTX, parameter, [swapped, renamed, crossed, mixed])
        wrong += plain_poplar1.counted(poplar1, KEY, b"another task", parameter, [pair])
        assert all(isinstance(each, InvalidReport) for each in wrong)
        keys = [poplar1.verify_init(key, CTX, i, parameter, *pair[i]) for i, key in enumerate((KEY, bytes(32)))]
        message = poplar1.verifier_shares_to_message(CTX, parameter, [each.verifier_share for each in keys])
        said = [poplar1.verify_next(CTX, each.state, message).verifier_share for each in keys]
        with pytest.raises(InvalidReport):
            poplar1.verifier_shares_to_message(CTX, parameter, said)


def outcome(found):
    """What came of a report, to be compared."""
    if isinstance(found, InvalidReport):
        return str(found), found.undecodable
    if isinstance(found, Continuation):
        return found.verifier_share, found.state.masks, found.state.agg_id, found.state.level, id(found.state.out_share)
    return found if isinstance(found, bytes) else id(found)


@pytest.mark.parametrize("level", [2, 5])
def test_what_is_said_of_many_reports_is_what_is_said_of_each(level):
    """Also where some of them are spoilt, of the other round, or have numbers that are no elements."""
    draw, poplar1 = random.Random(10), Poplar1(6)
    size, modulus = (8, MODULUS_INNER) if level == 2 else (32, field255.MODULUS)
    parameter = parameter_of(level, [44 >> (5 - level)])
    pairs = [reported(draw, poplar1, draw.choice([44, 3])) for _ in range(5)]
    begun = [[poplar1.verify_init(KEY, CTX, server, parameter, *pair[server]) for server in (0, 1)] for pair in pairs]
    shares = [[each.verifier_share for each in pair] for pair in begun]
    outside = modulus.to_bytes(size, "little")
    spoilt = [[], shares[0][:1], [outside * 3, shares[0][1]], [shares[0][0], b""], [bytes(size)] * 2]
    for bad in (shares[1], *spoilt):
        many = [shares[0], bad, *shares[1:]]
        found = poplar1.verifier_shares_to_messages(CTX, parameter, many)
        alone = Vdaf.verifier_shares_to_messages(poplar1, CTX, parameter, many)
        assert [outcome(each) for each in found] == [outcome(each) for each in alone]
        assert isinstance(found[1], bytes) == (bad in (shares[1], spoilt[-1]))
    said = poplar1.verifier_shares_to_messages(CTX, parameter, shares)
    for server in (0, 1):
        states = [pair[server].state for pair in begun]
        for bad in (said[0], b"", said[0][:-1], outside * 3):
            found = poplar1.verify_next_all(CTX, states, [bad, *said[1:]])
            alone = Vdaf.verify_next_all(poplar1, CTX, states, [bad, *said[1:]])
            assert [outcome(each) for each in found] == [outcome(each) for each in alone]
            assert isinstance(found[0], InvalidReport) == (bad != said[0])
    with pytest.raises(ValueError, match="zip"):
        poplar1.verify_next_all(CTX, states, said[1:])
    last = [
        [poplar1.verify_next(CTX, each.state, m).verifier_share for each in p] for p, m in zip(begun, said, strict=True)
    ]
    ended = poplar1.verifier_shares_to_messages(CTX, parameter, [*last, [last[0][0], last[1][1]]])
    assert ended[:-1] == [b""] * 5
    assert isinstance(ended[-1], InvalidReport)
    assert poplar1.verifier_shares_to_messages(CTX, parameter, []) == poplar1.verify_next_all(CTX, [], []) == []


def test_messages_between_servers_that_are_none_are_refused():
    draw = random.Random(9)
    poplar1 = Poplar1(6)
    for level, size, modulus in ((2, 8, MODULUS_INNER), (5, 32, field255.MODULUS)):
        pair = reported(draw, poplar1, 44)
        parameter = parameter_of(level, [44 >> (5 - level)])
        begun = [poplar1.verify_init(KEY, CTX, server, parameter, *pair[server]) for server in (0, 1)]
        shares = [each.verifier_share for each in begun]
        outside = modulus.to_bytes(size, "little")
        for bad in ([], shares[:1], [*shares, shares[0]], [shares[0], shares[1][:-1]], [b"", b""], [shares[0], outside],
                    [outside, outside], [shares[0], outside + shares[1][size:]], [bytes(2 * size)] * 2):  # fmt: skip
            with pytest.raises(InvalidReport):
                poplar1.verifier_shares_to_message(CTX, parameter, bad)
        message = poplar1.verifier_shares_to_message(CTX, parameter, shares)
        for bad in (b"", message[:-1], message + b"\0", outside * 3):
            with pytest.raises(InvalidReport):
                poplar1.verify_next(CTX, begun[0].state, bad)
        last = [poplar1.verify_next(CTX, each.state, message) for each in begun]
        with pytest.raises(InvalidReport):
            poplar1.verify_next(CTX, last[0].state, message)
        assert poplar1.unshard(parameter, [poplar1.verify_next(CTX, each.state, b"") for each in last]) == [1]
        stored = [poplar1.encode_state(parameter, each.state) for each in (begun[0], last[1])]
        for bad in (b"", b"\4" + stored[0][1:], stored[0][:-1], stored[0] + b"\0", b"\1" + stored[1][1:],
                    stored[0][:1] + outside + stored[0][1 + size :], stored[0][:-size] + outside):  # fmt: skip
            with pytest.raises(CodecError):
                poplar1.decode_state(parameter, bad)


def test_only_sorted_nodes_below_those_asked_before_may_be_asked():
    poplar1 = Poplar1(10, most_prefixes=8)
    first = parameter_of(2, [1, 2, 5])
    assert poplar1.is_valid(first, [])
    assert poplar1.is_valid(parameter_of(3, [2, 3, 4, 11]), [first])
    assert poplar1.is_valid(parameter_of(9, [5 << 7, (5 << 7) + 127]), [first])
    assert not poplar1.is_valid(parameter_of(3, [6]), [first])  # below 3
    assert not poplar1.is_valid(parameter_of(3, [0, 2]), [first])  # below 0
    assert not poplar1.is_valid(parameter_of(3, [15]), [first])  # below 7, after the last
    assert not poplar1.is_valid(first, [first])
    assert not poplar1.is_valid(parameter_of(1, [1]), [first])
    assert not poplar1.is_valid(parameter_of(4, [4]), [parameter_of(2, [0, 1]), parameter_of(3, [3])])
    unsorted, twice = (struct.pack(">HI", 2, 2) + bytes(pair) for pair in ((0x40, 0x20), (0x20, 0x20)))
    hostile = [
        unsorted,
        twice,
        b"",
        bytes(5),
        struct.pack(">HI", 2, 0),
        struct.pack(">HI", 2, 1),
        struct.pack(">HI", 2, 1) + b"\x10",  # a fourth bit
        struct.pack(">HI", 2, 1) + b"\x20\x20",
        struct.pack(">HI", 10, 1) + bytes(2),
        struct.pack(">HI", 63, 1) + bytes(8),
        struct.pack(">HI", 65535, 1) + bytes(8192),
        struct.pack(">HI", 9, 2**32 - 1) + bytes(2),
        parameter_of(9, list(range(9))),
    ]
    report = poplar1.shard(CTX, 5, bytes(16), bytes(128))
    share = ReportShare(bytes(16), report[0], report[1][0])
    for bad in hostile:
        assert not poplar1.is_valid(bad, [])
        for ask in (
            partial(poplar1.verify_init, KEY, CTX, 0, bad, *share),
            partial(poplar1.merge, bad, []),
            partial(poplar1.decode_agg_share, bad, b""),
            partial(poplar1.is_valid, first, [bad]),
        ):
            with pytest.raises(Refused):
                ask()


def test_nodes_kept_of_other_prefixes_or_reports_are_refused():
    draw = random.Random(10)
    poplar1 = Poplar1(8)
    reports = [reported(draw, poplar1, leaf)[0] for leaf in (1, 200)]
    _, nodes = poplar1.verify_init_below(KEY, CTX, 0, parameter_of(2, [0, 6]), reports, None, keep=True)
    for bad, error in (
        (partial(poplar1.verify_init_below, KEY, CTX, 0, parameter_of(4, [3, 8]), reports), Refused),
        (partial(poplar1.verify_init_below, KEY, CTX, 0, parameter_of(4, [31]), reports), Refused),
        (partial(poplar1.verify_init_below, KEY, CTX, 0, parameter_of(2, [0]), reports), Refused),
        (partial(poplar1.verify_init_below, KEY, CTX, 0, parameter_of(4, [3]), reports[:1]), InputError),
        (partial(poplar1.verify_init_below, KEY[1:], CTX, 0, parameter_of(4, [3]), reports), InputError),
        (partial(poplar1.verify_init_below, KEY, CTX, 2, parameter_of(4, [3]), reports), InputError),
    ):
        with pytest.raises(error):
            bad(nodes, keep=False)
    assert poplar1.verify_init_below(KEY, CTX, 0, parameter_of(2, [0]), [], None, keep=True) == ([], None)


def test_sums_of_shares_are_exact_at_both_fields_edges():
    poplar1 = Poplar1(2)
    for level in (0, 1):
        parameter = parameter_of(level, [0, 1])
        p = poplar1.modulus(parameter)
        rows = [[p - 1, 0], [p - 1, 5], [1, -5], [-(2**40), p]]
        total = poplar1.merge(parameter, [poplar1.share_of(parameter, row) for row in rows])
        assert poplar1.unshard(parameter, [total, poplar1.merge(parameter, [])]) == [
            sum(column) % p for column in zip(*rows, strict=True)
        ]
        assert poplar1.output_length(parameter) == 2
        with pytest.raises(Refused):
            poplar1.unshard(parameter, [total])
        with pytest.raises(Refused):
            poplar1.merge(parameter, [total[:1]])
        with pytest.raises(InputError):
            poplar1.encode_agg_share(parameter, total[:1])
        for bad in (b"", bytes(7), p.to_bytes(32 if level else 8, "little") * 2):
            with pytest.raises(CodecError):
                poplar1.decode_agg_share(parameter, bad)


def test_what_no_client_can_report_is_refused():
    for bits, most in ((0, 1), (65, 1), (4, 0), (4, 1 << 32)):
        with pytest.raises(InputError):
            Poplar1(bits, most)
    for ctx, leaf, nonce, rand in (
        (CTX, 16, bytes(16), bytes(128)),
        (CTX, -1, bytes(16), bytes(128)),
        (CTX, 1, bytes(15), bytes(128)),
        (CTX, 1, bytes(16), bytes(127)),
        (bytes(65_528), 1, bytes(16), bytes(128)),
    ):
        with pytest.raises(InputError):
            Poplar1(4).shard(ctx, leaf, nonce, rand)


@pytest.mark.slow  # compiles for ten seconds
def test_a_processor_without_aes_instructions_walks_the_same_tree(monkeypatch):
    draw = random.Random(11)
    poplar1 = Poplar1(20)
    reports = [reported(draw, poplar1, leaf)[1] for leaf in (1, 77_777)]
    parameter = parameter_of(17, [draw.getrandbits(18) for _ in range(300)])
    expected = poplar1.verify_init_all(KEY, CTX, 1, parameter, reports)
    monkeypatch.setattr(poplar1_kernels, "hash_blocks", aes128_kernels.hash_blocks_bitsliced)
    monkeypatch.setattr(poplar1_kernels, "step_nodes", compiled(poplar1_kernels.step_in_turn.py_func))
    for name in ("redraw", "walk"):  # each is compiled around those before
        monkeypatch.setattr(poplar1_kernels, name, compiled(getattr(poplar1_kernels, name).py_func))
    found = poplar1.verify_init_all(KEY, CTX, 1, parameter, reports)
    assert poplar1_kernels.walk.signatures
    assert [each.verifier_share for each in found] == [each.verifier_share for each in expected]
