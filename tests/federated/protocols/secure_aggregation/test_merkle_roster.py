"""Rosters: a proof convinces of one identity at one position, and of nothing else."""

from hashlib import sha256

import pytest

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.merkle_roster import belongs, proof, proofs, root

SIZES = [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 100]


def people(count: int) -> list[bytes]:
    return [sha256(b"%d" % i).digest() for i in range(count)]


def merkle(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written: MTH."""
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    left = 1 << ((len(leaves) - 1).bit_length() - 1)
    return sha256(b"\x01" + merkle(leaves[:left]) + merkle(leaves[left:])).digest()


def audit_path(leaves: list[bytes], position: int) -> list[bytes]:
    """RFC 6962, section 2.1.1, as it is written: PATH."""
    if len(leaves) == 1:
        return []
    left = 1 << ((len(leaves) - 1).bit_length() - 1)
    if position < left:
        return [*audit_path(leaves[:left], position), merkle(leaves[left:])]
    return [*audit_path(leaves[left:], position - left), merkle(leaves[:left])]


@pytest.mark.parametrize("count", SIZES)
def test_the_root_is_that_of_rfc_6962(count):
    assert root(people(count)) == merkle(people(count))


@pytest.mark.parametrize("count", SIZES)
def test_a_proof_is_that_of_rfc_6962_and_convinces(count):
    identities = people(count)
    tree = root(identities)
    for position, path in enumerate(proofs(identities)):
        assert list(path) == audit_path(identities, position)
        assert path == proof(identities, position)
        assert belongs(tree, count, position, identities[position], path)


@pytest.mark.parametrize("count", SIZES)
def test_a_proof_convinces_of_no_other_position_and_no_other_identity(count):
    identities = people(count)
    tree = root(identities)
    for position, path in enumerate(proofs(identities)):
        for other in range(-2, count + 2):
            if other != position:
                assert not belongs(tree, count, other, identities[position], path)
        assert not belongs(tree, count, position, sha256(b"a stranger").digest(), path)
        assert not belongs(merkle([*identities, identities[0]]), count + 1, position, identities[position], path)


def test_a_proof_cut_short_padded_turned_or_changed_convinces_of_nothing():
    identities = people(13)
    tree = root(identities)
    for position, path in enumerate(proofs(identities)):
        wrong = [path[:-1], path[1:], (*path, path[-1]), path[::-1], (path[0][:-1], *path[1:]), (b"", *path[1:])]
        wrong += [(*path[:i], bytes(32), *path[i + 1 :]) for i in range(len(path))]
        assert not [p for p in wrong if belongs(tree, 13, position, identities[position], p)]


def test_an_inner_node_is_not_taken_for_an_identity():
    identities = people(4)
    left = sha256(b"\x00" + identities[0]).digest(), sha256(b"\x00" + identities[1]).digest()
    assert not belongs(root(identities), 2, 0, left[0] + left[1], proof(identities, 0)[1:])


def test_rosters_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="at least one"):
        root([])
    with pytest.raises(InputError, match="32 bytes"):
        root([bytes(31)])
    with pytest.raises(InputError, match="no position 3"):
        proof(people(3), 3)
