"""The files of one table as PyIceberg sees them: whatever metadata names outside of its folder is not there.

Packed bytes are unpacked no further than they may be long.
"""

import bz2
import io
import re
import zlib
from typing import Any

from pyiceberg.avro import file as avro_file
from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.codecs.codec import Codec
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.io import FileIO, InputFile, OutputFile

from hazemap.errors import FileError
from hazemap.readers.stored_file import StoredFile
from hazemap.readers.stored_folder import StoredFolder

_WINDOW = {"gzip": 31, "deflate": -15}
"""zlib's codes of gzip's format, and of one without a header."""


def unpacked(kind: str, data: bytes, most: int) -> bytes:
    """The bytes in `gzip`, `deflate`, `bzip2` or `zstandard`; `ValueError` for more than `most`, and for damaged ones.

    >>> unpacked("gzip", __import__("gzip").compress(b"some"), 4)
    b'some'
    """
    made: Any
    if kind == "zstandard":
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)) as stream:
            found, whole = stream.read(most + 1), True
    else:
        made = bz2.BZ2Decompressor() if kind == "bzip2" else zlib.decompressobj(_WINDOW[kind])
        found = made.decompress(data, most + 1)
        whole = made.eof or kind == "deflate"  # writers leave out its end
    if len(found) > most:
        raise ValueError(f"unpacked, it is more than {most} bytes")
    if not whole:
        raise ValueError("packed bytes are cut off")
    return bytes(found)


def snappy_size(data: bytes) -> int:
    """The length of what Snappy has packed, as its head says.

    >>> snappy_size(bytes([0x80, 0x02, 0]))
    256
    """
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return size


avro_file.new_decoder = StreamingBinaryDecoder  # type: ignore[attr-defined, assignment]  # the compiled one reads on after the end
LARGEST_BLOCK = 1 << 28
"""Bytes of a block of Avro, unpacked."""


def _bounded(kind: str, known: type[Codec]) -> type[Codec]:
    """PyIceberg's codec, which unpacks no more than a block may have."""

    class Bounded(known):  # type: ignore[misc, valid-type]
        @staticmethod
        def decompress(data: bytes) -> bytes:
            if kind != "snappy":
                return unpacked(kind, data, LARGEST_BLOCK)
            if snappy_size(data) > LARGEST_BLOCK:
                raise ValueError(f"a block of more than {LARGEST_BLOCK} bytes")
            return known.decompress(data)

    return Bounded


KNOWN_CODECS.update({kind: codec and _bounded(kind, codec) for kind, codec in KNOWN_CODECS.items()})


class FolderIO(FileIO):
    """Reads the files of a folder by their path below it, or by where the table's metadata says that they are."""

    _folder: StoredFolder
    _most: int
    _roots: list[str]

    @classmethod
    def of(cls, folder: StoredFolder, most: int) -> "FolderIO":
        """The files of a folder, each of `most` bytes at most."""
        made = cls()
        made._folder, made._most, made._roots = folder, most, [folder.name]
        return made

    def at(self, location: str) -> None:
        """Say where the table's own metadata says that its folder is; it may have been moved since."""
        self._roots.append(location)

    def file(self, location: str) -> StoredFile:
        """The file of a location; `FileError` for one that is not in the folder."""
        paths = [location, *(path for root in self._roots if (path := path_in(location, root)) is not None)]
        found = next((self._folder.files[path] for path in paths if path in self._folder.files), None)
        if found is None:
            raise FileError(f"the Iceberg table {self._folder.name} names a file that is not in its folder")
        return found

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return _Shown(location, self.file(location), self._most)

    def unpacked(self, location: str) -> bytes:
        """The bytes of a file, which is packed if its name says so."""
        with self.new_input(location).open() as source:
            data: bytes = source.read()
        return unpacked("gzip", data, self._most) if location.endswith(".gz.metadata.json") else data

    def new_output(self, location: str) -> OutputFile:  # noqa: ARG002 - its interface
        """Nothing is written."""
        raise FileError("a table is only read")

    def delete(self, location: str | InputFile | OutputFile) -> None:  # noqa: ARG002 - its interface
        """Nothing is deleted."""
        raise FileError("a table is only read")


class _Shown(InputFile):
    def __init__(self, location: str, file: StoredFile, most: int) -> None:
        super().__init__(location)
        self._file, self._most = file, most

    def __len__(self) -> int:
        return self._file.size

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> Any:  # noqa: ARG002 - its interface
        if len(self) > self._most:
            raise FileError(f"{self._file} has more than {self._most >> 20} MB, too much for metadata")
        with self._file.open() as source:
            return io.BytesIO(source.read())


def path_in(location: str, root: str) -> str | None:
    """The path of a location below a folder, both as a table writes them; None where it is not below it.

    >>> path_in("s3://city/trips/data/a.parquet", "s3://city/trips"), path_in("file:///etc/passwd", "s3://city/trips")
    ('data/a.parquet', None)
    """
    place, folder = (re.sub(r"^file:(//)?/", "/", text) for text in (location, root))
    start = folder.rstrip("/") + "/"
    rest = place.removeprefix(start)
    return None if rest == place or ".." in rest.split("/") else rest
