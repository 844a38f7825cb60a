"""`hazemap policy`: what recipes may ask of devices, written, signed, and read."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hazemap.cli.console_output import deliver, note
from hazemap.cli.shared_options import AsJson
from hazemap.errors import CodecError, FileError, InputError
from hazemap.files.text_files import read_text

if TYPE_CHECKING:
    from hazemap.federated.recipes.policy import ShippedPolicy
    from hazemap.federated.recipes.policy_document import SignedPolicy
    from hazemap.privacy.signing_identities import Identity

app = typer.Typer(
    name="policy",
    help="Write and sign the policy of devices: which recipes they may answer, and at which price.",
    epilog="Example: [bold]hazemap policy sign policy.toml --key-file policy.key -o policy.signed.json[/bold]",
    no_args_is_help=True,
)

Source = Annotated[Path, typer.Argument(metavar="FILE", help="Policy: TOML, JSON or signed.")]


@app.command(epilog="Example: [bold]hazemap policy example > policy.toml[/bold]")
def example() -> None:
    """Print an example policy in TOML, that of a keyboard."""
    from hazemap.federated.recipes.policy_document import EXAMPLE

    typer.echo(EXAMPLE, nl=False)


@app.command(epilog="Example: [bold]hazemap policy key policy.key[/bold]")
def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="New file for the secret key.")],
    as_json: AsJson = False,
) -> None:
    """Make a key that signs policies. Devices pin its public half; the owner of the file decides what they answer."""
    from hazemap.privacy.signing_identities import Identity

    identity = Identity.create()
    try:
        handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        raise InputError(f"the file {file} exists: a key is never overwritten; choose another name") from None
    except OSError as error:
        raise FileError(f"the key file {file} cannot be written ({error.strerror})") from None
    with os.fdopen(handle, "w") as opened:
        opened.write(identity.to_bytes().hex() + "\n")
    deliver({"key": identity.public.hex()}, as_json, identity.public.hex())


@app.command(epilog="Example: [bold]hazemap policy sign policy.toml --key-file policy.key -o policy.signed.json[/bold]")
def sign(
    policy: Source,
    key_file: Annotated[
        Path, typer.Option("--key-file", metavar="FILE", help="Secret key, made by `hazemap policy key`.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="File to write: the signed policy, as JSON.")
    ],
    as_json: AsJson = False,
) -> None:
    """Sign a policy: check all that it says, and write it with its signature. The same policy gives the same file."""
    from hazemap.federated.recipes.policy_document import SignedPolicy, digest
    from hazemap.files.atomic_write import write_whole

    found = read_any_policy(policy)
    signed = SignedPolicy.sign(found, read_secret_key(key_file))
    write_whole(output, signed.to_json().encode())
    facts = {"name": found.name, "version": found.version, "digest": digest(found).hex(), "key": signed.key.hex()}
    deliver(facts, as_json, f"{found.name}, version {found.version}, signed by {signed.key.hex()}")
    note(f"{output}: devices take it with `hazemap device accept {output} --key {signed.key.hex()}`")


@app.command(epilog="Example: [bold]hazemap policy verify policy.signed.json --key 9f86d0…[/bold]")
def verify(
    policy: Source,
    key: Annotated[str, typer.Option(metavar="HEX", help="Public key that must have signed it.")],
    as_json: AsJson = False,
) -> None:
    """Check that a key signed a policy, and that the policy is unchanged."""
    from hazemap.federated.recipes.policy_document import digest

    pinned = parse_public_key(key)
    found = read_signed_policy(policy).verify(pinned or b"")
    facts = {"name": found.name, "version": found.version, "digest": digest(found).hex(), "key": key}
    deliver(facts, as_json, f"{found.name}, version {found.version}: signed by {key}, and whole")


@app.command(epilog="Example: [bold]hazemap policy show policy.toml[/bold]")
def show(policy: Source, as_json: AsJson = False) -> None:
    """Show what a policy says: analyses and fields with their budgets, streams, and limits over everything."""
    from rich.table import Table

    from hazemap.federated.recipes.policy_document import digest, to_document

    found = read_any_policy(policy)
    analyses = Table("analysis", "ε", "δ", "reports", "people", "carried by", "reads", "for", box=None)
    for each in found.analyses:
        carriers, fields = ", ".join(one.value for one in each.carriers), ", ".join(map(str, each.queries.fields))
        numbers = (f"{float(each.epsilon):.6g}", f"{float(each.delta):.3g}", f"{each.reports:,}")
        analyses.add_row(each.name, *numbers, f"{each.minimum_cohort:,}", carriers, fields, each.purpose)
    fields_ = Table("field", "ε₀ at most", "ε", "δ", "reports", box=None)
    for line in found.fields:
        shown = (f"{float(number):.6g}" for number in (line.local_epsilon, line.epsilon, line.delta))
        fields_.add_row(str(line.field), *shown, f"{line.reports:,}")
    streams = [f"stream {each.name}: kept for {each.keep:,} days" for each in found.streams]
    limits = [
        f"everything together: ε = {float(each.epsilon):.6g}, δ = {float(each.delta):.3g} and {each.reports:,} reports"
        f" in {each.days:,} days"
        for each in found.limits
    ]
    head = f"{found.name}, version {found.version}, budgets of {found.days:,} days, digest {digest(found).hex()}"
    facts = {"policy": to_document(found), "digest": digest(found).hex()}
    deliver(facts, as_json, head, analyses, fields_, *streams, *limits)


def read_any_policy(path: Path) -> "ShippedPolicy":
    """The policy in a file, whatever it is written in; a signature is not verified."""
    from hazemap.federated.recipes.policy_document import SignedPolicy, from_json, from_toml

    text = read_text(path, "the policy")
    if path.suffix.lower() != ".json" and not text.lstrip().startswith("{"):
        return from_toml(text)
    return SignedPolicy.from_json(text).policy if '"signature"' in text else from_json(text)


def read_signed_policy(path: Path) -> "SignedPolicy":
    """The signed policy in a file; its signature is yet to be verified."""
    from hazemap.federated.recipes.policy_document import SignedPolicy

    return SignedPolicy.from_json(read_text(path, "the policy"))


def parse_public_key(digits: str | None) -> bytes | None:
    """A public key in hexadecimal."""
    if digits is None:
        return None
    try:
        found = bytes.fromhex(digits)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise InputError("a key is 64 hexadecimal digits: `hazemap policy key` prints one")
    return found


def read_secret_key(path: Path) -> "Identity":
    """The key that signs, in a file of `hazemap policy key`."""
    from hazemap.privacy.signing_identities import Identity

    try:
        return Identity.from_bytes(bytes.fromhex(read_text(path, "the key").strip()))
    except (ValueError, CodecError):
        raise FileError(f"{path} holds no key: `hazemap policy key` makes one") from None
