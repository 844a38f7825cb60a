"""Options of `hazemap device`, the tables that it adds, and its clock."""

import os
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from time import time as now
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.federated.serving_options import LOCAL, Server, TrustCertificate
from hazemap.cli.shared_options import AsJson
from hazemap.errors import InputError
from hazemap.files.text_files import MOST_OF_A_LIST, read_text
from hazemap.specs.spec_fields import TIME_FORMAT
from hazemap.temporal.time_format import checked_format

if TYPE_CHECKING:
    from hazemap.federated.device.policy.consent_policy import Policy
    from hazemap.federated.device.store.encrypted_store import EncryptedStore
    from hazemap.federated.recipes.policy import ShippedPolicy
    from hazemap.temporal.time_format import TimeFormat


TABLE, REACH, TESTS = "The table", "How the server is reached", "Many devices, for tests and loads"

Number = Annotated[
    int | None, typer.Option("--device", metavar="N", help="Number of the device, if the store has several.")
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="File of the person's rules. Default: policy.toml beside the store."),
]


@dataclass(frozen=True, kw_only=True)
class StorePlace:
    """Options of commands that read a person's rules beside a device's store."""

    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", help="File of the device. Default: device.sqlite in HAZEMAP_HOME."),
    ] = None

    @property
    def path(self) -> Path:
        """The file of the option, or the one in the folder HAZEMAP_HOME or the platform's folder for a user's data."""
        if self.store is not None:
            return self.store
        home = os.environ.get("HAZEMAP_HOME")
        if not home:
            import platformdirs

            home = platformdirs.user_data_dir("hazemap", appauthor=False)
        return Path(home) / "device.sqlite"

    @property
    def policy_path(self) -> Path:
        """The file with the person's rules."""
        return self.path.with_name("policy.toml")

    def rules(self, own: Path | None = None) -> "Policy":
        """The person's rules in a file, or beside the store, or the ones that every device begins with."""
        from hazemap.federated.device.policy.consent_policy import Policy

        if own is None and not self.policy_path.exists():
            return Policy()
        return Policy.read(own or self.policy_path)


@dataclass(frozen=True, kw_only=True)
class StoreOptions(StorePlace):
    """Options of commands that open a device's store."""

    passphrase: Annotated[bool, typer.Option("--passphrase", help="Ask for the passphrase that opens the store.")] = (
        False
    )

    def open(self, create: bool = False) -> "EncryptedStore":
        """The store, with the secret from the environment or the keyboard."""
        from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreSecret

        if self.passphrase:
            new = create and not self.path.exists()
            secret = StoreSecret(typer.prompt("passphrase", hide_input=True, confirmation_prompt=new))
        else:
            secret = StoreSecret.from_environment(os.environ)
        return EncryptedStore.opened(self.path, secret, create)

    def allowed(self, file: "EncryptedStore", own: Path | None = None) -> "ShippedPolicy":
        """The policy for recipes that a device has accepted, within the person's rules."""
        from hazemap.federated.device.policy.consent_policy import restrict_policy
        from hazemap.federated.device.policy.shipped_policies import ShippedPolicies

        accepted = ShippedPolicies(file).current()
        if accepted is None:
            raise InputError("this device has accepted no policy for recipes yet: `hazemap device accept` takes one")
        return restrict_policy(accepted.policy, self.rules(own))


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """Options of the columns of a table of places."""

    lon: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Column of the longitude. Default: guessed."),
    ] = None
    lat: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Column of the latitude. Default: guessed."),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=TABLE,
            help="Column of the time, from which retention counts. Default: guessed.",
        ),
    ] = None
    time_format: Annotated[
        str, typer.Option("--time-format", metavar="FORMAT", rich_help_panel=TABLE, help=TIME_FORMAT)
    ] = "iso"
    value: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel=TABLE, help="Column of a row's weight, for 'one vote'."),
    ] = None
    mark: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN[=VALUE]", rich_help_panel=TABLE, help="Mark, as campaigns name it. May be repeated."
        ),
    ] = None

    @property
    def table(self) -> dict[str, Any]:
        """The columns and the checked format of times, as tables are opened with them."""
        return {**vars(self), "time_format": checked_format(self.time_format)}


@dataclass(frozen=True, kw_only=True)
class EnrolmentOptions:
    """Options of the server that a device enrols with."""

    server: Server = LOCAL
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            envvar="HAZEMAP_ENROLMENT_TOKEN",
            rich_help_panel=REACH,
            help="Enrolment token; ask the operator of the server for it.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", rich_help_panel=REACH, help="File with the enrolment token."),
    ] = None
    trust_certificate: TrustCertificate = None

    @property
    def tokens(self) -> str | list[str]:
        """The enrolment token; a list of codes, one for each device, where the file has many lines."""
        if self.token is not None and self.token_file is not None:
            raise InputError("give --token or --token-file, not both")
        if self.token_file is None:
            return self.token or ""
        lines = read_text(self.token_file, "the token file", MOST_OF_A_LIST).split()
        return lines if len(lines) > 1 else "".join(lines)


def one_device(store: "EncryptedStore", device: int | None) -> int:
    """The device of an option, which may be left out where the store has only one."""
    from hazemap.federated.device.enrolment import devices

    every = devices(store)
    if device is not None and device not in every:
        raise InputError(f"this store has no device {device}; it has {len(every)}")
    if device is None and len(every) != 1:
        raise InputError(f"this store has {len(every)} devices: name one with --device")
    return every[0] if device is None else device


CLOCK = "Example: [bold]hazemap device clock --today 2026-11-23[/bold]"


