"""What is loaded is what is used, and machine code on disk is that of these very sources."""

import importlib
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from hazemap.estimate import region_forest as forest
from hazemap.estimate import tree_least_squares as passes
from hazemap.spatial import pixel_kernels, quadtree
from hazemap.vdaf import compiled_loops as compiled
from hazemap.vdaf import loop_cache

SOURCE = Path(compiled.__file__).parents[1]
FOUNDATIONS = {f"hazemap.vdaf{module}" for module in ("", ".compiled_loops", ".errors", ".loop_cache")}
"""What all of hazemap takes from vdaf; the cryptography there is for devices and their servers."""

UNUSED = ("federated.protocols", "federated.server", "federated.device", "lab", "draw", "planning")
A_RELEASE = """
import sys
import hazemap
print(len([name for name in sys.modules if name.startswith("hazemap.")]))
import hazemap.trust.curator
answering = ("hazemap.trust.", "hazemap.federated.protocols.secure_aggregation")
print(*(name for name in sys.modules if name.startswith(answering)))
import numpy as np, pyarrow as pa
table = pa.table({"user": np.arange(50), "lon": np.full(50, 2.35), "lat": np.full(50, 48.85)})
ledger = hazemap.Ledger(sys.argv[1] + "/ledger")
hazemap.release(table, epsilon=1, box="2,48,3,49", ledger=ledger, output=sys.argv[1] + "/map.parquet", go_on=True)
print(*sys.modules)
"""
A_QUESTION = """
import sys
from hazemap.cli.main import main
code = main(["ask", sys.argv[1]])
print("loaded for all:", *sys.modules)
code = code or main(["ask", sys.argv[1], "--box=2.3,48.8,2.4,48.9"])
print(*sys.modules)
sys.exit(code)
"""


