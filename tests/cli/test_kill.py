"""`kill -9` at any instant: no file without its charge, no half a file, no damaged ledger.

A parent that has loaded everything, but started no thread, forks a child for each trial; the child makes a
release like anybody, and the parent kills it after a random time.
"""

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError
from hazemap.privacy.ledger import Ledger
from hazemap.releases import Release

pytestmark = pytest.mark.slow

PARENT = """
import os, select, signal, sys, time
import duckdb, geopandas, numba, pyarrow.parquet, rasterio, scipy.linalg, shapely
import hazemap.algorithms, hazemap.domains.mercator, hazemap.publish, hazemap.releases.file
from hazemap.privacy.ledger import Ledger

{sabotage}
for line in sys.stdin:  # a trial: the data set, the file, and the seconds to live
    dataset, output, seconds = line.split()
    begun = time.perf_counter()
    child = os.fork()
    if child == 0:
        hazemap.publish.release(
            "visits.parquet", person="person", epsilon=1, box="13.2,52.4,13.6,52.6", dataset=dataset, output=output,
            ledger=Ledger("ledger.sqlite"), overwrite=True,
        )
        os._exit(0)
    watch = os.pidfd_open(child)
    ended, _, _ = select.select([watch], [], [], float(seconds))
    if not ended:
        os.kill(child, signal.SIGKILL)  # it is there, dead or alive, until it is waited for
    _, status = os.waitpid(child, 0)
    os.close(watch)
    ending = "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    print(ending, time.perf_counter() - begun, flush=True)
"""


HALVES = """
import pathlib, tempfile, time
save = hazemap.releases.Release.save
def in_two_halves(release, path):
    with tempfile.TemporaryDirectory() as folder:
        save(release, pathlib.Path(folder) / "map.parquet")
        content = (pathlib.Path(folder) / "map.parquet").read_bytes()
    with open(path, "wb") as file:
        file.write(content[:1000])
        file.flush()
        time.sleep(1)
        file.write(content[1000:])
hazemap.releases.Release.save = in_two_halves
"""

LATE = """
import hazemap.session, time
run = hazemap.publish.run
def pays_in_the_end(algorithm, trust, money, account):
    class Later:
        dataset, receipt, ledger = account.dataset, None, account.ledger
        def charge(self, price): pass
    result = run(algorithm, trust, money, Later())
    save = hazemap.releases.Release.save
    def save_first(release, path):
        save(release, path)
        time.sleep(1)
        account.charge(money)
    hazemap.releases.Release.save = save_first
    return result
hazemap.publish.run = pays_in_the_end
"""


class Killer:
    """Starts releases, and kills those that are not done after so many seconds."""

    def __init__(self, folder: Path, sabotage: str = "") -> None:
        program = PARENT.replace("{sabotage}", sabotage)
        self.parent = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )

    def release(self, dataset: str, output: str, seconds: float) -> tuple[str, float]:
        """How the child ended, and how long it ran."""
        self.parent.stdin.write(f"{dataset} {output} {seconds}\n")
        self.parent.stdin.flush()
        ending, ran = self.parent.stdout.readline().split()
        return ending, float(ran)

    def stop(self) -> None:
        self.parent.stdin.close()
        self.parent.wait(60)


def kill_often(folder: Path, trials: int, sabotage: str = "") -> dict[str, int]:
    """Kill releases at instants uniform over the whole of one; what is left behind is checked after each.

    Every tenth file replaces one that was there, and must be the old or the new one.
    """
    ledger, chance = Ledger(folder / "ledger.sqlite"), random.Random(7)
    seen = {"before the charge": 0, "charged, no file": 0, "file": 0}
    killer = Killer(folder, sabotage)
    try:
        assert killer.release("warm", "warm.parquet", 60)[0] == "0"
        whole = max(killer.release(f"timed{i}", f"timed{i}.parquet", 60)[1] for i in range(3))
        for trial in range(trials):
            dataset, goal = f"trial{trial}", folder / f"trial{trial}.parquet"
            if trial % 10 == 0:
                goal.write_bytes((folder / "warm.parquet").read_bytes())
            ending, _ = killer.release(dataset, goal.name, chance.uniform(0, 1.05 * whole))
            seen[left_behind(ledger, dataset, goal, ending)] += 1
    finally:
        killer.stop()
    assert len(ledger.datasets()) == 4 + seen["file"] + seen["charged, no file"]
    return seen


def left_behind(ledger: Ledger, dataset: str, goal: Path, ending: str) -> str:
    """How far the release came; fails where the file and the ledger do not fit."""
    assert ending in ("killed", "0")
    records = [record for record in ledger.history() if record.charge.dataset == dataset]
    release = Release.open(goal) if goal.exists() else None  # whole, or this fails: every byte is in its digest
    new = release is not None and release.statement.dataset == dataset
    assert release is None or new or release.statement.dataset == "warm"
    assert len(records) <= 1
    if new:
        assert [record.charge.price for record in records] == [release.statement.budget], "a file without a charge"
    for record in records:
        assert new or not record.released, "the ledger names a file that is not there"
    if ending == "0":
        assert new
        assert records[0].released
    return "file" if new else "charged, no file" if records else "before the charge"


@pytest.fixture
def folder(points, tmp_path) -> Path:
    pq.write_table(pa.table(points), tmp_path / "visits.parquet")
    return tmp_path


@pytest.mark.timeout(900)
def test_no_kill_leaves_a_file_without_a_charge_or_half_a_file(folder):
    seen = kill_often(folder, 200)
    assert min(seen.values()) >= 3, f"the kills did not meet every stage: {seen}"


@pytest.mark.parametrize(
    ("sabotage", "words"),
    [(HALVES, "is damaged"), (LATE, "a file without a charge")],
    ids=["half files", "charged late"],
)
def test_a_release_that_writes_in_halves_or_charges_late_is_found_out(sabotage, words, folder):
    """A twin of the test above: the sleeps last a second, so that 100 instants hardly miss them on a busy machine."""
    with pytest.raises((AssertionError, FileError), match=words):
        kill_often(folder, 100, sabotage)
