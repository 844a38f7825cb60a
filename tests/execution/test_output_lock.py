"""One writer for a file: the second is refused before it pays, and nobody waits for the dead."""

import os
import pathlib
import signal
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.errors import FileError
from hazemap.execution import journal, output_lock
from hazemap.execution.journal import Journal, discard
from hazemap.execution.output_lock import lock_output
from hazemap.privacy.ledger import Ledger
from hazemap.publish import release
from hazemap.readers.file_formats import belongs
from hazemap.releases import Release
from hazemap.sources.source import LocalFiles


def test_of_two_releases_to_one_file_the_second_is_refused_before_its_charge(points, tmp_path, monkeypatch):
    ledger, goal, table = Ledger(tmp_path / "ledger.sqlite"), tmp_path / "map.parquet", pa.table(points)
    options = {"person": "person", "epsilon": 1, "box": "13.2,52.4,13.6,52.6", "ledger": ledger, "output": goal}
    save = Release.save

    def meanwhile(self, path):
        for overwrite in (False, True):
            with pytest.raises(FileError, match="is being written by another release"):
                release(table, **options, overwrite=overwrite)
        save(self, path)

    monkeypatch.setattr(Release, "save", meanwhile)
    release(table, **options)
    assert len(ledger.history()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ledger.key",
        "ledger.sqlite",
        "ledger.sqlite.runs",
        "map.parquet",
    ]


def test_a_link_to_a_file_is_the_same_file(tmp_path):
    (tmp_path / "link.parquet").symlink_to(tmp_path / "map.parquet")
    with lock_output(tmp_path / "link.parquet"), pytest.raises(FileError), lock_output(tmp_path / "map.parquet"):
        pytest.fail("two writers of one file")
    with lock_output(tmp_path / "map.parquet"):
        pass


@pytest.mark.parametrize("source", ["parts", "parts/*.parquet", "parts/1.parquet", "links"])
@pytest.mark.parametrize("name", ["1.parquet", "map.parquet"])
def test_a_release_takes_no_place_in_its_own_table(source, name, points, tmp_path):
    table, folder, ledger = pa.table(points), tmp_path / "parts", Ledger(tmp_path / "ledger.sqlite")
    folder.mkdir()
    (tmp_path / "links").symlink_to(folder)
    pq.write_table(table, folder / "1.parquet")
    content = (folder / "1.parquet").read_bytes()
    options = {"person": "person", "epsilon": 1, "box": "13.2,52.4,13.6,52.6", "ledger": ledger, "overwrite": True}
    if (source, name) != ("parts/1.parquet", "map.parquet"):
        with pytest.raises(FileError, match="the table itself, or would be read as a part of it"):
            release(tmp_path / source, **options, output=folder / name)
        assert ledger.history() == []
    assert (folder / "1.parquet").read_bytes() == content
    assert not belongs(tmp_path / "map.parquet", LocalFiles(str(tmp_path / source)))
    assert not belongs(folder / "map.tif", LocalFiles(str(tmp_path / source)))


@pytest.mark.parametrize("name", ["x" * 237, "x" * 241, "byte\udcff", "byte\0"])
def test_a_name_that_no_file_can_have_while_it_is_written_is_refused_before_the_charge(name, points, tmp_path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    with pytest.raises(FileError, match="is too long" if name[0] == "x" else "is not valid text"):
        release(pa.table(points), person="person", epsilon=1, ledger=ledger, output=tmp_path / f"{name}.parquet")
    assert not ledger.path.exists()


def test_a_folder_that_closes_over_a_lock_hides_no_error(tmp_path, monkeypatch):
    def closed(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "unlink", closed)
    with pytest.raises(FileError, match="what happened"), lock_output(tmp_path / "map.parquet"):
        raise FileError("what happened")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("module", [output_lock, journal])
def test_whoever_is_interrupted_at_any_instant_leaves_no_lock(module, tmp_path):
    """At each line and each return of what takes a lock, also when it is held and its `with` not yet entered."""

    def taken():
        if module is output_lock:
            with lock_output(tmp_path / "map.parquet"):
                pass
        else:
            with Journal.begun(tmp_path, "run", {}):
                pass
            with Journal.reopened(tmp_path / "run.journal"):
                pass

    def interrupted(at: int) -> bool:
        seen = 0

        def watch(frame, event, _):
            nonlocal seen
            if frame.f_code.co_filename != module.__file__:
                return None
            seen += event in ("line", "return")
            if seen == at:
                sys.settrace(None)
                raise KeyboardInterrupt
            return watch

        sys.settrace(watch)
        try:
            taken()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    at = 1
    while interrupted(at):
        for left in tmp_path.glob("*.journal"):
            Journal.reopened(left).remove()
        for left in tmp_path.glob(".*.part"):
            discard(left)
        taken()
        for left in tmp_path.glob("*"):
            left.unlink()
        at += 1
    assert at > 20


def test_a_writer_that_was_killed_keeps_nobody_waiting(tmp_path):
    goal = tmp_path / "map.parquet"
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        with lock_output(goal):
            os.write(told, b"locked")
            signal.pause()
    assert os.read(ready, 6) == b"locked"
    with pytest.raises(FileError), lock_output(goal):
        pytest.fail("two writers of one file")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert (tmp_path / ".map.parquet.lock").exists()
    with lock_output(goal):
        pass
    assert not list(tmp_path.iterdir())
    os.close(ready), os.close(told)
