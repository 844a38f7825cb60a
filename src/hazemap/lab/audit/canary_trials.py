"""Canaries: many people, each included by their own coin: one release is worth a thousand (Steinke et al. 2023).

Every canary has a place of its own and a *partner*, somebody who is there in any case in another place of their own and
whose line stands right before or after. What a canary's lines look like is its *kind*; whatever they do to the partner
is seen as well as what they do in their own place. Releases in turn teach how to guess whose coin fell how, and are
guessed. `CsvLineTrial` tries the lines of one person: does what they do to the whole file exceed what one may do?
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import log, sqrt
from typing import cast

import numpy as np

from hazemap.lab.audit.audited_settings import AuditedSetting
from hazemap.lab.audit.evidence.distinguishing_events import Facts, certain, confirmed
from hazemap.lab.audit.findings import Claim, LawTest, LossTest, Test, at_least, at_most, guesses
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.synthetic_people import HEADER, CsvLine, Square, row
from hazemap.lab.audit.trial_types import AuditTrial, failures
from hazemap.machine_code.arrays import Bools, Floats
from hazemap.releases import Release


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


@dataclass
class Guesses:
    """What was published of each canary, by release; releases in turn teach how to guess, and are guessed."""

    crowd: CanaryCrowd
    runs: int = 0
    errors: list[tuple[str, int]] = field(default_factory=list)
    _seen: tuple[list[tuple[Floats, Bools]], list[tuple[Floats, Bools]]] = field(default_factory=lambda: ([], []))

    def add(self, seen: Observation, coins: Bools) -> None:
        """One release of the crowd that these coins made."""
        self.runs += 1
        if not isinstance(seen.release, Release):
            self.errors.append((seen.error, int(coins.sum())))
            return
        self._seen[self.runs % 2].append((_features(self.crowd, seen), coins))

    def counted(self) -> tuple[int, int]:
        """How many guesses were right, and how many were made: of releases that taught nothing."""
        if not all(self._seen):
            return 0, 0
        taught, asked = (
            (np.concatenate([a for a, _ in half]), np.concatenate([b for _, b in half])) for half in self._seen
        )
        centre, scale = taught[0].mean(axis=0), taught[0].std(axis=0) + 1e-9
        known = _expanded((taught[0] - centre) / scale, taught[0])
        judged = _expanded((asked[0] - centre) / scale, asked[0])
        weights = _logistic(known, taught[1])
        sure = np.abs(known @ weights)
        right = (known @ weights > 0) == taught[1]
        threshold = _threshold(sure, right)
        score = judged @ weights
        made = np.abs(score) >= threshold
        return int(((score > 0) == asked[1])[made].sum()), int(made.sum())

    def lower(self, alpha: float) -> float:
        """ε that the guesses prove."""
        return guesses(*self.counted(), alpha)


def _features(crowd: CanaryCrowd, seen: Observation) -> Floats:
    """Of each canary: the published numbers in its places and in its partner's, before and after correction."""
    published = cast(Release, seen.release).map
    where = published.cells.locate(crowd.square.leaves.cells)
    found = np.zeros((crowd.size, 4))
    for column, numbers in enumerate((published.unbiased, published.values)):
        of_place = np.where(where >= 0, numbers[where], 0.0)
        for number in range(crowd.size):
            places, partner = crowd.places(number)
            found[number, 2 * column] = of_place[places].sum()
            found[number, 2 * column + 1] = of_place[partner]
    return found


def _expanded(standard: Floats, raw: Floats) -> Floats:
    """Numbers, their parts near the middle, and whether they are exactly 0; with a constant."""
    return np.hstack([standard, np.clip(standard, -0.7, 0.7), raw == 0, np.ones((len(raw), 1))])


