"""Who may report to a task: an issuer signs a credential for each person, which counts once at each server.

Two extensions of ours. That of the task names the issuer and how many credentials it gives out:

    opaque issuer[32] · uint64 reports

That of a report, in its public metadata, which both servers see and every share is bound to:

    opaque serial[32] · opaque key[32] · opaque issued[64] · opaque leader[32] · opaque helper[32] · opaque signed[64]

`issued` is the issuer's signature of the task, the serial and the device's key of this task alone; `signed` is that
key's, of the report's id, its time, its public share and a digest of each input share before it is sealed (as it is
sealed under associated data that hold this very extension, the device cannot sign what is sealed). An input share holds
at least 128 random bits that the other server does not know, so a digest says nothing of it. Whoever opens a share
compares its digest; so a leader can use a credential that it has seen for no other report, and no other helper's share.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import digest
from typing import Annotated, ClassVar, Final, Self

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.vdaf_configuration import (
    Extension,
    HistogramConfiguration,
    MultihotConfiguration,
    Poplar1Configuration,
    SumVecConfiguration,
    VdafConfiguration,
)
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity, is_sound, verified
from hazemap.vdaf.tls_encoding import Structure, fixed, number

ADMISSION: Final = 0xFF03
"""The type of the task extension, beside those of a task's noise and of its walk."""
CREDENTIAL: Final = 0xFF01
"""The type of the report extension, among those of reports."""
MOST_CREDENTIALS: Final = 1 << 40
SERIAL: Final = 32
ISSUED: Final = SERIAL + SIGNATURE
"""Bytes of what an issuer gives out."""
_DIGEST: Final = 32
_BLINDED: Final = HistogramConfiguration | MultihotConfiguration | Poplar1Configuration | SumVecConfiguration
"""Shares of these hold a blind of 256 random bits, or keys of 128 and more."""
_ISSUED = b"hazemap 1 report credential"
_SIGNED = b"hazemap 1 credited report"
_SERIAL = b"hazemap 1 report serial"
_KEY = b"hazemap 1 report key"
_SHARE = b"hazemap 1 input share"
_ASKED = b"hazemap 1 credential keys"


@dataclass(frozen=True)
class ReportAdmission(Structure):
    """A task's issuer, by its public key, and how many credentials it gives out, so how many reports there can be.

    >>> len(ReportAdmission(bytes(32), 1_000).to_bytes())
    40
    """

    issuer: Annotated[bytes, fixed(KEY)]
    reports: Annotated[int, number(8)]

    def __post_init__(self) -> None:
        if len(self.issuer) != KEY or not 1 <= self.reports <= MOST_CREDENTIALS:
            raise InputError(f"an issuer has a key of {KEY} bytes, and gives out 1 to {MOST_CREDENTIALS:,} credentials")

    def check(self, measured: VdafConfiguration) -> None:
        """InputError for a VDAF whose shares are not known to hold enough that the other server does not know."""
        if not isinstance(measured, _BLINDED):
            raise InputError(f"reports of {measured.NAME} cannot carry a credential: its digests would tell of shares")


