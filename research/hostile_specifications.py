"""Odd orders of maps and of statistics over odd tables, and what becomes of each.

    python -m research.hostile_specifications --number 2000

An order is a call of `hazemap.release` or `hazemap.stats` whose keywords are sensible in most, and odd in some:
budgets, boxes, bounds, times, slots, rules, marks, cells, methods, models, quantiles, and files to write
(`hostile_orders`).
Nothing fails in the system here, so whatever fails has to fail before the charge. Faults are:

* an error that is not hazemap's own, or a warning of a library;
* a charge without a release, and an error that says what was paid;
* a charge for what was known beforehand to tell nothing: of no time, or with noise beyond the world's population;
* a release that cannot be opened again, or a number of it that is not finite;
* a method that refuses an answer, whatever it is: answers are known only after the charge (`walked`).
"""

import argparse
import random
import resource
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from typing import Any, cast

import numpy as np

import hazemap
from hazemap.encoders import EvenSplitScores, MedianSplitScores
from hazemap.errors import HazemapError, HazemapWarning
from hazemap.execution.run import answer_of_nobody, rehearse
from hazemap.privacy.budget import Budget
from hazemap.queries.algorithm_session import Session, Unrecorded
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Question
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.trust.curator import Curator
from research.hostile_orders import Order, specification, table
from research.hostile_tasks import TooLong, limited

HANGS = 120
"""Seconds of a processor after which a run hangs: the slowest that are asked for take some 15."""

ROOM = 8 << 30
"""Bytes of addresses: a walk that takes more ends with a `MemoryError`, and not with the machine."""

MOST_ASKED = 1 << 22
"""Walks end at a question about more numbers than this; it would take too long."""

PEOPLE = 1 << 26
"""The largest answers of a walk: what a table of as many people says."""

POPULATION = 8.3e9

CURATOR = Curator(cast(Any, None))  # prices need no table

DISTRICTS = """{"type": "FeatureCollection", "features": [
{"type": "Feature", "properties": {"name": "one"}, "geometry": {"type": "Polygon", "coordinates":
[[[13.2, 52.4], [13.4, 52.4], [13.4, 52.6], [13.2, 52.6], [13.2, 52.4]]]}},
{"type": "Feature", "properties": {"name": "two"}, "geometry": {"type": "Polygon", "coordinates":
[[[13.4, 52.4], [13.6, 52.4], [13.6, 52.6], [13.4, 52.6], [13.4, 52.4]]]}}]}"""


