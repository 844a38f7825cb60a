"""How a device makes itself known to a server: with a token that somebody handed out, and proof of its identity."""

import json

from hazemap.codec import Limits, parsed
from hazemap.device.enrolment import Enrolment
from hazemap.device.http_client import HttpTransport
from hazemap.errors import CodecError, Refused, Unreachable
from hazemap.protocols.secure_aggregation.signing_identities import Identity

PROOF = b"hazemap enrol 1"
WORD = Limits(length=1 << 14, items=16, work=0, depth=1)
"""What a server says to an enrolment."""


async def enrolled(enrolment: Enrolment, http_transport: HttpTransport, server: str, token: str) -> Enrolment:
    """The device as this server knows it, with a ticket; `Refused` where the server does not take it.

    The signature is over `PROOF` ‖ token ‖ identity: nobody enrols an identity whose key they do not hold.
    """
    identity = Identity.from_bytes(enrolment.identity)
    proof = identity.sign(PROOF + token.encode() + identity.public)
    content = {"identity": identity.public.hex(), "token": token, "signature": proof.hex()}
    answer = await http_transport.send(
        "POST", "/v1/enrol", content=json.dumps(content).encode(), kind="application/json"
    )
    if answer.status == 403:
        raise Refused("the server does not know this token: ask whoever runs the campaign for one")
    if answer.status != 201:
        raise Unreachable(f"the server did not enrol this device (HTTP {answer.status})", answer.wait)
    try:
        fields = parsed(answer.content, WORD)
        name, ticket = fields["device"], fields["ticket"]
    except (CodecError, KeyError, TypeError):
        raise CodecError("the server's word on the enrolment is not written as agreed") from None
    if not isinstance(name, str) or not isinstance(ticket, str):
        raise CodecError("the server's word on the enrolment is not written as agreed")
    if not (ticket.isascii() and ticket.isprintable()) or " " in ticket:
        raise CodecError("the server's ticket is not one word of plain letters")
    return enrolment.enrolled(server, token, name, ticket)
