"""A year of nightly releases by a fast clock, killed at random statements: nothing is paid twice, nor too much."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hazemap.draw import encode
from hazemap.execution.run import journal_folder
from hazemap.execution.scheduled_releases import run_schedule, schedule_series, schedule_status
from hazemap.privacy.ledger import Ledger
from hazemap.specs.schedule_spec import ScheduleSpec

from .crashes import Parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

DAYS, KILLS, ALLOWED = 365, 40, 330
FIRST = date(2025, 1, 1)
PEOPLE = 40  # a night


@pytest.fixture
def spec(tmp_path) -> ScheduleSpec:
    """Nights in Berlin, of which the year's budget allows 330."""
    chance, number = np.random.default_rng(1), DAYS * PEOPLE
    lon, lat = chance.normal([[13.4], [52.5]], [[0.03], [0.02]], (2, number))
    begin = datetime(2024, 12, 31, 23, tzinfo=UTC)
    at = [begin + timedelta(days=DAYS * float(part)) for part in np.sort(chance.random(number))]
    columns = {
        "user": chance.integers(0, 400, number),
        "lon": lon,
        "lat": lat,
        "at": pa.array(at, pa.timestamp("us", "UTC")),
    }
    pq.write_table(pa.table(columns), tmp_path / "visits.parquet")
    (tmp_path / "maps").mkdir()
    (tmp_path / "release.toml").write_text(f"""
source = "visits.parquet"
person = "user"
time = "at"
epsilon = "1/10"
method = "flat:1"
cells = "quadtree:3"
box = "13.2,52.4,13.6,52.6"
dataset = "city"
output = "maps/{{period}}.parquet"

[schedule]
name = "nightly"
every = "day"
time_zone = "Europe/Berlin"
begins = {FIRST}
yearly_epsilon = "{ALLOWED // 10}"
""")
    return ScheduleSpec.read(tmp_path / "release.toml")


def nights(first: int, last: int = DAYS) -> list[str]:
    """Four in the morning after each of these days, as clocks in Berlin show it."""
    return [f"{FIRST + timedelta(day + 1)}T04:00:00" for day in range(first, last)]


def checked(ledger: Ledger) -> Counter[str]:
    """How many charges each period has, of those that pay for it; no year costs more than it may."""
    charges = ledger.periods("nightly")
    assert sum((each.price.epsilon for each in charges), Fraction(0)) <= ALLOWED // 10
    return Counter(each.occasion.period for each in charges if not each.again)


def test_a_year_of_nights_with_kills_pays_for_no_period_twice_and_stays_within_its_budget(spec, tmp_path):
    ledger, chance = Ledger(tmp_path / "ledger.sqlite"), random.Random(7)
    asked = {"kind": "nights", "spec": str(tmp_path / "release.toml"), "ledger": str(ledger.path), "seconds": 3000}
    ended: Counter[str] = Counter()
    with Parent(tmp_path) as parent:
        assert parent.ended(asked | {"nights": nights(0, 2)}).endings == ["0"]
        points = parent.points() // 2  # of a night
        for _ in range(KILLS):
            done = max(len(checked(ledger)) - 1, 0)  # the last night is run again
            point = chance.randint(1, points * 2 * DAYS // KILLS)
            if done < 300:
                [ending] = parent.ended(asked | {"nights": nights(done, 305), "point": point}).endings
                ended[ending] += 1
                assert max(checked(ledger).values()) == 1
        [ending] = parent.ended(asked | {"nights": nights(len(checked(ledger)) - 1)}).endings
        assert ending == "0"
    assert ended["killed"] >= KILLS // 2
    paid = checked(ledger)
    assert set(paid.values()) == {1}
    again = sum(each.again for each in ledger.periods("nightly"))
    assert len(paid) + again == ALLOWED  # each question whose answer was lost took a night's budget with it
    done = run_schedule(spec, ledger=ledger, now=nights(DAYS - 1)[0])
    states = Counter(each.state for each in done.periods)
    assert states == {"there": len(paid), "refused": DAYS - len(paid)} and done.exit_code == 3
    assert len(ledger.history()) == ALLOWED and all(record.released for record in ledger.history())
    assert str(schedule_status(spec, ledger=ledger, now=nights(DAYS - 1)[0]).left) == "ε = 0"
    assert not [path for path in journal_folder(ledger).glob("*") if path.suffix != ".lock"]
    series = schedule_series(spec, ledger=ledger, now=nights(DAYS - 1)[0])
    assert len(series.points) == len(paid) == len(list((tmp_path / "maps").glob("2025-*.parquet")))
    page = tmp_path / "series.html"
    page.write_text(series.to_html())
    assert encode(series.draw())[:4] == b"\x89PNG" and page.stat().st_size > 10_000
    print(f"{dict(ended)} of {KILLS}, {again} questions paid again; {series.summary}")


def test_a_ledger_that_forgets_periods_pays_twice_and_is_found_out(spec, tmp_path):
    """A twin: schedules that believe in their files instead of the ledger."""
    ledger = Ledger(tmp_path / "ledger.sqlite")
    sabotage = """
import hazemap.execution.scheduled_releases as scheduled
import hazemap.privacy.ledger as books
books.check_occasion = lambda *_, **__: None
scheduled._known = lambda book, period, paid: scheduled.PeriodState(
    period, "there" if pathlib.Path(f"maps/{period.name}.parquet").exists() else "due"
)
"""
    asked = {"kind": "nights", "spec": str(tmp_path / "release.toml"), "ledger": str(ledger.path)}
    with Parent(tmp_path, sabotage) as parent:
        assert parent.ended(asked | {"nights": nights(0, 1)}).endings == ["0"]
        points = parent.points()
        for point in range(1, points, 3):
            begun = len(checked(ledger)) - 1
            parent.ended(asked | {"nights": nights(begun + 1, begun + 2), "point": point})
            parent.ended(asked | {"nights": nights(begun + 1, begun + 2)})
    assert max(checked(ledger).values()) > 1