def _logistic(numbers: Floats, coins: Bools) -> Floats:
    """Weights of a logistic regression with a little ridge, by Newton's method."""
    weights = np.zeros(numbers.shape[1])
    ridge = np.eye(numbers.shape[1]) * 1.0
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(numbers @ weights, -30, 30)))
        slope = numbers.T @ (coins - chance) - ridge @ weights
        bend = (numbers * (chance * (1 - chance))[:, None]).T @ numbers + ridge
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-8:
            break
    return weights


def _threshold(sure: Floats, right: Bools) -> float:
    """How sure a guess has to be, so that the guesses that are made prove most: of a few quantiles."""
    best, most = 0.0, -1.0
    for part in (0.0, 0.25, 0.5, 0.7, 0.85, 0.95):
        threshold = float(np.quantile(sure, part)) if part else 0.0
        made: Sequence[bool] | Bools = sure >= threshold
        bound = guesses(int(right[made].sum()), int(np.sum(made)), 1e-7)
        if bound > most:
            best, most = threshold, bound
    return best


@dataclass(frozen=True)
class CanaryTrial(AuditTrial):
    """A few releases of many canaries of one kind, each there by a coin."""

    crowd: CanaryCrowd
    setting: AuditedSetting
    releases: int
    coins: list[np.ndarray] = field(default_factory=list, compare=False)

    def orders(self) -> list[RunOrder]:
        """A file for every release, with coins of its own."""
        drawn = np.random.default_rng()
        self.coins[:] = [drawn.random(self.crowd.size) < 0.5 for _ in range(self.releases)]
        return [RunOrder(self.setting, self.crowd.content(coins), 1) for coins in self.coins]

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """The guesses; a release that fails is judged by whether it does."""
        found, claim = Guesses(self.crowd), self.setting.claim
        for outcome, coins in zip(outcomes, self.coins, strict=True):
            found.add(outcome.observations[0], coins)
        about = f"{self.setting}: {self.crowd.kind.name}"
        right, made = found.counted()
        note = f"{right} of {made} guesses right"
        yield LossTest("guessing who is there", about, claim, found.lower, self.releases, note)
        yield from super().tests(outcomes, confirming)
        yield from failures(self.setting, outcomes)


TINY, REFUSED = "1/1000", 20
"""At so small an ε refusals that differ in all of a few runs are no chance; and how many runs that are."""


