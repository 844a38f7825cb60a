"""Files of this machine that are held open while a table is, so that they can be read when others take their names."""

import os
from contextlib import suppress
from pathlib import Path
from weakref import finalize

OPEN_FILES = Path("/proc/self/fd")
"""Where the system shows what a process has open, as files that can be opened again."""

MOST_HELD = 128
"""Files of one table that are held, at most: a process may have 1,024 open, and some more tables."""


class HeldFile(str):
    """The name of a file, and the file as it was found under this name, which stays open as long as this is there.

    Who replaces or removes a file while a run reads it takes nothing away: what is at `path` is what was there. It is
    changed all the same by whoever writes into it.
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
        """Where it can be opened, from its first byte."""
        return str(self) if self._open is None else str(OPEN_FILES / str(self._open))

    def stat(self) -> os.stat_result:
        """What the system says of it now."""
        return os.stat(str(self) if self._open is None else self._open)  # noqa: PTH116 - a descriptor


def held(files: list[str]) -> list[str]:
    """Files that are held, unless they are more than `MOST_HELD`."""
    return [HeldFile.found(file) for file in files] if len(files) <= MOST_HELD else files


def path_of(file: str) -> str:
    """Where a file of this machine can be opened."""
    return file.path if isinstance(file, HeldFile) else file
