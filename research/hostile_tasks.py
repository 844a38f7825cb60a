"""Tasks that a hostile server might send, made up without end, and what a device does about each.

usage: python -m research.hostile_tasks [--number 1000000] [--seed 1]

A device may refuse a task or answer it. It may not fail in another way, work for long, or fill its memory; and whoever
watches it may not learn whether its person was inside the box that was asked about. Every task is judged as by a device
that allows what a policy can allow, by two people: one with rows inside the box, one far outside. A fifth of the tasks
ask recipes: of one who has events, and one who has none.
"""

import argparse
import json
import random
import signal
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from time import process_time
from typing import Any, TypeVar

import numpy as np

from hazemap import codec
from hazemap.codec import MESSAGE
from hazemap.engines.memory import MemoryTable
from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.protocols.secure_aggregation import graph_degree
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.trust import recipe_terms
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.device_tasks import KNOWN, Task, parameters_for
from hazemap.federated.trust.randomised_reports import randomised
from hazemap.privacy import distributed_noise
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.random_stream import Stream
from research import hostile_recipes
from research.hostile_recipes import NOTHING, TYPING

CPU, MEMORY = 0.1, 64 << 20
"""What one message may cost: seconds of CPU, bytes."""
HANGS = 60.0
"""Seconds of CPU after which a message, to both people and traced, is given up."""
RECIPE_CPU = 3.0
"""Seconds for a recipe, whose query may take two by itself."""

OPEN = Policy(
    people=2,
    survivors=1,
    corrupt=Fraction(0),
    finest=0.0,
    campaign=Fraction(10**12),
    period=Fraction(10**12),
    modes=("malicious", "semi-honest"),
)
"""Refuses as little as a policy can, so that much is tried."""

INSIDE = MemoryTable(np.zeros(5, dtype=np.int64), {"lon": np.full(5, 13.4), "lat": np.full(5, 52.5)})
OUTSIDE = MemoryTable(np.zeros(5, dtype=np.int64), {"lon": np.full(5, -70.1), "lat": np.full(5, -33.3)})

WHOLE = (
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    29,
    30,
    31,
    32,
    100,
    4_096,
    1 << 16,
    1 << 20,
    1 << 31,
    (1 << 62) - 1,
    1 << 63,
    3_000_000_000,
)
FLOATS = (0.0, -0.0, 1.0, 13.4, 52.5, 90.0, 180.0, -180.0, 1e-320, 1e308, 0.25, -85.06)
PARTS = ("0", "1/10", "1/20", "1/5", "1/2", "9/10", "999/1000", "1/3", "1001/1000", "1/" + "9" * 600, "9" * 600, "-1/2")
TEXTS = ("[" * 200_000, '{"fraction":"1e999999999"}', '{"a":' * 100_000, "[" + "[]," * 500_000 + "[]]", '"' * 999)


RECIPES = 5
"""One in so many messages asks a recipe."""


def spread(rng: random.Random, low: float, high: float) -> int:
    """A whole number whose logarithm is uniform."""
    return int(low * (high / low) ** rng.random())


def cells(rng: random.Random) -> dict[str, Any]:
    """A tree, around the middle of a town or wherever."""
    if rng.random() < 0.2:
        width = rng.choice((0.01, 0.4, 5.0, 360.0))
        box = {"west": 13.4 - width / 2, "south": 52.3, "east": 13.4 + width / 2, "north": 52.7}
        return {"Hexagons": {"box": {"Box": box}, "coarsest": rng.randrange(8), "finest": rng.randrange(16)}}
    x, y, side = rng.choice(((0.0, 0.0, 1.0), (0.5, 0.25, 0.25), (0.537, 0.328, 2.0**-12), (0.5, 0.3, 0.3)))
    return {"Quadtree": {"left": x, "top": y, "side": side, "depth": rng.choice((0, 1, 3, 8, 8, 12, 16, 23, 24, 25))}}


