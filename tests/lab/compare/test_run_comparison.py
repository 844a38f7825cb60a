"""Comparisons: what is measured once, what again, and what is left when a run is killed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError, HazemapError, InputError
from hazemap.lab.compare import run_comparison as running
from hazemap.lab.compare import trial_settings as trials
from hazemap.lab.compare.datasets import MADE_UP, Datasets
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.practices import AG, METHODS, UG, Method, method_named
from hazemap.lab.compare.presets import PRESETS, Catalogue, Preset
from hazemap.lab.compare.run_comparison import NAME, Done, attempted, compared, opened, tasked
from hazemap.lab.compare.trial_settings import Everyone, Trial
from hazemap.spatial.quadtree import Quadtree

FLAT = Method("flat", "flat:2", published=True)


@pytest.fixture
def atlas(tmp_path):
    np.save(tmp_path / "small.npy", np.random.default_rng(2).poisson(5.0, (16, 16)))
    return Datasets((("small", tmp_path / "small.npy"),))


@pytest.fixture
def here(monkeypatch):
    """Trials are measured in this process: starting others takes seconds."""

    def measured(tasks, maps, jobs):
        warm = set()
        for task in tasks:
            yield Done(task, *attempted(task.trial, maps[task.digest], warm))

    monkeypatch.setattr(running, "measured", measured)


def some(**changes):
    one = Trial("small", FLAT, Everyone(), "1", 0)
    return replace(one, **changes)


def keys(folder):
    with opened(folder) as store:
        return set(store.rows)


def test_what_was_measured_is_kept_and_not_measured_again(here, atlas, tmp_path):
    wanted = [some(repetition=number) for number in range(3)]
    first = compared(wanted[:2], atlas, tmp_path / "out", jobs=1)
    assert first.fresh == 2 and len(first.rows) == 2 and not first.failures
    second = compared(wanted, atlas, tmp_path / "out", jobs=1)
    assert second.fresh == 1 and second.rows[:2] == first.rows
    table = pq.read_table(tmp_path / "out" / running.RESULTS).to_pylist()
    assert [row["repetition"] for row in table] == [0, 1, 2]
    assert {"map", "people", "method", "epsilon", "mre", "unbiased_mre_10", "mse", "kl", "seconds", "cells"} <= set(
        table[0]
    )
    assert compared(wanted, atlas, tmp_path / "out", jobs=1, afresh=True).fresh == 3


def test_noise_is_never_the_same(here, atlas, tmp_path):
    rows = compared([some(repetition=number) for number in range(2)], atlas, tmp_path / "out", jobs=1).rows
    again = compared([some()], atlas, tmp_path / "other", jobs=1).rows
    assert len({row["mre"] for row in (*rows, *again)}) == 3


@dataclass(frozen=True)
class Otherwise(Everyone):
    """A setting of another kind with the same fields."""


def test_a_trial_that_is_defined_otherwise_in_anything_is_another(atlas, monkeypatch):
    place = atlas.map("small")
    others = [
        some(),
        some(epsilon="2"),
        some(repetition=1),
        some(setting=Everyone(emd=True)),
        some(setting=Otherwise()),
        some(method=replace(FLAT, spelled="flat:3")),
        some(method=replace(FLAT, published=False)),
        some(method=FLAT.but(reading="shrunk")),
    ]
    found = {trial.key(place) for trial in others}
    assert len(found) == len(others)
    assert some().key(GroundTruthMap(place.name, place.tree, place.counts + 1)) not in found
    for name, value in (("VERSION", 2), ("WORKLOAD", b"others"), ("__version__", "0.0")):
        with monkeypatch.context() as patched:
            patched.setattr(trials, name, value)
            assert some().key(place) not in found


def test_a_method_of_two_names_is_measured_once_and_has_two_rows(here, atlas, tmp_path):
    outcome = compared([some(), some(method=replace(FLAT, name="other")), some()], atlas, tmp_path, jobs=1)
    assert outcome.fresh == 1 and [row["method"] for row in outcome.rows] == ["flat", "other"]
    assert outcome.rows[0]["mre"] == outcome.rows[1]["mre"]


def test_names_are_not_part_of_a_trial(atlas):
    place = atlas.map("small")
    assert some(place="elsewhere", method=replace(FLAT, name="other")).key(place) == some().key(place)
    tasks, maps = tasked([some(), some()], atlas, lambda *_: None)
    assert len(tasks) == len(maps) == 1


@dataclass(frozen=True)
class Failing(Everyone):
    """A setting whose later trials fail, by a refusal or by a bug."""

    def measured(self, place, method, epsilon, repetition):
        if repetition:
            raise (InputError if repetition == 1 else ZeroDivisionError)("not this one")
        return super().measured(place, method, epsilon, repetition)


def test_a_trial_that_fails_is_told_and_tried_again(here, atlas, tmp_path):
    out, wanted = tmp_path / "out", [some(setting=Failing(), repetition=number) for number in range(3)]
    for fresh in (1, 0):
        outcome = compared(wanted, atlas, out, jobs=2)
        assert (outcome.fresh, len(outcome.rows), len(outcome.failures)) == (fresh, 1, 2)
    assert "InputError: not this one" in outcome.failures[0] and "test_run_comparison.py, line" in outcome.failures[1]
    assert len(keys(out)) == 1


@pytest.mark.slow
def test_processes_measure_what_one_would(atlas, tmp_path):
    wanted = [some(repetition=number, epsilon=epsilon) for number in range(3) for epsilon in ("0.5", "1")]
    wanted += [some(setting=Failing(), repetition=1)]
    outcome = compared(wanted, atlas, tmp_path / "out", jobs=2)
    assert outcome.fresh == len(outcome.rows) == 6 and "not this one" in outcome.failures[0]


@dataclass(frozen=True)
class Deadly(Everyone):
    """A setting whose process is ended by the system in the middle of a trial."""

    def measured(self, place, method, epsilon, repetition):
        if place.side > 8 and repetition == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().measured(place, method, epsilon, repetition)


@pytest.mark.slow
def test_a_process_that_dies_takes_only_its_trial_with_it(atlas, tmp_path):
    wanted = [some(setting=Deadly(), repetition=number) for number in range(4)]
    outcome = compared(wanted, atlas, tmp_path / "out", jobs=1)
    assert outcome.fresh == 3 and "ended with -9" in outcome.failures[0]


def test_a_line_that_was_being_written_is_forgotten(tmp_path):
    with opened(tmp_path) as store:
        store.add("a", {"mre": 1.0})
        store.add("b", {"mre": float("nan")})
    whole = (tmp_path / NAME).read_bytes()
    for cut in range(len(whole) - 2, whole.index(b"\n"), -1):
        (tmp_path / NAME).write_bytes(whole[:cut])
        with opened(tmp_path) as store:
            assert set(store.rows) == {"a"}
            store.add("c", {"mre": 2.0})
        assert keys(tmp_path) == {"a", "c"}


def test_a_file_that_is_none_is_not_overwritten(tmp_path):
    (tmp_path / NAME).write_text("not\na store\n")
    with pytest.raises(FileError, match="damaged"), opened(tmp_path):
        pass
    assert (tmp_path / NAME).read_text() == "not\na store\n"


def test_one_comparison_at_a_time_is_at_work_in_a_folder(tmp_path):
    with opened(tmp_path), pytest.raises(FileError, match="another comparison"), opened(tmp_path):
        pass


SCRIPT = """
import signal
import sys
from pathlib import Path
from hazemap.lab.compare.datasets import Datasets
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.run_comparison import compared
from hazemap.lab.compare.trial_settings import Everyone
from hazemap.lab.compare.trial_settings import Trial
from hazemap.lab.compare.run_comparison import Done, attempted
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background
    folder = Path(sys.argv[1])
    atlas = Datasets((("small", folder / "small.npy"),))
    flat = Method("flat", "flat:2", published=True)
    wanted = [Trial("small", flat, Everyone(), "1", number) for number in range(1000)]
    compared(wanted, atlas, folder / "out", jobs=2)
