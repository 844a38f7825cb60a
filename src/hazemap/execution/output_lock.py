"""One writer for a file at a time: two releases to one file must not both be paid for, and one of them be lost."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from hazemap.errors import FileError


@contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Have `path` to write alone; `FileError` at once where another run is about to write it.

    A lock of the system on a hidden file beside `path`: it ends with the process that holds it, so a process that was
    killed leaves nothing that anybody would have to wait for.
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
    """A file that closes itself, and ends its lock, when nobody holds it: wherever its opening is interrupted."""
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
        raise FileError(
            f"{goal} is being written by another release: wait until it is done, or choose another name"
        ) from None
    except OSError as error:
        raise FileError(f"{goal} cannot be locked ({error.strerror}): choose a disk that locks files") from error