def rule(rng: random.Random) -> dict[str, Any]:
    """A bound on what a person contributes."""
    nowhere = rng.choice((False, False, True, "people"))
    kind = rng.choice(("AtMostRows", "AtMostCells", "OneVote", "RowIsPerson"))
    most = (
        {"most": rng.choice((1, 1, 2, 20, 1_000, 10**6, rng.choice(WHOLE)))}
        if kind in ("AtMostRows", "AtMostCells")
        else {}
    )
    scale = {"scale": rng.choice((1, 60, 5_040, 1 << 16, 1 << 40))} if kind == "OneVote" else {}
    return {kind: {**most, **scale, "nowhere": nowhere}}


def encoder(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """A question: listed cells, a sketch, a wavelet, or several of them."""
    tree, kind = cells(rng), rng.random()
    if kind < 0.12 and depth < 3:
        parts = [encoder(rng, depth + 1) for _ in range(spread(rng, 1, 40))]
        return {"Stack": {"parts": parts, "weights": [rng.choice((1, 1, 2, 1_000, -1, 0)) for _ in parts]}}
    if kind < 0.3:
        shape = {"level": rng.randrange(31), "width": spread(rng, 1, 1 << 22), "rows": rng.choice((1, 2, 5, 64, 4_096))}
        return {"Sketch": {"tree": tree, **shape, "bounding": rule(rng), "key": rng.choice((0, 1, 1 << 63))}}
    if kind < 0.45:
        tree = tree if "Quadtree" in tree or rng.random() < 0.1 else cells(rng)
        return {"Wavelet": {"tree": tree, "level": rng.randrange(14), "bounding": rule(rng)}}
    if kind < 0.55:
        return {"Counts": {"cells": {"Everything": {"tree": tree}}, "bounding": rule(rng)}}
    level, many = rng.randrange(10), spread(rng, 1, 3_000)
    start = rng.choice((4**level, 4**level, 4**level, 1, 0, 1 << 60, 599686042433355775))
    numbers = sorted({start + int(4**level * rng.random()) for _ in range(many)}) + rng.choice(([], [], [0], [1 << 63]))
    return {
        "Counts": {"cells": {"Leaves": {"tree": tree, "cells": {"array": ["uint64", numbers]}}}, "bounding": rule(rng)}
    }


def task(rng: random.Random) -> dict[str, Any]:
    """A task that mostly hangs together, with parts that do not."""
    share = Fraction(1, rng.choice((1, 2, 10, 20, 999)))
    budget = Fraction(rng.choice((1, 1, 5, 10**9)), rng.choice((1, 3, 10**6)))
    people = spread(rng, 20, 1e5)
    cohort = {
        "people": people,
        "shard": rng.choice((people, spread(rng, 50, 12_000), spread(rng, 50, 12_000), 10_000, rng.choice(WHOLE))),
        "dropout": {"fraction": str(Fraction(rng.choice((0, 5, 10, 20, rng.randrange(90))), 100))},
        "corrupt": {"fraction": str(Fraction(rng.choice((0, 5, 10, rng.randrange(60))), 100))},
        "sampling": {"Sampling": rng.choice(("one sample for all rounds", "a fresh sample each round"))},
        "mode": {"Mode": rng.choice((1, 2))},
    }
    query = {"encoder": encoder(rng), "share": {"fraction": str(share)}, "cohort": None}
    fields = {
        "campaign": "homes",
        "purpose": "a map",
        "round": 1,
        "question": {"Query": query},
        "price": {"PureDP": {"epsilon": {"fraction": str(budget * share)}}},
        "budget": {"PureDP": {"epsilon": {"fraction": str(budget)}}},
        "cohort": {"Cohort": cohort},
    }
    return {"Task": fields}


BUDGETS = tuple(ApproxDP(Fraction(epsilon), Fraction(delta)) for epsilon, delta in
    (("1", "1/1000000"), ("10", "1/1000000000"), ("1/1000", "1/100000"), ("1/1000000", "1/1000000")))  # fmt: skip


def reported(rng: random.Random, found: dict[str, Any]) -> dict[str, Any]:
    """The same task, of people who randomise their own reports: of one row each, mostly, in pure ε or in ρ."""
    fields = found["Task"]
    encoder = fields["question"]["Query"]["encoder"]
    for part in encoder.values():
        if "bounding" in part and rng.random() < 0.9:
            part["bounding"] = {"AtMostRows": {"most": 1, "nowhere": False}}
    local = rng.choice((*PARTS[:6], "1", "4", "8", "1/1048576", "1/1000"))
    fields["randomiser"] = {rng.choice(("Asymmetric", "Symmetric")): {"epsilon": {"fraction": local}}}
    if rng.random() < 0.8:
        budget, share = rng.choice(BUDGETS), Fraction(fields["question"]["Query"]["share"]["fraction"])
        price = budget.part(share)
        fields["budget"], fields["price"] = (json.loads(codec.dumps(each)) for each in (budget, price))
    return found


def spoilt(rng: random.Random, data: Any) -> Any:
    """The same with a few leaves replaced by what should not stand there."""
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        *above, last = rng.choice([path for path in places(data) if path])
        parent = data
        for step in above:
            parent = parent[step]
        parent[last] = deepcopy(
            rng.choice((*WHOLE, *FLOATS, *({"fraction": part} for part in PARTS), True, None, "", []))
        )
    return data


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value, but for the single numbers of arrays."""
    yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data[:2]) if isinstance(data, list) else ()
    for step, value in inner:
        yield from places(value, (*path, step))


def texts(seed: int) -> Iterator[str]:
    """Messages without end; the same for the same seed."""
    rng, other = random.Random(seed), random.Random(~seed)  # noqa: S311 - the same messages again
    for number in count(1):
        if number % RECIPES == 0:
            yield json.dumps(spoilt(other, hostile_recipes.task(other)))
        else:
            made = reported(rng, task(rng)) if rng.random() < 0.2 else task(rng)
            yield rng.choice(TEXTS) if rng.random() < 0.002 else json.dumps(spoilt(rng, made))


def understood(text: str) -> Task | None:
    """The task in a message; None where it holds none."""
    try:
        found: Task = codec.loads(text, KNOWN, Task, MESSAGE)
    except CodecError:
        return None
    return found


def offered(found: Task) -> SessionParameters | None:
    """What a server would offer for this task, so that a device looks at all of it; None where it cannot."""
    try:
        clients = min(found.cohort.shard, found.cohort.people, 10_000)
        return parameters_for(found, bytes(32), clients, bytes(32), bytes(32))
    except (CodecError, InputError):
        return None


def answered(text: str, terms: SessionParameters | None, rows: MemoryTable) -> tuple[str, int]:
    """What a device says to a task in a session of these terms, and how many numbers: all that others see."""
    found = understood(text)
    if found is None:
        return "no task", 0
    if terms is None:
        return "no session", 0
    try:
        if reason := OPEN.refusal(found, terms):
            return f"refused: {reason}", 0
        if found.recipe is not None:
            return hostile_recipes.answered(found, terms, TYPING if rows is INSIDE else NOTHING)
    except (InputError, Refused) as error:
        return f"refused: {error}", 0
    sums, law = contribution(found.question.encoder, lambda: rows).sums, found.randomiser
    sums = sums if law is None else randomised(law, sums, Stream.from_os())
    return f"answered{'' if law is None else ' by a report'}: {sums.dtype}", len(sums)


class TooLong(BaseException):
    """A message takes longer than any may: no `except Exception` keeps it."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `TooLong` after so many seconds of CPU, in the main thread: a message that hangs ends no run."""

    def over(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def forget() -> None:
    """As if a device had just been started: nothing is known of parameters."""
    for known in (
        zcdp_of_sum,
        graph_degree.degree_and_threshold,
        graph_degree.weakness,
        graph_degree.together,
        distributed_noise._bits,
        recipe_terms._price,
        recipe_terms._price_of_coins,
    ):
        known.cache_clear()


@dataclass
class Findings:
    """What became of many messages: kinds of answers, the dearest message of each measure, and what went wrong."""

    kinds: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    bytes: int = 0
    seen: int = 0
    faults: list[str] = field(default_factory=list)

    def see(self, text: str, traced: bool, most: float = CPU) -> None:
        """One message, to two people; more than `most` seconds of CPU are a fault.

        Whether it holds a task at all is found once: no row is there yet. One of the two, now this one and now that,
        has just been started and knows nothing of parameters, which is what costs most; the other has just answered
        the same. So what is known may not change an answer either.
        """
        try:
            with limited(HANGS):
                self._seen(text, traced, max(most, RECIPE_CPU) if "RecipeBins" in text else most)
        except TooLong:
            self.faults.append(f"more than {HANGS:g} s of CPU: {text[:2_000]}")

    def _seen(self, text: str, traced: bool, most: float) -> None:
        peak = 0
        try:
            forget()
            seconds, found = measured(lambda: understood(text))
            terms = None if found is None else offered(found)
            both = {INSIDE: ("no task" if found is None else "no session", 0)}
            both[OUTSIDE] = both[INSIDE]
            if terms is not None:
                forget()
                for rows in (INSIDE, OUTSIDE)[:: 1 - 2 * (self.seen % 2)]:
                    spent, both[rows] = measured(lambda rows=rows: answered(text, terms, rows))  # type: ignore[misc]
                    seconds = max(seconds, spent)
            if seconds > most:  # something else may have happened at the time: the least of three counts
                seconds = min(seconds, *(from_the_start(text, terms) for _ in range(2)))
            if traced:
                peak = traced_peak(text, terms)
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {error!s:.200} for {text[:2_000]}")
            return
        self.seen += 1
        self.kinds[both[INSIDE][0].partition(":")[0]] += 1
        self.seconds, self.bytes = max(self.seconds, seconds), max(self.bytes, peak)
        if both[INSIDE] != both[OUTSIDE]:
            self.faults.append(f"{both[INSIDE]} inside, {both[OUTSIDE]} outside: {text[:2_000]}")
        if seconds > most or peak > MEMORY:
            self.faults.append(f"{seconds:.3f} s of CPU, {peak:,} bytes: {text[:2_000]}")


def from_the_start(text: str, terms: SessionParameters | None) -> float:
    """Seconds of CPU that a message takes of a device that was just started."""
    forget()
    return measured(lambda: answered(text, terms, INSIDE))[0]


def traced_peak(text: str, terms: SessionParameters | None) -> int:
    """Bytes that a message takes of it at most."""
    forget()
    tracemalloc.start()
    try:
        answered(text, terms, INSIDE)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


T = TypeVar("T")


def measured(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of CPU, and what came of it."""
    start = process_time()
    found = work()
    return process_time() - start, found


def fuzzed(number: int, seed: int, most: float = CPU, tell: Callable[[int, Findings], None] | None = None) -> Findings:
    """So many messages; memory is traced for each twentieth. `tell` is called after every 10,000."""
    findings, made = Findings(), texts(seed)
    for _ in range(20):  # loops are compiled once
        Findings().see(next(made), traced=False)
    for at in range(number):
        findings.see(next(made), traced=at % 20 == 0, most=most)
        if tell is not None and at % 10_000 == 9_999:
            tell(at + 1, findings)
    return findings


def report(number: int, found: Findings) -> None:
    """Print what became of so many messages."""
    print(f"{number:,} tasks: {dict(found.kinds)}")
    print(f"the dearest took {found.seconds:.3f} s of CPU and {found.bytes / 2**20:.1f} MB")
    print("\n".join(found.faults[:20]) or "no fault", flush=True)


def main() -> None:
    """Print what became of them, and now and then what has so far."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--number", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    found = fuzzed(chosen.number, chosen.seed, tell=report)
    report(chosen.number, found)
    if found.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
