"""Tables become devices: each person gets their own rows, and nobody else's."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import TableError
from hazemap.federated.device.store import row_store as people


@pytest.fixture
def table():
    return pa.table(
        {
            "user": ["b", "a", None, "b", "c"],
            "lon": [1.0, 2, 3, 4, 5],
            "lat": [10.0, 20, 30, 40, 50],
            "ts": pa.array([86_400 * i for i in range(5)]).cast(pa.timestamp("s", "UTC")),
            "ill": [True, False, True, None, True],
            "much": [1.0, 2.0, 3.0, None, 5.0],
        }
    )


def test_each_person_gets_their_own_rows_in_the_order_of_the_table(table):
    b, a, c = people.people(table, most=10)
    assert (b.lon.tolist(), a.lon.tolist(), c.lon.tolist()) == ([1, 4], [2], [5])
    assert b.time.tolist() == [0, 3 * 86_400]
    assert b.weight.tolist() == [1, 1]
    assert np.isnan(b.mark).all()


def test_only_so_many_people_are_taken(table):
    assert [each.lon.tolist() for each in people.people(table, most=2)] == [[1, 4], [2]]


def test_a_row_may_be_a_person(table):
    assert [each.lon.tolist() for each in people.people(table, most=4, each_row=True)] == [[1], [2], [3], [4]]


def test_weights_and_marks_come_along(table):
    b, *_ = people.people(table, most=3, value="much", mark="ill")
    assert b.weight[0] == 1 and np.isnan(b.weight[1])
    assert b.mark[0] == 1 and np.isnan(b.mark[1])


def test_ones_own_table_needs_no_person(table, tmp_path):
    pq.write_table(table.drop(["user"]), tmp_path / "own.parquet")
    assert people.own(tmp_path / "own.parquet").lon.tolist() == [1, 2, 3, 4, 5]


def test_rows_without_a_time_are_of_now(table):
    now = people.own(table.drop(["ts"])).time
    assert (now > 1_700_000_000).all()


DEVICE = ["iso_basic_2019.csv", "space_offset_2019.csv", "epoch_2019.csv", "epoch_2019.parquet"]


@pytest.mark.parametrize("name", DEVICE)
def test_rows_of_2019_are_never_of_now_however_their_times_are_written(shared, name):
    counted = name.startswith("epoch")
    rows = people.own(shared / "cases" / f"device_{name}", **({"time_format": "seconds"} if counted else {}))
    assert (rows.time >= 1_546_300_800).all() and (rows.time < 1_600_000_000).all()
    if name == "epoch_2019.csv":  # nobody knows how old they are
        assert np.isnan(people.own(shared / "cases" / f"device_{name}").time).all()
    elif counted:
        with pytest.raises(TableError, match="say --time-format seconds"):
            people.own(shared / "cases" / f"device_{name}")


def test_a_time_that_cannot_be_read_is_not_now_and_one_that_is_missing_is(tmp_path):
    lines = "1,2,2019-01-01\n1,2,1.1.2019\n1,2,\n1,2,2019-01-01 00:00 BST\n"
    (tmp_path / "own.csv").write_text(f"lon,lat,time\n{lines}")
    time = people.own(tmp_path / "own.csv").time
    assert time[0] == 1_546_300_800 and np.isnan(time[[1, 3]]).all() and time[2] > 1_700_000_000
    (tmp_path / "two.csv").write_text("lon,lat,time,date\n1,2,2019-01-01,2019-01-01\n")
    with pytest.raises(TableError, match="time and date could each be the time"):
        people.own(tmp_path / "two.csv")


def test_a_time_that_is_named_must_be_there(table):
    with pytest.raises(TableError, match="time"):
        people.own(table, time="when")


def test_a_table_without_people_is_refused_unless_rows_are_people(table):
    with pytest.raises(TableError, match="person"):
        people.people(table.drop(["user"]), most=2)
