"""`hazemap device clock`: by which time a device's budgets come back."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import typer

from hazemap.cli.console_output import deliver
from hazemap.cli.federated.device_options import Ask, StoreFile, opened
from hazemap.cli.shared_options import AsJson
from hazemap.errors import InputError

CLOCK = "Example: [bold]hazemap device clock --today 2026-11-23[/bold]"


def clock(
    today: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="Today's date from a calendar, not from this device; its clock goes on from there."
        ),
    ] = None,
    store: StoreFile = None,
    passphrase: Ask = False,
    as_json: AsJson = False,
) -> None:
    """Show the time by which budgets come back: it goes on while the machine runs or sleeps, not while it is off.

    So a clock that is set forward frees nothing. Where the machine was off for long, --today lets that count too.
    """
    from hazemap.federated.device.account.account_clock import AccountClock

    day, now = None if today is None else _day(today), datetime.now(UTC)
    with opened(store, passphrase) as file:
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
