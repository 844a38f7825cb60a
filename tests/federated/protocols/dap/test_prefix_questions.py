"""Questions about one report's tree: what one person moves, by every path and every level; what cannot be asked."""

from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest

from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.protocols.dap.prefix_question import (
    LevelShares,
    PrefixCells,
    PrefixQuestion,
    decoded_shares,
    encoded_shares,
    question_shares,
)
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere, WalkTerms
from hazemap.federated.protocols.dap.vdaf_configuration import CountConfiguration, Poplar1Configuration
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.vdaf.idpf import MODULUS_INNER
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

BITS = 4


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


def part(weight, *prefixes):
    return PrefixCells.of(words(*(int(p, 2) for p in prefixes)), [len(p) for p in prefixes], weight)


def question(*parts, number=0, share=Fraction(1, 2)):
    return PrefixQuestion.of(number, b"", share, parts)


def walk(random):
    """A walk of some levels, each below the one before: lists of prefixes."""
    lengths = sorted(random.sample(range(1, BITS + 1), random.randint(1, 3)))
    levels, above = [], [""]
    for length in lengths:
        below = [a + "".join(b) for a in above for b in product("01", repeat=length - len(a))]
        above = sorted(random.sample(below, random.randint(1, len(below))))
        levels.append(above)
    return levels


def counted(levels, paths_by_level):
    return [
        LevelShares(
            Poplar1Parameter(len(prefixes[0]) - 1, words(*(int(p, 2) for p in prefixes))),
            [sum(path.startswith(p) for path in paths) for p in prefixes],
        )
        for prefixes, paths in zip(levels, paths_by_level, strict=True)
    ]


def signed(sums):
    return np.array([s - MODULUS_INNER if 2 * s > MODULUS_INNER else s for s in sums])


def asked_at_random(random, levels):
    deepest = len(levels[-1][0])
    every = ["".join(p) for n in range(1, deepest + 1) for p in product("01", repeat=n)]
    parts = [
        part(random.randint(1, 5), *random.sample(every, random.randint(1, min(8, len(every)))))
        for _ in range(random.randint(1, 3))
    ]
    return question(*parts)


def moved(asked, levels, path, depth):
    """What a person with this path adds, whose report counts at the first `depth` levels."""
    sums = question_shares(asked, counted(levels, [[path] * (k < depth) for k in range(len(levels))]), MODULUS_INNER)
    return signed(sums)


def test_no_person_moves_a_question_by_more_than_its_sensitivity():
    """All paths, and reports that are dropped at any level; the twin counts people in all cells that hold them."""
    random, twin = Random(1), 0
    for _ in range(30):
        levels = walk(random)
        asked = asked_at_random(random, levels)
        most = asked.sensitivity
        flat = question(
            *(
                PrefixCells(p.weight, p.lengths[i : i + 1], p.starts[8 * i : 8 * i + 8])
                for p in asked.parts
                for i in range(p.size)
            )
        )
        reached = 0
        for path, depth in product(product("01", repeat=BITS), range(len(levels) + 1)):
            move = moved(asked, levels, "".join(path), depth)
            assert np.abs(move).sum() <= most.l1
            assert (move**2).sum() <= most.l2_squared
            assert (move >= 0).all()
            reached = max(reached, int(moved(flat, levels, "".join(path), depth).sum()))
        twin += reached > most.l1
    assert twin > 5


def test_rows_there_or_not_move_no_more_than_a_question_s_sensitivity_unless_who_is_nowhere_is_asked_for():
    """Everybody reports: without rows the path of nobody's place, 1000. The twin asks for it as well."""
    levels = [["0", "1"], ["00", "01", "10"], ["000", "001", "010", "011", "100"]]
    nowhere, paid = "1" + "0" * (BITS - 1), WalkTerms.of(PureDP(1), 1, nowhere=Nowhere.PAID)
    random, twin = Random(5), 0
    for _ in range(20):
        cells = random.sample(["0", "00", "01", "000", "001", "010", "011"], 4)
        asked, more = question(part(2, *cells), part(1, "0")), question(part(2, *cells, "1"), part(1, "0"))
        for rest in product("01", repeat=BITS - 1):
            path = "0" + "".join(rest)
            move = moved(asked, levels, path, 3) - moved(asked, levels, nowhere, 3)
            assert np.abs(move).sum() <= asked.sensitivity.l1 and (move**2).sum() <= asked.sensitivity.l2_squared
            both = moved(more, levels, path, 3) - moved(more, levels, nowhere, 3)
            twin += int(np.abs(both).sum()) > more.sensitivity.l1
            most = paid.moved(more.sensitivity)
            assert np.abs(both).sum() <= most.l1 and (both**2).sum() <= most.l2_squared
    assert twin > 100


def test_a_report_that_counts_at_a_deep_level_alone_would_move_more():
    """Why `strays` are refused: the bound needs that whoever counts at a level counts at the one before."""
    asked = question(part(1, "0", "01"))
    levels = [["0", "1"], ["00", "01"]]
    alone = question_shares(asked, counted(levels, [[], ["0100"]]), MODULUS_INNER)
    assert np.abs(signed(alone)).sum() == 2 > asked.sensitivity.l1


