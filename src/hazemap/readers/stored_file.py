"""One file as it was when it was found: held open on this machine, or read by ranges from an HTTPS server.

Neither goes on as another file if it is replaced in the middle, and none that lies elsewhere is ever had whole.

The server is taken for hostile: certificates are verified, no other host is asked, every answer must be of just the
range, the size and the version that were asked for, and no more of it is read. Messages of a server are never shown.
Cost: one request a range over one connection.
"""

import io
import os
import re
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from weakref import finalize

from hazemap.errors import FileError, TableError
from hazemap.sources.source import SIGNED, RemoteFiles

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


PATIENCE = 60.0
"""Seconds for a connection, and for any next bytes."""

LONGEST = 600.0
"""Seconds for one answer."""

TRIES, PAUSE = 4, 0.5
"""Attempts for a range if the connection breaks or the server is busy; the pause doubles."""

REDIRECTS = 3
PIECE = 1 << 20
_BUSY = {429, 500, 502, 503, 504}
_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15})")


@dataclass(frozen=True)
class Version:
    """A server's record of a file: its size, and the `ETag` and the `Last-Modified` that change with it."""

    size: int
    etag: str | None
    modified: str | None

    @property
    def condition(self) -> dict[str, str]:
        """The header by which a server refuses to serve another version."""
        if self.etag is not None and not self.etag.startswith("W/"):
            return {"If-Match": self.etag}
        return {} if self.modified is None else {"If-Unmodified-Since": self.modified}


@dataclass(frozen=True)
class HttpsFile(StoredFile):
    """A file as its server first described it. `target` is what the server is asked for; it is never shown."""

    url: RemoteFiles
    target: str
    version: Version

    def __str__(self) -> str:
        return str(self.url)

    def __repr__(self) -> str:
        return f"HttpsFile({str(self)!r})"

    @property
    def size(self) -> int:  # type: ignore[override]
        """Bytes."""
        return self.version.size

    @classmethod
    def found(cls, url: RemoteFiles) -> "HttpsFile":
        """The file that is there now; `FileError` where there is none that can be read by ranges."""
        target = url.target
        with _Requests(url) as requests:
            for _ in range(REDIRECTS + 1):
                answer = requests.answer(target, 0, 8, {})
                if isinstance(answer, str):
                    target = _same_host(url, target, answer)
                    continue
                version = answer[0]
                if version.size and version.etag is None and version.modified is None:
                    raise FileError(
                        f"the server of {url} sends neither ETag nor Last-Modified, so a change of the file while "
                        f"it is read would go unnoticed: download it, and read the copy"
                    )
                return cls(url, target, version)
        raise FileError(f"the server of {url} sends on from address to address")

    @property
    def state(self) -> tuple[str, int, str]:
        """Its address, its size, and what its server says of the version."""
        return str(self), self.size, f"{self.version.etag} {self.version.modified}"

    def check(self) -> None:
        """Nothing: every range was of this version."""

    def open(self) -> RangeFile:
        """The file, over a connection of its own."""
        requests = _Requests(self.url)

        def fetched(start: int, length: int) -> bytes:
            answer = requests.answer(self.target, start, length, self.version.condition)
            if isinstance(answer, str) or answer[0] != self.version:
                raise _changed(self.url)
            return answer[1]

        return RangeFile(str(self), self.size, fetched, requests.close)


