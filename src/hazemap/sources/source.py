"""Where a table is, parsed once: files here or elsewhere, a table of PostgreSQL or of Spark, or an object in memory.

An address is written down: in the specification, in a journal, in messages, in a shell's history. So one with a user, a
password, a signature or any other query in it is refused without being shown. Credentials come by the means of the
store alone: those of AWS and of Google for buckets, those of libpq and of Spark, and for one file behind a signature
the whole URL in `HAZEMAP_SIGNED_URL`, which is read by whoever fetches and by nobody else.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias
from urllib.parse import quote, urlsplit

from hazemap.errors import InputError
from hazemap.sources.postgresql import EXAMPLE, TABLE, is_postgresql_url, url_parts

SIGNED = "HAZEMAP_SIGNED_URL"
"""The variable of the environment that holds a URL with its signature."""

LONGEST = 2_000
"""Characters of an address."""

SCHEMES = ("s3", "gs", "https")
SPARK = "spark:"
LONGEST_SPARK_NAME = 1_000
_PART = r"[^\W\d]\w*|\d\w*|`(?:[^`\x00-\x1f]|``)+`"
_SPARK_NAME = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")
_URL = re.compile(r"(?:s3|gs|https?):|[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_OTHERS = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL}){{0,126}}|\[[0-9a-f:.]+\])(?::([0-9]{{1,5}}))?")
LAST_PORT = 65_535
_QUERY = re.compile(r"\?[^/?]*[=&]")


class _Anywhere:
    """An address that means the same in any folder."""

    @property
    def absolute(self) -> Self:
        """The same."""
        return self

    def below(self, folder: Path) -> Self:  # noqa: ARG002 - what a path needs
        """The same."""
        return self


@dataclass(frozen=True)
class LocalFiles:
    """A file, a folder or a pattern of files on this machine; perhaps a layer of a file, as in `city.gpkg:visits`.

    >>> LocalFiles("data/nyc.csv.gz").dataset, LocalFiles("trips/*.parquet").dataset
    ('nyc', 'trips')
    """

    path: str

    def __str__(self) -> str:
        """As it was written."""
        return self.path

    @property
    def dataset(self) -> str:
        """The data set that the table belongs to, unless somebody says otherwise."""
        return _plain_name(Path(self.path).absolute().parts)

    @property
    def absolute(self) -> "LocalFiles":
        """The whole path, which means the same in any folder."""
        return LocalFiles(str(Path(self.path).absolute()))

    def below(self, folder: Path) -> "LocalFiles":
        """The path from a folder on."""
        return LocalFiles(str(folder / self.path))


@dataclass(frozen=True)
class RemoteFiles(_Anywhere):
    """Files elsewhere: a bucket and a key, a folder or a pattern in it; or one file, by its host and its path.

    >>> RemoteFiles.parse("s3://city/trips/*.parquet")
    RemoteFiles(scheme='s3', place='city', path='trips/*.parquet')
    >>> RemoteFiles.parse("https://ann:secret@host.example/visits.parquet")
    Traceback (most recent call last):
    hazemap.errors.InputError: the address of a table holds no user and no password, because shells, lists of \
