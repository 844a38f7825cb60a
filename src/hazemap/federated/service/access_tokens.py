"""Tokens: a secret in a file that only its owner may read, and the hash that is stored of a secret that others hold."""

import os
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from hazemap.errors import FileError


def fresh() -> str:
    """A new secret of 256 bits from the system, as text."""
    return urlsafe_b64encode(os.urandom(32)).rstrip(b"=").decode()


def kept(secret: str) -> bytes:
    """What is stored of a secret: enough to recognise it, not enough to use it."""
    return sha256(secret.encode()).digest()


def same(found: str, wanted: str) -> bool:
    """Whether two secrets are equal, in a time that reveals nothing."""
    return compare_digest(kept(found), kept(wanted))


def named(tokens: Mapping[str, str], shown: str) -> str | None:
    """Whose token is shown, if anybody's. All are compared, each in a time that tells nothing of it.

    >>> named({"anna": "0123456789abcdef", "ben": "fedcba9876543210"}, "fedcba9876543210")
    'ben'
    """
    found = [name for name, token in tokens.items() if same(shown, token)]
    return found[0] if found else None


def token_file(path: Path) -> str:
    """The secret in a file, made (mode 0600, whole or not at all) where there is none."""
    try:
        with suppress(FileNotFoundError):
            return _read(path)
        part = path.with_name(f".{path.name}-{os.getpid()}.part")
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(handle, fresh().encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        with suppress(FileExistsError):  # another process was faster: its token counts
            os.link(part, path)
        part.unlink()
        return _read(path)
    except OSError as error:
        raise FileError(
            f"the token in {path} cannot be read or made ({error.strerror}): see that it is yours"
        ) from error


def known_token(path: Path) -> str | None:
    """The secret in a file; None where there is none, or no token in it: then it opens nothing."""
    try:
        return _read(path)
    except (OSError, UnicodeDecodeError, FileError):
        return None


def _read(path: Path) -> str:
    token = path.read_text().strip()
    if len(token) < 16 or not token.isprintable():
        raise FileError(f"{path} holds no token (16 characters or more, in one line): remove it, and one is made")
    return token
