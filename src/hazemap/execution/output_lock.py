"""Locks the output file of a release: checked to be writable before anything is paid, and written by one run at a time.

Two releases to one file must not both be paid for, and one of them be lost.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from hazemap.algorithms import FittedLevel, PrivateBoundingBox
from hazemap.algorithms.private_bounding_box import OneLevel
from hazemap.errors import FileError
from hazemap.readers.file_formats import belongs
from hazemap.spatial.plane import refuse_plane
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.parsing import DistrictFiles, HexagonList
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec


class OutputLocked(FileError):
    """Another process has the lock of this file."""


@contextmanager
def lock_output(path: Path) -> Iterator[None]:
    """Lock `path` for writing; `FileError` at once if another run is about to write it.

    A lock of the system on a hidden file beside `path`: it ends with the process that holds it, so a process that was
    killed leaves no lock behind.
    """
    goal = Path(os.path.realpath(path))
    lock = goal.with_name(f".{goal.name}.lock")
    while True:  # until the file that is locked is the one that is there
        with _opened(goal, lock) as file:
            if not _locked(goal, lock, file):
                continue
            try:
                yield
            finally:
                with suppress(OSError):  # its folder may have been closed meanwhile; a lock that is left stops nobody
                    lock.unlink(missing_ok=True)  # while it is locked: whoever waits for this one sees that it is gone
            return


def _opened(goal: Path, lock: Path) -> FileIO:
    """A file that closes itself, and ends its lock, when no reference is left, even if its opening is interrupted."""
    try:
        return FileIO(lock, "r+", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o666))
    except OSError as error:
        raise FileError(f"{goal} cannot be written ({error.strerror}): choose another place") from error


def _locked(goal: Path, lock: Path, file: FileIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
    except BlockingIOError:
        raise OutputLocked(
            f"{goal} is being written by another release: wait until it is done, or choose another name"
        ) from None
    except OSError as error:
        raise FileError(f"{goal} cannot be locked ({error.strerror}): choose a disk that locks files") from error


SUFFIXES = (".parquet", ".tif")

LEAST_ROOM = 1 << 20
"""Bytes that have to be free where the file goes. If it becomes larger than what is there, it can be recovered."""


LONGEST_NAME, LONGEST_PATH, LONGER = 255, 4095, 40
"""Bytes of a file's name and of its path, as systems take them, and those that the names of hidden files add."""


def check_output_place(path: Path, spec: ReleaseSpec | StatisticsSpec) -> Path:
    """The path of the file, if it can be written; else `FileError`."""
    source, algorithm = spec.table.address, spec.algorithm
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(f"a release is a file that ends in {' or '.join(SUFFIXES)}; found {path.name!r}")
    inner = algorithm.method if isinstance(algorithm, PrivateBoundingBox) else algorithm
    if path.suffix.lower() == ".tif":
        if not (isinstance(inner, OneLevel | FittedLevel) and isinstance(inner.tree, Quadtree)):
            raise FileError(
                "a .tif holds a regular grid of squares: ask for the method flat, fitted-level, hierarchical or "
                "geometric, or for a .parquet"
            )
        refuse_plane(inner.tree, path.suffix)
    _refuse_unwritable_names(path)
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent} to write {path.name} to: make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK) or path.is_dir():
        raise FileError(f"{path} cannot be written: choose a file in a folder that you may write to")
    if source is not None and belongs(path, source):
        raise FileError(f"{path} is the table itself, or would be read as a part of it: write the release elsewhere")
    if path.exists() and any(Path(file).exists() and path.samefile(file) for file in _cells(spec)):
        raise FileError(f"{path} says which cells the release is about: write the release elsewhere")
    if path.exists() and not spec.overwrite:
        raise FileError(
            f"the file {path} exists: choose another name, or allow it to be replaced (--force, overwrite=True)"
        )
    disk = os.statvfs(path.parent)
    if disk.f_bavail * disk.f_frsize < LEAST_ROOM:
        raise FileError(f"the disk of {path.parent} is full: make room for {path.name} first")
    return path


def _refuse_unwritable_names(path: Path) -> None:
    """Raise `FileError` for a name that has no room for those of its lock and its part, or that writers cannot take."""
    try:
        goal = Path(os.path.realpath(path))  # no path has a null byte in it: ValueError
        name, whole = goal.name.encode(), str(goal).encode()
    except ValueError:
        raise FileError(f"{str(path)!r} is not valid text: choose another name") from None
    if len(name) + LONGER > LONGEST_NAME or len(whole) + LONGER > LONGEST_PATH:
        raise FileError(f"the name of {path.name[:60]}… is too long to be written: choose a shorter one")


def _cells(spec: ReleaseSpec | StatisticsSpec) -> list[str]:
    """The files that the cells were read from."""
    if isinstance(spec.cells, DistrictFiles):
        return [file for file, _, _ in spec.cells.layers]
    return [spec.cells.file] if isinstance(spec.cells, HexagonList) else []