def said(script: str, folder: Path) -> list[list[str]]:
    """The lines of a Python process of its own, in words."""
    done = subprocess.run([sys.executable, "-c", script, str(folder)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_a_release_loads_no_protocol_server_device_or_plotting_code_and_a_question_loads_no_compiler(tmp_path):
    ours, models, loaded = said(A_RELEASE, tmp_path)
    assert ours == ["0"]
    assert models == ["hazemap.trust.curator"]
    assert not {name for name in loaded if name.startswith(tuple(f"hazemap.{each}" for each in (*UNUSED, "cli")))}
    assert {name for name in loaded if name.startswith("hazemap.vdaf")} <= FOUNDATIONS
    assert not {"matplotlib", "geopandas", "rasterio", "httpx", "starlette"} & set(loaded)
    lines = said(A_QUESTION, tmp_path / "map.parquet")
    [all_people] = (line for line in lines if line[:3] == ["loaded", "for", "all:"])
    assert not {"scipy", "shapely", "pyproj", "h3", "pyarrow.compute", "pydantic"} & set(all_people)
    assert not {"hazemap.algorithms", "hazemap.federated.recipes", "hazemap.releases.statistics_release"} & set(
        all_people
    )
    loaded = lines[-1]
    assert not {"numba", "pandas", "matplotlib", "duckdb"} & set(loaded)
    assert not {name for name in loaded if name.startswith(tuple(f"hazemap.{each}" for each in UNUSED))}
    assert {name for name in loaded if name.startswith("hazemap.vdaf")} <= FOUNDATIONS - {"hazemap.vdaf.loop_cache"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache folder of the test's own."""
    loop_cache.folder.cache_clear()
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(loop_cache, "_waiting", loop_cache._Waiting())
    yield tmp_path / "hazemap"
    loop_cache.folder.cache_clear()


TWO_LOOPS = """
from hazemap.vdaf.compiled_loops import compiled
{constant}

@compiled
def inner(x):
    return x * {factor}

@compiled
def outer(x):
    return inner(x) + SHIFT
"""


def run(tmp_path: Path, text: str) -> tuple[int, bool]:
    """What the outer loop of a module says of 10, and whether its machine code was there."""
    (tmp_path / "loops_of_a_test.py").write_text(text)
    space = {"__name__": "hazemap"}  # machine code is read back with its module imported
    exec(compile(text, str(tmp_path / "loops_of_a_test.py"), "exec"), space)
    found = space["outer"](10)
    return found, bool(space["outer"].stats.cache_hits)


def test_a_changed_inner_loop_or_constant_is_never_answered_by_old_machine_code(tmp_path, folder):
    first = TWO_LOOPS.format(constant="SHIFT = 1", factor=2)
    assert run(tmp_path, first) == (21, False)
    assert run(tmp_path, first) == (21, True)
    assert run(tmp_path, TWO_LOOPS.format(constant="SHIFT = 1", factor=3)) == (31, False)  # `outer` is the same
    assert run(tmp_path, TWO_LOOPS.format(constant="SHIFT = 7", factor=2)) == (27, False)
    assert run(tmp_path, first) == (21, True)
    for file in folder.glob("*.nb?"):  # damaged: compiled again, and mended
        file.write_bytes(file.read_bytes()[:100])
    assert run(tmp_path, first) == (21, False)
    assert run(tmp_path, first) == (21, True)


def test_an_index_that_another_process_damages_while_a_loop_is_compiled_is_begun_anew(tmp_path, folder, monkeypatch):
    """A version of hazemap with other names of classes shares the folder: its index cannot be read with ours."""
    text, begin = TWO_LOOPS.format(constant="SHIFT = 1", factor=2), loop_cache._waiting.begin

    def damage():
        for file in folder.glob("*.nbi"):
            file.write_bytes(file.read_bytes()[:100])
        begin()

    assert run(tmp_path, text) == (21, False)
    for file in folder.glob("*.nbc"):
        file.unlink()
    monkeypatch.setattr(loop_cache._waiting, "begin", damage)
    assert run(tmp_path, text) == (21, False)


TWO_INSTRUCTIONS = """
from llvmlite import ir
from numba.extending import intrinsic
from hazemap.vdaf.compiled_loops import compiled

@intrinsic
def instruction(_, x):
    return x(x), lambda _, builder, signature, values: builder.mul(values[0], ir.Constant(ir.IntType(64), {factor}))

@compiled
def outer(x):
    return instruction(x)
"""


def test_a_changed_instruction_is_never_answered_by_old_machine_code(tmp_path, folder):
    assert run(tmp_path, TWO_INSTRUCTIONS.format(factor=2)) == (20, False)
    assert run(tmp_path, TWO_INSTRUCTIONS.format(factor=2)) == (20, True)
    assert run(tmp_path, TWO_INSTRUCTIONS.format(factor=3)) == (30, False)


def test_machine_code_that_nobody_ran_for_long_is_deleted(tmp_path, folder):
    run(tmp_path, TWO_LOOPS.format(constant="SHIFT = 1", factor=2))
    kept = sorted(folder.glob("*.nb?"))
    os.utime(kept[0], (1, 1))
    loop_cache._forget_the_unused.cache_clear()
    run(tmp_path, TWO_LOOPS.format(constant="SHIFT = 1", factor=4))
    assert [file.exists() for file in kept] == [False, True, True, True]


def test_where_nothing_can_be_written_loops_run_all_the_same_and_say_so(tmp_path, folder, monkeypatch, caplog):
    folder.write_text("a file where the folder should be")
    monkeypatch.setattr(loop_cache, "PATIENCE", 0.0)
    with caplog.at_level(logging.WARNING, "hazemap"):
        text = TWO_LOOPS.format(constant="SHIFT = 1", factor=2)
        assert run(tmp_path, text) == run(tmp_path, text) == (21, False)
    assert len(caplog.messages) == 1  # once a process
    assert caplog.messages[0].startswith("compiling loops")


def test_every_loop_has_a_digest_and_none_of_another():
    for path in SOURCE.rglob("*.py"):
        if re.search(r"\nfrom hazemap\.vdaf\.compiled_loops import .*\bcompiled\b", path.read_text()):
            importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    modules = [module for name, module in sys.modules.items() if name.startswith("hazemap.")]
    loops = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    assert len(loops) > 80
    assert len({loop_cache.digest(loop) for loop in loops}) == len(loops)


def test_a_class_behind_a_loop_counts_with_all_that_stands_in_it():
    def loop_over(step, name="write"):
        writer = type("Writer", (), {name: lambda _: step, "width": 8})
        return lambda _: writer, writer

    one, again, other, renamed = (loop_over(*each) for each in ((1,), (1,), (2,), (1, "step")))
    digests = [loop_cache.digest(loop) for loop, _ in (one, again, other, renamed)]
    assert digests[0] == digests[1] and len(set(digests)) == 3
    one[1].width = 16
    assert loop_cache.digest(one[0]) != digests[0]
    one[1].width = property(lambda _: 8)  # what cannot be told apart is not kept
    with pytest.raises(TypeError):
        loop_cache.digest(one[0])


def test_the_few_and_the_many_are_the_same_to_the_last_bit(monkeypatch):
    y = np.random.default_rng(1).random(3000)
    monkeypatch.setattr(quadtree, "compiler_is_loaded", lambda: False)
    for some in (y, y[:9], y[:0], np.repeat(y, 3)):
        assert np.array_equal(quadtree.latitudes(some), pixel_kernels.latitudes(some))
    rng = np.random.default_rng(2)
    parent = np.array([-1, *(rng.integers(0, i) for i in range(1, 300))])
    missing, numbers = rng.random(300) < 0.2, rng.normal(0, 9, 300)
    measured = np.where(rng.random(300) < 0.2, np.inf, rng.random(300))
    slow = compiled._quiet(passes._solve_loop)(parent, missing, numbers, measured)
    fast = compiled.once_compiled(passes._solve_loop)(parent, missing, numbers, measured)
    assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(slow, fast, strict=True))
    pull, turn, kurtosis = rng.normal(size=300), rng.integers(0, 2, 300).astype(np.int16), np.array([3.0, 0.0])
    order = (parent, pull, slow[1], slow[0], measured, kurtosis, turn)
    assert compiled._quiet(passes._spread_loop)(*order) == compiled.once_compiled(passes._spread_loop)(*order)
    cells = [np.arange(4**level, 2 * 4**level, dtype=np.uint64) for level in range(4)]
    spans = [(run << np.uint64(2 * (3 - i)), ((run + np.uint64(1)) << np.uint64(2 * (3 - i))) - np.uint64(1))
             for i, run in enumerate(cells)]  # fmt: skip
    stops = np.cumsum([len(run) for run in cells])
    order = (*map(np.concatenate, zip(*spans, strict=True)), np.append(0, stops[:-1]), stops, np.uint64(64))
    slow, fast = (kind(forest._walk_loop)(*order) for kind in (compiled._quiet, compiled.once_compiled))
    assert all(np.array_equal(one, other) for one, other in zip(slow, fast, strict=True))
