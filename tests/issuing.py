"""A coordinator that gives out credentials for reports to two servers, as devices under test ask it."""

from types import SimpleNamespace

from hazemap.federated.protocols.dap.report_credentials import HeldCredential, issued, keys_statement, report_key
from hazemap.federated.trust.two_server_tasks import task_id
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity

ISSUER = Identity.from_bytes(b"i" * 32)
SECRET = b"a secret of a round of this test"


def signed_keys(device, issuer, session, keys):
    """What a device sends that asks this issuer for a round's credentials."""
    return keys + device.sign(keys_statement(issuer, session, keys))


async def given(session: bytes, asked: bytes) -> bytes:
    """The credentials of one person, by the ids that a round's tasks have; nobody looks whose signature it is."""
    round_, keys = SimpleNamespace(batch=session.hex()), asked[:-SIGNATURE]
    return b"".join(
        issued(ISSUER, SECRET, task_id(round_, at // KEY), b"ann", keys[at : at + KEY])
        for at in range(0, len(keys), KEY)
    )


def credential(task, person=b"ann", issuer=ISSUER, secret=SECRET):
    """A person's credential for a task, with the key that spends it."""
    key = report_key(person.ljust(KEY), task.id)
    return HeldCredential.received(issued(issuer, secret, task.id, person, key.public), key, issuer.public, task.id)
