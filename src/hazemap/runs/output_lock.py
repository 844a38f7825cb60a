"""One writer for a file at a time: two releases to one file must not both be paid for, and one of them be lost."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    handle = _locked(goal, lock)
    try:
        yield
    finally:
        with suppress(OSError):  # its folder may have been closed meanwhile; a lock that is left locks nobody out
            lock.unlink(missing_ok=True)  # while it is locked: whoever waits for this one sees that it is gone
        os.close(handle)


def _locked(goal: Path, lock: Path) -> int:
    while True:  # until the file that was locked is the one that is there
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FileError(f"{goal} cannot be written ({error.strerror}): choose another place") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = lock.stat()
        except BlockingIOError:
            os.close(handle)
            raise FileError(
                f"{goal} is being written by another release: wait until it is done, or choose another name"
            ) from None
        except FileNotFoundError:
            os.close(handle)
            continue
        except OSError as error:
            os.close(handle)
            raise FileError(f"{goal} cannot be locked ({error.strerror}): choose a disk that locks files") from error
        if found.st_ino == os.fstat(handle).st_ino:
            return handle
        os.close(handle)
