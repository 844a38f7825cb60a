"""A town whose people are known, and a curator whose noise is the same every time."""

import numpy as np
import pytest

from hazemap.engines.memory import MemoryTable
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.trust.curator import Curator

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE = Quadtree.around(BOX, 8)
PEOPLE = 50_000


def people(seed: int = 7, nowhere: int = 0) -> MemoryTable:
    """50,000 people in two clusters of the box, one row each, and some more without a coordinate."""
    rng = np.random.default_rng(seed)
    centre = np.where(rng.random(PEOPLE) < 0.8, 0.3, 0.7)
    spot = np.clip(centre[:, None] + rng.normal(0, 0.04, (PEOPLE, 2)), 0.001, 0.999)
    lon, lat = 13.2 + 0.4 * spot[:, 0], 52.4 + 0.2 * spot[:, 1]
    lost = np.full(nowhere, np.nan)
    return MemoryTable(np.arange(PEOPLE + nowhere), {"lon": np.append(lon, lost), "lat": np.append(lat, lost)})


@pytest.fixture
def curator() -> Curator:
    """A curator of the town."""
    return Curator(people(), Stream.fixed(b"town"))


@pytest.fixture
def lost() -> Curator:
    """A curator of the town and of 5,000 people who are nowhere."""
    return Curator(people(nowhere=5_000), Stream.fixed(b"lost"))