class _Requests:
    """Requests to one host over one connection, which is made again where it breaks."""

    def __init__(self, url: RemoteFiles) -> None:
        self._url = url
        self._tls = ssl.create_default_context()
        self._connection: HTTPSConnection | None = None

    def __enter__(self) -> "_Requests":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Break the connection."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    def answer(self, target: str, start: int, length: int, more: dict[str, str]) -> tuple[Version, bytes] | str:
        """The version and the bytes of a range, fewer only at the end of the file; or where the server sends on to."""
        pause = PAUSE
        for tried in range(1, TRIES + 1):
            try:
                return self._answer(target, start, length, more)
            except ssl.SSLCertVerificationError:
                raise FileError(
                    f"the certificate of the server of {self._url} cannot be verified: SSL_CERT_FILE names the "
                    "authorities that are trusted beside the system's"
                ) from None
            except (HTTPException, OSError, _BusyServerError) as error:
                self.close()
                if tried == TRIES:
                    why = str(error) if isinstance(error, _BusyServerError) else "the connection fails or breaks"
                    raise FileError(f"{self._url} cannot be read: {why}, after {TRIES} tries") from None
            time.sleep(pause)
            pause *= 2
        raise AssertionError

    def _answer(self, target: str, start: int, length: int, more: dict[str, str]) -> tuple[Version, bytes] | str:
        if self._connection is None:
            self._connection = HTTPSConnection(self._url.place, timeout=PATIENCE, context=self._tls)
        headers = {"Range": f"bytes={start}-{start + length - 1}", "Accept-Encoding": "identity", **more}
        self._connection.request("GET", target, headers=headers)
        response = self._connection.getresponse()
        if response.status in {301, 302, 303, 307, 308}:
            self.close()
            return response.headers.get("Location") or ""
        if response.status == 416 and start == 0 and not more:
            self.close()
            return Version(0, None, None), b""
        if response.status != 206:
            self.close()
            raise self._refusal(response.status)
        return self._range(response, start, length)

    def _range(self, response: HTTPResponse, start: int, length: int) -> tuple[Version, bytes]:
        """The bytes of an answer, which is of the range asked for to the last byte; any other is a lie."""
        named = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
        first, last, size = (int(number) for number in named.groups()) if named else (0, 0, 0)
        whole = last - first + 1
        said = response.headers.get("Content-Length")
        if (
            named is None
            or first != start
            or last != min(start + length, size) - 1
            or last < first
            or response.headers.get("Content-Encoding", "identity") != "identity"
            or (said is not None and said != str(whole))
        ):
            self.close()
            raise FileError(f"the server of {self._url} answers with another range of bytes than it was asked for")
        until = time.monotonic() + LONGEST
        pieces, left = list[bytes](), whole
        while left:
            piece = response.read1(min(left, PIECE))  # which waits for no more than comes next
            if not piece:
                raise HTTPException
            if time.monotonic() > until:
                raise _BusyServerError(f"an answer takes more than {LONGEST:.0f} s")
            pieces.append(piece)
            left -= len(piece)
            if left < 0:  # chunks of negative length are read so
                break
        if left < 0 or response.read(1):
            self.close()
            raise FileError(f"the server of {self._url} answers with more bytes than it was asked for")
        version = Version(size, response.headers.get("ETag"), response.headers.get("Last-Modified"))
        return version, b"".join(pieces)

    def _refusal(self, status: int) -> Exception:
        if status == 412:
            return _changed(self._url)
        if status in {404, 410}:
            return FileError(f"there is no file {self._url}")
        if status in {401, 403}:
            return FileError(
                f"the server of {self._url} does not let it be read: put a URL with its signature into {SIGNED}; one "
                "that is there may have run out, or be another file's"
            )
        if status == 200:
            return FileError(
                f"the server of {self._url} does not serve ranges of a file: download it, and read the copy"
            )
        if status in _BUSY:
            return _BusyServerError(f"the server answers {status}")
        return FileError(f"the server of {self._url} does not serve it: it answers {status}")


class _BusyServerError(Exception):
    """The bytes that may pass."""


def _changed(url: RemoteFiles) -> FileError:
    return FileError(f"{url} was changed while it was read: read it again when no program writes to it")


def _same_host(url: RemoteFiles, target: str, location: str) -> str:
    """The target of a redirect; `TableError` for one to another host or away from https."""
    try:
        goal = urlsplit(urljoin(f"https://{url.place}{target}", location))
        same = (goal.scheme, goal.netloc.casefold()) == ("https", url.place)
    except ValueError:
        same = False
    if not same or not location.isascii() or not location.isprintable() or " " in location:
        raise TableError(
            f"the server of {url} sends on to another server, or away from https: name the address where the file is"
        )
    return goal.path + (f"?{goal.query}" if goal.query else "")