def clock(
    store: StoreOptions,
    today: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="Today's date from a calendar, not from this device; its clock goes on from there."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the time by which budgets come back: it goes on while the machine runs or sleeps, not while it is off.

    So a clock that is set forward frees nothing. Where the machine was off for long, --today lets that count too.
    """
    from hazemap.federated.device.account.account_clock import AccountClock

    day, now = None if today is None else _day(today), datetime.now(UTC)
    with store.open() as file:
        account = AccountClock(file)
        if day is not None:
            account.confirmed(now, day)
        time = account.reading(now).now
    behind = max(timedelta(0), now - time)
    facts = {"clock": now.isoformat(), "account": time.isoformat(), "behind": behind.total_seconds()}
    said = f"budgets come back by {time:%Y-%m-%d %H:%M} UTC; the clock says {now:%Y-%m-%d %H:%M}"
    hours = behind / timedelta(hours=1)
    late = f"so they come back {hours:,.0f} hours later, unless you confirm the date with --today"
    deliver(facts, as_json, said, *([late] if hours >= 1 else []))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"--today is a date such as 2026-11-23, not {text!r:.40}") from None


MOST_PEOPLE = 1_000_000

TIMES = "a time is such as 2026-05-31 18:00 or 20260531T180000Z, or a number since 1970 with --time-format seconds"

Said = tuple[dict[str, Any], str]
"""The result of a command, for machines and for people."""


def keep_places(file: "EncryptedStore", source: str, device: int | None, days: int, columns: dict[str, Any]) -> Said:
    """Keep the rows of one person."""
    import numpy as np

    from hazemap.federated.device.store.row_store import RowStore, expire, own

    began = now()
    places = own(source, **columns)
    undated = int(((places.time >= began) & (places.time <= now())).sum())
    rows = RowStore(file, _one(file, device))
    before = len(rows)
    rows.add(places, days)
    expire(file, now())
    kept = len(rows)
    old = before + len(places) - kept
    also = f"; {old:,} were older than that and are gone" if old else ""
    unread = int(np.isnan(places.time).sum())
    if unread:
        also += f"; of {unread:,} the time cannot be read, so nobody knows how old they are: {TIMES}"
    if undated:
        also += f"; {undated:,} say nothing of when, so they count as of now (--time COLUMN)"
    facts = {"added": len(places), "rows": kept, "older": old, "days": days}
    facts |= {"undated": undated, "unread_times": unread}
    return facts, f"{len(places):,} rows read, {kept:,} kept now, each for {days:,} days{also}"


def keep_many(file: "EncryptedStore", source: str, person: str, days: int, columns: dict[str, Any]) -> Said:
    """Keep the rows of each person of a table on a device of their own."""
    from hazemap.federated.device.enrolment import devices_of
    from hazemap.federated.device.store.row_store import added, expire, people_by_name

    people = people_by_name(source, MOST_PEOPLE, person, **columns)
    devices = devices_of(file, people)
    written = added(file, {devices[name]: rows for name, rows in people.items()}, days)
    expire(file, now())
    facts = {"added": written, "people": len(people), "devices": len(devices), "days": days}
    return facts, f"{written:,} rows of {len(people):,} people read; the store has {len(devices):,} devices"


def place_people(
    file: "EncryptedStore", many: int, table: str | None, person: str | None, each_row: bool, **columns: Any
) -> None:
    """Make a device for each of the first people of a table, unless the store has its devices already."""
    from hazemap.federated.device import enrolment
    from hazemap.federated.device.store.row_store import added, any_rows, people

    there = enrolment.devices(file)
    if there and len(there) != many:
        raise InputError(f"the store has {len(there):,} devices, not {many:,}: name another with --store")
    if there and (table is None or any_rows(file)):
        return  # a store that was filled before: with rows, or with events of streams
    if table is None:
        raise InputError("--many needs --table: each of its people gets a device")
    found = people(table, many, person, each_row, **columns)
    if len(found) < many:
        raise InputError(f"{table} has {len(found):,} people, too few for {many:,} devices")
    # A process that is killed here leaves devices without rows, and the next one goes on
    added(file, dict(zip(there or enrolment.add(file, many), found, strict=True)), None)


def donate_events(
    file: "EncryptedStore",
    source: Path,
    name: str,
    person: str | None,
    device: int | None,
    store: StoreOptions,
    time_format: "TimeFormat",
) -> Said:
    """Keep events of a stream that the policy lists, of one person or of each person of a table."""
    from hazemap.federated.device.enrolment import devices_of
    from hazemap.federated.device.store.event_store import events_by_person, expire, store_events

    rules = store.allowed(file)
    stream = rules.stream(name)
    if stream is None:
        known = ", ".join(each.name for each in rules.streams) or "none"
        raise InputError(f"the policy of this device lists no stream {name!r:.80}; it lists {known}")
    found = events_by_person(source, stream, person, time_format)
    if person is None:
        events = {_one(file, device): each for each in found.values()}
    else:
        devices = devices_of(file, [whose for whose in found if whose is not None])
        events = {devices[whose]: each for whose, each in found.items() if whose is not None}
    counts = store_events(file, stream, events, now()).values()
    expire(file, now())
    kept, older = sum(each.kept for each in counts), sum(each.older for each in counts)
    facts = {"stream": name, "kept": kept, "older": older, "devices": len(events), "days": stream.keep}
    also = f"; {older:,} were older than that and are not kept" if older else ""
    return facts, f"{kept:,} events of {name} kept on {len(events):,} devices, for {stream.keep:,} days at most{also}"


def _one(file: "EncryptedStore", device: int | None) -> int:
    from hazemap.federated.device import enrolment

    if not enrolment.devices(file):
        enrolment.add(file)
    return one_device(file, device)
