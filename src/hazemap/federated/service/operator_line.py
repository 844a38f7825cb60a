"""An operator's line to a server: orders out, status and releases in. Answers are read as far as they can be long."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hazemap.errors import BudgetError, FileError, HazemapError, InputError, Refused
from hazemap.federated.service.bounded_answer import asked
from hazemap.files.text_files import read_text

if TYPE_CHECKING:
    import httpx

PATIENCE: Final = 60.0
"""Seconds that a server is given for one answer."""
MOST: Final = 1 << 30
"""Bytes of the longest answer: releases and maps may be large."""


class Operator:
    """Speaks to one server with the operator's token. Errors are those of the command line."""

    def __init__(self, http: "httpx.Client") -> None:
        self.http = http

    def get(self, path: str, most: int = MOST, **query: str) -> Any:
        """JSON, of at most so many bytes."""
        return self._asked("GET", path, most, params=query).json()

    def content(self, path: str, most: int = MOST) -> bytes:
        """Bytes, at most so many."""
        return self._asked("GET", path, most).content

    def post(self, path: str, content: bytes = b"") -> None:
        """An order."""
        self._asked("POST", path, MOST, content=content)

    def sent(self, path: str, content: bytes, most: int = MOST) -> bytes:
        """An order with an answer of at most so many bytes."""
        return self._asked("POST", path, most, content=content).content

    def order(self, path: str, data: dict[str, Any]) -> Any:
        """An order with an answer, in JSON."""
        return self._asked("POST", path, MOST, json=data).json()

    def _asked(self, method: str, path: str, most: int, **options: Any) -> "httpx.Response":
        import httpx

        try:
            reply = asked(self.http, method, path, most, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HazemapError(
                f"the server {self.http.base_url} did not answer ({type(error).__name__}): see that it runs, and that "
                "--server names it"
            ) from error
        except Refused as error:
            raise HazemapError(f"the server {self.http.base_url} is not read: {error}") from error
        if reply.is_success:
            return reply
        try:
            message = str(reply.json()["error"])
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {reply.status_code}: is {self.http.base_url} a hazemap server?"
        if reply.status_code == 402:
            raise BudgetError(message)
        if reply.status_code < 500:
            raise InputError(message)
        raise HazemapError(message)


@contextmanager
def operator(server: str, token_file: Path, trust_certificate: Path | None = None) -> Iterator[Operator]:
    """A line to a server, closed in the end. `FileError` for a file that holds no token or no certificates."""
    import ssl

    import httpx

    kept = "`hazemap server --data DIR` keeps it in DIR/operator.token"
    token = read_text(token_file, "the operator's token in", advice=kept).strip()
    if not (token.isascii() and token.isprintable()):
        raise FileError(f"{token_file} holds no token: that is one line of plain letters")
    verify: ssl.SSLContext | bool = False
    try:
        if urlsplit(server).scheme != "http" or trust_certificate is not None:  # plain HTTP has no certificates
            verify = ssl.create_default_context(cafile=trust_certificate)
    except OSError as error:
        raise FileError(f"{trust_certificate} holds no certificates in PEM") from error
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server, headers=headers, verify=verify, timeout=PATIENCE) as http:
        yield Operator(http)
