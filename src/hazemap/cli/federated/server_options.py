"""Options by which commands name a server and the token that they show it."""

from pathlib import Path
from typing import Annotated

import typer

Server = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="HAZEMAP_SERVER", help="URL of the coordinator.")
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
    typer.Option(
        "--trust-certificate", metavar="PEM", help="TLS: certificate authority of the server, if not a public one."
    ),
]
LOCAL = "http://127.0.0.1:8470"
