"""Canaries: many people, each included by their own coin: one release is worth a thousand (Steinke et al. 2023).

Every canary has a place of its own and a *partner*, somebody who is there in any case in another place of their own and
whose line stands right before or after. What a canary's lines look like is its *kind*; whatever they do to the partner
is seen as well as what they do in their own place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hazemap.lab.audit.synthetic_people import HEADER, CsvLine, Square, row
from hazemap.machine_code.arrays import Bools


@dataclass(frozen=True)
class CanaryKind:
    """What the lines of a canary look like: bytes from its number, longitude, latitude and the number of rows.

    `partner` writes the id of the partner from the number. `only` names the bounding rule that it is for, if one.
    """

    name: str
    lines: Callable[[int, float, float, int], bytes]
    partner: Callable[[int], str] = lambda number: f"p{number}"
    only: str = ""


def _plain(user: str, lon: float, lat: float, weight: str = "1000", rows: int = 1) -> bytes:
    return f"{user},{lon:.6f},{lat:.6f},{weight},2026-03-01T08:00:00,\n".encode() * rows


def _as(form: str, rows: int = 40) -> Callable[[int, float, float, int], bytes]:
    """A proper person whose id is nearly the partner's, with many rows."""
    return lambda number, lon, lat, _: _plain(form.format(number), lon, lat, rows=rows)


def _before(text: bytes, plain: bool = True) -> Callable[[int, float, float, int], bytes]:
    """A line of nobody or of who knows whom, after a plain row of the canary."""

    def lines(number: int, lon: float, lat: float, most: int) -> bytes:
        strange = text.replace(b"#", str(number).encode()).replace(b"@", f"{lon:.6f},{lat:.6f}".encode())
        return (_plain(f"c{number}", lon, lat, rows=most) if plain else b"") + strange

    return lines


