"""Options of every command that serves, and of those that reach a server: addresses, data, limits, log and token."""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hazemap.cli.console_output import note

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hazemap.federated.service.operator_line import Operator
    from hazemap.federated.service.served_address import ServedAddress
    from hazemap.federated.service.state_folder import StateFolder


REACHED, KEPT, LIMITS = "How it is reached", "What it keeps", "Limits"
CHOSEN = ("connections", "per_address", "enrolments", "uploads")
LOUD = ("hazemap.federated.protocols.secure_aggregation", "httpx", "uvicorn")
"""What logs every stage of every sum, and every request."""


@dataclass(frozen=True)
class Serving:
    """What was asked of these options; a server without a folder of its own has no state."""

    asked: dict[str, Any]

    def address(self, port: int | None = None) -> "ServedAddress":
        """Where to listen; without a usual port, at this one unless another was asked for."""
        from hazemap.federated.service.served_address import ServedAddress

        asked = self.asked
        chosen = {name: value for name in CHOSEN if (value := asked.get(name)) is not None}
        proxies = asked.get("behind_proxy", False), tuple(asked.get("trusted_proxy") or ())
        port = asked["port"] or port or 0
        return ServedAddress(asked["host"], port, asked["certificate"], asked["key"], *proxies, chosen)

    @property
    def state(self) -> "StateFolder":
        """Where everything is kept."""
        from hazemap.federated.service.state_folder import StateFolder

        return StateFolder(self.asked["data"], self.asked["database"], self.asked["standby"])

    @property
    def page_origins(self) -> tuple[str, ...]:
        """Where pages are served that make a browser's tab a device."""
        return tuple(self.asked["page_origin"] or ())

    def begin(self, what: str, url: str) -> None:
        """Log, and say what is served."""
        self.log()
        note(f"{what} at {url}, from {self.asked['data']}; Ctrl-C ends it, and what runs goes on at the next start")

    def log(self, level: int = logging.INFO) -> None:
        """Log from this level on."""
        verbose = self.asked["verbose"]
        logging.basicConfig(
            format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO if verbose else level
        )
        for name in () if verbose else LOUD:
            logging.getLogger(name).setLevel(logging.WARNING)


def _option(kind: Any, usual: Any, panel: str | None, text: str, metavar: str | None = None, **more: Any) -> Any:
    return kind, usual, {"rich_help_panel": panel, "help": text, "metavar": metavar, **more}


def _limit(what: str, usual: int, everywhere: bool = False) -> Any:
    rest = "" if everywhere else ", and no limit on this machine alone"
    return _option(int | None, None, LIMITS, f"{what}. Default: {usual:,}{rest}.", min=1)


_OPTIONS: Final = {
    "data": _option(
        Path, inspect.Parameter.empty, KEPT, "Folder of the server: database, keys, tokens and results.", "DIR"
    ),
    "host": _option(str, "127.0.0.1", REACHED, "Address to listen on."),
    "port": _option(int | None, None, REACHED, "Port to listen on.", min=1, max=65_535),
    "certificate": _option(Path | None, None, REACHED, "TLS: certificate or chain of certificates.", "PEM"),
    "key": _option(Path | None, None, REACHED, "TLS: key of the certificate.", "PEM"),
    "behind_proxy": _option(bool, False, REACHED, "Serve plain HTTP; a reverse proxy terminates TLS."),
    "trusted_proxy": _option(
        list[str] | None,
        None,
        REACHED,
        "Proxy or network whose X-Forwarded-For header is trusted. May be repeated. Without one, requests behind a "
        "proxy are not limited by address.",
        "ADDRESS",
    ),
    "page_origin": _option(
        list[str] | None,
        None,
        REACHED,
        "Origin that serves the page of `hazemap browser-device`. May be repeated. Default: none.",
        "URL",
    ),
    "database": _option(
        str | None, None, KEPT, "Database, postgresql://…, instead of an SQLite file in the folder.", "URL"
    ),
    "standby": _option(
        bool,
        False,
        KEPT,
        "Wait until the server that has the database has ended, then take its place; end when the database is lost.",
    ),
    "connections": _limit("Connections open at a time", 8_192, everywhere=True),
    "per_address": _limit("Connections open, and requests under way, from one address", 256),
    "enrolments": _limit("Enrolments a minute from one address", 60),
    "uploads": _limit("Reports a minute from one address", 600),
    "verbose": _option(bool, False, None, "Log every step."),
}
_FOR_ALL: Final = ("host", "port", "certificate", "key", "connections", "per_address", "verbose")
_WITH_STATE: Final = ("data", "behind_proxy", "trusted_proxy", "database", "standby")


def serving(
    port: int | None, *names: str, state: bool = True, words: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Any], Any]:
    """Give a command the options of a server, which by default listens at a port; it takes them as `serving`.

    `names` are those that only some servers have; one without a `state` keeps nothing and has no proxy before it.
    `words` are the help of some, instead of what is said everywhere.
    """
    ours = [name for name in _OPTIONS if name in (*_FOR_ALL, *names) or (state and name in _WITH_STATE)]

    def given(command: Any) -> Any:
        own = inspect.signature(command)
        only = inspect.Parameter.KEYWORD_ONLY
        options = []
        for name in ours:
            kind, usual, info = _OPTIONS[name]
            info = {**info, "help": words.get(name, info["help"])}
            option = typer.Option(f"--{name.replace('_', '-')}", **info)
            usual = port if name == "port" else usual
            options.append(inspect.Parameter(name, only, default=usual, annotation=Annotated[kind, option]))

        @wraps(command)
        def served(**asked: Any) -> None:
            taken = {name: asked.pop(name) for name in ours}
            command(serving=Serving(taken), **asked)

        rest = [each.replace(kind=only) for each in own.parameters.values() if each.name != "serving"]
        served.__signature__ = own.replace(parameters=[*rest, *options])  # type: ignore[attr-defined]
        return served

    return given


LOCAL = "http://127.0.0.1:8470"

Server = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="HAZEMAP_SERVER", help="URL of the coordinator.")
]
TrustCertificate = Annotated[
    Path | None,
    typer.Option(
        "--trust-certificate", metavar="PEM", help="TLS: certificate authority of the server, if not a public one."
    ),
]


@dataclass(frozen=True, kw_only=True)
class CoordinatorOptions:
    """Options of commands that give orders to a coordinator."""

    token_file: Annotated[
        Path,
        typer.Option(
            "--token-file",
            metavar="FILE",
            envvar="HAZEMAP_TOKEN_FILE",
            help="File with a token: the server's operator.token, or your own.",
        ),
    ]
    server: Server = LOCAL
    trust_certificate: TrustCertificate = None

    def connect(self) -> "AbstractContextManager[Operator]":
        """A line to the coordinator, which is closed in the end; `FileError` for a file without a token."""
        from hazemap.federated.service.operator_line import operator

        return operator(self.server, self.token_file, self.trust_certificate)
