"""An operator's own check of who may enrol: a function that is named in the server's configuration.

It is called as `function(token, identity, nonce)`: the text that the device sent as its token, the device's public key
and the server's challenge, as bytes. It answers whether the device may enrol. A token that can be copied should cover
the identity or the nonce.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import cast

from hazemap.errors import InputError, Refused

log = logging.getLogger("hazemap.federated.server")

Attestation = Callable[[str, bytes, bytes], bool]
PATIENCE = 10.0
"""Seconds for an answer."""
_THREADS = ThreadPoolExecutor(8, "attestation")
"""Of its own: a function that hangs keeps nobody waiting but those who want to enrol."""
_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def attestation(name: str) -> Attestation:
    """The function of a name `module:function`.

    >>> attestation("hmac:nothing")
    Traceback (most recent call last):
    hazemap.errors.InputError: --attestation names a function as module:function; the module hmac has no nothing
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"--attestation names a function as module:function; found {name!r:.80}")
    module, _, function = name.partition(":")
    try:
        found = getattr(import_module(module), function, None)
    except ImportError as error:
        raise InputError(
            f"--attestation names a function as module:function; {module} cannot be imported ({type(error).__name__}): "
            "see that it is installed, or that PYTHONPATH holds its folder"
        ) from error
    if not callable(found):
        raise InputError(f"--attestation names a function as module:function; the module {module} has no {function}")
    return cast("Attestation", found)


async def attest(check: Attestation, token: str, identity: bytes, nonce: bytes) -> None:
    """`Refused` unless the operator's function says exactly True, in time and without an error."""
    try:
        async with asyncio.timeout(PATIENCE):
            said = await asyncio.get_running_loop().run_in_executor(_THREADS, check, token, identity, nonce)
    except Exception as error:
        log.error("the attestation function failed (%s)", type(error).__name__)
        raise Refused("the server could not check this attestation: try again later, or ask its operator") from error
    if said is not True:
        raise Refused("the server does not accept this attestation: ask the campaign's operator")
