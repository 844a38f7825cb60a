"""Each text is a time by itself or none, as a plain reading of the grammar says, whatever stands beside it."""

import math
import random
import re
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from hazemap.engines.arrow_arrays import texts
from hazemap.errors import InputError
from hazemap.temporal.time_format import UNITS, checked_format, within_calendar
from hazemap.temporal.written_times import seconds_of_text, seconds_of_texts

EPOCH = datetime(1970, 1, 1)
TIME = re.compile(
    r"""(?:(?P<year>[0-9]{4})
          (?: -(?P<month>[0-9]{2})-(?P<day>[0-9]{2}) | (?P<bmonth>[0-9]{2})(?P<bday>[0-9]{2})
            | -[Ww](?P<week>[0-9]{2})-(?P<weekday>[0-9]) | [Ww](?P<bweek>[0-9]{2})(?P<bweekday>[0-9])
            | -?(?P<ordinal>[0-9]{3}) ))
        (?: (?:[Tt]|[ ]+)
          (?: (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?: :(?P<second>[0-9]{2})(?:[.,](?P<parts>[0-9]+))? )?
            | (?P<bhour>[0-9]{2})(?: (?P<bminute>[0-9]{2})(?: (?P<bsecond>[0-9]{2})(?:[.,](?P<bparts>[0-9]+))? )? )? )
          (?: [ ]* (?: (?P<zone>[Zz]|[Uu][Tt][Cc]) | (?P<sign>[+-])(?P<ahead>[0-9]{2})(?: :?(?P<minutes>[0-9]{2}))? ) )?
        )?""",
    re.VERBOSE | re.ASCII,
)


def plainly(text: str, unit: str = "iso") -> float:  # noqa: PLR0911 - one grammar
    """The same grammar with the standard library's calendar."""
    text = text.strip(" \t\n\v\f\r")
    if unit != "iso":
        if not re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)", text, re.ASCII):
            return math.nan
        whole, _, parts = text.lstrip("+-").partition(".")
        digits = {"seconds": 6, "milliseconds": 3}[unit]
        micros = int((whole or "0") + parts[:digits].ljust(digits, "0"))
        if text.startswith("-"):
            micros = -micros - bool(parts[digits:].strip("0"))
        seconds = micros / 10**6
        return seconds if -62_135_596_800 <= seconds < 253_402_300_800 else math.nan
    found = TIME.fullmatch(text)
    if found is None:
        return math.nan
    part = {name: value for name, value in found.groupdict().items() if value is not None}

    def number(*names: str) -> int:
        return next((int(part[name]) for name in names if name in part), 0)

    try:
        if "week" in part or "bweek" in part:
            day = date.fromisocalendar(number("year"), number("week", "bweek"), number("weekday", "bweekday"))
        elif "ordinal" in part:
            day = date(number("year"), 1, 1) + timedelta(number("ordinal") - 1)
            if day.year != number("year"):
                return math.nan
        else:
            day = date(number("year"), number("month", "bmonth"), number("day", "bday"))
    except (ValueError, OverflowError):
        return math.nan
    hour, minute, second = (number(name, f"b{name}") for name in ("hour", "minute", "second"))
    parts = next((part[name] for name in ("parts", "bparts") if name in part), "")
    micros = ((hour * 60 + minute) * 60 + second) * 10**6 + int(parts[:6].ljust(6, "0") or 0)
    if minute > 59 or second > (60 if minute == 59 else 59) or micros > 48 * 3600 * 10**6:
        return math.nan
    if number("ahead") > 23 or number("minutes") > 59:
        return math.nan
    ahead = (number("ahead") * 60 + number("minutes")) * (-1 if part.get("sign") == "-" else 1)
    days = (datetime(day.year, day.month, day.day) - EPOCH).days
    seconds = (days * 86400 * 10**6 + micros - ahead * 60 * 10**6) / 10**6
    return seconds if -62_135_596_800 <= seconds < 253_402_300_800 else math.nan


def together(written: list[str | None], unit: str = "iso") -> np.ndarray:
    return seconds_of_texts(*texts(pa.array(written, pa.string())), unit)


NOON = datetime(2026, 5, 31, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        *("2026-05-31T12:00:00Z", "2026-05-31 12:00", "20260531T120000Z", "20260531 1200", "2026-05-31t12z"),
        *("2026-05-31 14:00:00 +0200", "2026-05-31 14:00:00 +02", "2026-05-31T14:00:00+02:00", "2026-05-31 12:00 UTC"),
        *("2026-05-31T07:30-0430", "2026-W22-7T12:00", "2026W227T12", "2026-151 12:00:00,000", "2026151T120000.0Z"),
        *("2026-05-30 36:00:00", "20260530 36:00:00", " 2026-05-31  12:00:00  utc\t", "2026-05-31T11:59:60Z"),
    ],
)
def test_one_moment_is_the_same_however_iso_8601_writes_it(text):
    assert seconds_of_text(text) == NOON


