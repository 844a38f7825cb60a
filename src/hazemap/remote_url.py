"""Addresses of tables that lie elsewhere: `s3://bucket/…`, `gs://bucket/…` and `https://host/…`, without secrets.

An address is written down: in the specification, in a journal, in messages, in a shell's history. So one with a user, a
password, a signature or any other query in it is refused without being shown. Credentials come by the means of the
store alone: those of AWS and of Google for buckets, and for one file behind a signature the whole URL in
`HAZEMAP_SIGNED_URL`, which is read by whoever fetches and by nobody else.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from hazemap.errors import InputError
from hazemap.postgresql_url import is_url
from hazemap.spark_name import is_spark

SIGNED = "HAZEMAP_SIGNED_URL"
"""The variable of the environment that holds a URL with its signature."""

LONGEST = 2_000
"""Characters of an address."""

SCHEMES = ("s3", "gs", "https")
_URL = re.compile(r"(?:s3|gs|https?):|[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_OTHERS = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL}){{0,126}}|\[[0-9a-f:.]+\])(?::([0-9]{{1,5}}))?")
LAST_PORT = 65_535
_QUERY = re.compile(r"\?[^/?]*[=&]")


def is_remote(source: Any) -> bool:
    """Whether this is an address in a network, well written or not, and not that of PostgreSQL or Spark.

    >>> is_remote("s3://bucket/trips/*.parquet"), is_remote("trips/s3.parquet"), is_remote("postgresql:///db")
    (True, False, False)
    """
    return isinstance(source, str) and not is_named(source) and _URL.match(source) is not None


def lies_elsewhere(source: Any) -> bool:
    """Whether a table is in a database, in Spark, in a bucket or on a server, and so in no folder of this machine."""
    return is_named(source) or is_remote(source)


def is_named(source: Any) -> bool:
    """Whether this names a table in a database or in Spark, of which nobody can see whether it was changed since."""
    return is_url(source) or is_spark(source)


def absolute(source: str) -> str:
    """The whole path of a source of files, so that it means the same in any folder; an address as it is.

    >>> absolute("postgresql:///db?table=visits"), absolute("gs://bucket/trips")
    ('postgresql:///db?table=visits', 'gs://bucket/trips')
    """
    return source if lies_elsewhere(source) else str(Path(source).absolute())


@dataclass(frozen=True)
class RemoteUrl:
    """Where a table lies: a bucket and a key, a folder or a pattern in it; or a host and a path.

    >>> RemoteUrl.parse("s3://city/trips/*.parquet")
    RemoteUrl(scheme='s3', place='city', path='trips/*.parquet')
    >>> RemoteUrl.parse("https://ann:secret@host.example/visits.parquet")
    Traceback (most recent call last):
    hazemap.errors.InputError: the address of a table holds no user and no password, because shells, lists of \
processes and logs keep it: credentials come by the store's own means (docs/how-to/lakes.md)
    """

    scheme: str
    place: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "RemoteUrl":
        """`InputError`, which shows nothing of what may be a secret, for any address that is not plain."""
        scheme, slashes, rest = text.partition("://")
        place, _, path = rest.partition("/")
        if not slashes or scheme not in SCHEMES:
            raise _unknown(scheme.casefold().partition(":")[0])
        if "@" in place or (scheme == "https" and "@" in path):
            raise InputError(
                "the address of a table holds no user and no password, because shells, lists of processes and logs "
                "keep it: credentials come by the store's own means (docs/how-to/lakes.md)"
            )
        if (scheme == "https" and "?" in rest) or _QUERY.search(rest):
            raise InputError(
                "the address of a table has nothing after a ?, which may be a signature: leave it out"
                f"{_instead(scheme)}"
            )
        if len(text) > LONGEST or not text.isprintable() or (scheme == "https" and "#" in rest):
            raise InputError(
                f"the address of a table has at most {LONGEST} printable characters, and no # in a URL of https"
            )
        host = _HOST.fullmatch(place)
        if scheme == "https" and not (host and int(host[1] or 0) <= LAST_PORT and path and not path.endswith("/")):
            raise InputError(
                "a table over https is one file: https://host/path/file.parquet, its host in small letters"
            )
        if scheme != "https" and not _BUCKET.fullmatch(place):
            raise InputError(f"the name of a bucket is small letters, digits, - and .: {scheme}://bucket/folder")
        return cls(scheme, place, path)

    def __str__(self) -> str:
        """As it was written."""
        return f"{self.scheme}://{self.place}/{self.path}"

    @property
    def parts(self) -> list[str]:
        """The bucket or the host, and the names on the way to the table."""
        return [self.place, *(part for part in self.path.split("/") if part)]

    @property
    def target(self) -> str:
        """What an HTTPS server is asked for: the path, and the query of `HAZEMAP_SIGNED_URL` if that is this file's."""
        path = "/" + quote(self.path, safe="/%:;,=+~!$&'()*")
        try:
            signed = urlsplit(os.environ.get(SIGNED, ""))
        except ValueError:  # which may quote it
            raise InputError(f"{SIGNED} holds no URL that can be read: copy it again") from None
        mine = (signed.scheme, signed.netloc.casefold(), signed.path) == ("https", self.place, path)
        if mine and not (signed.query.isascii() and signed.query.isprintable() and " " not in signed.query):
            raise InputError(f"{SIGNED} has signs after its ? that are in no URL: copy it again")
        return f"{path}?{signed.query}" if mine and signed.query else path


def _unknown(scheme: str) -> InputError:
    if scheme == "http":
        return InputError("a table is not read over http, where anybody on the way could change it: use https://")
    if scheme in _OTHERS:
        return InputError(f"write {_OTHERS[scheme]}://bucket/… instead of {scheme}://")
    return InputError(
        "a table lies in a file or a folder, in a database (postgresql://host/database?table=visits), in a bucket "
        "(s3://bucket/…, gs://bucket/…) or on a server (https://host/path/file.parquet)"
    )


def _instead(scheme: str) -> str:
    if scheme != "https":
        return ", and say it to the store by its own means (docs/how-to/lakes.md)"
    return f", and put the whole URL into the variable {SIGNED} if the server asks for it (docs/how-to/lakes.md)"
