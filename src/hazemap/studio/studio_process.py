"""The studio as a process: its address, its link, and its page, which `make studio` builds from `web/studio`."""

import asyncio
import logging
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hazemap.errors import InputError
from hazemap.federated.service.route_guard import Application
from hazemap.federated.service.served_address import ServedAddress, loopback
from hazemap.studio.analyst_routes import AnalystRoutes
from hazemap.studio.comparison_routes import ComparisonRoutes
from hazemap.studio.operator_routes import CoordinatorThreads, OperatorRoutes
from hazemap.studio.request_guard import Origins, OwnHostOnly, Sessions, SignInRoutes, StewardGuard
from hazemap.studio.running_releases import RunningReleases, warnings_to_runs
from hazemap.studio.steward_routes import StewardRoutes
from hazemap.studio.stewards import ALONE, Stewards

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
INDEX = "index.html"


@dataclass(frozen=True)
class AppFile:
    """A file of the page, and what kind it is."""

    content: bytes
    kind: str


def app_files() -> dict[str, AppFile]:
    """The files of the page by name; `InputError` where it was not built."""
    found = {}
    folder = files("hazemap.studio") / "app"
    if folder.is_dir():
        for each in folder.iterdir():
            ending = each.name[each.name.rfind(".") :]
            if ending in KINDS:
                found[each.name] = AppFile(each.read_bytes(), KINDS[ending])
    if INDEX not in found:
        raise InputError(
            "the studio's page is not built: packages of hazemap hold it; in a clone `make studio` builds it (with npm)"
        )
    return found


log = logging.getLogger("hazemap.studio")

LIMITS = {"per_address": 64, "connections": 256, "guesses": 30}
"""For a studio on this machine too: whoever guesses is another program on it."""


@dataclass(frozen=True)
class Studio:
    """Where a studio is served, by which other `names` it is called, and who may sign in."""

    stewards: Stewards
    address: ServedAddress
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.address.check("people's data sets")
        if not loopback(self.address.host) and ALONE in self.stewards.by_name:
            raise InputError(
                f"on {self.address.host} others reach the studio: name its users and their tokens with --users, or "
                "serve 127.0.0.1 alone"
            )
        if loopback(self.address.host) and self.names:
            raise InputError(
                "on this machine's own address the studio is called by it: leave --name out, or give another --host"
            )
        if self.address.host in ("0.0.0.0", "::") and not self.names:  # noqa: S104 - it is refused
            raise InputError(
                f"{self.address.host} is no name that a browser calls: say what the studio is called with --name"
            )

    @property
    def origins(self) -> Origins:
        """The names that it answers to."""
        return Origins.of(self.address.host, self.address.port, self.address.certificate is not None, self.names)

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        if not self.names:
            return self.address.url
        return ServedAddress(self.names[0], self.address.port, self.address.certificate, self.address.key).url

    def application(
        self, sessions: Sessions, runs: RunningReleases, files: dict[str, AppFile], opened: Path | None = None
    ) -> Application:
        """The studio for an ASGI server. `opened` is the file that brings a browser to it, once it listens."""
        secure = self.address.certificate is not None
        cookie = "__Host-hazemap-studio" if secure else f"hazemap-studio-{self.address.port}"
        limits = self.address.limits(**LIMITS)
        guard = StewardGuard(self.stewards, sessions, self.origins, cookie, limits)
        signing = SignInRoutes(guard, secure, lambda: self.print_link(sessions))
        steward = StewardRoutes(guard, runs, rows=loopback(self.address.host))
        researcher, threads = ComparisonRoutes(guard, runs), CoordinatorThreads()
        operator, analyst = OperatorRoutes(guard, threads), AnalystRoutes(guard, threads)

        @asynccontextmanager
        async def alive(_: Starlette) -> AsyncIterator[None]:
            task = None if opened is None else asyncio.create_task(self._open_browser(opened))
            yield
            if task is not None:
                task.cancel()

        makers = (signing, steward, operator, analyst, researcher)
        routes = [*_page(files), *guard.routes(row for make in makers for row in make.routes())]
        return OwnHostOnly(guard.before(Starlette(routes=routes, lifespan=alive)), self.origins)

    def print_link(self, sessions: Sessions) -> str:
        """Say where a browser gets in: by a link, or where everybody has a token, by the address."""
        link = self.url
        if ALONE in self.stewards.by_name:
            link = f"{self.url}/#link={sessions.link(ALONE)}"
        once = ", by this link, which works once" if link != self.url else ""
        sys.stderr.write(f"open the studio{once}:\n  {link}\n")
        sys.stderr.flush()
        return link

    def run(self, browser: bool = True) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C)."""
        files, sessions, limits = app_files(), Sessions(), self.address.limits(**LIMITS)
        link = self.print_link(sessions)
        with tempfile.TemporaryDirectory(prefix="hazemap-studio-") as folder, warnings_to_runs():
            opened = None
            if browser:
                opened = Path(folder) / "open.html"  # not on a command line, which others on this machine can read
                place = escape(link)
                opened.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={place}">')
            self.address.serve(self.application(sessions, RunningReleases(), files, opened), limits)

    async def _open_browser(self, file: Path) -> None:
        for _ in range(600):
            with suppress(OSError):
                _, line = await asyncio.open_connection(self.address.host, self.address.port)
                line.close()
                if not await asyncio.to_thread(webbrowser.open, file.as_uri()):
                    log.info("no browser could be opened: use the link")
                return
            await asyncio.sleep(0.1)


def _page(files: dict[str, AppFile]) -> list[Route]:
    """The studio's own page, which holds nothing of anybody."""

    def served(name: str) -> Route:
        async def file(_: Request) -> Response:
            return Response(files[name].content, media_type=files[name].kind)

        return Route("/" if name == INDEX else f"/{name}", file, methods=["GET"])

    return [served(name) for name in files]
