"""What the first command on a machine costs more than the second: loops are compiled once, and kept."""

import os
import resource
import subprocess
import sys

import pytest

MOST = 30.0
"""Seconds of a processor for compiling all that `hazemap demo` runs: 9 where little else runs (15 are promised), and
up to twice as many where many processes share the caches of one."""


def cpu_of_demo(folder, name):
    """Seconds of a processor that a whole demo takes, in a process of its own with this folder of compiled loops."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "loops"), "HAZEMAP_HOME": str(folder / "home")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [sys.executable, "-c", "from hazemap.cli.main import run; run()", "demo", "--folder", str(folder / name)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))


@pytest.mark.slow
def test_the_first_demo_compiles_for_seconds_and_the_second_not_at_all(tmp_path):
    first, compiled = cpu_of_demo(tmp_path, "first"), kept(tmp_path)
    second = cpu_of_demo(tmp_path, "second")
    assert compiled and kept(tmp_path) == compiled
    assert first - second <= MOST, f"{first:.1f} s, then {second:.1f} s"


def kept(folder):
    """Every file of compiled loops, and when it was written."""
    return {each.name: each.stat().st_mtime_ns for each in (folder / "loops").rglob("*.nb?")}
