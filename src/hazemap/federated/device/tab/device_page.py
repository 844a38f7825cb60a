"""One HTML file that makes a browser's tab a device, its digest, and a small server of it for this machine.

A server that ships the code of its devices could ship another to one of them. So the page is a static file that anybody
may serve but the coordinator, and its SHA-256 says which program it is: script, style and the rules that let no other
script run are all in it.
"""

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from hazemap.errors import CodecError, InputError

if TYPE_CHECKING:
    import httpx
    from starlette.applications import Starlette

PAGE = "device.html"
LONGEST = 4 << 20
"""Bytes that are read of a page elsewhere, to compare it."""
HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
"""What a file cannot say of itself; whoever serves it elsewhere sends these too."""


@dataclass(frozen=True)
class DevicePage:
    """The page as bytes.

    >>> DevicePage(b"<!doctype html>").digest[:16]
    'fe26c59e91ac8de6'
    """

    content: bytes

    @classmethod
    def built(cls) -> "DevicePage":
        """The one that this package carries; `InputError` where it was not built."""
        found = files(__package__).joinpath(PAGE)
        if not found.is_file():
            raise InputError(
                "the device's page is not built: packages of hazemap hold it; in a clone `make studio` builds it (with "
                "npm)"
            )
        return cls(found.read_bytes())

    @property
    def digest(self) -> str:
        """Its SHA-256, as `sha256sum` writes it."""
        return sha256(self.content).hexdigest()

    def compare(self, http: "httpx.Client", url: str) -> None:
        """`CodecError` unless the page at this address is this one, byte by byte."""
        from hazemap.federated.service.operator_line import asked

        found = asked(http, "GET", url, LONGEST)
        if found.status_code != 200:
            raise CodecError(f"{url} gives no page, but HTTP {found.status_code}")
        if found.content != self.content:
            theirs = sha256(found.content).hexdigest()
            raise CodecError(f"the page at {url} is another: its SHA-256 is {theirs}, not {self.digest}")

    def application(self) -> "Starlette":
        """The page at `/`, and nothing else."""
        from starlette.applications import Starlette
        from starlette.requests import Request
        from starlette.responses import Response
        from starlette.routing import Route

        async def page(_: Request) -> Response:
            return Response(self.content, media_type="text/html", headers=HEADERS)

        return Starlette(routes=[Route("/", page)])