processes and logs keep it: credentials come by the store's own means (docs/how-to/lakes.md)
    """

    scheme: str
    place: str
    path: str

    @classmethod
    def parse(cls, text: str) -> "RemoteFiles":
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
        """As it was written, without a slash after the name of a whole bucket."""
        return f"{self.scheme}://{self.place}{'/' * bool(self.path)}{self.path}"

    @property
    def parts(self) -> list[str]:
        """The bucket or the host, and the names on the way to the table."""
        return [self.place, *(part for part in self.path.split("/") if part)]

    @property
    def dataset(self) -> str:
        """The data set that the table belongs to, unless somebody says otherwise."""
        return _plain_name(self.parts)

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


@dataclass(frozen=True)
class DatabaseTable(_Anywhere):
    """A table or a view in a database: what libpq is told of the server, and the table as SQL names it.

    >>> url = DatabaseTable.parse('postgresql://ann@db.example.org/city?table=trips."Visits"&sslmode=require')
    >>> url.table, url.database, url.names
    ('trips."Visits"', 'postgresql://ann@db.example.org/city?sslmode=require', ('trips', 'Visits'))
    """

    written: str
    database: str
    table: str

    @classmethod
    def parse(cls, text: str) -> "DatabaseTable":
        """`InputError` for a URL that has a password, that names no table, or that libpq would read otherwise."""
        place, asked = url_parts(text)
        tables = [value for name, value, _ in asked if name == "table"]
        if len(tables) != 1:
            raise InputError(f"name one table: {EXAMPLE}; found {len(tables) or 'none'}")
        if not TABLE.fullmatch(tables[0]):
            raise InputError(
                f"table={tables[0][:80]!r} is no name of a table or a view: write visits, trips.visits, or "
                'trips."Visits" where a name has capitals or blanks. A query is none: make a view of it'
            )
        kept = "&".join(written for name, _, written in asked if name != "table")
        return cls(text, place + (f"?{kept}" if kept else ""), tables[0])

    def __str__(self) -> str:
        """As it was written."""
        return self.written

    @property
    def dataset(self) -> str:
        """The data set that the table belongs to, unless somebody says otherwise: its name without its schema."""
        return self.names[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """The schema, if it is named, and the table, as PostgreSQL keeps them: small letters where none are quoted."""
        found = TABLE.fullmatch(self.table)
        parts = [part for part in found.groups() if part] if found else [self.table]
        return tuple(part[1:-1].replace('""', '"') if part[0] == '"' else _folded(part) for part in parts)

    def beside(self, more: str) -> "DatabaseTable":
        """The table whose name goes on with some small letters.

        >>> DatabaseTable.parse('postgresql://h/d?table="Visits"').beside("_total").table
        '"Visits_total"'
        """
        name = f'{self.table[:-1]}{more}"' if self.table.endswith('"') else self.table + more
        sign = "&" if "?" in self.database else "?"
        return DatabaseTable(f"{self.database}{sign}table={quote(name)}", self.database, name)


@dataclass(frozen=True)
class SparkCatalogueTable(_Anywhere):
    """A table in a catalogue of Spark. Spark finds its cluster and its credentials by its own means.

    >>> table = SparkCatalogueTable.parse("spark:lake.db.`my visits`")
    >>> table.name, table.dataset
    ('lake.db.`my visits`', 'my visits')
    """

    written: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "SparkCatalogueTable":
        """The table by its name in Spark's SQL; `InputError` for anything else."""
        name = text[len(SPARK) :]
        if re.search(r"//.*@", name) or re.search(r"[?&].*=", name):
            raise InputError("the name of a table of Spark holds no password, because shells, lists and logs keep it")
        if len(name) > LONGEST_SPARK_NAME or not _SPARK_NAME.fullmatch(name):
            raise InputError(
                "a table of Spark is named spark:visits, spark:catalog.schema.visits, or, with other signs than "
                "letters, digits and _, spark:`my visits`. A query is none: make a view of it, or pass a DataFrame in "
                "Python"
            )
        return cls(text, name)

    def __str__(self) -> str:
        """As it was written."""
        return self.written

    @property
    def dataset(self) -> str:
        """The data set that the table belongs to, unless somebody says otherwise: its name without its schema."""
        last = str(re.findall(_PART, self.name)[-1])
        return last[1:-1].replace("``", "`") if last.startswith("`") else last


@dataclass(frozen=True)
class Frame:
    """A table in memory, which nobody can open again by a name: a data frame, an Arrow table, a stream."""

    table: Any

    dataset: ClassVar[str] = "memory"


Files: TypeAlias = LocalFiles | RemoteFiles
Address: TypeAlias = LocalFiles | RemoteFiles | DatabaseTable | SparkCatalogueTable
"""A source that can be written down and opened again."""

Source: TypeAlias = LocalFiles | RemoteFiles | DatabaseTable | SparkCatalogueTable | Frame


def parse_source(source: Any) -> Source:
    """The one place where a text becomes a source; anything that is neither text nor a path is a table in memory.

    `InputError` for an address that is badly written, or may hold a secret.

    >>> parse_source("trips/s3.parquet"), parse_source("gs://bucket/trips"), parse_source(None)
    (LocalFiles(path='trips/s3.parquet'), RemoteFiles(scheme='gs', place='bucket', path='trips'), Frame(table=None))
    """
    if isinstance(source, Source):
        return source
    return parse_address(os.fspath(source)) if isinstance(source, str | os.PathLike) else Frame(source)


def parse_address(text: str) -> Address:
    """A source that was written down; `InputError` for an address that is badly written, or may hold a secret."""
    if not text:
        raise InputError("source must be non-empty text: a path or an address")
    if is_postgresql_url(text):
        return DatabaseTable.parse(text)
    if text.casefold().startswith(SPARK):
        return SparkCatalogueTable.parse(text)
    return RemoteFiles.parse(text) if _URL.match(text) else LocalFiles(text)


def _plain_name(names: Iterable[str]) -> str:
    """The last of the names on the way to a table that is no pattern, without what follows a dot."""
    parts = [part for part in names if not set("*?[") & set(part)]
    return parts[-1].lstrip(".").partition(".")[0] or "memory"


def _folded(name: str) -> str:
    """A name that is not quoted, as PostgreSQL folds it in databases in UTF-8: letters of ASCII alone."""
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


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
