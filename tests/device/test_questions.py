"""What a device does not know how to judge, it refuses."""

from fractions import Fraction

import pytest

from hazemap.cells import Leaves
from hazemap.device.questions import asked
from hazemap.domains import Always, Gauge, Measured, Quadtree
from hazemap.encoders import Values
from hazemap.errors import Refused
from hazemap.privacy.budget import PureDP
from hazemap.rounds import Query
from hazemap.tables import OwnMeans
from hazemap.trust import Cohort, Task


def test_a_question_about_values_is_refused():
    values = Values(Measured(Leaves.at_level(Quadtree.world(2), 2), Always(), Gauge(0, 60)), OwnMeans(1))
    task = Task("speeds", "how fast", 1, Query(values, Fraction(1)), PureDP(1), PureDP(1), Cohort(1000, 1000))
    with pytest.raises(Refused, match="a question of type Values"):
        asked(task)