@dataclass(frozen=True)
class ReportCredential(Structure):
    """What one report carries.

    >>> issuer, person = Identity.create(), Identity.create()
    >>> given = issued(issuer, bytes(32), bytes(32), b"ann", person.public)
    >>> made = HeldCredential.received(given, person, issuer.public, bytes(32)).spent(b"its metadata", (b"one", b"two"))
    >>> made.is_genuine(issuer.public, bytes(32), b"its metadata"), len(made.to_bytes())
    (True, 256)
    """

    serial: Annotated[bytes, fixed(SERIAL)]
    key: Annotated[bytes, fixed(KEY)]
    issued: Annotated[bytes, fixed(SIGNATURE)] = field(repr=False)
    leader: Annotated[bytes, fixed(_DIGEST)]
    helper: Annotated[bytes, fixed(_DIGEST)]
    signed: Annotated[bytes, fixed(SIGNATURE)] = field(repr=False)
    SIZE: ClassVar[int] = SERIAL + KEY + SIGNATURE + 2 * _DIGEST + SIGNATURE

    @classmethod
    def of(cls, extensions: Iterable[Extension]) -> Self:
        """That among a report's extensions; CodecError where there is none, or it is none."""
        for each in extensions:
            if each.type == CREDENTIAL:
                return cls.from_bytes(each.data)
        raise CodecError("a report to this task carries a credential")

    @property
    def extension(self) -> Extension:
        """As reports carry it."""
        return Extension(CREDENTIAL, self.to_bytes())

    def is_genuine(self, issuer: bytes, task_id: bytes, report: bytes) -> bool:
        """Whether the issuer admits this report, as `credited` names it, to this task: two signatures, some 200 µs."""
        return verified(issuer, self.issued, _ISSUED + task_id + self.serial + self.key) and verified(
            self.key, self.signed, _signed(task_id, self.serial, report, (self.leader, self.helper))
        )

    def covers(self, role: DapRole, plain: bytes) -> bool:
        """Whether the device made this input share, as it is before it is sealed, for this server."""
        return (self.leader if role is DapRole.LEADER else self.helper) == share_digest(role, plain)


@dataclass(frozen=True)
class HeldCredential:
    """A credential that a device has been given, with the key that spends it."""

    task_id: bytes
    serial: bytes
    issued: bytes = field(repr=False)
    key: Identity

    @classmethod
    def received(cls, given: bytes, key: Identity, issuer: bytes, task_id: bytes) -> Self:
        """What an issuer gave; CodecError for what this issuer did not sign for this task and this key."""
        serial, signature = given[:SERIAL], given[SERIAL:]
        if len(given) != ISSUED or not verified(issuer, signature, _ISSUED + task_id + serial + key.public):
            raise CodecError("the credential is not of the server that this device enrolled with, for this round")
        return cls(task_id, serial, signature, key)

    def spent(self, report: bytes, plain: tuple[bytes, bytes]) -> ReportCredential:
        """For one report, named as `credited` does, with both input shares as they are sealed."""
        shares = share_digest(DapRole.LEADER, plain[0]), share_digest(DapRole.HELPER, plain[1])
        signed = self.key.sign(_signed(self.task_id, self.serial, report, shares))
        return ReportCredential(self.serial, self.key.public, self.issued, *shares, signed)


def issued(issuer: Identity, secret: bytes, task_id: bytes, person: bytes, key: bytes) -> bytes:
    """A person's serial in a task, and the signature that binds it to a key: the same each time, and 40 µs.

    The serial follows from the person alone: it counts once, whatever keys it was signed for. `InputError` for a key
    that anybody could sign with.
    """
    if len(secret) < SERIAL or len(key) != KEY:
        raise InputError(f"serials are made from a secret of {SERIAL} bytes or more, for keys of {KEY}")
    if not is_sound(key):
        raise InputError("a key is of small order, or not in its canonical form: anybody could sign with it")
    serial = digest(secret, _SERIAL + task_id + person, "sha256")
    return serial + issuer.sign(_ISSUED + task_id + serial + key)


def report_key(secret: bytes, task_id: bytes) -> Identity:
    """A device's key of one task: from its own secret, so that nothing of it is kept, and keys of two tasks differ."""
    return Identity.from_bytes(digest(secret, _KEY + task_id, "sha256"))


def keys_statement(issuer: bytes, session: bytes, keys: bytes) -> bytes:
    """What a device signs with the key of its identity to ask this issuer for a round's credentials, for these keys."""
    return _ASKED + issuer + session + keys


def credited(report_id: bytes, time: int, public_share: bytes) -> bytes:
    """What a credential is spent on, besides both input shares."""
    return report_id + time.to_bytes(8, "big") + sha256(public_share).digest()


def share_digest(role: DapRole, plain: bytes) -> bytes:
    """What stands for an input share, as it is before it is sealed."""
    return sha256(_SHARE + bytes([role]) + plain).digest()


def _signed(task_id: bytes, serial: bytes, report: bytes, shares: tuple[bytes, bytes]) -> bytes:
    return _SIGNED + task_id + serial + sha256(report).digest() + b"".join(shares)
