"""Folders of a table's files: on this machine, in a bucket, or on a server; and checks that they are unchanged."""

import glob
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hazemap.errors import FileError
from hazemap.readers.bucket_files import folder_of, found_files
from hazemap.readers.stored_file import LocalFile, StoredFile
from hazemap.sources.source import LocalFiles, RemoteFiles

MOST_HELD = 128
"""Files of one table that are held, at most: a process may have 1,024 open, and some more tables."""

AT_ONCE = 16
"""The number of remote files that are asked at once."""

_WILD = re.compile(r"[*?\[]")
_HIDDEN = re.compile(r"(^|/)[._]")
Found = TypeVar("Found")


@dataclass(frozen=True)
class StoredFolder:
    """Files by their path below the table's folder, in the order of their names.

    `whole` says that the folder itself was named, and not a file in it or a pattern.
    """

    name: str
    files: Mapping[str, StoredFile]
    whole: bool

    @property
    def lake(self) -> str | None:
        """The kind of table whose log or metadata is in the folder; None for files alone."""
        if self.whole and any(re.fullmatch(r"_delta_log/\d{20}\..+", path) for path in self.files):
            return "Delta"
        if self.whole and any(re.fullmatch(r"metadata/[^/]+\.metadata\.json", path) for path in self.files):
            return "Iceberg"
        return None

    @property
    def state(self) -> list[tuple[str, int, str]]:
        """The address, the size and the time of change of every file."""
        return [file.state for file in self.files.values()]

    def seen(self) -> "StoredFolder":
        """The same without files below names that begin with . or _, where a folder was named."""
        if not self.whole:
            return self
        return StoredFolder(
            self.name, {path: file for path, file in self.files.items() if not _HIDDEN.search(path)}, True
        )

    def held(self) -> "StoredFolder":
        """The same, whose files of this machine stay what they are whoever takes their names, unless they are many."""
        local = [file for file in self.files.values() if isinstance(file, LocalFile)]
        if len(local) > MOST_HELD:
            return self
        kept = {path: file.held() if isinstance(file, LocalFile) else file for path, file in self.files.items()}
        return StoredFolder(self.name, kept, self.whole)


def change_check(files: Sequence[StoredFile]) -> Callable[[], None]:
    """A check that raises `FileError` if a local file is not as it is now. Remote files check themselves."""
    seen = [(file, file.state) for file in files if isinstance(file, LocalFile)]

    def check() -> None:
        for file, state in seen:
            with suppress(OSError):
                if file.state == state:
                    continue
            raise FileError(
                f"{file} was changed while it was read: put back what was there, or begin again when no program"
                f" writes to it"
            )

    return check


def folder_at(files: LocalFiles | RemoteFiles) -> StoredFolder:
    """The file, the folder or the files of a pattern by this name; `FileError` where there is none."""
    return _remote(files) if isinstance(files, RemoteFiles) else _local(files.path)


def _local(name: str) -> StoredFolder:
    path = Path(name)
    if path.is_file():
        return StoredFolder(name, {path.name: LocalFile(name)}, False)
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if not _leads_out(file, path) and file.is_file()]
        return StoredFolder(name, {str(file.relative_to(path)): LocalFile(str(file)) for file in files}, True)
    found = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207 - any pattern
    if not found:
        raise FileError(f"no file has the name or pattern {name}")
    parts = Path(name).parts
    fixed = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts) - 1)
    return StoredFolder(name, {"/".join(Path(file).parts[fixed:]): LocalFile(file) for file in found}, False)


def _leads_out(file: Path, folder: Path) -> bool:
    """Raise `FileError` for a link out of a folder, whose maker may not be its reader."""
    if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
        raise FileError(
            f"{file} is a link that leads out of the folder {folder}: put the file itself there, or name it"
        )
    return False


def _remote(url: RemoteFiles) -> StoredFolder:
    if url.scheme == "https":
        from hazemap.readers.https_file import HttpsFile

        return StoredFolder(str(url), {url.parts[-1]: HttpsFile.found(url)}, False)

    files, wild = found_files(url), _WILD.search(str(url)) is not None
    if len(files) == 1 and files[0].key == "/".join(url.parts):
        return StoredFolder(str(url), {url.parts[-1]: files[0]}, False)
    start = len(folder_of(url)) + 1
    return StoredFolder(str(url), {file.key[start:]: file for file in files}, not wild)


def ask_each(files: Sequence[StoredFile], ask: Callable[[StoredFile], Found]) -> list[Found]:
    """The results of `ask` for each file, in order; several remote files at once."""
    if all(isinstance(file, LocalFile) for file in files):
        return [ask(file) for file in files]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(ask, files))
