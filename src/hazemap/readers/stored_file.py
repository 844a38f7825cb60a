"""A file as it was when it was found: one of this machine is held open, one that lies elsewhere is read by ranges.

Neither goes on as another file if it is replaced in the middle, and none that lies elsewhere is ever had whole.
"""

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import finalize

from hazemap.errors import FileError

MOST_AT_ONCE = 1 << 28
"""Bytes that one reading may ask for: more than any page or footer that a writer makes."""


class StoredFile(ABC):
    """A file as it was when it was found: every reading is of these bytes, or is an error. Its text is its address."""

    size: int

    @abstractmethod
    def open(self) -> io.RawIOBase:
        """The file from its first byte; close it."""

    @abstractmethod
    def check(self) -> None:
        """Raise `FileError` if the file has been replaced; a reader calls it before what was read counts."""

    @property
    @abstractmethod
    def state(self) -> tuple[str, int, str]:
        """Its address, its size, and what changes when its bytes do."""


class RangeFile(io.RawIOBase):
    """A file that is read by ranges: `fetched(start, length)` returns exactly this many bytes, or raises.

    >>> file = RangeFile("here", 5, lambda start, length: b"abcde"[start : start + length])
    >>> file.seek(-3, 2), file.read(2), file.tell()
    (2, b'cd', 4)
    """

    def __init__(
        self, name: str, size: int, fetched: Callable[[int, int], bytes], closed: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._name, self._size, self._fetched, self._closed, self._at = name, size, fetched, closed, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The position of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Read on from there."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """This many bytes, fewer only at the end."""
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        if length > MOST_AT_ONCE:
            raise FileError(
                f"{self._name} has a part of {length >> 20} MB that can only be read at once, and "
                f"{MOST_AT_ONCE >> 20} MB are the most: write it in smaller pages or row groups"
            )
        data = self._fetched(self._at, length) if length else b""
        if len(data) != length:
            raise FileError(f"{self._name} ends before the size that its server says")
        self._at += length
        return data

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer as far as the file goes."""
        with memoryview(buffer).cast("B") as view:
            data = self.read(len(view))
            view[: len(data)] = data
            return len(data)

    def close(self) -> None:
        """Let go of what serves it."""
        if not self.closed and self._closed is not None:
            self._closed()
        super().close()


OPEN_FILES = Path("/proc/self/fd")
"""The system's folder of a process's open files, which can be opened again."""


@dataclass(frozen=True)
class LocalFile(StoredFile):
    """A file of this machine. One that is held stays open, as it was found, as long as this object lives.

    Replacing or removing it while a run reads it takes nothing away then: `path` still leads to the old one. Writing
    into it changes it all the same.
    """

    name: str
    descriptor: int | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name

    def held(self) -> "LocalFile":
        """The same, held where the system lets it."""
        if OPEN_FILES.is_dir():
            with suppress(OSError):  # whoever reads it says what is wrong
                descriptor = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC)
                made = LocalFile(self.name, descriptor)
                finalize(made, os.close, descriptor)
                return made
        return self

    @property
    def path(self) -> str:
        """A path under which it can be opened, from its first byte."""
        return self.name if self.descriptor is None else str(OPEN_FILES / str(self.descriptor))

    def open(self) -> io.FileIO:
        """The file from its first byte."""
        return io.FileIO(self.path)

    def check(self) -> None:
        """Nothing: whoever reads several of these compares their states (`stored_folder.changing`)."""

    @property
    def size(self) -> int:  # type: ignore[override]
        """Bytes, now."""
        return self._found.st_size

    @property
    def state(self) -> tuple[str, int, str]:
        """Its name, its size, and when it was last written."""
        return self.name, self._found.st_size, str(self._found.st_mtime_ns)

    @property
    def _found(self) -> os.stat_result:
        return os.stat(self.name if self.descriptor is None else self.descriptor)  # noqa: PTH116 - a descriptor
