"""Files of this machine that are held open while a table is, so that they can be read when others take their names."""

import os
from contextlib import suppress
from pathlib import Path
from weakref import finalize

OPEN_FILES = Path("/proc/self/fd")
"""The system's folder of a process's open files, which can be opened again."""

MOST_HELD = 128
"""Files of one table that are held, at most: a process may have 1,024 open, and some more tables."""


class HeldFile(str):
    """A file and its name; the file as it was found under this name stays open as long as this object lives.

    Replacing or removing a file while a run reads it takes nothing away: `path` still leads to the old one. Writing
    into it changes it all the same.
    """

    _open: int | None = None

    @classmethod
    def found(cls, name: str) -> "HeldFile":
        """A file that is held, where the system lets it; else only its name."""
        made = cls(name)
        if OPEN_FILES.is_dir():
            with suppress(OSError):  # whoever reads it says what is wrong
                made._open = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
                finalize(made, os.close, made._open)
        return made

    @property
    def path(self) -> str:
        """A path under which it can be opened, from its first byte."""
        return str(self) if self._open is None else str(OPEN_FILES / str(self._open))

    def stat(self) -> os.stat_result:
        """The system's present record of it."""
        return os.stat(str(self) if self._open is None else self._open)  # noqa: PTH116 - a descriptor


def held(files: list[str]) -> list[str]:
    """Files that are held, unless they are more than `MOST_HELD`."""
    return [HeldFile.found(file) for file in files] if len(files) <= MOST_HELD else files


def path_of(file: str) -> str:
    """A path under which a local file can be opened."""
    return file.path if isinstance(file, HeldFile) else file
