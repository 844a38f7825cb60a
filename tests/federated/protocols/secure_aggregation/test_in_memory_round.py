"""The whole protocol on one page, for reading."""

from fractions import Fraction
from inspect import getsourcefile
from pathlib import Path

import numpy as np
import pytest
from tests.federated.protocols.secure_aggregation.people import Anything, session

from hazemap.errors import NotOpened
from hazemap.federated.protocols.secure_aggregation.in_memory_round import secure_sum
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import MinimumParameters
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.privacy.random_stream import Stream


def test_it_is_under_eighty_lines():
    assert len(Path(getsourcefile(secure_sum)).read_text().splitlines()) < 80


@pytest.mark.parametrize("mode", Mode)
def test_it_sums_who_stays(mode):
    here = session(8, mode, threshold=4, survivors=6, scale=Fraction(1, 100))
    drops = {0: Stage.KEYS, 5: Stage.MASKED, 6: Stage.UNMASK}
    opened = secure_sum(here.terms, here.identities, here.vectors, here.seed, drops, Anything(), Stream.fixed(b"1"))
    assert opened.people == 6
    stayed = [p for p in range(8) if p not in (0, 5)]
    assert opened.sums.tolist() == here.vectors[stayed].sum(axis=0).tolist()


def test_it_adds_everybodys_noise():
    here = session(8, threshold=4, survivors=6, size=2_000, bits=20)
    opened = secure_sum(here.terms, here.identities, here.vectors, here.seed, floors=Anything())
    noise = opened.sums - here.vectors.sum(axis=0)
    assert abs(noise.std() / here.terms.noise.stddev(8) - 1) < 0.5
    assert noise.any()


def test_it_opens_nothing_if_too_few_stay_or_floors_are_not_met():
    here = session(8, threshold=4, survivors=6)
    with pytest.raises(NotOpened):
        secure_sum(
            here.terms, here.identities, here.vectors, here.seed, dict.fromkeys([0, 1, 2], Stage.MASKED), Anything()
        )
    with pytest.raises(NotOpened):
        secure_sum(here.terms, here.identities, here.vectors, here.seed, floors=MinimumParameters())


def test_vectors_are_asked_for_one_by_one():
    """`contributions` may be anything that is indexed, so that a million vectors need not exist at once."""

    class Lazy:
        def __init__(self) -> None:
            self.asked: list[int] = []

        def __getitem__(self, position: int) -> np.ndarray:
            self.asked.append(position)
            return np.full(5, position, dtype=np.int64)

    here = session(6, scale=Fraction(1, 100))
    lazy = Lazy()
    opened = secure_sum(here.terms, here.identities, lazy, here.seed, floors=Anything())
    assert opened.sums.tolist() == [15] * 5 and lazy.asked == list(range(6))
