"""Where the key of a store comes from: a file beside it, a passphrase, or the environment of the process.

The key is 32 bytes for AES-256-GCM. In a file it protects a store that is copied or thrown away without it, not
one that is taken together with it; for that there is the passphrase, stretched by scrypt (RFC 7914) at N = 2¹⁷,
r = 8: 128 MiB and about half a second for every guess.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from hazemap.errors import FileError, InputError

LENGTH = 32
KEY = "HAZEMAP_DEVICE_KEY"
PASSPHRASE = "HAZEMAP_DEVICE_PASSPHRASE"  # noqa: S105 - the name of a variable


class Origin(Enum):
    """Where a store's key comes from; written in the store, so that an error can name what opens it."""

    FILE = "a key file"
    PASSPHRASE = "a passphrase"  # noqa: S105 - the name of a kind
    GIVEN = "a key"


@dataclass(frozen=True)
class Secret:
    """What a person gave to open a store with; nothing means a key file beside it.

    >>> Secret().origin, Secret(passphrase="correct horse").origin
    (<Origin.FILE: 'a key file'>, <Origin.PASSPHRASE: 'a passphrase'>)
    """

    passphrase: str | None = None
    key: bytes | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.passphrase is not None:
            raise InputError(f"a store is opened by a key or a passphrase, not both: unset {KEY} or {PASSPHRASE}")
        if self.passphrase == "":
            raise InputError("an empty passphrase protects nothing: give one with some letters")
        if self.key is not None and len(self.key) != LENGTH:
            raise InputError(f"the key of a store is {LENGTH} bytes; found {len(self.key)}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Secret":
        """The variable HAZEMAP_DEVICE_KEY (64 hexadecimal digits) or HAZEMAP_DEVICE_PASSPHRASE, or nothing."""
        digits = environment.get(KEY)
        try:
            key = None if digits is None else bytes.fromhex(digits)
        except ValueError:
            raise InputError(f"{KEY} holds {2 * LENGTH} hexadecimal digits; found something else") from None
        return cls(environment.get(PASSPHRASE), key)

    @property
    def origin(self) -> Origin:
        """What this is."""
        if self.key is not None:
            return Origin.GIVEN
        return Origin.FILE if self.passphrase is None else Origin.PASSPHRASE

    def opened(self, store: Path, salt: bytes, new: bool) -> bytes:
        """The key itself; for a `new` store a key file is written. `FileError` where there is no key."""
        if self.key is not None:
            return self.key
        if self.passphrase is not None:
            return stretched(self.passphrase, salt)
        return (_written if new else _read)(key_file(store))

    def __repr__(self) -> str:
        return f"Secret({self.origin.value})"


def stretched(passphrase: str, salt: bytes) -> bytes:
    """The key that a passphrase and the salt of a store make: half a second and 128 MiB, on purpose."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=LENGTH, n=1 << 17, r=8, p=1).derive(passphrase.encode())


def key_file(store: Path) -> Path:
    """The key file of a store: beside it, readable by its owner alone.

    >>> key_file(Path("device.sqlite")).name
    'device.sqlite.key'
    """
    return store.with_name(store.name + ".key")


def _written(path: Path) -> bytes:
    key = os.urandom(LENGTH)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read(path)  # of a store whose making was interrupted, or is being made by another process
    except OSError as error:
        raise FileError(f"the key file {path} cannot be written ({error.strerror}); choose another folder") from error
    with os.fdopen(handle, "w") as file:
        file.write(key.hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    return key


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_mode & 0o077:
            raise FileError(f"others may read the key file {path}: take that away with chmod 600, or it is no secret")
        key = bytes.fromhex(path.read_text())
    except OSError as error:
        raise FileError(
            f"the key file {path} cannot be read ({error.strerror}): bring it back; without it the store stays closed"
        ) from error
    except ValueError:
        key = b""
    if len(key) != LENGTH:
        raise FileError(f"{path} holds no key: bring it back from a copy; without it the store stays closed")
    return key