KINDS: tuple[CanaryKind, ...] = (
    CanaryKind("plain rows", lambda n, lon, lat, most: _plain(f"c{n}", lon, lat, rows=3 * most)),
    CanaryKind("one plain row", lambda n, lon, lat, _: _plain(f"c{n}", lon, lat)),
    CanaryKind("an id with a zero before it", _as("0{}"), str),
    CanaryKind("an id as a floating number", _as("{}.0"), str),
    CanaryKind("an id with a space before it", _as(" {}"), str),
    CanaryKind("an id with a space behind it", _as("{} "), str),
    CanaryKind("an id with a plus sign", _as("+{}"), str),
    CanaryKind("an id with an exponent", _as("{}e0"), str),
    CanaryKind("an id in capitals", _as("P{}"), lambda n: f"p{n}"),
    CanaryKind("an id in other letters of the same look", _as("é{}".replace("é", "e\u0301")), lambda n: f"é{n}"),
    CanaryKind("an id with digits of another script", _as("\uff11{}"), lambda n: f"1{n}"),
    CanaryKind("an id that is longer", _as("p{}" + "x" * 40), lambda n: f"p{n}" + "x" * 39),
    CanaryKind("an id of 2⁵³ and one more", lambda n, lon, lat, _: _plain(str(2**53 + 2 * n + 1), lon, lat, rows=40),
         lambda n: str(2**53 + 2 * n)),
    CanaryKind("an id in apostrophes", _as("'{}'"), str),
    CanaryKind("a quote that is not closed, in the note", _before(b'c#,@,1,2026-03-01T08:00:00,"hi\n')),
    CanaryKind("a quote that is not closed, in the id", _before(b'"c#,@,1,2026-03-01T08:00:00,\n')),
    CanaryKind("a quote inside a field", _before(b'c#,@,1,2026-03-01T08:00:00,h"i\n')),
    CanaryKind("a quoted note", _before(b'c#,@,1,2026-03-01T08:00:00,"hi, you"\n')),
    CanaryKind("a quoted line break", _before(b'c#,@,1,2026-03-01T08:00:00,"hi\nyou"\n')),
    CanaryKind("letters behind a quote", _before(b'c#,@,1,2026-03-01T08:00:00,"hi"x\n')),
    CanaryKind("backslash and quote", _before(b'c#,@,1,2026-03-01T08:00:00,"hi\\"\n')),
    CanaryKind("two apostrophes", _before(b"c#,@,1,2026-03-01T08:00:00,''\n")),
    CanaryKind("an apostrophe that is not closed", _before(b"c#,@,1,2026-03-01T08:00:00,'hi\n")),
    CanaryKind("too many fields", _before(b"c#,@,1,2026-03-01T08:00:00,,,,,\n")),
    CanaryKind("too few fields", _before(b"c#,@\n")),
    CanaryKind("one field", _before(b"c#\n")),
    CanaryKind("an empty line", _before(b"\n")),
    CanaryKind("a comment", _before(b"# c#,@\n")),
    CanaryKind("semicolons", _before(b"c#;13.1;52.1;1;2026;x;y\n")),
    CanaryKind("tabs", _before(b"c#\t13.1\t52.1\t1\t2026\tx\n")),
    CanaryKind("a byte 0", _before(b"c#,@,1,\x00,\x00\n")),
    CanaryKind("bytes that are no UTF-8", _before(b"c#,@,1,2026-03-01T08:00:00,\xff\xfe\xe9\n")),
    CanaryKind("a carriage return alone", _before(b"c#,@,1,2026-03-01T08:00:00,a\rb\n")),
    CanaryKind("a carriage return at the end", _before(b"c#,@,1,2026-03-01T08:00:00,a\r\n")),
    CanaryKind("a byte order mark", _before(b"\xef\xbb\xbfc#,@,1,2026-03-01T08:00:00,\n", plain=False)),
    CanaryKind("no id", _before(b",@,1,2026-03-01T08:00:00,\n" * 5)),
    CanaryKind("coordinates that are none", _before(b"c#,NaN,inf,1,2026,\nc#,,,1,,\nc#,1e999,-,1,,\n")),
    CanaryKind("coordinates outside the Earth", _before(b"c#,400,95,1,2026,\nc#,-999,-999,1,,\n")),
    CanaryKind("coordinates elsewhere", _before(b"c#,-70,-33,1,2026,\nc#,52.1,13.1,1,,\n" * 3)),
    CanaryKind("times that are none", _before(b"c#,@,1,yesterday,\nc#,@,1,9999999999999999,\n")),
    CanaryKind("weights that are none", _before(b"c#,@,NaN,,\nc#,@,-5,,\nc#,@,,,\nc#,@,x,,\n"), only="one vote"),
    CanaryKind("huge weights", _before(b"c#,@,1e308,,\nc#,@,inf,,\nc#,@,9e15,,\n" * 3), only="one vote"),
)  # fmt: skip
"""What canaries are made to look like. Partners come first in the file, or right after, in turn."""


@dataclass(frozen=True)
class CanaryCrowd:
    """Canaries of one kind: `own[i]` and `partners[i]` are their places, positions in the order of the square."""

    square: Square
    kind: CanaryKind
    most: int
    spread: bool = False

    @property
    def size(self) -> int:
        """How many canaries: half of the places are for partners, and half of the rest are always empty."""
        return self.square.size // (4 * (self.most if self.spread else 1)) - 1

    def places(self, number: int) -> tuple[list[int], int]:
        """The places of a canary, and that of its partner."""
        step = self.square.size // (self.size + 1)
        width = self.most if self.spread else 1
        return [step * number + at for at in range(width)], step * number + step - 1

    def content(self, coins: Sequence[bool] | Bools) -> bytes:
        """The file with those canaries whose coin says so."""
        text = [HEADER]
        for number, there in enumerate(coins):
            places, partner = self.places(number)
            beside = self._row(self.kind.partner(number), partner).text
            own = b"".join(self._lines(number, place) for place in places) if there else b""
            text.append(own + beside if number % 3 else beside + own)
        text.append(self._row("last", self.square.size - 1).text)
        return b"".join(text)

    def _lines(self, number: int, place: int) -> bytes:
        lon, lat = float(self.square.lon[place]), float(self.square.lat[place])
        return self.kind.lines(number, lon, lat, self.most)

    def _row(self, person: str, place: int) -> CsvLine:
        return row(self.square, person, place)
