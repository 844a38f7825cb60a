"""How damage is noticed: a digest over all that a file says, and errors that name the file."""

import hashlib
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hazemap.errors import FileError, HazemapError, PlugInError


class Digest:
    """SHA-256 over a sequence of byte strings, each with its length, so that none can lend bytes to the next."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, *parts: bytes) -> None:
        """Go on with these parts."""
        for part in parts:
            self._sum.update(len(part).to_bytes(8, "little"))
            self._sum.update(part)

    def seal(self, label: dict[str, Any]) -> str:
        """The label as text, with the digest of all parts and of itself."""
        self.add(_canonical(label).encode())
        return _canonical({**label, "digest": self._sum.hexdigest()})

    def check(self, label: dict[str, Any]) -> None:
        """Raise `ValueError` unless the label was sealed with these parts."""
        said = label.pop("digest")
        self.add(_canonical(label).encode())
        if said != self._sum.hexdigest():
            raise ValueError("its content is not what its digest was made of")


@contextmanager
def understood(path: Path, label: dict[str, Any]) -> Iterator[None]:
    """Whatever cannot be read of a file with the right digest is not damage: this version does not know it."""
    try:
        yield
    except PlugInError as error:
        raise FileError(f"{path} cannot be opened: {error}") from error
    except (HazemapError, LookupError) as error:
        version = label.get("statement", {}).get("version", "of another version")
        raise FileError(
            f"{path} is whole, but this hazemap cannot read it ({error}); open it with hazemap {version} or a newer one"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong while a file is taken apart is a `FileError` that names the file."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"there is no file {path}; look at its name and folder") from None
    except (PermissionError, IsADirectoryError) as error:
        raise FileError(f"{path} cannot be read: {error.strerror}; ask for a file that can be") from error
    except (HazemapError, *_DAMAGE) as error:
        raise FileError(
            f"{path} is damaged ({type(error).__name__}: {str(error)[:200]});"
            " fetch it again from where it was published"
        ) from error


_DAMAGE = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(NotImplementedError, MemoryError, RecursionError, zlib.error),
)
"""What the libraries raise that take a file apart, when its bytes make no sense."""


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
