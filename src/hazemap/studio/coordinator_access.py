"""The coordinator that an operator or analyst runs campaigns and studies on: its address, and the file of their token.

The token is read for each request, goes into a header for that server, and nowhere else: not to the browser, not into
an address, a log or a command that is shown. What the server answers is taken for a stranger's.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from hazemap.codec import Limits, parsed
from hazemap.errors import BudgetError, CodecError, FileError, HazemapError, InputError
from hazemap.federated.aggregator.leader_driver import check_endpoint
from hazemap.federated.device.http_client import check_server_address, one_line
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList
from hazemap.federated.service.access_tokens import known_token
from hazemap.federated.service.operator_line import Operator, asked, operator
from hazemap.federated.service.prometheus_text import samples

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
            check_server_address(each)
            check_endpoint(each)
            if file is not None and known_token(file) is None:
                raise InputError(f"{file} holds no token of the operator of {each}: it is in the aggregator's folder")
        if len(aggregators) > MOST_AGGREGATORS:
            raise InputError(f"the health of {MOST_AGGREGATORS} aggregators is shown at most")
        found = cls(check_server_address(url), token.absolute(), certificate and certificate.absolute(), named)
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


PATIENCE: Final = 10.0
"""Seconds that one is given."""
MOST: Final = 1 << 20
"""Bytes of the longest list of numbers."""
TASKS: Final = 200
"""So many tasks are shown."""
COUNTED: Final = {
    "reports_waiting": "waiting",
    "jobs_open": "jobs",
    "batches_total": "batches",
    "reports_counted_total": "counted",
    "reports_rejected_total": "rejected",
}
"""What is shown of what an aggregator counts of each task."""


def aggregators(access: CoordinatorAccess) -> list[dict[str, Any]]:
    """Each of them: its address, whether it is well, how long it took, in milliseconds, and its tasks.

    One is shown the token of its own operator alone, and only where it is asked for numbers.
    """
    import ssl

    import httpx

    verify = ssl.create_default_context(cafile=access.certificate)
    with httpx.Client(verify=verify, timeout=PATIENCE) as http:
        return [_health(http, url.rstrip("/"), token) for url, token in access.aggregators]


def _health(http: Any, url: str, token: Path | None) -> dict[str, Any]:
    import httpx

    begun = time.monotonic()
    known: dict[str, Any] = {"url": url, "well": False, "milliseconds": None, "tasks": None, "more": ""}
    try:
        reply = asked(http, "GET", f"{url}/hpke_config")
        if reply.status_code != 200:
            return {**known, **_said("answersStatus", status=reply.status_code)}
        offered = HpkeConfigList.from_bytes(reply.content)
        offered.preferred()
        found = {**known, "well": True, "milliseconds": round(1000 * (time.monotonic() - begun))}
        if token is None:
            return {**found, **_said("keysOffered", count=len(offered.configs))}
        secret = known_token(token) or ""
        reply = asked(http, "GET", f"{url}/metrics", MOST, {"Authorization": f"Bearer {secret}"})
        if reply.status_code != 200 or secret in reply.text:
            return {**found, **_said("numbersRefused", status=reply.status_code)}
        return {**found, **_said("keysOffered", count=len(offered.configs)), "tasks": _tasks(reply.text)}
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return {**known, **_said("noAnswer", kind=type(error).__name__)}
    except HazemapError as error:
        return {**known, **_said("oddAnswer"), "more": one_line(str(error), 200)}


def _said(sentence: str, **words: object) -> dict[str, Any]:
    """A sentence of the page's catalogue."""
    return {"sentence": sentence, "words": {name: str(word) for name, word in words.items()}}


def _tasks(text: str) -> list[dict[str, Any]]:
    """Of each task what waits, is under way, was counted and was not taken."""
    found: dict[str, dict[str, Any]] = {}
    for name, labels, number in samples(text):
        if name in COUNTED and 0 <= number < 1 << 53:
            task = found.setdefault(one_line(labels.get("task", ""), 16), dict.fromkeys(COUNTED.values(), 0))
            task[COUNTED[name]] += int(number)
    return [{"task": task, **numbers} for task, numbers in sorted(found.items())[:TASKS]]
