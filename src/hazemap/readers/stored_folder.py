"""Folders of a table's files: on this machine, in a bucket, or on a server; and checks that they are unchanged.

Buckets of S3 and Google Cloud Storage are read by ranges. Credentials come by the chains of AWS and of Google
(variables, profiles, roles, the machine's own); nothing here knows them. Messages of a store may quote requests and are
never shown.
"""

import glob
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hazemap.errors import FileError
from hazemap.readers.stored_file import LocalFile, RangeFile, StoredFile
from hazemap.sources.source import LocalFiles, RemoteFiles

MOST_FILES = 100_000
PATIENCE = 60
"""Seconds for a connection, an answer, and all tries of a request to Google."""

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class BucketFile(StoredFile):
    """An object of a bucket as it was listed: its size and the time of its last change in nanoseconds."""

    scheme: str
    key: str  # with the bucket
    size: int
    changed: int
    seen: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.key}"

    @property
    def state(self) -> tuple[str, int, str]:
        """Its address, its size, and when it changed."""
        return str(self), self.size, str(self.changed)

    def check(self) -> None:
        """`FileError` where it is another one by now."""
        self.open().close()
        if not self.seen.get("ETag"):
            with explained_store(str(self)):
                now = filesystem(self.scheme).get_file_info(self.key)
            if (now.size, now.mtime_ns) != (self.size, self.changed):
                raise self._other()

    def open(self) -> RangeFile:
        """The object, for reading by ranges; `FileError` where it is not the one that was listed or opened before."""
        with explained_store(str(self)):
            opened = filesystem(self.scheme).open_input_file(self.key)
            size, etag = opened.size(), {str(k): v for k, v in (opened.metadata() or {}).items()}.get("ETag", b"")
        if size != self.size or self.seen.setdefault("ETag", etag) != etag:
            opened.close()
            raise self._other()

        def fetched(start: int, length: int) -> bytes:
            with explained_store(str(self)):
                data: bytes = opened.read_at(length, start)
                return data

        return RangeFile(str(self), self.size, fetched, opened.close)

    def _other(self) -> FileError:
        return FileError(f"{self} was changed while it was read: read it again when no program writes to it")


@cache
def filesystem(scheme: str) -> Any:
    """The store, by what the environment says of it: `AWS_…` and profiles for S3, `GOOGLE_…` for Google."""
    from pyarrow import fs

    if scheme == "s3":
        place = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        with explained_store("s3://"):
            return fs.S3FileSystem(endpoint_override=place, connect_timeout=PATIENCE, request_timeout=PATIENCE)
    place = os.environ.get("STORAGE_EMULATOR_HOST")
    limit = timedelta(seconds=PATIENCE)
    if place:
        kind, _, host = place.rpartition("://")
        return fs.GcsFileSystem(anonymous=True, scheme=kind or "http", endpoint_override=host, retry_time_limit=limit)
    return fs.GcsFileSystem(retry_time_limit=limit)


def found_files(url: RemoteFiles) -> list[BucketFile]:
    """The objects of an address, by name: one, all in a folder, or those that fit a pattern. `FileError` if there is
    none. A folder's objects are not told apart here by what they are.
    """
    listed = _listed(url)
    if not listed:
        raise FileError(
            f"no object has the name, folder or pattern {url}, or it may not be seen: credentials come by the store's "
            "own means (docs/how-to/lakes.md)"
        )
    return listed


def folder_of(url: RemoteFiles) -> str:
    """The key of the folder under which the address's objects lie, with the bucket: what stands before any pattern."""
    names = list[str]()
    for name in url.parts:
        if _WILD.search(name):
            break
        names.append(name)
    return "/".join(names)


def _listed(url: RemoteFiles) -> list[BucketFile]:
    from pyarrow import fs

    store, key = filesystem(url.scheme), "/".join(url.parts)
    wild = _WILD.search(key) is not None
    with explained_store(str(url)):
        if not wild and len(url.parts) > 1:
            one = store.get_file_info(key)
            if one.type == fs.FileType.File:
                return [_file(url, one)]
        found = store.get_file_info(fs.FileSelector(folder_of(url), allow_not_found=True, recursive=True))
    files = [
        _file(url, one)
        for one in found
        if one.type == fs.FileType.File and (not wild or _fits(one.path.split("/"), url.parts))
    ]
    if len(files) > MOST_FILES:
        raise FileError(f"{url} names {len(files)} objects, and {MOST_FILES} are the most")
    return sorted(files, key=lambda file: file.key)


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether names on the way to an object fit a pattern: ** is any number of them, and a hidden name fits no *.

    >>> _fits(["b", "day=1", "x.csv"], ["b", "**", "?.csv"]), _fits(["b", "c", "x.csv"], ["b", "*.csv"])
    (True, False)
    """
    if not pattern:
        return not names
    if pattern[0] == "**":
        return any(_fits(names[skipped:], pattern[1:]) for skipped in range(len(names) + 1))
    if not names or (names[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return fnmatchcase(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


def _file(url: RemoteFiles, one: Any) -> BucketFile:
    return BucketFile(url.scheme, one.path, max(0, int(one.size or 0)), int(one.mtime_ns or 0))


@contextmanager
def explained_store(name: str) -> Generator[None, None, None]:
    """Say what went wrong in words of ours."""
    import pyarrow

    try:
        yield
    except FileNotFoundError:
        raise FileError(f"there is no object {name}") from None
    except (pyarrow.ArrowException, OSError) as error:
        denied = any(word in str(error) for word in ("ACCESS_DENIED", "PermissionDenied", "FORBIDDEN", "status 403"))
        why = (
            "the store does not let it be read" if denied else "the store cannot be reached, or does not know who asks"
        )
        raise FileError(
            f"{name} cannot be read: {why}; credentials and regions come by the store's own means "
            "(docs/how-to/lakes.md)"
        ) from None


MOST_HELD = 128
"""Files of one table that are held, at most: a process may have 1,024 open, and some more tables."""

AT_ONCE = 16
"""The number of remote files that are asked at once."""

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
        from hazemap.readers.stored_file import HttpsFile

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