"""


@pytest.mark.slow
@pytest.mark.parametrize("with_what", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_goes_on_where_it_was_and_leaves_no_process(with_what, atlas, tmp_path):
    script, log = tmp_path / "script.py", tmp_path / "out" / NAME
    script.write_text(SCRIPT)
    process = subprocess.Popen([sys.executable, script, tmp_path], stderr=subprocess.PIPE, start_new_session=True)
    until = time.monotonic() + 600
    while not (log.exists() and log.read_bytes().count(b"\n") > 5):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.01)
    while process.poll() is None:  # Python drops an interrupt that meets it in a callback: then a second one
        os.killpg(process.pid, with_what) if with_what == signal.SIGINT else process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
    said = process.communicate()[1].decode()
    assert process.returncode != 0 and said.count("Traceback") <= 1  # the workers say nothing
    before = keys(tmp_path / "out")
    assert 5 < len(before) < 1000
    wanted = [some(repetition=number) for number in range(1000)]
    outcome = compared(wanted, atlas, tmp_path / "out", jobs=2)
    assert outcome.fresh == 1000 - len(before) and len(outcome.rows) == 1000
    assert before <= keys(tmp_path / "out")
    until = time.monotonic() + 600
    while _alive(process.pid):  # workers end by themselves when whoever started them is gone
        assert time.monotonic() < until
        time.sleep(0.05)


def _alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_method_of_the_table_can_be_made_and_has_a_name_of_its_own():
    place = GroundTruthMap.of("some", np.ones((64, 64), dtype=int))
    assert len({method.name for method in METHODS}) == len(METHODS)
    for method in METHODS:
        assert method.algorithm(place.tree, Everyone().rule, "1").tree == place.tree


def test_a_published_method_shows_its_unbiased_estimate():
    place = GroundTruthMap.of("some", np.ones((64, 64), dtype=int))
    assert AG.algorithm(place.tree, Everyone().rule, "1").reading.value == "unbiased"
    assert replace(UG, published=False).algorithm(place.tree, Everyone().rule, "1").reading.value != "unbiased"


def test_a_method_that_is_not_there_is_told_with_those_that_are():
    assert method_named("AG") == AG and method_named("flat:3").spelled == "flat:3"
    with pytest.raises(InputError, match=r"no method 'magic'.*AG.*adaptive"):
        method_named("magic")
    with pytest.raises(InputError, match="has no speed"):
        FLAT.but(speed=3).algorithm(GroundTruthMap.of("some", np.ones((8, 8), dtype=int)).tree, Everyone().rule, "1")


def test_a_preset_asks_for_each_combination_once_and_begins_with_one_of_all():
    preset = Preset("p", "", ("a", "b"), (AG, UG), ("1", "2"), 3, ("mre",))
    wanted = list(preset.trials())
    assert len(set(wanted)) == len(wanted) == 24
    assert [trial.repetition for trial in wanted] == [0] * 8 + [1] * 8 + [2] * 8
    assert all(name == preset.name for name, preset in PRESETS.items())
    with pytest.raises(InputError, match="there are quick"):
        Catalogue().preset("slow")


def test_nothing_is_measured_by_nobody(atlas, tmp_path):
    with pytest.raises(HazemapError, match="at least one process"):
        compared([some()], atlas, tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()
    assert not Path(tmp_path / "out" / NAME).exists()


def test_a_method_whose_code_changed_is_measured_again(tmp_path, monkeypatch):
    package = tmp_path / "madeup"
    package.mkdir()
    for name, text in (
        ("__init__", ""),
        ("one", '"""Doc."""\nimport madeup.two\n\n\ndef f():\n    from madeup import three\n    return three\n'),
        ("two", "TWO = 2\n"),
        ("three", "THREE = 3\n"),
        ("four", "FOUR = 4\n"),
    ):
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)

    def digest():
        for cached in (trials.code_of, trials._file, trials._read):
            cached.cache_clear()
        return trials.code_of("madeup.one")

    first = digest()
    code = "import madeup.two  # why\n\ndef f():\n    from madeup import three\n    return three\n"
    (package / "one.py").write_text(f'"""Other words."""\n{code}')
    (package / "four.py").write_text("FOUR = 5\n")
    assert digest() == first
    for name in ("two", "three"):
        before = digest()
        (package / f"{name}.py").write_text("OTHER = 1\n")
        assert digest() != before
    digest()
    trials.code_of.cache_clear()


def test_the_code_of_a_method_does_not_hang_on_others():
    adaptive, flat = (trials.code_of(f"hazemap.algorithms.{name}") for name in ("adaptive_tree", "single_level"))
    assert adaptive != flat and len(adaptive) == 64


@pytest.mark.parametrize("name", PRESETS)
def test_every_comparison_asks_for_maps_and_methods_that_there_are(name):
    preset, square = PRESETS[name], Quadtree.world(10)
    assert {place.partition("@")[0].partition("/")[0] for place in preset.places} <= set(MADE_UP)
    assert set(preset.scores) <= set(MEASURES) and preset.figures and preset.what
    for method, setting, epsilon in {(each.method, each.setting, each.epsilon) for each in preset.trials()}:
        assert method in preset.practices or method.algorithm(square, setting.rule, epsilon).tree == square
