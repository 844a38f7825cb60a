"""Tables for `hazemap device add`: rows of places or events, of one person or of many."""

from pathlib import Path
from time import time as now
from typing import TYPE_CHECKING, Any

from hazemap.cli.federated.device_options import allowed_at, chosen
from hazemap.errors import InputError

if TYPE_CHECKING:
    from hazemap.federated.device.store.encrypted_store import EncryptedStore
    from hazemap.temporal.time_format import TimeFormat

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
    store: Path | None,
    time_format: "TimeFormat",
) -> Said:
    """Keep events of a stream that the policy lists, of one person or of each person of a table."""
    from hazemap.federated.device.enrolment import devices_of
    from hazemap.federated.device.store.event_store import donated, events_by_person, expire

    rules = allowed_at(file, store)
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
    counts = donated(file, stream, events, now()).values()
    expire(file, now())
    kept, older = sum(each.kept for each in counts), sum(each.older for each in counts)
    facts = {"stream": name, "kept": kept, "older": older, "devices": len(events), "days": stream.keep}
    also = f"; {older:,} were older than that and are not kept" if older else ""
    return facts, f"{kept:,} events of {name} kept on {len(events):,} devices, for {stream.keep:,} days at most{also}"


def _one(file: "EncryptedStore", device: int | None) -> int:
    from hazemap.federated.device import enrolment

    if not enrolment.devices(file):
        enrolment.add(file)
    return chosen(file, device)
