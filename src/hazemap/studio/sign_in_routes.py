"""Signing in by a link or a token, and out; and what a browser fetches by a ticket."""

from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap import __version__
from hazemap.errors import InputError
from hazemap.federated.service.route_guard import Row
from hazemap.studio.refusals import refused
from hazemap.studio.request_guard import FRAMED, NotSignedIn, StewardGuard, form
from hazemap.studio.sessions import LASTS
from hazemap.studio.stewards import ALONE, Steward


class SignInRoutes:
    """The routes of whoever comes. `print_link` shows a new link to whoever sees the studio's terminal."""

    def __init__(self, guard: StewardGuard, secure: bool, print_link: Callable[[], str]) -> None:
        self._guard, self._secure, self._print_link = guard, secure, print_link

    def routes(self) -> list[Row]:
        """All of them."""
        page, steward = self._guard.page, self._guard.steward
        return [
            ("/v1/session", page(self.sign_in), "POST"),
            ("/v1/session", steward(self.who), "GET"),
            ("/v1/session", steward(self.sign_out), "DELETE"),
            ("/v1/link", page(self.new_link), "POST"),
            ("/v1/tickets/{ticket}", self._guard.ticket(self.fetched), "GET"),
        ]

    async def sign_in(self, request: Request) -> Response:
        """A session for whoever shows a link's secret or a token, however many others guess."""
        data = await form(request)
        secret = data.get("link", data.get("token"))
        if len(data) != 1 or not isinstance(secret, str) or not 0 < len(secret) <= 1_000:
            raise InputError("sign in with a link or with a token")
        name = self._guard.sessions.entered(secret) if "link" in data else None
        if "token" in data and (holder := self._guard.stewards.holder(secret)):
            name = holder.name
        if name is None:
            self._guard.guessed(request)
            raise refused(NotSignedIn, "linkUsed" if "link" in data else "tokenUnknown")
        cookie, session = self._guard.sessions.begun(name, self._guard.stewards.fingerprint(name))
        answer = JSONResponse({"name": name, "key": session.key, "version": __version__}, 201)
        self._set(answer, cookie, int(LASTS))
        return answer

    async def who(self, _: Request, who: Steward) -> Response:
        """Who is signed in."""
        server = None if who.server is None else who.server.url
        return JSONResponse({"name": who.name, "root": str(who.root.path), "server": server, "version": __version__})

    async def sign_out(self, request: Request, _: Steward) -> Response:
        """End a session."""
        self._guard.sessions.ended(request.cookies.get(self._guard.cookie, ""))
        answer = Response(status_code=204)
        self._set(answer, "", 0)
        return answer

    async def new_link(self, request: Request) -> Response:
        """Print a link that is good in the studio's terminal; whoever asks does not see it."""
        self._guard.guessed(request)  # asking counts: nobody fills a terminal
        if ALONE not in self._guard.stewards.by_name:
            raise refused(InputError, "usersHaveTokens")
        self._print_link()
        return Response(status_code=204)

    async def fetched(self, request: Request, who: Steward) -> Response:
        """What a ticket is for, once."""
        found = self._guard.sessions.fetched(who.name, request.path_params["ticket"])
        if found is None:
            raise refused(InputError, "ticketUsed")
        headers = {"content-security-policy": FRAMED, "x-frame-options": "SAMEORIGIN"}
        if found.name is not None:
            headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"}
        return Response(found.content, headers=headers, media_type=found.kind)

    def _set(self, answer: Response, cookie: str, seconds: int) -> None:
        answer.set_cookie(
            self._guard.cookie, cookie, max_age=seconds, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
