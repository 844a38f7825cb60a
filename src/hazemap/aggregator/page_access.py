"""What devices in a browser's tab may ask of an aggregator: its keys, and that it takes a report.

A browser lets a page of another origin read an answer only if the server says so (the Fetch standard, CORS). It says so
for origins that the operator declared, and for these two resources alone. Neither needs a token, so a page gains
nothing that a program that is no browser has not.
"""

import re
from typing import Any

from starlette.middleware.cors import CORSMiddleware

_FOR_DEVICES = re.compile(r"/(?:hpke_config|tasks/[A-Za-z0-9_-]+/reports)")


class PageAccess:
    """An aggregator's application, of which pages of these origins may read what devices ask. `base` is its path."""

    def __init__(self, application: Any, base: str, origins: frozenset[str]) -> None:
        self._application, self._base = application, base.rstrip("/")
        self._open = CORSMiddleware(
            application,
            allow_origins=sorted(origins),
            allow_methods=["GET", "POST"],
            allow_headers=["content-type"],
            expose_headers=["retry-after"],
            max_age=7_200,
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request, or the application's own beginning and end."""
        path = scope.get("path", "")
        mine = path.startswith(self._base) and _FOR_DEVICES.fullmatch(path[len(self._base) :])
        await (self._open if mine else self._application)(scope, receive, send)
