"""Graphs: regular, symmetric, the same for everybody who knows the seed, and uniform over seeds."""

import os
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chisquare

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.graph_degree import degree_and_threshold
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import (
    commitment,
    drawn_neighbours,
    ring_neighbours,
    ring_neighbours_of,
)
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode

SEED = bytes(range(32))


def by_the_page(seed: bytes, members: list[int], degree: int) -> dict[int, set[int]]:
    """The ring as docs/reference/protocol.md says it, without arrays."""
    cipher = Cipher(algorithms.AES(sha256(b"hazemap 1 graph" + seed).digest()), modes.CTR(bytes(16))).encryptor()
    stream = cipher.update(bytes(8 * (max(members) + 1)))
    ring = sorted(members, key=lambda p: (int.from_bytes(stream[8 * p : 8 * p + 8], "little"), p))
    n = len(ring)
    near = [step for step in range(-(degree // 2), degree // 2 + 1) if step]
    return {ring[i]: {ring[(i + step) % n] for step in near} for i in range(n)}


@pytest.mark.parametrize(("count", "degree"), [(10, 4), (11, 8), (100, 20), (101, 98)])
def test_the_ring_is_the_one_of_the_specification(count, degree):
    members = np.flatnonzero(np.random.default_rng(count).random(2 * count) < 0.5)[: count - 1]
    expected = by_the_page(SEED, members.tolist(), degree)
    rows = ring_neighbours(SEED, members, degree)
    assert {int(m): set(row.tolist()) for m, row in zip(members, rows, strict=True)} == {
        m: (s if degree < len(members) - 1 else set(members.tolist()) - {m}) for m, s in expected.items()
    }


@pytest.mark.parametrize(("count", "degree"), [(7, 2), (50, 10), (1000, 100)])
def test_everybody_has_degree_many_distinct_neighbours_and_is_theirs(count, degree):
    members = np.arange(count) * 3 + 1
    rows = ring_neighbours(SEED, members, degree)
    assert rows.shape == (count, degree)
    assert (np.diff(rows, axis=1) > 0).all()
    edges = {(a, b) for a, row in zip(members.tolist(), rows.tolist(), strict=True) for b in row}
    assert all((b, a) in edges and a != b for a, b in edges)


@pytest.mark.parametrize("degree", [4, 5, 100])
def test_few_members_are_all_neighbours(degree):
    members = np.array([2, 3, 5, 8, 9])
    rows = ring_neighbours(SEED, members, degree)
    assert rows.tolist() == [[p for p in members.tolist() if p != own] for own in members.tolist()]
    assert ring_neighbours(SEED, np.array([4]), degree).shape == (1, 0)


def test_a_client_computes_its_own_row_alone():
    members = np.arange(0, 300, 2)
    rows = ring_neighbours(SEED, members, 12)
    for own, row in zip(members.tolist(), rows, strict=True):
        assert np.array_equal(ring_neighbours_of(SEED, members, 12, own), row)


def test_who_is_missing_does_not_turn_the_order_of_the_others():
    everybody = np.arange(40)
    ring = by_the_page(SEED, everybody.tolist(), 2)
    gone = 17
    a, b = ring[gone]
    rows = ring_neighbours(SEED, np.delete(everybody, gone), 2)
    left = dict(zip(np.delete(everybody, gone).tolist(), rows.tolist(), strict=True))
    assert b in left[a]
    assert all(set(row) == ring[p] for p, row in left.items() if p not in {a, b})


@pytest.mark.slow
def test_every_pair_is_joined_equally_often_over_seeds():
    """Chi-square at 1e-6 over the 45 pairs of 10 members; the twin with seeds of one bit fails."""

    def worst(seeds: list[bytes]) -> float:
        counts = np.zeros((10, 10))
        for seed in seeds:
            rows = ring_neighbours(seed, np.arange(10), 2)
            counts[np.arange(10)[:, None], rows] += 1
        upper = counts[np.triu_indices(10, 1)]
        return float(chisquare(upper).pvalue)

    # edges of one ring repel each other a little, which only makes the statistic smaller
    assert worst([sha256(b"%d" % i).digest() for i in range(4000)]) > 1e-6
    assert worst([bytes([i % 2]) * 32 for i in range(4000)]) < 1e-6


def test_drawn_neighbours_are_distinct_others_and_uniform():
    """Chi-square at 1e-6; the twin that takes the next ones in the roster fails."""
    members = np.array([1, 4, 6, 7, 9, 12, 13, 20])
    counts = dict.fromkeys(members.tolist(), 0)
    for i in range(7000):
        drawn = drawn_neighbours(lambda n, i=i: sha256(b"%d" % i).digest()[:n], members, own=7, degree=3)
        assert len(drawn) == 3 and (np.diff(drawn) > 0).all() and 7 not in drawn
        for position in drawn.tolist():
            counts[position] += 1
    assert counts.pop(7) == 0
    assert chisquare(list(counts.values())).pvalue > 1e-6
    assert chisquare([7000, 7000, 7000, 0, 0, 0, 0]).pvalue < 1e-6


def test_drawn_neighbours_are_everybody_where_there_are_few():
    assert drawn_neighbours(os.urandom, np.arange(4), own=2, degree=3).tolist() == [0, 1, 3]
    assert drawn_neighbours(os.urandom, np.arange(1), own=0, degree=3).tolist() == []


def test_the_commitment_is_a_hash_of_its_own():
    assert commitment(SEED) == sha256(b"hazemap 1 graph commitment" + SEED).digest()
    assert commitment(SEED) != sha256(b"hazemap 1 graph" + SEED).digest()


def test_graphs_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="even degree"):
        ring_neighbours(SEED, np.arange(10), 3)
    with pytest.raises(InputError, match="even degree"):
        ring_neighbours(SEED, np.arange(10), 0)
    with pytest.raises(InputError, match="32 bytes"):
        ring_neighbours(bytes(16), np.arange(10), 2)
    with pytest.raises(InputError, match="ascending"):
        ring_neighbours(SEED, np.array([1, 1, 2, 3, 4]), 2)
    with pytest.raises(InputError, match="not among"):
        ring_neighbours_of(SEED, np.arange(10), 2, own=10)
    with pytest.raises(InputError, match="not among"):
        drawn_neighbours(os.urandom, np.arange(10), own=11, degree=2)


def test_a_server_that_forms_the_roster_chooses_a_persons_neighbours_on_a_ring_and_not_in_a_draw():
    """Why semi-honest sessions take a person's word: of 300 a tenth is assumed to be corrupt, and 22 are enough."""
    clients, victim, tenth = 300, 150, Fraction(1, 10)
    degree, threshold = degree_and_threshold(clients, tenth, tenth, Mode.SEMI_HONEST)
    ring = ring_neighbours_of(SEED, np.arange(clients), degree, victim).tolist()
    sybils = set(ring[:30])  # the server knows the seed while it decides who stands where
    assert threshold == 22
    assert len(sybils.intersection(ring)) >= threshold, "they hold enough shares of both secrets"
    degree, threshold = degree_and_threshold(clients, tenth, tenth, Mode.MALICIOUS)
    drawn = [drawn_neighbours(os.urandom, np.arange(clients), victim, degree).tolist() for _ in range(200)]
    most = max(len(sybils.intersection(each)) for each in drawn)
    assert most < 2 * threshold - degree, "of a draw that the client makes, so many are rarer than 2^-41"
