"""An operator's line to a server: orders out, status and releases in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.errors import BudgetError, FileError, HazemapError, InputError

if TYPE_CHECKING:
    import httpx

    from hazemap.study.http_study import HttpStudy

PATIENCE = 60.0
"""Seconds that a server is given for one answer."""

Server = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="HAZEMAP_SERVER", help="Where `hazemap server` is.")
]
TokenFile = Annotated[
    Path,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="HAZEMAP_TOKEN_FILE",
        help="The server's operator.token, or a token of your own.",
    ),
]
TrustCertificate = Annotated[
    Path | None,
    typer.Option("--trust-certificate", metavar="PEM", help="TLS: who signed the server's certificate, if unusual."),
]
LOCAL = "http://127.0.0.1:8470"


class Operator:
    """Speaks to one server with the operator's token. Errors are those of the command line."""

    def __init__(self, http: "httpx.Client") -> None:
        self._http = http

    def get(self, path: str, **query: str) -> Any:
        """JSON."""
        return self._asked("GET", path, params=query).json()

    def content(self, path: str) -> bytes:
        """Bytes."""
        return self._asked("GET", path).content

    def post(self, path: str, content: bytes = b"") -> None:
        """An order."""
        self._asked("POST", path, content=content)

    def order(self, path: str, data: dict[str, Any]) -> Any:
        """An order with an answer, in JSON."""
        return self._asked("POST", path, json=data).json()

    def study(self, name: str) -> "HttpStudy":
        """A study of this server, over the same line."""
        from hazemap.study.http_study import HttpStudy

        return HttpStudy(self._http, name)

    def _asked(self, method: str, path: str, **options: Any) -> "httpx.Response":
        import httpx

        try:
            reply = self._http.request(method, path, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HazemapError(
                f"the server {self._http.base_url} did not answer ({type(error).__name__}): see that it runs, and that "
                "--server names it"
            ) from error
        if reply.is_success:
            return reply
        try:
            message = str(reply.json()["error"])
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {reply.status_code}: is {self._http.base_url} a hazemap server?"
        if reply.status_code == 402:
            raise BudgetError(message)
        if reply.status_code < 500:
            raise InputError(message)
        raise HazemapError(message)


@contextmanager
def operator(server: str, token_file: Path, trust_certificate: Path | None) -> Iterator[Operator]:
    """A line to a server, closed in the end."""
    import ssl

    import httpx

    try:
        token = token_file.read_text().strip()
    except OSError as error:
        raise FileError(
            f"the operator's token cannot be read from {token_file} ({error.strerror}): `hazemap server --data DIR` "
            "keeps it in DIR/operator.token"
        ) from error
    try:
        verify = ssl.create_default_context(cafile=trust_certificate)
    except OSError as error:
        raise FileError(f"{trust_certificate} holds no certificates in PEM") from error
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server, headers=headers, verify=verify, timeout=PATIENCE) as http:
        yield Operator(http)
