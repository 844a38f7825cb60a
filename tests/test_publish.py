"""The one verb: what it promises, in which order, and what its failures cost."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hazemap
from hazemap.errors import CapExceeded, FileError, HazemapError, HazemapWarning, InputError, LedgerError, TableError
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.random_stream import Stream
from hazemap.publish import release
from hazemap.releases import Release
from hazemap.sources.source import parse_source
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.trust.curator import Curator

BOX = "13.2,52.4,13.6,52.6"
PEOPLE = 3_973  # of the 4,000 of `points`, some have no row


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


@pytest.fixture
def table(points) -> pa.Table:
    return pa.table(points)


@pytest.fixture
def file(table, tmp_path) -> Path:
    path = tmp_path / "visits.parquet"
    pq.write_table(table, path)
    return path


def paid(ledger: Ledger) -> list[str]:
    return [f"{record.charge.dataset} {record.charge.price}" for record in ledger.history()]


def test_a_table_becomes_a_file_that_answers_with_the_truth_in_its_interval(file, tmp_path, ledger):
    goal = tmp_path / "map.parquet"
    made = release(file, person="person", epsilon=1, box=BOX, ledger=ledger, output=goal)
    total = Release.open(goal).total(confidence=1 - 1e-6)
    assert total.low <= PEOPLE <= total.high
    assert total.unbiased == pytest.approx(made.total().unbiased)


def test_the_price_is_on_the_disk_before_the_first_answer(table, ledger, monkeypatch):
    seen = []
    answer = Curator.answer

    def watched(self, question, price):
        seen.append(paid(ledger))
        return answer(self, question, price)

    monkeypatch.setattr(Curator, "answer", watched)
    release(table, epsilon=1, box=BOX, ledger=ledger)
    assert len(seen) >= 2
    assert all(charges == ["memory ε = 1"] for charges in seen)


def test_the_ledger_names_the_file_once_it_is_there(file, tmp_path, ledger):
    goal = tmp_path / "map.parquet"
    made = release(file, epsilon=1, box=BOX, ledger=ledger, output=goal)
    [record] = ledger.history("visits")
    assert (record.released, record.file, record.statement) == (True, str(goal), made.statement)


def test_a_release_that_stays_in_memory_is_noted_without_a_file(table, ledger):
    release(table, epsilon=1, box=BOX, ledger=ledger)
    [record] = ledger.history("memory")
    assert (record.released, record.file) == (True, None)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"person": "who"}, TableError, "the person was said to be in column 'who'"),
        ({"epsilon": -1}, InputError, "epsilon must be above 0, not -1"),
        ({"epsilon": "much"}, InputError, "epsilon must be a finite number"),
        ({"epsilon": None}, InputError, "give epsilon, epsilon and delta, or rho alone; found"),
        ({"rho": 1}, InputError, "found epsilon, rho"),
        ({"box": "13.6,52.4,13.2,52.6"}, InputError, "west < east"),
        ({"box": "here"}, InputError, "four numbers"),
        ({"cells": "octagons"}, InputError, "one of: quadtree, quadtree:DEPTH, h3:COARSEST-FINEST"),
        ({"cells": "h3:10-7"}, InputError, "coarsest before the finest"),
        ({"method": "magic"}, InputError, "one of: auto, "),
        ({"method": "flat"}, InputError, "hazemap plan"),
        ({"method": "flat:40"}, InputError, "choose a coarser one"),
        ({"method": "flat:11", "cells": "h3:7-10"}, InputError, "one of these resolutions"),
        ({"cells": "quadtree:9", "box": None}, InputError, "declare the box"),
        ({"bounding": "three rows"}, InputError, "one of: one row, rows:K"),
        ({"bounding": "rows:0"}, InputError, "at least 1"),
        ({"bounding": "rows are people"}, InputError, "it can only be one of them"),
        ({"value": "lat"}, InputError, "choose 'one vote'"),
        ({"outside": "elsewhere"}, InputError, "people, drop or count"),
        ({"since": "yesterday"}, TableError, "known to hold the time"),
        ({"method": "auto:numbers=1027", "box": None}, InputError, "declare the box, or allow 1,028"),
        ({"method": "auto:numbers=9000", "box": None, "cells": "h3:3-9"}, InputError, "declare the box"),
        ({"output": "map.xlsx"}, FileError, "ends in .parquet or .tif"),
        ({"output": "no/such/map.parquet"}, FileError, "there is no folder"),
        ({"output": "visits.parquet"}, FileError, "the table itself"),
        ({"output": "there.parquet"}, FileError, "there.parquet exists"),
        ({"output": "map.tif"}, FileError, "regular grid"),
    ],
)
def test_what_the_caller_can_mend_costs_nothing(wrong, error, words, file, tmp_path, ledger, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("there.parquet").write_bytes(b"a map of last year")
    options = {"person": "person", "epsilon": 1, "box": BOX, "ledger": ledger, **wrong}
    with pytest.raises(error, match=words.replace(".", r"\.")):
        release(file, **options)
    assert paid(ledger) == []
    assert Path("there.parquet").read_bytes() == b"a map of last year"


@pytest.mark.parametrize("cells", ["quadtree", "h3:5-8"])
def test_columns_called_x_and_y_cost_nothing_until_somebody_says_what_they_are(cells, table, ledger):
    bare = table.rename_columns([{"lon": "x", "lat": "y"}.get(name, name) for name in table.column_names])
    options = {"person": "person", "epsilon": 1, "cells": cells, "ledger": ledger}
    with pytest.raises(TableError, match=r"'x' and 'y' do not say.*--lon x --lat y.*--crs EPSG.*--plane W,H"):
        release(bare, **options)
    assert paid(ledger) == []
    found = [release(bare, **options, **said) for said in ({"box": BOX}, {"lon": "x", "lat": "y"})]
    assert all(abs(each.total().unbiased - len(set(table["person"].to_pylist()))) < 200 for each in found)


def test_a_table_without_rows_is_released_and_charged_like_any_other(table, ledger):
    made = release(table.slice(0, 0), epsilon=1, box=BOX, ledger=ledger)
    assert abs(made.total().unbiased) < 1_000, "noise, and nothing else"
    assert len(paid(ledger)) == 1


def test_a_table_without_people_asks_who_they_are(table, ledger):
    with pytest.raises(TableError, match="each row is a person"):
        release(table.drop_columns("person"), epsilon=1, box=BOX, ledger=ledger)
    assert paid(ledger) == []


@pytest.mark.parametrize("method", ["adaptive", "privtree"])
def test_a_file_that_is_damaged_in_the_middle_costs_nothing(table, tmp_path, ledger, method):
    path = tmp_path / "visits.parquet"
    big = pa.concat_tables([table] * 10)
    pq.write_table(big, path, row_group_size=len(table), compression="zstd")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4000] = bytes(4000)
    path.write_bytes(content)
    with pytest.raises(HazemapError):
        release(path, epsilon=1, box=BOX, ledger=ledger, method=method)
    assert paid(ledger) == []


def test_a_failure_after_the_charge_says_that_the_charge_stands(file, tmp_path, ledger, monkeypatch):
    def full(self, path):
        raise FileError("the disk is full")

    monkeypatch.setattr(Release, "save", full)
    goal = tmp_path / "map.parquet"
    with pytest.raises(FileError, match=r"disk is full.*paid ε = 1.*charge 1.*stands.*ledger history visits"):
        release(file, epsilon=1, box=BOX, ledger=ledger, output=goal)
    [record] = ledger.history()
    assert (record.released, goal.exists()) == (False, False)


def test_a_bug_after_the_charge_is_shown_as_it_is_with_a_note(table, ledger, monkeypatch):
    monkeypatch.setattr(Curator, "answer", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as found:
        release(table, epsilon=1, box=BOX, ledger=ledger)
    assert "and the charge stands" in found.value.__notes__[0]


def test_a_full_memory_or_disk_after_the_charge_is_said_with_its_price(table, ledger, monkeypatch):
    def refused(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Curator, "answer", refused)
    with pytest.raises(HazemapError, match=r"No space left.*the charge stands"):
        release(table, epsilon=1, box=BOX, ledger=ledger)


def test_a_ledger_that_breaks_in_the_end_leaves_a_whole_file(file, tmp_path, ledger, monkeypatch):
    def broken(*_):
        raise LedgerError("the ledger is damaged")

    monkeypatch.setattr(Ledger, "released", broken)
    goal = tmp_path / "map.parquet"
    with pytest.raises(LedgerError, match=r"damaged.*The release is whole"):
        release(file, epsilon=1, box=BOX, ledger=ledger, output=goal)
    assert Release.open(goal).statement.dataset == "visits"


def test_weights_share_out_the_vote_of_a_person(points, ledger):
    """Everybody has a row of weight 3 in the east and rows of weight 0 in the west."""
    east = points["lon"] > 13.4
    table = pa.table({**points, "hours": np.where(east, 3.0, 0.0)})
    made = release(table, epsilon=1, box=BOX, ledger=ledger, bounding="one vote", value="hours")
    assert abs(made.count(hazemap.Box(13.2, 52.4, 13.39, 52.6)).unbiased) < 100
    assert made.total().unbiased > 2500
    assert "the weight of a row: its 'hours'" in made.statement.public


def test_a_name_is_the_same_data_set_however_it_is_spaced(table, ledger):
    made = release(table, epsilon=1, box=BOX, ledger=ledger, dataset="  my   trips ")
    assert made.statement.dataset == "my trips" == ledger.datasets()[0].name


def test_a_cap_refuses_before_any_answer_and_names_what_is_left(table, ledger, monkeypatch):
    ledger.cap("nyc", hazemap.PureDP("1.5"))
    release(table, epsilon=1, box=BOX, ledger=ledger, dataset="nyc")
    monkeypatch.setattr(Curator, "answer", lambda *_: pytest.fail("an answer was given"))
    with pytest.raises(CapExceeded, match=r"ε = 0\.5 left"):
        release(table, epsilon=1, box=BOX, ledger=ledger, dataset="nyc")
    assert paid(ledger) == ["nyc ε = 1"]


@pytest.mark.parametrize("epsilon", ["1e-10", 1e9])
def test_fault_11_an_epsilon_of_a_billionth_or_a_billion_costs_nothing(epsilon, table, ledger):
    with pytest.raises(InputError, match="ask for an ε from 1e-9 to 1e6"):
        release(table, epsilon=epsilon, box=BOX, ledger=ledger)
    assert paid(ledger) == []


def test_fault_11_noise_that_drowns_everybody_is_said_before_and_after(table, ledger, recwarn):
    release(table, epsilon="1e-6", box=BOX, ledger=ledger, method="flat:2", stream=Stream.fixed(b"a"))
    before, after = (str(each.message) for each in recwarn.list if each.category is HazemapWarning)
    assert before == "ε = 1e-06 buys so little that the noise will be larger than most numbers of people"
    assert "this map says next to nothing" in after


def test_next_to_no_noise_is_said_before_it_is_paid(table, ledger, monkeypatch):
    monkeypatch.setattr(Curator, "answer", lambda *_: pytest.fail("an answer was given"))
    with pytest.warns(HazemapWarning, match="protects hardly anybody"), pytest.raises(pytest.fail.Exception):
        release(table, epsilon=21, box=BOX, ledger=ledger)


def test_an_old_map_is_replaced_when_that_is_allowed(file, tmp_path, ledger):
    goal = tmp_path / "map.parquet"
    goal.write_bytes(b"old")
    release(file, epsilon=1, box=BOX, ledger=ledger, output=goal, overwrite=True)
    assert Release.open(goal).statement.dataset == "visits"


def test_the_statement_says_what_was_declared_and_what_was_bought(table, ledger):
    declared = release(table, epsilon=1, box=BOX, ledger=ledger, since=None).statement
    found = release(table, epsilon=1, method="fitted-level", ledger=ledger).statement
    assert declared.unit == "a person: all rows of one id"
    assert (declared.trust, declared.noise) == ("curator", "discrete Laplace")
    assert declared.bounding == AtMostRows(1, Outside.PEOPLE)
    assert f"the box {BOX}, as declared" in declared.public
    assert not any("box" in line for line in declared.charged)
    assert not any("box" in line for line in found.public)
    assert "the box, found by two coarse grids of the world" in found.charged
    assert "the number of people" in found.charged
    flat = release(table, epsilon=1, box=BOX, ledger=ledger, method="flat:3").statement
    assert flat.charged == ("every number in the cells",)


@pytest.mark.parametrize(
    ("money", "noise"),
    [
        ({"epsilon": "0.5"}, "discrete Laplace"),
        ({"rho": "0.1"}, "discrete Gaussian"),
        ({"epsilon": 1, "delta": "1e-6"}, "discrete Gaussian"),
    ],
)
def test_every_kind_of_budget_buys_a_map(money, noise, table, ledger):
    made = release(table, box=BOX, ledger=ledger, **money)
    assert made.statement.noise == noise
    assert abs(made.total().unbiased - PEOPLE) < 6 * made.total().stddev
    assert ledger.history()[0].charge.price == made.statement.budget


@pytest.mark.parametrize(
    ("bounding", "total", "unit"),
    [
        ("one row", PEOPLE, "a person"),
        ("one vote", PEOPLE, "a person"),
        ("rows:3", 11_338, "a person"),
        ("cells:2", 7_825, "a person"),
        ("rows are people", 20_000, "a row"),
    ],
)
def test_every_bounding_rule_counts_what_it_says(bounding, total, unit, table, ledger):
    made = release(table, epsilon=1, box=BOX, ledger=ledger, bounding=bounding)
    assert made.total().unbiased == pytest.approx(total, rel=0.1)
    assert made.statement.unit.startswith(unit)


@pytest.mark.parametrize("method", ["adaptive", "fitted-level", "prefix", "flat:5"])
@pytest.mark.parametrize("cells", ["quadtree", "quadtree:8", "h3:5-8"])
def test_every_method_runs_over_squares_and_hexagons(method, cells, table, ledger, tmp_path):
    goal = tmp_path / "map.parquet"
    made = release(table, epsilon=1, box=BOX, ledger=ledger, method=method, cells=cells, output=goal)
    again = Release.open(goal).replay(Curator(None).prices(made.statement.budget))
    assert np.array_equal(again.map.unbiased, made.map.unbiased)


def test_a_box_that_nobody_declared_is_found_for_hexagons_and_squares(table, ledger):
    for cells in ("quadtree", "h3:6-9"):
        made = release(table, epsilon=1, ledger=ledger, cells=cells)
        total = made.total(confidence=1 - 1e-6)
        assert 3000 < total.unbiased < PEOPLE + 6 * total.stddev
        assert made.density(13.32, 52.46).best_guess > 0
        middle = made.count(hazemap.Box(13.30, 52.45, 13.34, 52.47))  # where one person of three is
        assert 900 < middle.unbiased < 1700
        assert middle.low > 0


def test_a_flat_map_of_squares_may_be_a_tiff(file, tmp_path, ledger):
    goal = tmp_path / "map.tif"
    release(file, epsilon=1, box=BOX, ledger=ledger, method="flat:6", output=goal)
    made = Release.open(goal)
    assert made.map.places.sum() == 4**6 and made.nowhere is not None


@pytest.mark.parametrize("outside", ["people", "count"])
def test_people_outside_the_box_are_counted_in_one_number_unless_they_are_dropped(outside, points, ledger):
    """Fault 9: a declared box dropped people in silence."""
    west = points["person"] % 2 == 0
    lon = np.where(west, -50.0, points["lon"])
    table = pa.table({**points, "lon": lon})
    counted = release(table, epsilon=1, box=BOX, ledger=ledger, **({} if outside == "people" else {"outside": outside}))
    dropped = release(table, epsilon=1, box=BOX, ledger=ledger, outside="drop")
    assert dropped.nowhere is None
    assert counted.nowhere.unbiased == pytest.approx(2000, abs=60)
    assert counted.total().unbiased == pytest.approx(2000, abs=300)


def test_a_found_box_says_how_many_people_it_leaves_out(points, ledger):
    """Fault 9: a found box dropped people in silence (11 % of a taxi table)."""
    far = points["person"] % 10 == 0  # too few to stand out, far from all others
    table = pa.table({**points, "lon": np.where(far, -50.0, points["lon"]), "lat": np.where(far, 10.0, points["lat"])})
    made = release(table, epsilon=1, ledger=ledger, stream=Stream.fixed(b"far"))
    assert made.ground.extent[0] > 0
    assert made.nowhere.unbiased == pytest.approx(400, abs=30)
    assert made.total().unbiased == pytest.approx(3600, abs=300)


def test_a_row_outside_the_time_window_is_no_row_inside_or_outside(points, ledger):
    """Half the people have a row on the map before the window, and one outside the map in it: these count outside."""
    half = points["person"] < 2000
    first, second = np.datetime64("2024-01-01"), np.datetime64("2024-06-01")
    rows = {
        "person": np.concatenate([points["person"], points["person"][half]]),
        "lon": np.concatenate([points["lon"], np.full(half.sum(), -50.0)]),
        "lat": np.concatenate([points["lat"], points["lat"][half]]),
        "ts": np.repeat([first, second], [len(half), half.sum()]).astype("datetime64[s]"),
    }
    always = release(pa.table(rows), epsilon=1, box=BOX, ledger=ledger)
    later = release(pa.table(rows), epsilon=1, box=BOX, ledger=ledger, since="2024-03-01")
    assert always.nowhere.unbiased == pytest.approx(0, abs=40)
    assert later.nowhere.unbiased == pytest.approx(2000, abs=60)


def test_times_choose_rows(points, ledger):
    ts = np.where(points["person"] < 1000, np.datetime64("2024-01-01"), np.datetime64("2024-06-01"))
    table = pa.table({**points, "ts": pa.array(ts.astype("datetime64[s]"))})
    made = release(table, epsilon=1, box=BOX, ledger=ledger, since="2024-05-01")
    assert made.total().unbiased == pytest.approx(3000, abs=150)
    assert "the time: from 2024-05-01" in made.statement.public


def test_a_fixed_stream_repeats_the_noise_and_a_fresh_one_does_not(table, ledger):
    def made(stream):
        options = {"method": "flat:3", "bounding": "rows are people", "stream": stream}
        return release(table, epsilon=1, box=BOX, ledger=ledger, **options).map.unbiased

    assert np.array_equal(made(Stream.fixed(b"a")), made(Stream.fixed(b"a")))
    assert not np.array_equal(made(None), made(None))


def test_frames_of_every_library_are_tables(table, ledger):
    import polars

    for frame in (table, table.to_pandas(), polars.from_arrow(table)):
        assert release(frame, epsilon=1, box=BOX, ledger=ledger).total().unbiased == pytest.approx(PEOPLE, abs=200)


def test_progress_is_told_in_order(file, tmp_path, ledger):
    said = []
    goal = tmp_path / "map.parquet"
    release(file, epsilon=1, box=BOX, ledger=ledger, output=goal, progress=lambda what, _: said.append(what))
    steps = list(dict.fromkeys(said))
    assert steps[0] == "opening the table"
    assert steps[-1] == "writing the file"
    assert steps.index("reading rows") < steps.index("answering query 1") < steps.index("answering query 2")


@pytest.mark.parametrize(
    ("source", "name"),
    [("nyc.parquet", "nyc"), ("a/b/nyc.v2.csv.gz", "nyc"), ("trips/2024-*.parquet", "trips"), ("trips/", "trips")],
)
def test_a_data_set_is_named_after_its_file_or_folder(source, name):
    assert parse_source(source).dataset == parse_source(Path(source)).dataset == name


def test_the_default_ledger_is_used_unless_another_is_named(table, home):
    release(table, epsilon=1, box=BOX)
    assert paid(Ledger(home / "ledger.sqlite")) == ["memory ε = 1"]


def test_three_lines_are_enough(table, home):
    made = hazemap.release(table, person="person", epsilon=1)
    assert made.count(hazemap.Box(13.2, 52.4, 13.6, 52.6)).counted == "people"
    assert callable(hazemap.open)


def test_the_parts_do_the_same_in_ten_lines(table):
    tree = hazemap.Quadtree.around(hazemap.Box.parse(BOX), depth=10)
    curator = hazemap.Curator(hazemap.open_table(table, person="person"))
    result = hazemap.run(hazemap.Adaptive(tree), curator, hazemap.PureDP(1), hazemap.Unrecorded())
    assert result.value.unbiased.sum() == pytest.approx(PEOPLE, abs=300)


def test_every_public_name_is_there_and_nothing_else():
    for name in hazemap.__all__:
        assert getattr(hazemap, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        _ = hazemap.magic
    assert set(hazemap.__all__) <= set(dir(hazemap))
