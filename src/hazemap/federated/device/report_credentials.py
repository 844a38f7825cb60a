"""A device's credentials for a round over two servers: each counts its report once, and knows nobody by it.

The device asks the coordinator that it enrolled with, which gives each of a round's people one for each task. Its key
of a task follows from its own secret, so it asks for the same again, however often, and keeps nothing of it. It signs
what it asks for, as whoever took its ticket cannot.
"""

from collections.abc import Awaitable, Callable, Sequence

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.dap.report_credentials import ISSUED, HeldCredential, keys_statement, report_key
from hazemap.federated.protocols.dap.task import Task
from hazemap.privacy.signing_identities import Identity

AskCredentials = Callable[[bytes, bytes], Awaitable[bytes]]
"""What a coordinator answers to a device that asks for credentials of a session, with these keys and its signature."""


async def nobody_to_ask(_: bytes, keys: bytes) -> bytes:  # noqa: ARG001 - see `AskCredentials`
    """Of a device without a line to its coordinator."""
    raise Refused("this device has no line to the server that gives out credentials")


class ReportCredentials:
    """Those of one round. `secret` is the device's identity, `issuer` the one that it pinned when it enrolled."""

    def __init__(self, session: bytes, secret: bytes, issuer: bytes, ask: AskCredentials) -> None:
        self.issuer = issuer
        self._session, self._secret, self._ask = session, secret, ask
        self._held = dict[bytes, HeldCredential]()

    async def fetch(self, tasks: Sequence[Task]) -> None:
        """Ask for those of these tasks. `Unreachable`: later. `Refused`: never."""
        keys = [report_key(self._secret, task.id) for task in tasks]
        asked = b"".join(key.public for key in keys)
        signature = Identity.from_bytes(self._secret).sign(keys_statement(self.issuer, self._session, asked))
        given = await self._ask(self._session, asked + signature)
        if len(given) != ISSUED * len(tasks):
            raise Refused("the server did not give this device a credential for each task of the round")
        try:
            for at, (task, key) in enumerate(zip(tasks, keys, strict=True)):
                each = given[ISSUED * at : ISSUED * (at + 1)]
                self._held[task.id] = HeldCredential.received(each, key, self.issuer, task.id)
        except CodecError as error:
            raise Refused(str(error)) from None

    def held(self, task: Task) -> HeldCredential:
        """The one for a task, which was fetched."""
        if task.id not in self._held:
            raise Refused("this device has no credential for this round")
        return self._held[task.id]
