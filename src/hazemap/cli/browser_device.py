"""`hazemap browser-device`: the page that makes a browser's tab a device, to be served, written or compared."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.shared_options import AsJson
from hazemap.errors import FileError, InputError

if TYPE_CHECKING:
    from hazemap.device.tab.device_page import DevicePage

EXAMPLE = "Example: [bold]hazemap browser-device -o device.html[/bold]"


def browser_device(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it, to be put on a web server.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="URL", help="Say whether the page at an address is this one, byte by byte.")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="With --output: sign it with this secret key (`hazemap policy key`), into FILE.sig beside it.",
        ),
    ] = None,
    verify: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check a page's file against FILE.sig and a --key.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="HEX", help="Whose signature it is to be.")] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where this machine alone is served it.")] = 8471,
    as_json: AsJson = False,
) -> None:
    """Serve, write or compare the page that makes a browser's tab a device, and print its SHA-256.

    Without --output or --compare it is served to this machine alone.

    It must come from another origin than the coordinator, who names that origin with `hazemap server --page-origin`.
    """
    from hazemap.device.tab.device_page import DevicePage
    from hazemap.service.served_address import ServedAddress

    if sum(each is not None for each in (output, compare, verify)) > 1:
        raise InputError("say --output, --compare or --verify, one of them")
    if (key_file is not None and output is None) or (verify is None) != (key is None):
        raise InputError("--key-file goes with --output, and --key with --verify")
    if verify is not None:
        _verify(verify, key, as_json)
        return
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
        _write(built, output, key_file, as_json)
        return
    address = ServedAddress("127.0.0.1", port)
    deliver({"sha256": built.digest, "url": address.url}, as_json, f"{built.digest}  {address.url}/")
    note("for this machine alone; Ctrl-C ends it")
    address.serve(built.application())


def _write(built: "DevicePage", output: Path, key_file: Path | None, as_json: bool) -> None:
    """The page, and its signature where there is a key; the digest, and whose signature it is."""
    from hazemap.cli.policy import secret_at
    from hazemap.device.tab.page_signature import ENDING, signed

    identity = None if key_file is None else secret_at(key_file)
    try:
        output.write_bytes(built.content)
        if identity is not None:
            output.with_name(output.name + ENDING).write_bytes(signed(built.content, identity))
    except OSError as error:
        raise FileError(f"{output} cannot be written: {error.strerror}") from None
    facts, lines = {"sha256": built.digest, "file": str(output)}, [f"{built.digest}  {output}"]
    if identity is not None:
        facts |= {"signature": f"{output}{ENDING}", "key": identity.public.hex()}
        lines.append(f"signed by {identity.public.hex()}: {output}{ENDING}")
    deliver(facts, as_json, *lines)


def _verify(page: Path, key: str | None, as_json: bool) -> None:
    """`Refused` unless the file is signed by the key."""
    from hazemap.cli.policy import key_of
    from hazemap.device.tab.device_page import DevicePage
    from hazemap.device.tab.page_signature import ENDING, check_signature

    pinned = key_of(key) or b""
    try:
        content, signature = page.read_bytes(), page.with_name(page.name + ENDING).read_bytes()
    except OSError as error:
        raise FileError(f"{error.filename} cannot be read: {error.strerror}") from None
    check_signature(content, signature, pinned)
    digest = DevicePage(content).digest
    deliver({"sha256": digest, "key": key}, as_json, f"{digest}  {page}: signed by {key}, and whole")
