"""`hazemap browser-device`: the page that makes a browser's tab a device, to be served, written or compared."""

from pathlib import Path
from typing import Annotated

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.shared_options import AsJson
from hazemap.errors import FileError, InputError

EXAMPLE = "Example: [bold]hazemap browser-device -o device.html[/bold]"


def browser_device(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page to this file, for a web server."),
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="URL", help="Compare the page at this address with this one, byte by byte.")
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port on which to serve the page to this machine alone.")
    ] = 8471,
    as_json: AsJson = False,
) -> None:
    """Serve, write or compare the page that makes a browser tab a device, and print its SHA-256.

    Without --output or --compare it is served to this machine alone.

    It must come from another origin than the coordinator, who names that origin with `hazemap server --page-origin`.
    """
    from hazemap.federated.device.tab.device_page import DevicePage
    from hazemap.federated.service.served_address import ServedAddress

    if output is not None and compare is not None:
        raise InputError("give either --output or --compare, not both")
    built = DevicePage.built()
    if compare is not None:
        import httpx

        try:
            with httpx.Client(timeout=30) as http:
                built.compare(http, compare)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise InputError(f"{compare} cannot be reached") from None
        deliver({"sha256": built.digest, "same": True}, as_json, f"the page at {compare} is this one: {built.digest}")
        return
    if output is not None:
        try:
            output.write_bytes(built.content)
        except OSError as error:
            raise FileError(f"{output} cannot be written: {error.strerror}") from None
        deliver({"sha256": built.digest, "file": str(output)}, as_json, f"{built.digest}  {output}")
        return
    address = ServedAddress("127.0.0.1", port)
    deliver({"sha256": built.digest, "url": address.url}, as_json, f"{built.digest}  {address.url}/")
    note("for this machine alone; Ctrl-C ends it")
    address.serve(built.application())
