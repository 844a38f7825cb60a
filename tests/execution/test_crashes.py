"""`kill -9`, full disks and pairs of writers at any instant: no charge without a file, no file without a charge."""

import random
import subprocess
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError
from hazemap.execution.crash_recovery import recover, recoverable, sweep
from hazemap.execution.run import journal_folder
from hazemap.privacy.budget import Budget, PureDP, make_up
from hazemap.privacy.ledger import REST, Ledger
from hazemap.privacy.ledger_records import LedgerCharge
from hazemap.releases import Release, Statistics

from .crashes import HALVES, LATE, UNSYNCED, Parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture
def folder(points, tmp_path) -> Path:
    pq.write_table(pa.table(points), tmp_path / "visits.parquet")
    return tmp_path


def task(folder: Path, name: str, kind: str = "map", **options: Any) -> dict[str, Any]:
    """A release of the data set `name` to its own file."""
    where = {"ledger": str(folder / "ledger.sqlite"), "output": str(folder / f"{name}.parquet")}
    return {"kind": kind, "dataset": name, **where, **options}


def opened(path: Path, kind: str) -> Release | Statistics | None:
    """What is in a file, if there is one: whole, or this fails, since every byte is in its digest."""
    return (Release if kind == "map" else Statistics).open(path) if path.exists() else None


def is_whole(records: list[LedgerCharge], budget: Budget) -> bool:
    """Whether the first charge, and that of its rest if there is one, are exactly what a release says it cost."""
    parts = [record.charge.price for record in records if record is records[0] or _is_rest(record)]
    return make_up(parts, budget)


def _is_rest(record: LedgerCharge) -> bool:
    return record.run is not None and record.run.endswith(REST)


def stage(ledger: Ledger, asked: dict[str, Any], ending: str) -> str:
    """How far a release came; fails where the file and the ledger do not fit."""
    assert ending in ("killed", "0", "3", "4")
    records = [record for record in ledger.history() if record.charge.dataset == asked["dataset"]]
    made = opened(Path(asked["output"]), asked["kind"])
    new = made is not None and made.statement.dataset == asked["dataset"]
    assert made is None or new or made.statement.dataset.startswith("warm")
    if new:
        assert records and is_whole(records, made.statement.budget), "a file without a charge"
    assert new or not any(record.released for record in records), "the ledger names a file that is not there"
    if ending == "0":
        assert new and all(record.released for record in records)
    return "file" if new else "charged, no file" if records else "before the charge"


def made_good(ledger: Ledger, asked: dict[str, Any]) -> None:
    """After a recovery there is a file for the charge, and none without."""
    sweep(ledger)
    for each in recoverable(ledger):
        recover(each.record.charge.id, ledger=ledger)
    records = [record for record in ledger.history() if record.charge.dataset == asked["dataset"]]
    path = Path(asked["output"])
    made = opened(path, asked["kind"])
    assert all(record.released and record.file == str(path) for record in records), "a charge without a file"
    new = made is not None and made.statement.dataset == asked["dataset"]
    assert new == bool(records), "a charge without a file, or a file without a charge"
    if records:
        assert made.statement.budget == PureDP(1) and is_whole(records, PureDP(1))
        assert sum(record.charge.price.epsilon for record in records) <= 3
        again = [exchange.question.share for exchange in made.transcript]
        assert all(record.charge.price.epsilon in again for record in records[1:] if not _is_rest(record))
    assert not list(journal_folder(ledger).glob("*")), "a journal is left"


def kinds(number: int) -> str:
    return "statistics" if number % 4 == 3 else "map"


