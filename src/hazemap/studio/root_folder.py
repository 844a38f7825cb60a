"""The folder that a steward works in: whatever a browser names is inside it, or is refused."""

import os
from dataclasses import dataclass
from pathlib import Path

from hazemap.errors import FileError, InputError
from hazemap.gdal.tiff_files import open_tiff
from hazemap.readers.file_formats import ENDINGS, files_of
from hazemap.sources.source import LocalFiles
from hazemap.studio.refusals import refused

LONGEST = 1_000
"""Characters of a name."""
MOST_ENTRIES = 2_000
"""Of a folder so many names are shown."""

JOURNALS = ".sqlite.runs"
"""How the folder of a ledger's journals ends: nobody looks for a table there."""

READABLE = tuple(ending for endings in ENDINGS.values() for ending in endings)


@dataclass(frozen=True)
class Entry:
    """A name in a folder: a `folder`, a `table` that can be read, a `release`, or another `picture` or page."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True)
class RootFolder:
    """A folder out of which no name leads, neither by `..` nor by a link.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     root = RootFolder.at(Path(folder))
    ...     root.inside("a/../../etc/passwd")
    Traceback (most recent call last):
    hazemap.errors.FileError: 'a/../../etc/passwd' leads out of the studio's folder
    """

    path: Path

    @classmethod
    def at(cls, path: Path) -> "RootFolder":
        """A folder that is there, by its real path."""
        real = Path(os.path.realpath(path.expanduser()))
        if not real.is_dir():
            raise InputError(f"there is no folder {path} for the studio to work in: make it, or name another")
        return cls(real)

    def inside(self, name: str) -> Path:
        """The path of a name, whether it is there or not; `FileError` where it leads out of the folder."""
        _refuse_odd(name)
        asked = Path(name)
        if asked.is_absolute() or ".." in asked.parts or not self.holds(self.path / asked):
            raise refused(FileError, "leadsOut", name=name)
        return self.path / asked

    def holds(self, path: Path | str) -> bool:
        """Whether a path, with all links followed, is in the folder."""
        real = Path(os.path.realpath(path))
        return real == self.path or self.path in real.parents

    def name_of(self, path: Path | str) -> str | None:
        """How a path is called here; None for one that lies elsewhere."""
        real = Path(os.path.realpath(path))
        return str(real.relative_to(self.path)) if self.holds(real) else None

    def table(self, name: str) -> Path:
        """A file or a folder of files that is there, none of which lies elsewhere; `FileError` for any other."""
        path = self.inside(name)
        if not (path.is_file() or path.is_dir()):
            raise refused(FileError, "noSuchTable", name=name)
        if path.is_dir() and not all(self.holds(each) for each in path.rglob("*") if each.is_symlink()):
            raise refused(FileError, "linkOutside", name=name)
        files_of(LocalFiles(str(path)))  # there are some
        return path

    def file(self, name: str) -> Path:
        """A file that is there."""
        path = self.inside(name)
        if not path.is_file():
            raise refused(FileError, "noSuchFile", name=name)
        return path

    def entries(self, name: str) -> list[Entry]:
        """What a folder holds that a steward may want, folders first; hidden names and links that lead out are not."""
        folder = self.inside(name)
        if not folder.is_dir():
            raise refused(FileError, "noSuchFolder", name=name)
        found = []
        try:
            names = sorted(each.name for each in os.scandir(folder) if not each.name.startswith("."))
        except OSError as error:
            raise FileError(f"the folder {name!r} cannot be read ({error.strerror})") from error
        for each in names[:MOST_ENTRIES]:
            path = folder / each
            kind = self._kind(path) if each.isprintable() and self.holds(path) else None
            if kind is not None:
                found.append(Entry(each, kind, path.stat().st_size if path.is_file() else 0))
        return sorted(found, key=lambda entry: (entry.kind != "folder", entry.name.casefold()))

    def _kind(self, path: Path) -> str | None:
        if path.is_dir():
            return None if path.name.endswith(JOURNALS) else "folder"
        if not path.is_file():
            return None
        if is_release(path):
            return "release"
        return "table" if path.name.lower().endswith(READABLE) else None


def free(goal: Path) -> None:
    """`FileError` where a file is there: none is replaced."""
    if goal.exists() or goal.is_symlink():
        raise refused(FileError, "fileIsThere", name=goal.name)


def is_release(path: Path) -> bool:
    """Whether a file says that hazemap published it; what is in it is read when it is opened."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            from pyarrow import parquet

            return b"hazemap" in (parquet.read_metadata(path).metadata or {})
        if suffix == ".tif":
            with open_tiff(path) as opened:
                return "HAZEMAP" in {name.upper() for name in opened.tags()}
    except Exception:
        return False
    return False


def _refuse_odd(name: str) -> None:
    """Raise `FileError` for what no file is called."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise refused(FileError, "oddName", most=LONGEST) from None
    if not 0 <= len(name) <= LONGEST or not name.isprintable():
        raise refused(FileError, "oddName", most=LONGEST)
    if set(name) & set("*?[]"):
        raise refused(FileError, "patternName")
