"""What the first command on a machine costs more than the second: loops are compiled once, and kept."""

import os
import resource
import subprocess
import sys

import pytest

MOST = 15.0
"""Seconds of a processor that compiling may take, in all that `hazemap demo` does."""


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
def test_the_first_demo_compiles_for_15_seconds_at_most(tmp_path):
    first, second = cpu_of_demo(tmp_path, "first"), cpu_of_demo(tmp_path, "second")
    compiled = list((tmp_path / "loops").rglob("*.nbc"))
    assert compiled and first > second
    if first - second > MOST:  # neighbours on this machine slow a processor down, too: once more, with nothing kept
        for each in (tmp_path / "loops").rglob("*.nb?"):
            each.unlink()
        first = min(first, cpu_of_demo(tmp_path, "again"))
    assert first - second <= MOST, f"{first:.1f} s, then {second:.1f} s"
