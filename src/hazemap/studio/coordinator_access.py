"""The coordinator that an operator or analyst runs campaigns and studies on: its address, and the file of their token.

The token is read for each request, goes into a header for that server, and nowhere else: not to the browser, not into
an address, a log or a command that is shown. What the server answers is taken for a stranger's.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from hazemap.codec import Limits, parsed
from hazemap.errors import BudgetError, CodecError, FileError, HazemapError, InputError
from hazemap.federated.aggregator.leader_driver import check_endpoint
from hazemap.federated.device.http_client import checked
from hazemap.federated.device.printable_text import one_line
from hazemap.federated.service.access_tokens import known_token
from hazemap.federated.service.operator_line import Operator, operator

ANSWER: Final = Limits(length=16 << 20, items=1 << 20, work=0, depth=12, things=1 << 16, lists=1 << 16)
"""Of the longest answer in JSON."""
PICTURE: Final = 16 << 20
"""Bytes of the largest picture."""
MOST_WORDS: Final = 800
MOST_AGGREGATORS: Final = 16


class StrangeAnswer(HazemapError):
    """A server that cannot be reached, or that answers what no coordinator does."""


@dataclass(frozen=True)
class CoordinatorAccess:
    """Where it is, who may speak for its steward, and aggregators whose health is shown beside it."""

    url: str
    token: Path
    certificate: Path | None = None
    aggregators: tuple[tuple[str, Path | None], ...] = ()
    """The address of each, and the file of its operator's token, if any."""

    @classmethod
    def at(
        cls, url: str, token: Path, certificate: Path | None = None, aggregators: Sequence[str] = ()
    ) -> "CoordinatorAccess":
        """Checked: HTTPS or this machine, no secret in an address, and a token that can be read.

        An aggregator is an address, or an address, a comma and the file of its operator's token.

        >>> CoordinatorAccess.at("https://ann:secret@maps.example", Path("operator.token"))
        Traceback (most recent call last):
        hazemap.errors.InputError: the address of a server holds no user and no password: tokens are in files
        """
        split = [each.partition(",") for each in aggregators]
        named = tuple((each, Path(file).absolute() if file else None) for each, _, file in split)
        for each in (url, *(each for each, _ in named)):
            if urlsplit(each).username is not None or urlsplit(each).password is not None:
                raise InputError("the address of a server holds no user and no password: tokens are in files")
        for each, file in named:
            checked(each)
            check_endpoint(each)
            if file is not None and known_token(file) is None:
                raise InputError(f"{file} holds no token of the operator of {each}: it is in the aggregator's folder")
        if len(aggregators) > MOST_AGGREGATORS:
            raise InputError(f"the health of {MOST_AGGREGATORS} aggregators is shown at most")
        found = cls(checked(url), token.absolute(), certificate and certificate.absolute(), named)
        with found.line():
            return found

    @contextmanager
    def line(self) -> "Iterator[CoordinatorLine]":
        """A line to it, for a few requests."""
        with operator(self.url, self.token, self.certificate) as found:
            yield CoordinatorLine(found)


class CoordinatorLine:
    """Requests to one coordinator; what it answers is bounded, and never holds the token."""

    def __init__(self, line: Operator) -> None:
        self.line = line
        self._token = line.http.headers["authorization"].removeprefix("Bearer ")

    def get(self, path: str) -> Any:
        """JSON; `StrangeAnswer` for anything else."""
        return self.read(self.content(path, ANSWER.length))

    def content(self, path: str, most: int) -> bytes:
        """Bytes, at most so many."""
        with self.told():
            return self.line.content(path, most)

    def post(self, path: str, content: bytes = b"") -> None:
        """An order without an answer."""
        with self.told():
            self.line.post(path, content)

    def order(self, path: str, content: bytes) -> Any:
        """An order with an answer, in JSON."""
        with self.told():
            found = self.line.sent(path, content, ANSWER.length)
        return self.read(found)

    def read(self, content: bytes) -> Any:
        """The values of an answer."""
        try:
            found = parsed(content, ANSWER)
        except CodecError as error:
            raise StrangeAnswer(f"the server's answer is not read: {error!s:.200}") from None
        if self._token and json.dumps(self._token)[1:-1] in json.dumps(found, ensure_ascii=False):
            raise StrangeAnswer("the server's answer holds your token: it is not shown")
        return found

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors in a few plain words, whatever the server wrote, and without the token."""
        try:
            yield
        except (InputError, BudgetError, FileError) as error:
            raise type(error)(self._words(error)) from None
        except HazemapError as error:
            raise StrangeAnswer(self._words(error)) from None

    def _words(self, error: HazemapError) -> str:
        words = str(error)
        if self._token:
            words = words.replace(self._token, "…")
        return one_line(words, MOST_WORDS)