@pytest.mark.parametrize(
    "text",
    [
        *("2026-05-31 12:00:00 Asia/Tokyo", "2026-05-31 12:00 BST", "2026-05-31 12:00 EDT", "2026-05-31 12:00 GMT"),
        *(
            "2026-05-31T12:00+02:00[Europe/Berlin]",
            "2026-05-31 12:00 UTC+2",
            "2026-05-31 12:00 +2",
            "12:00",
            "25:10:00",
        ),
        *("31.05.2026 12:00", "5/31/2026", "2026/05/31", "2026-5-31", "2026-05", "2026", "May 31 2026", "soon", ""),
        *("1780228800", "1780228800000", "20260531120000", "2026-05-31 48:00:01", "2026-05-31 12:60", "2026-02-29"),
        *("0000-01-01", "2026-W54-1", "2026-366", "2026-05-31T", "2026-05-31 12:00:00.", "٢٠٢٦-٠٥-٣١", "2026-05-31Z"),
        *("infinity", "now", "epoch", "2026-05-31 12:00 PM", "-2026-05-31", "2026-05-31T12:00:00+24:00"),
    ],
)
def test_any_other_text_is_no_time_of_any_offset(text):
    assert math.isnan(seconds_of_text(text))


def test_a_number_is_a_time_only_in_the_unit_that_is_declared():
    assert seconds_of_text("1780228800", "seconds") == seconds_of_text("1780228800000", "milliseconds") == NOON
    assert seconds_of_text("-1.5", "seconds") == -1.5 and seconds_of_text("1500.5", "milliseconds") == 1.5005
    for text in ("2026-05-31", "1e9", "0x10", "1_000", "", "+", ".", "9" * 30, "253402300800", "1.2.3"):
        assert math.isnan(seconds_of_text(text, "seconds")), text
    for wrong in ("unix", "", None, 1, "SECONDS"):
        with pytest.raises(InputError, match="--time-format"):
            checked_format(wrong)
    assert np.isnan(within_calendar(np.array([-1e300, 1e300, math.inf, math.nan, 253_402_300_800.0]))).all()


def some_text(chance: random.Random, unit: str) -> str:
    """A time in some of its spellings, perhaps with a letter or two changed."""
    if unit != "iso" and chance.random() < 0.9:
        text = f"{chance.choice(('', '-', '+'))}{chance.randrange(10 ** chance.randrange(1, 16))}"
        text += chance.choice(("", "", ".", f".{chance.randrange(10**9)}"))
    else:
        year, month, day = chance.choice((1, 1969, 2000, 2026, 9999)), chance.randrange(14), chance.randrange(33)
        dash, colon = chance.choice(("-", "")), chance.choice((":", ""))
        text = chance.choice(
            (
                f"{year:04}{dash}{month:02}{dash}{day:02}",
                f"{year:04}{dash}W{chance.randrange(55):02}{dash}{chance.randrange(9)}",
                f"{year:04}{dash}{chance.randrange(368):03}",
            )
        )
        if chance.random() < 0.9:
            clock = [
                f"{chance.randrange(50):{chance.choice(('02', ''))}}",
                *(f"{chance.randrange(61):02}" for _ in "ms"),
            ]
            text += chance.choice(("T", " ", "  ", "t")) + colon.join(clock[: chance.choice((1, 2, 3, 3))])
            text += chance.choice(("", "", f".{chance.randrange(10**8)}", ",5"))
            hours, minutes = f"{chance.randrange(26):02}", f"{chance.randrange(62):02}"
            offset = chance.choice("+-") + hours + chance.choice(("", minutes, f":{minutes}"))
            text += chance.choice(("", "Z", "UTC", " UTC", offset, f" {offset}", " BST"))
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(("", "0", "7", " ", ":", "-", "+", ".", "Z", "é", "T")) + text[at + 1 :]
    return chance.choice(("", " ", "\t")) + text + chance.choice(("", " ", "\r\n"))


@pytest.mark.parametrize("unit", UNITS)
def test_any_mixture_of_texts_gives_what_the_grammar_says_of_each_alone(unit):
    chance = random.Random(unit)
    written: list[str | None] = [some_text(chance, unit) for _ in range(6_000)]
    wanted = [plainly(text, unit) for text in written if text is not None]
    assert 0.2 < np.isnan(wanted).mean() < 0.9
    assert np.array_equal(together(written, unit), wanted, equal_nan=True)
    some = pa.array([None, *written[:50], None], pa.large_string()).slice(1, 51)
    assert np.array_equal(seconds_of_texts(*texts(some), unit)[:50], wanted[:50], equal_nan=True)


def test_whatever_python_reads_as_iso_8601_is_read_as_the_same_moment():
    chance = random.Random(7)
    for _ in range(500):
        moment = datetime(1, 1, 2, tzinfo=UTC) + timedelta(microseconds=chance.randrange(3 * 10**17))
        zone = timedelta(minutes=chance.randrange(-1439, 1440))
        there = moment.astimezone(datetime.fromisoformat("2000-01-01T00:00+00:00").tzinfo)
        text = (there + zone).replace(tzinfo=None).isoformat(chance.choice("T "), "microseconds")
        sign, minutes = ("-" if zone < timedelta(0) else "+"), abs(zone) // timedelta(minutes=1)
        text += f"{sign}{minutes // 60:02}:{minutes % 60:02}"
        assert seconds_of_text(text) == datetime.fromisoformat(text).timestamp(), text