@dataclass(frozen=True)
class CsvLineTrial(AuditTrial):
    """Two files that differ in the lines of one person, who stand first, in the middle or last; few runs of each.

    The people around write their lines in all the ways that CSV has, so that a file read in another way counts them in
    another way. Where numbers are moved is learned from half of the runs, and how far from the others: at least by what
    is left when the noise of so many numbers is taken off (Bernstein's bound for Laplace noise). A person who moves
    them by s in all loses s times what a step of one tells.
    """

    square: Square
    setting: AuditedSetting
    kind: CanaryKind
    where: str
    late: bool = False
    runs: int = 4

    def orders(self) -> list[RunOrder]:
        """With the person, and without."""
        people = self._people()
        place = self.square.size - 4
        own = self.kind.lines(0, float(self.square.lon[place]), float(self.square.lat[place]), 1)
        at = {"first": 0, "in the middle": len(people) // 2, "last": len(people)}[self.where]
        with_them = b"".join([HEADER, *people[:at], own, *people[at:]])
        return [RunOrder(self.setting, content, self.runs) for content in (with_them, HEADER + b"".join(people))]

    def again(self, outcomes: Sequence[RunOutcome]) -> list[RunOrder]:
        """Where runs end otherwise with the person than without: more of them, at a small ε."""
        if not certain(*_ends(outcomes)):
            return []
        tiny = replace(self.setting, epsilon=TINY, rho=None)
        return [RunOrder(tiny, order.content, REFUSED) for order in self.orders()]

    def _people(self) -> list[bytes]:
        """A row each; where `late`, 25,000 plain ones and then a thousand in quotes."""
        size = self.square.size * 3 // 4
        if self.late:
            plain = [row(self.square, f"u{number}", number % size).text for number in range(25_000)]
            quoted = [self._row(f'"q{number}"', number % size, '"a, b"') for number in range(1_000)]
            return [*plain, *quoted]
        notes = ("", '"a, b"', "''", '"say ""so"""', "o'clock")
        ids = ("u{}", '"q{}"', "0{}", "w {}", "n'{}", "é{}")
        return [
            self._row(ids[number % len(ids)].format(number), number % size, notes[number % len(notes)])
            for number in range(300)
        ]

    def _row(self, person: str, place: int, note: str) -> bytes:
        return row(self.square, person, place, note=note).text

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """How far the numbers move, and whether the release fails with the person or without."""
        about = f"{self.setting}: {self.kind.name}, {self.where}" + (" of 26,000 lines" if self.late else "")
        claim = self.setting.claim
        sides = [
            [seen.transcript[0].answer.sums for seen in outcome.observations if seen.transcript] for outcome in outcomes
        ]

        def moved(alpha: float) -> float:
            return _moved(sides[0], sides[1], alpha) if min(map(len, sides)) >= 2 else 0.0

        yield LossTest("moving others' numbers", about, claim, moved, 2 * self.runs)
        note = next((seen.error for outcome in outcomes for seen in outcome.observations if seen.error), "")[:200]
        events = certain(*_ends(outcomes))
        pvalue = confirmed(Claim("ε", float(Fraction(TINY))), events, *_ends(confirming))[0] if confirming else 1.0
        yield LawTest("refusals do not tell", about, pvalue, 2 * self.runs, note)
        yield from super().tests(outcomes, confirming)


def _ends(outcomes: Sequence[RunOutcome]) -> tuple[list[Facts], list[Facts]]:
    """What runs end in, with the person and without."""
    sides: list[list[Facts]] = [[{"ends in": seen.error} for seen in outcome.observations] for outcome in outcomes]
    return sides[0], sides[1]


def _moved(there: list[np.ndarray], gone: list[np.ndarray], alpha: float) -> float:
    """ε of a move that is certain: wrong with probability alpha. All answers are of one question."""
    if len({len(each) for each in (*there, *gone)}) > 1:
        return 0.0
    one, other = (np.mean(side[0::2], axis=0) for side in (there, gone))
    judged = [side[1::2] for side in (there, gone)]
    runs = min(map(len, judged))
    # the noise, from differences of runs on one file; a Laplace difference of scale b has deviation 2b
    width = max(float(np.std(side[0] - side[1])) / 2 for side in (there, gone))
    width = min(width, max(float(np.median(np.abs(side[0] - side[1]))) / 1.1 for side in (there, gone)) + 1.0) * 1.1
    apart = one - other
    chosen = np.flatnonzero(np.abs(apart) > 6 * width)
    if not len(chosen):
        return 0.0
    signs = np.sign(apart[chosen])
    total = sum(float((signs * (a[chosen] - b[chosen])).sum()) for a, b in zip(*judged, strict=True)) / runs
    doubt = log(2 / alpha)
    noise = sqrt(2 * doubt * len(chosen) * 4 * width**2 / runs) + width * doubt / runs
    return max(0.0, total - noise) * _step(gone, chosen, alpha / 2)


def _step(gone: list[np.ndarray], moved: np.ndarray, alpha: float) -> float:
    """What a step of one tells, from places where nobody is (the last quarter) and nothing is moved."""
    size = len(gone[0])
    empty = np.setdiff1d(np.arange(size * 3 // 4, size), moved)
    noise = np.concatenate([each[empty] for each in gone])
    if not len(noise):
        return 0.0
    here, there = int((noise >= 0).sum()), int((noise >= 1).sum())
    least, most = at_least(here, len(noise), alpha / 2), at_most(there, len(noise), alpha / 2)
    return max(0.0, log(least / most)) if least > 0 < most else 0.0
