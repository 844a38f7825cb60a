"""Files that appear whole or not at all."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hazemap.errors import FileError


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new empty file beside `path` to write to; it takes the place of `path` when the block ends well.

    At any instant, and after a power cut, `path` is the old file or the whole new one. When the block fails, the
    new file is removed; after `kill -9` a hidden `.name-….part` may stay.
    Raises `FileError` for a folder that is missing, a disk that is full and the like.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole(Path(folder) / "a.txt") as part:
    ...         _ = part.write_text("whole")
    ...     os.listdir(folder)
    ['a.txt']
    """
    goal = Path(os.path.realpath(path))  # a link stays a link: what it points to is replaced
    part = _begin(goal)
    try:
        yield part
        sync(part)
        part.replace(goal)
    except OSError as error:
        raise _refused(goal, error) from error
    finally:
        part.unlink(missing_ok=True)
    sync(goal.parent)


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Bytes as a file that appears whole or not at all."""
    with whole(path) as part:
        part.write_bytes(content)


def _begin(goal: Path) -> Path:
    number = 0
    while True:  # until a name that no other thread, nor a process of the past, has taken
        part = goal.with_name(f".{goal.stem}-{os.getpid()}-{number}.part{goal.suffix}")
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            number += 1
        except OSError as error:
            raise _refused(goal, error) from error
        else:
            return part


def make_folder(folder: Path, mode: int = 0o777) -> None:
    """A folder and those above it; what is new is on the disk when this ends."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(mode=mode, parents=True, exist_ok=True)
    for each in missing:
        sync(each.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _refused(goal: Path, error: OSError) -> FileError:
    advice = {
        errno.ENOSPC: "free some space or choose another disk",
        errno.EDQUOT: "free some space or choose another disk",
        errno.EFBIG: "choose a disk and a limit that allow files this large",
        errno.ENOENT: "make its folder first",
        errno.EACCES: "choose a folder that you may write to",
        errno.EROFS: "choose a folder that you may write to",
        errno.EISDIR: "it is a folder; name a file in it",
    }.get(error.errno or 0, "choose another place")
    return FileError(
        f"{goal} could not be written ({error.strerror or error}): {advice}. "
        "Nothing new was left there, and an older file of this name is as it was"
    )
