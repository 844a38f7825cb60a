"""A digest of what a file holds, part after part, and the label that carries it."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple


class Long(NamedTuple):
    """A byte string in pieces, which is never whole in memory."""

    length: int
    pieces: Iterator[memoryview]


class Digest:
    """SHA-256 over a sequence of byte strings, each with its length, so that none can lend bytes to the next."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, *parts: bytes | memoryview | Long) -> None:
        """Go on with these parts."""
        for part in parts:
            if isinstance(part, Long):
                self._sum.update(part.length.to_bytes(8, "little"))
                for piece in part.pieces:
                    self._sum.update(piece)
                continue
            self._sum.update(memoryview(part).nbytes.to_bytes(8, "little"))
            self._sum.update(part)

    def text(self) -> str:
        """The digest of all parts so far, in hexadecimal digits."""
        return self._sum.hexdigest()

    def seal(self, label: dict[str, Any]) -> str:
        """The label as text, with the digest of all parts and of itself."""
        self.add(_canonical(label).encode())
        return _canonical({**label, "digest": self._sum.hexdigest()})

    def check(self, label: dict[str, Any]) -> None:
        """Raise `ValueError` unless the label was sealed with these parts."""
        said = label.pop("digest")
        self.add(_canonical(label).encode())
        if said != self._sum.hexdigest():
            raise ValueError("its content does not match its digest")


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