def test_no_kill_leaves_a_charge_without_a_file_or_a_file_without_a_charge(folder):
    """Half at random instants, half at each point in turn; a third of the recoveries are killed themselves."""
    ledger, chance = Ledger(folder / "ledger.sqlite"), random.Random(7)
    seen: Counter[str] = Counter()
    with Parent(folder) as parent:
        points, seconds = {}, {}
        for kind in ("map", "statistics"):
            warm = task(folder, f"warm-{kind}", kind)
            assert parent.ended(warm).endings == ["0"]
            points[kind] = parent.points()
            seconds[kind] = max(
                parent.ended(task(folder, f"timed-{kind}-{number}", kind)).seconds for number in range(2)
            )
        assert min(points.values()) >= 40
        for number in range(200):
            kind = kinds(number)
            asked = task(folder, f"trial-{number}", kind)
            if number % 10 == 0:  # every tenth file replaces one that was there
                Path(asked["output"]).write_bytes((folder / f"warm-{kind}.parquet").read_bytes())
                asked["overwrite"] = True
            if number % 2:
                asked["point"] = 1 + (number // 2) * points[kind] // 100
            else:
                asked["seconds"] = chance.uniform(0, 1.05 * seconds[kind])
            [ending] = parent.ended(asked).endings
            came = stage(ledger, asked, ending)
            seen[came] += 1
            if came == "charged, no file" and number % 3 == 0:
                again = task(folder, asked["dataset"], "recover", point=chance.randint(1, points[kind]))
                assert parent.ended(again).endings[0] in ("killed", "0")
                seen["recovery killed"] += 1
            made_good(ledger, asked)
    assert min(seen.values()) >= 3 and len(seen) == 4, f"the kills did not meet every stage: {seen}"
    extra = sum(":" in str(record.run) and not _is_rest(record) for record in ledger.history())
    print(f"kills: {dict(seen)}, {extra} questions paid again")


@pytest.mark.parametrize(
    ("sabotage", "words"),
    [
        (HALVES, "is damaged"),
        (LATE, "a file without a charge|a journal is left"),
        (UNSYNCED, "a charge without a file"),
    ],
    ids=["half files", "charged late", "journal elsewhere"],
)
def test_a_build_that_writes_in_halves_charges_late_or_keeps_no_journal_is_found_out(sabotage, words, folder):
    """A twin of the test above: the sleeps last a second, so that some instant meets them, sooner or later."""
    ledger, chance = Ledger(folder / "ledger.sqlite"), random.Random(7)
    with Parent(folder, sabotage) as parent:
        whole = parent.ended(task(folder, "warm")).seconds

        def kill_often() -> None:
            for number in count():
                asked = task(folder, f"trial-{number}", seconds=chance.uniform(0, whole))
                [ending] = parent.ended(asked).endings
                stage(ledger, asked, ending)
                made_good(ledger, asked)

        with pytest.raises((AssertionError, FileError), match=words):
            kill_often()


@pytest.fixture
def disk(tmp_path):
    """A disk of 8 MB, mounted where only root may."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_no_full_disk_leaves_a_charge_without_a_file_or_a_file_without_a_charge(folder, disk):
    """The disk of the ledger, the journal and the file is full from the n-th point on; 50 points over the whole run."""
    ledger = Ledger(disk / "ledger.sqlite")
    seen: Counter[str] = Counter()
    with Parent(folder) as parent:
        points = {}
        for kind in ("map", "statistics"):
            assert parent.ended(task(disk, f"warm-{kind}", kind)).endings == ["0"]
            points[kind] = parent.points()
        for number in range(50):
            kind = kinds(number)
            asked = task(disk, f"trial-{number}", kind, what="fill", point=1 + number * points[kind] // 50)
            [ending] = parent.ended(asked).endings
            (disk / "ballast").unlink(missing_ok=True)
            seen[stage(ledger, asked, ending)] += 1
            seen[f"exit {ending}"] += 1
            made_good(ledger, asked)
            Path(asked["output"]).unlink(missing_ok=True)
    assert min(seen["before the charge"], seen["charged, no file"]) >= 3, f"the disk was never full in time: {seen}"
    print(f"full disks: {dict(seen)}")


def test_of_two_writers_of_one_file_one_pays_and_writes_it(folder):
    """50 pairs with one ledger and one file, begun at random instants; of every third pair one is killed."""
    ledger, chance = Ledger(folder / "ledger.sqlite"), random.Random(7)
    seen: Counter[str] = Counter()
    with Parent(folder) as parent:
        assert parent.ended(task(folder, "warm")).endings == ["0"]
        whole = parent.ended(task(folder, "timed")).seconds
        for number in range(50):
            asked = task(folder, f"pair-{number}")
            other = asked | {"delay": chance.uniform(0, 1.2 * whole) * (number % 5 > 0)}
            if number % 3 == 0:
                asked["seconds"] = chance.uniform(0, 1.2 * whole)
            endings = parent.ended(asked, other).endings
            seen["+".join(sorted(endings))] += 1
            found = [record for record in ledger.history() if record.charge.dataset == f"pair-{number}"]
            records = [record for record in found if not _is_rest(record)]
            if "killed" not in endings:
                assert sorted(endings) == ["0", "3"]
                assert len(records) == 1
            charged = [record for record in records if not record.released]
            if len(records) == 2:  # the first was killed after it paid, so the second could write the file
                assert "killed" in endings and len(charged) == 1
                recover(charged[0].charge.id, ledger=ledger, output=folder / f"pair-{number}-first.parquet")
                seen["recovered beside the other"] += 1
            else:
                made_good(ledger, asked)
            files = {record.file for record in ledger.history() if record.charge.dataset == f"pair-{number}"}
            assert all(file and Path(file).exists() for file in files)
    assert seen["0+3"] >= 20, seen
    print(f"pairs: {dict(seen)}")
