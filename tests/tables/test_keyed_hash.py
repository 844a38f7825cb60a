"""The keyed hash: the same number everywhere, and a fair one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hazemap.engines import memory
from hazemap.engines.memory import MemoryTable
from hazemap.engines.streaming import keyed_hash as hashes
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote
from hazemap.tables.keyed_hash import KeyWords, mix, numbers, seeds

from .people import QUADTREE, keys

words64 = st.integers(0, 2**64 - 1)
CENTRES = [(13.05 + 0.1 * i, 52.5) for i in range(8)]  # eight base cells of QUADTREE


def crowd(people: int, key: int) -> MemoryTable:
    """Everybody has a row in each of eight cells, in the same order."""
    lon, lat = (np.tile([place[i] for place in CENTRES], people) for i in (0, 1))
    return MemoryTable(np.repeat(np.arange(people), 8), {"lon": lon, "lat": lat}, key)


def cell_of(i: int) -> int:
    lon, lat = CENTRES[i]
    return int(QUADTREE.cell_at({"lon": np.array([lon]), "lat": np.array([lat])}, QUADTREE.depth)[0])


@given(keys, st.lists(words64, min_size=1, max_size=20), words64)
def test_the_compiled_hash_is_the_one_in_numpy(key, people, word):
    codes, words = np.array(people, dtype=np.uint64), KeyWords.expanded(key, "a use")
    plain = seeds(codes, words)
    assert np.array_equal(plain, hashes.seeds_of_numbers(codes, *words))
    drawn = numbers(plain, np.full(len(people), word, dtype=np.uint64))
    assert drawn.tolist() == [int(hashes.number(seed, np.uint64(word))) for seed in plain]


@given(words64, words64)
def test_the_high_product_is_exact(a, b):
    assert int(hashes.high_product(np.uint64(a), np.uint64(b))) == a * b >> 64


@given(st.binary(max_size=40))
def test_a_text_has_one_code_wherever_it_stands(text):
    data = np.frombuffer(b"before" + text + b"after", dtype=np.uint8)
    code = np.array([len(text)], dtype=np.uint64)
    for at in range(0, len(text), 8):
        code = mix(code ^ np.uint64(int.from_bytes(text[at : at + 8], "little")))
    assert int(hashes.text_code(data, 6, 6 + len(text))) == int(code[0])


@given(keys, st.sets(words64, min_size=2, max_size=50))
def test_no_two_people_have_a_seed_and_no_two_words_a_number(key, people):
    codes = np.array(sorted(people), dtype=np.uint64)
    own = seeds(codes, KeyWords.expanded(key, "a use"))
    assert len(np.unique(own)) == len(people)
    assert len(np.unique(numbers(np.full(len(codes), own[0]), codes))) == len(people)


def unfairness(rule: AtMostRows | AtMostCells, key: int) -> float:
    """The probability that a fair rule keeps the eight cells this unequally: 20,000 people, Pearson's χ²."""
    votes = crowd(20_000, key).votes(QUADTREE, rule)
    kept = np.array([votes.weights[votes.cells == cell_of(i)].sum() for i in range(8)])
    # k of 8 without replacement: variance k/8·(1 - k/8) a person, covariance -1/7 of it, so χ² has this scale.
    expected = kept.sum() / 8
    spread = expected * (8 - rule.most) / 7
    return float(stats.chi2.sf(((kept - expected) ** 2).sum() / spread, df=7))


@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostRows(3), AtMostCells(1), AtMostCells(3)], ids=repr)
def test_every_row_and_every_cell_has_the_same_chance(rule):
    """Wrong with probability 1e-6 for each rule, if its key were drawn now."""
    assert unfairness(rule, key=2024) > 1e-6


@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostCells(3)], ids=repr)
def test_a_hash_that_does_not_mix_is_found_out(rule, monkeypatch):
    monkeypatch.setattr(memory, "numbers", lambda seeds, words: seeds ^ (words << np.uint64(61)) & np.uint64(3 << 62))
    assert unfairness(rule, key=2024) < 1e-6


@pytest.mark.slow
def test_keys_are_as_fair_as_people():
    """One person of eight rows under 4,000 keys; wrong with probability 1e-6."""
    kept = [crowd(1, key).votes(QUADTREE, AtMostRows(1)).cells[0] for key in range(4_000)]
    counts = np.unique(kept, return_counts=True)[1]
    assert len(counts) == 8 and stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "weights"), [(1, [1, 2, 5]), (4, [3, 3, 7])])
def test_a_divided_vote_is_fair_between_cells(scale, weights):
    """20,000 people; each cell's mean is within 5.2 standard errors: wrong with probability 3 · 2e-7."""
    people, total = 20_000, sum(weights)
    lon, lat = (np.tile([CENTRES[j][i] for j in range(3)], people) for i in (0, 1))
    columns = {"lon": lon, "lat": lat, "weight": np.tile(weights, people).astype(float)}
    votes = MemoryTable(np.repeat(np.arange(people), 3), columns, key=5).votes(QUADTREE, OneVote(scale))
    for i, weight in enumerate(weights):
        exact = scale * weight / total
        mean = votes.weights[votes.cells == cell_of(i)][0] / people
        fraction = exact % 1
        assert abs(mean - exact) <= 5.2 * np.sqrt(fraction * (1 - fraction) / people)
