"""What a device does not know how to judge, it refuses."""

from fractions import Fraction

import pytest

from hazemap.cells import Leaves
from hazemap.encoders import Values
from hazemap.errors import Refused
from hazemap.federated.device.policy.query_description import describe_query
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.budget import PureDP
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Always
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding


def test_a_question_about_values_is_refused():
    values = Values(CellTimeSlots(Leaves.at_level(Quadtree.world(2), 2), Always(), ValueEncoding(0, 60)), OwnMeans(1))
    task = Task("speeds", "how fast", 1, Query(values, Fraction(1)), PureDP(1), PureDP(1), Cohort(1000, 1000))
    with pytest.raises(Refused, match="a question of type Values"):
        describe_query(task)
