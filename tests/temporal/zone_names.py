"""The names of time zones that every device knows by one list, whatever the time zone database of its machine.

`python -m tests.temporal.zone_names` writes `src/hazemap/temporal/zone_names.txt` from the database of this machine,
and the same list for the device in TypeScript: `Intl` takes names in any case, and cannot say how an alias is spelt.
Run it when the database has new names. A device whose database is older refuses a zone that it has no clocks for.
"""

import textwrap
from pathlib import Path
from zoneinfo import available_timezones

from hazemap.temporal.time_slots import zone_names

ROOT = Path(__file__).parents[2]
OURS = ROOT / "src" / "hazemap" / "temporal" / "zone_names.txt"
THEIRS = ROOT / "web" / "device" / "src" / "zone_names.ts"

NO_ZONES = frozenset({"Factory", "localtime"})
"""Names in a database which mean no zone, or another one on each machine."""


def typescript(names: list[str]) -> str:
    """The list as a module of the device in TypeScript."""
    lines = "\n".join(textwrap.wrap(" ".join(names), 120, break_long_words=False, break_on_hyphens=False))
    return f"""\
/** The names of time zones: src/hazemap/temporal/zone_names.txt, by tests/temporal/zone_names.py. */
export const ZONE_NAMES: ReadonlySet<string> = new Set(
  `
{lines}
`
    .trim()
    .split(/\\s/),
);
"""


def known_here() -> list[str]:
    """The names in the database of this machine."""
    return sorted(available_timezones() - NO_ZONES)


if __name__ == "__main__":
    OURS.write_text("\n".join(known_here()) + "\n", encoding="ascii")
    zone_names.cache_clear()
    THEIRS.write_text(typescript(sorted(zone_names())), encoding="ascii")
