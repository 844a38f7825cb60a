"""Origins whose pages a browser may let read a server's answers: those of devices that run in a tab."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from hazemap.errors import InputError
from hazemap.protocols.secure_aggregation.enrolment_proof import origin
from hazemap.service.served_address import loopback


def checked_origins(urls: Sequence[str], own: Sequence[str] = ()) -> frozenset[str]:
    """These origins; `InputError` for an address that is none, could be read on its way, or is the server's `own`.

    >>> checked_origins(["https://tab.example"], own=["https://maps.example/"])
    frozenset({'https://tab.example'})
    """
    taken = {origin(each) for each in own}
    for url in urls:
        if origin(url) != url:
            raise InputError(f"a page's origin is written as {origin(url)}; found {url!r:.80}")
        if url.startswith("http:") and not loopback(urlsplit(url).hostname or ""):
            raise InputError(f"{url} could be read and changed on its way: a page's origin is https, or this machine")
        if url in taken:
            raise InputError(
                f"{url} is this server itself: whoever serves a device's code must be another, or it could give "
                "one visitor another code"
            )
    return frozenset(urls)
