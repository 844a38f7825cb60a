"""Made-up families of maps, and the split of all maps into those to learn from and those to report on."""

import numpy as np

from hazemap.lab.compare.datasets import Datasets
from hazemap.lab.compare.map_families import FAMILIES, SIDE
from research.compare.presets import strange


def test_a_family_has_the_people_it_promises_and_the_same_every_time():
    for name, family in FAMILIES.items():
        place = Datasets().map(name)
        assert place.side == SIDE and abs(place.people - family.people) < 7 * family.people**0.5
        assert family.map().digest == place.digest


def test_families_are_what_their_names_say():
    maps = {name: Datasets().map(name).counts for name in FAMILIES}
    assert maps["spike"].max() > 0.85 * maps["spike"].sum()
    assert (maps["spikes"] > 0).sum() <= 50
    assert (maps["islands"] > 0).mean() < 0.1
    assert not maps["half-empty"][:, SIDE * 3 // 5 :].any()
    assert 0.45 < (maps["checkerboard"] > 0).mean() < 0.51
    tail = np.sort(maps["heavy-tail"].ravel())[::-1]
    assert tail[:100].sum() > 0.3 * tail.sum()


def test_no_family_is_both_learned_from_and_reported_on():
    held_out, development, fresh = set(strange.HELD_OUT), set(strange.DEVELOPMENT), set(strange.FRESH)
    assert len(held_out) == 20 and not held_out & development and not fresh & (held_out | development)
    assert set(FAMILIES) <= held_out | development | fresh
    assert all(preset.methods == strange.METHODS for preset in strange.PRESETS)
