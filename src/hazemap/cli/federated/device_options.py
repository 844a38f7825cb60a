"""Options that the commands of `hazemap device` share, and what they open."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.errors import InputError
from hazemap.files.text_files import MOST_OF_A_LIST, read_text
from hazemap.specs.spec_fields import TIME_FORMAT

if TYPE_CHECKING:
    from hazemap.federated.device.policy.consent_policy import Policy
    from hazemap.federated.device.store.encrypted_store import EncryptedStore, Secret
    from hazemap.federated.recipes.policy import ShippedPolicy

TABLE, REACH, TESTS = "The table", "How the server is reached", "Many devices, for tests and loads"

StoreFile = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The device's file, instead of device.sqlite in HAZEMAP_HOME."),
]
Ask = Annotated[bool, typer.Option("--passphrase", help="Ask for the passphrase that opens the store.")]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="The person's rules, instead of policy.toml beside the store."),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--trust-certificate",
        metavar="PEM",
        rich_help_panel=REACH,
        help="TLS: certificate authority of the server, if not a public one.",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        envvar="HAZEMAP_ENROLMENT_TOKEN",
        rich_help_panel=REACH,
        help="The enrolment token; the operator of the campaign has it.",
    ),
]
EnrolmentFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", rich_help_panel=REACH, help="A file with the token, instead."),
]
Lon = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Longitude in degrees. Guessed.")
]
Lat = Annotated[str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Latitude in degrees. Guessed.")]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=TABLE,
        help="Column of the time, from which retention counts. Default: guessed.",
    ),
]
TimeFormatName = Annotated[
    str, typer.Option("--time-format", metavar="FORMAT", rich_help_panel=TABLE, help=TIME_FORMAT)
]
Value = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Weight of a row, for 'one vote'.")
]
Mark = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN[=VALUE]",
        rich_help_panel=TABLE,
        help="A mark, as campaigns name it.",
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        rich_help_panel=TABLE,
        help="Column of the person's id: each person gets a device in this store.",
    ),
]
Number = Annotated[int | None, typer.Option("--device", metavar="N", help="The device, if the store has several.")]


def store_at(path: Path | None) -> Path:
    """The file of an option, or the one in the folder HAZEMAP_HOME, or in the platform's folder for a user's data."""
    if path is not None:
        return path
    home = os.environ.get("HAZEMAP_HOME")
    if not home:
        import platformdirs

        home = platformdirs.user_data_dir("hazemap", appauthor=False)
    return Path(home) / "device.sqlite"


def opened(path: Path | None, ask: bool, create: bool = False) -> "EncryptedStore":
    """The store of an option, with the secret from the environment or the keyboard."""
    from hazemap.federated.device.store.encrypted_store import EncryptedStore

    return EncryptedStore.opened(store_at(path), secret(ask, confirm=create and not store_at(path).exists()), create)


def secret(ask: bool, confirm: bool = False) -> "Secret":
    """The passphrase of a store, if there is one."""
    from hazemap.federated.device.store.encrypted_store import Secret

    if ask:
        return Secret(typer.prompt("passphrase", hide_input=True, confirmation_prompt=confirm))
    return Secret.from_environment(os.environ)


def policy_at(path: Path | None, store: Path | None) -> "Policy":
    """The rules of an option, or those beside the store, or the ones that everybody starts with."""
    from hazemap.federated.device.policy.consent_policy import Policy

    beside = policy_file(store)
    if path is None and not beside.exists():
        return Policy()
    return Policy.read(path or beside)


def allowed_at(file: "EncryptedStore", store: Path | None, own: Path | None = None) -> "ShippedPolicy":
    """The rules of a device: the accepted policy within its owner's own rules."""
    from hazemap.federated.device.policy.consent_policy import allowed
    from hazemap.federated.device.policy.shipped_policies import ShippedPolicies

    accepted = ShippedPolicies(file).current()
    if accepted is None:
        raise InputError("this device has accepted no policy for recipes yet: `hazemap device accept` takes one")
    return allowed(accepted.policy, policy_at(own, store))


def policy_file(store: Path | None) -> Path:
    """The file with the rules of a store."""
    return store_at(store).with_name("policy.toml")


def token_of(text: str | None, file: Path | None) -> str | list[str]:
    """The enrolment token, from an option or a file; None for a server that enrols everybody.

    A file of many lines is a list of codes, one for each device.
    """
    if text is not None and file is not None:
        raise InputError("give --token or --token-file, not both")
    if file is None:
        return text or ""
    lines = read_text(file, "the token file", MOST_OF_A_LIST).split()
    return lines if len(lines) > 1 else "".join(lines)


def chosen(store: "EncryptedStore", device: int | None) -> int:
    """The device of an option; it need not be given where the store has one."""
    from hazemap.federated.device.enrolment import devices

    every = devices(store)
    if device is not None and device not in every:
        raise InputError(f"this store has no device {device}; it has {len(every)}")
    if device is None and len(every) != 1:
        raise InputError(f"this store has {len(every)} devices: name one with --device")
    return every[0] if device is None else device