@dataclass
class Findings:
    """What became of so many orders, and what should not have."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@contextmanager
def strict() -> Iterator[None]:
    """Warnings of libraries are errors; those of hazemap are words."""
    with warnings.catch_warnings(), limited(HANGS):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", HazemapWarning)
        yield


def furnished(folder: Path) -> None:
    """Put into a folder what orders name: districts, lists of hexagons, and what is in the way of a file."""
    (folder / "districts.geojson").write_text(DISTRICTS)
    (folder / "hexagons.csv").write_text("871f1d4a1ffffff\n871f1d489ffffff\n871f18b24ffffff\n")
    (folder / "empty.csv").write_text("")
    (folder / "there.parquet").write_bytes(b"a map of last year")
    (folder / "folder.parquet").mkdir()
    (folder / "link.parquet").symlink_to(folder / "there.parquet")


def placed(order: Order, folder: Path, source: Any) -> Order:
    """The order with the files of this folder."""
    files = {"{d}": "districts.geojson", "{h}": "hexagons.csv", "{e}": "empty.csv"}
    files["{s}"] = source.name if isinstance(source, Path) else "table.csv"
    made = dict(order)
    for name, value in order.items():
        for short, file in files.items():
            if isinstance(value, str) and short in value:
                made[name] = value.replace(short, str(folder / file))
    if not str(made.get("output", "/")).startswith("/"):
        made["output"] = f"{folder}/{made['output']}"
    return made


def tried(verb: str, order: Order, source: Any, folder: Path) -> tuple[str, str]:
    """What became of an order, in a word; and what is wrong with that, or nothing."""
    book = hazemap.Ledger(folder / "ledger.sqlite")
    try:
        with strict():
            made = getattr(hazemap, verb)(source, ledger=book, go_on=True, **order)
            told = wrong(made, order, book)
    except HazemapError as error:
        said = f"{type(error).__name__}: {error}"
        paid = bool(book.history()) or "has paid" in said
        return ("paid and lost", said) if paid else ("refused", "")
    except TooLong:
        return "endless", f"after {HANGS} s, paid: {bool(book.history())}"
    except Exception as error:
        return "crashed", f"{where(error)}, paid: {bool(book.history())}"
    return "released", told


def gone_on(order: Order, source: Any, book: hazemap.Ledger) -> str:
    """What is wrong with what a run that stopped after its look becomes where the rest is paid all the same."""
    charge, memory = book.history()[-1].charge.id, {} if isinstance(source, Path) else {"source": source}
    try:
        with strict():
            return wrong(hazemap.recover(charge, ledger=book, go_on=True, **memory), order, book)
    except Exception as error:
        return f"going on: {where(error)}"


def where(error: BaseException) -> str:
    """An error, and the last lines of code that it came through."""
    steps = [f"{Path(step.filename).name}:{step.lineno}" for step in traceback.extract_tb(error.__traceback__)]
    return f"{type(error).__name__}: {error} at {' '.join(steps[-4:])}"


def wrong(made: Any, order: Order, book: hazemap.Ledger) -> str:
    """What is wrong with a release; nothing, if all is well."""
    charges = book.history()
    if len(charges) not in (1, 2) or not all(each.released for each in charges):  # at once, or a look and the rest
        return f"{len(charges)} charges, released: {[each.released for each in charges]}"
    if "output" in order and type(made).open(order["output"]).statement != made.statement:
        return "the file says something else"
    times = [_instant(order.get(name)) for name in ("since", "until")]
    if times[0] is not None and times[1] is not None and times[0] >= times[1]:
        return "paid for no time at all"
    numbers, noise = _numbers(made, order)
    if strange := [name for name, each in numbers.items() if not np.isfinite(each).all()]:
        return f"not finite: {', '.join(strange)}"
    return f"noise of {noise:.3g} people" if noise > POPULATION else ""


def _instant(text: str | None) -> datetime | None:
    with suppress(ValueError):
        found = datetime.fromisoformat(text or "")
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def _numbers(made: Any, order: Order) -> tuple[dict[str, Any], float]:
    """Everything that a release tells, and how many people its noise may hide."""
    if not isinstance(made, hazemap.Statistics):
        total = made.total()
        ends = [total.best_guess, total.unbiased, total.low, total.high, total.stddev]
        told = {"cells": made.map.values, "total": ends}
        return told, total.stddev / made.statement.bounding.unit
    told = {}
    for name in ("mean", "variance") if order.get("variance") else ("mean",):
        found = made.found(name)
        told |= {name: found.value[~found.too_few], f"errors of the {name}": found.stddev[~found.too_few]}
        told[f"ends of the {name}"] = np.stack([found.low, found.high])
    return told, float(made.measurements.threshold)


def hostile_answer(rng: random.Random, question: Question, price: Budget) -> Answer:
    """What some table and some noise may answer: nothing, crowds in one place or everywhere, fewer than nobody."""
    draw, honest = np.random.default_rng(rng.getrandbits(32)), answer_of_nobody(question, price)
    if isinstance(question, Growth):
        cells = question.tree.root
        for _ in range(rng.randrange(question.tree.depth + 1)):
            cells = np.concatenate([cells[:-1], question.tree.children(cells[-1:])])
        return replace(honest, sums=cells.astype(np.int64))
    if isinstance(question, Choice):
        if not isinstance(question.scores, MedianSplitScores | EvenSplitScores):
            return honest
        lines, starts = question.scores.candidates
        return replace(honest, sums=lines[draw.integers(starts[:-1], starts[1:])])
    size, sums = len(honest.sums), np.zeros(len(honest.sums), dtype=np.int64)
    some = draw.integers(0, size, min(size, 9))
    match rng.choice(("noise", "crowds", "fewer than nobody", "a crowd", "some", "even", "nobody")):
        case "noise":
            wide = draw.laplace(0, float(honest.stddev.max()), size)
            sums = np.rint(np.clip(wide, -(2.0**61), 2.0**61)).astype(np.int64)
        case "crowds":
            sums[some] = PEOPLE
        case "fewer than nobody":
            sums[:] = -PEOPLE
        case "a crowd":
            sums[some[:1]] = PEOPLE // 4
        case "some":
            sums[some] = draw.integers(0, PEOPLE // 16, len(some))
        case "even" if size < 1 << 12:
            sums[:] = PEOPLE // size
    return replace(honest, sums=sums)


def walked(verb: str, order: Order, source: Any, rng: random.Random) -> str:
    """Why the method of an order fails on hostile answers; nothing, where it ends, or nobody may order it at all."""
    kind = ReleaseSpec if verb == "release" else StatisticsSpec
    try:
        spec = kind.of(source if isinstance(source, Path) else None, **order)
        first = next(rehearse(spec.algorithm, CURATOR, spec.budget))
        list(rehearse(spec.algorithm, CURATOR, spec.budget))
    except HazemapError:
        return ""
    if first.share == 1:
        return ""
    said: list[str] = []
    try:
        with strict():
            prices = CURATOR.prices(spec.budget)
            session = Session(spec.algorithm, prices, spec.budget, Unrecorded(), CURATOR.answers)
            while session.question is not None and (session.question.size or 0) <= MOST_ASKED:
                answer = hostile_answer(rng, session.question, session.price)
                said.append(f"{type(session.question).__name__} {answer.sums.min()}…{answer.sums.max()}")
                session.receive(answer)
    except TooLong:
        return f"no end after {said}"
    except MemoryError:
        return ""  # so many people need a larger machine
    except Exception as error:
        return f"{where(error)} after {said}"
    return ""


def fuzzed(number: int, seed: int, first: int = 0, say: bool = False) -> Findings:
    """So many orders, each drawn from the seed and its own number: any of them can be had again alone."""
    found = Findings()
    for at in range(first, first + number):
        rng = random.Random(f"{seed} {at}")  # noqa: S311 - to be drawn again alike
        with tempfile.TemporaryDirectory() as place:
            verb, order = specification(rng)
            source, folder = table(rng, Path(place)), Path(place)
            furnished(folder)
            order = placed(order, folder, source)
            outcome, fault = tried(verb, order, source, folder)
            refusal = walked(verb, order, source, rng)
        found.outcomes[outcome] += 1
        about = f"{at}: {verb} {order}".replace(place, "…")
        new = [f"{about}: {outcome}, {fault}"] * bool(fault) + [f"{about}: on the way {refusal}"] * bool(refusal)
        found.faults += new
        if say and new:
            print("\n".join(each[:2_000] for each in new), flush=True)
    return found


def main() -> None:
    """Try orders, and say what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="begin with this one")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
    start = process_time()
    found = fuzzed(options.number, options.seed, options.first, say=True)
    outcomes = ", ".join(f"{number:,} {what}" for what, number in sorted(found.outcomes.items()))
    print(f"{options.number:,} orders: {outcomes}; {len(found.faults)} faults, {process_time() - start:.0f} s of CPU")
    if found.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