def test_a_cell_counts_whoever_is_in_none_of_those_inside_it():
    levels = [["0", "1"], ["000", "001", "010", "011"]]
    people = ["0000", "0010", "0011", "0110", "1111"]
    asked = question(part(2, "00", "001", "0"), part(1, "1"))
    sums = question_shares(asked, counted(levels, [people, people]), MODULUS_INNER)
    assert sums == [2 * 1, 2 * 2, 2 * 1, 1]
    with pytest.raises(Refused, match="deeper than every level"):
        question_shares(question(part(1, "0000")), counted(levels, [people, people]), MODULUS_INNER)


def test_shares_of_two_servers_add_up_to_the_sums():
    random = Random(2)
    for _ in range(50):
        levels = walk(random)
        asked = asked_at_random(random, levels)
        people = ["".join(random.choices("01", k=BITS)) for _ in range(20)]
        whole = counted(levels, [people] * len(levels))
        masks = [[random.randrange(MODULUS_INNER) for _ in each.shares] for each in whole]
        one = [LevelShares(each.parameter, mask) for each, mask in zip(whole, masks, strict=True)]
        other = [
            LevelShares(each.parameter, [(a - b) % MODULUS_INNER for a, b in zip(each.shares, mask, strict=True)])
            for each, mask in zip(whole, masks, strict=True)
        ]
        both = [question_shares(asked, shares, MODULUS_INNER) for shares in (one, other)]
        together = [(a + b) % MODULUS_INNER for a, b in zip(*both, strict=True)]
        assert together == question_shares(asked, whole, MODULUS_INNER)


def test_a_question_has_one_encoding_and_says_what_cannot_be_asked():
    asked = question(part(3, "0", "1010"), part(1, "1" * 64), number=7, share=Fraction(2, 3))
    again = PrefixQuestion.from_bytes(asked.to_bytes())
    assert again == asked
    assert (again.share, again.number, again.size, again.sensitivity) == (Fraction(2, 3), 7, 3, (4, 10))
    for wrong in (asked.to_bytes()[:-1], asked.to_bytes() + b"0", b"", asked.to_bytes().replace(b"\x02", b"\x03", 1)):
        with pytest.raises(CodecError):
            PrefixQuestion.from_bytes(wrong)
    for make in (
        lambda: part(0, "0"),
        lambda: part(1 << 41, "0"),
        lambda: part(1, "01", "01"),
        lambda: PrefixCells(1, b"\x01", b"\x40" + bytes(7)),
        lambda: PrefixCells(1, b"\x00", bytes(8)),
        lambda: PrefixCells(1, b"\x41", bytes(8)),
        lambda: PrefixCells(1, b"", b""),
        lambda: PrefixCells(1, b"\x01", bytes(9)),
        question,
        lambda: question(part(1, "0"), number=1 << 12),
        lambda: question(part(1, "0"), share=Fraction(3, 2)),
        lambda: PrefixQuestion(0, b"", b"\x02", b"\x04", (part(1, "0"),)),
        lambda: PrefixQuestion(0, b"", b"\x00\x01", b"\x04", (part(1, "0"),)),
        lambda: PrefixQuestion(0, b"", b"", b"\x04", (part(1, "0"),)),
    ):
        with pytest.raises(InputError):
            make()
    for wrong in (bytes(7), b"\xff" * 8):
        with pytest.raises(CodecError):
            decoded_shares(wrong, 1)
    assert decoded_shares(encoded_shares([5, 6]), 2) == [5, 6]


def test_stretches_are_what_all_cells_cover():
    random = Random(3)
    for _ in range(100):
        asked = asked_at_random(random, [["".join(p) for p in product("01", repeat=BITS)]])
        first, last = asked.stretches
        assert (first[1:] > last[:-1]).all()
        for path in product("01", repeat=BITS):
            string = int("".join(path), 2) << 60
            inside = any(int(b) <= string <= int(e) for b, e in zip(first, last, strict=True))
            cells = [(p.begins[i], p.ends[i]) for p in asked.parts for i in range(p.size)]
            assert inside == any(int(b) <= string <= int(e) for b, e in cells)


@pytest.mark.parametrize("budget", [PureDP("0.7"), ZCDP(Fraction(1, 3)), ApproxDP(1, "1e-6")])
def test_terms_name_a_budget_of_any_kind(budget):
    terms = WalkTerms.of(budget, 5)
    assert WalkTerms.from_bytes(terms.to_bytes()).budget == budget
    terms.check(Poplar1Configuration(46))
    for measured in (CountConfiguration(), Poplar1Configuration(5)):
        with pytest.raises(InputError):
            terms.check(measured)


def test_terms_that_cannot_be_are_refused():
    for make in (
        lambda: WalkTerms.of(PureDP(Fraction(1, 1 << 64)), 1),
        lambda: WalkTerms.of(ApproxDP(1, Fraction(2, 7)), 1),
        lambda: WalkTerms.of(PureDP(1), 0),
        lambda: WalkTerms.of(PureDP(1), 65),
        lambda: WalkTerms.of(PureDP(1), 3, 0),
        lambda: WalkTerms.of(PureDP(1), 3, (1 << 16) + 1),
        lambda: WalkTerms.of(ApproxDP(Fraction(1, 1 << 62), Fraction(1, 1 << 62)), 1),
    ):
        with pytest.raises(InputError):
            make()
    good = WalkTerms.of(PureDP(1), 3).to_bytes()
    for wrong in (good[:-1], b"\x04" + good[1:], b"\x03" + good[1:], good[:1] + bytes(8) + good[9:]):
        with pytest.raises(CodecError):
            WalkTerms.from_bytes(wrong)
