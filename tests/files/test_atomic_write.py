"""Files that appear whole or not at all."""

import os
import resource
import signal
import subprocess
import sys
import time
from itertools import count

import pytest

from hazemap.errors import FileError
from hazemap.files.atomic_write import whole, write_whole


def test_a_file_appears_with_all_its_bytes_and_nothing_beside_it(tmp_path):
    write_whole(tmp_path / "a.bin", b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.bin"]


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")

    def fail(part):
        part.write_bytes(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError), whole(tmp_path / "a.bin") as part:
        fail(part)
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.bin"]


def test_a_new_file_can_be_read_by_whom_the_umask_allows(tmp_path):
    write_whole(tmp_path / "a.bin", b"new")
    (tmp_path / "b.bin").touch()
    assert (tmp_path / "a.bin").stat().st_mode == (tmp_path / "b.bin").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize(("path", "advice"), [("missing/a.bin", "make its folder"), ("folder", "is a folder")])
def test_a_place_that_cannot_be_written_is_named_with_advice(tmp_path, path, advice):
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=advice) as caught:
        write_whole(tmp_path / path, b"new")
    assert path in str(caught.value)


def test_a_full_disk_is_a_clear_error_and_keeps_the_old_file(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(FileError, match=r"a\.bin could not be written .*disk"):
            write_whole(tmp_path / "a.bin", bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.bin"]


def test_the_name_of_a_process_that_was_killed_is_not_in_the_way(tmp_path):
    (tmp_path / f".a-{os.getpid()}-0.part.bin").write_bytes(b"litter")
    write_whole(tmp_path / "a.bin", b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


WRITER = """
import sys
from pathlib import Path
from hazemap.files.atomic_write import whole
number = 0
print("ready", flush=True)
while True:
    number = 1 - number
    with whole(sys.argv[1]) as part, part.open("wb") as file:
        for _ in range(50):
            file.write(bytes([number]) * 1000)
            file.flush()
"""


def test_a_writer_killed_at_any_instant_leaves_a_whole_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(50_000))
    for attempt in range(12):
        with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.002 + 0.0037 * attempt)
            process.kill()
        content = path.read_bytes()
        assert len(content) == 50_000
        assert len(set(content)) == 1


def test_the_writer_of_the_test_above_would_be_caught_without_care(tmp_path):
    careless = WRITER.replace("with whole(sys.argv[1]) as part, part.open", "with Path(sys.argv[1]).open")
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(50_000))  # a writer killed before it has opened the file changes nothing
    for attempt in count():  # sooner or later
        with subprocess.Popen([sys.executable, "-c", careless, path], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(0.002 + 0.0037 * attempt)
            process.kill()
        if path.stat().st_size != 50_000:
            return
