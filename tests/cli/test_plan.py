"""`hazemap plan`."""

import pytest

GOOD = ("plan", "--box=13.2,52.4,13.6,52.6", "--people", "50000", "--epsilon", "1")


def test_a_plan_is_a_table_and_advice(hazemap, home):
    done = hazemap(*GOOD)
    assert done.code == 0
    for words in ("level 6", "misplaced", "◂ flat", "uniform", "Adaptive (the default): about", "no data was touched"):
        assert words in done.out
    assert not home.exists()


def test_a_plan_can_be_drawn_and_read_by_machines(hazemap, tmp_path):
    done = hazemap(*GOOD, "--cells", "h3:6-9", "-o", "plan.png", "--json")
    assert [level["name"] for level in done.json["levels"]] == [f"resolution {r}" for r in (6, 7, 8, 9)]
    assert done.json["recommended"]["flat"].startswith("resolution")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_plan_recommends_can_be_ordered_as_written(hazemap, visits):
    advice = hazemap(*GOOD).out
    method = advice.partition("(--method ")[2].partition(")")[0]
    done = hazemap("release", "visits.parquet", "-e", "1", GOOD[1], "--method", method, "-o", "map.parquet")
    assert method.startswith("flat:")
    assert done.code == 0


def test_a_plan_is_made_of_a_release_s_specification_and_writes_one(hazemap, visits, tmp_path):
    assert hazemap(*GOOD, "--bounding", "rows:2", "--write-spec", "map.toml").code == 0
    assert not {"source", "dataset"} & hazemap(*GOOD, "--write-spec", "map.toml", "--json").json.keys()
    done = hazemap("plan", "--spec", "map.toml", "--people", "50000", "--json")
    assert done.json["levels"] == hazemap(*GOOD, "--json").json["levels"]
    assert hazemap("release", "visits.parquet", "--spec", "map.toml", "-o", "map.parquet").code == 0
    without = hazemap("plan", "--people", "50000", "--epsilon", "1")
    assert without.code == 2 and "a plan needs a box" in without.err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--people", "1"), "100 to"),
        (("--people", "many"), "--people"),
        (("--epsilon", "-1"), "epsilon must be above 0"),
        (("--cells", "squares"), "one of"),
        (("--box=1,2",), "four numbers"),
        (("-o", "plan.txt"), ".png, .svg, .pdf"),
    ],
)
def test_plans_for_nonsense_are_refused(wrong, words, hazemap):
    done = hazemap(*GOOD, *wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_trust_models_are_planned_beside_each_other_or_alone(hazemap):
    asked = ("plan", "--box=13.2,52.4,13.6,52.6", "--people=1000", "--epsilon=1", "--method=privlet:3")
    rows = hazemap(*asked, "--trust=two-servers", "--json").json["trusts"]
    assert [row["trust"] for row in rows] == ["two-servers"]
    assert rows[0]["must not work together"] == "the two servers"
    assert "a single 1" in rows[0]["refused"]
    shown = hazemap(*asked, "--trust=all")
    assert "shuffled" in shown.out and "one-report is refused" in shown.out.replace("\n", " ")
    assert "its rows" in shown.out
    assert hazemap(*asked, "--trust=everybody").code != 0
    assert "no picture" in hazemap(*asked, "--trust=all", "-o", "plan.png").err
