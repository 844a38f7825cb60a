"""What a recipe costs a device beside the protocol: reading 10,000 events, the query, and a randomised report.

    python -m research.benchmarks.recipe_answers

CPU of one thread, the least of `REPEATS`. Results go to results/recipe_answers.json beside this script. It judges
nothing.
"""

import json
import os
import platform
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from hazemap.federated.device import enrolment
from hazemap.federated.device.recipes.query_sandbox import QuerySandbox
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import EventStore
from hazemap.federated.recipes.event_stream import EventField, EventStream, EventType
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.privacy.random_stream import Stream

RESULTS = Path(__file__).with_name("results") / "recipe_answers.json"
REPEATS, EVENTS, BINS = 9, 10_000, 4_096
NOW = 20_000 * 86_400.0
STREAM = EventStream(
    "keyboard",
    (EventField("ngram", EventType.TEXT), EventField("at", EventType.TIME), EventField("score", EventType.REAL)),
    keep=30,
)
QUERIES = {
    "some rows": "SELECT ngram FROM keyboard WHERE score > 0.9",
    "groups": "SELECT ngram, count(*) FROM keyboard GROUP BY ngram",
    "first": "SELECT ngram FROM keyboard ORDER BY score DESC LIMIT 1",
}


class Typed:
    """The events of one stream, for the sandbox."""

    def __init__(self, store: EventStore) -> None:
        self.store = store

    def events(self, stream: str, fields: tuple[str, ...]) -> list[tuple[object, ...]]:
        """Every event, these fields of it."""
        assert stream == STREAM.name
        at = [[each.name for each in STREAM.fields].index(field) for field in fields]
        return [tuple(event[i] for i in at) for event in self.store.read(STREAM, NOW)]


def milliseconds(work: Callable[[], object]) -> float:
    """The least CPU of some runs."""
    spent = []
    for _ in range(REPEATS):
        start = process_time()
        work()
        spent.append(process_time() - start)
    return round(1e3 * min(spent), 3)


def measured(folder: Path) -> dict[str, object]:
    """Everything."""
    rng = np.random.default_rng(1)
    words = [f"{a} {b}" for a in ("hello", "good", "so", "how") for b in ("world", "day", "long", "are you")]
    with EncryptedStore.opened(folder / "devices.sqlite", create=True) as store:
        events = EventStore(store, enrolment.add(store)[0])
        typed = [
            (words[word], int(NOW - ago), float(score))
            for word, ago, score in zip(
                rng.integers(0, len(words), EVENTS), rng.integers(0, 86_400, EVENTS), rng.random(EVENTS), strict=True
            )
        ]
        events.donate(STREAM, typed, NOW)
        names = tuple(StreamFieldName(STREAM.name, field.name) for field in STREAM.fields)
        sandbox = QuerySandbox((STREAM.schema,), AnyQueryOverFields(names))
        source = Typed(events)
        found = {
            name: milliseconds(lambda text=text: sandbox.run(sandbox.admit(SqlQuery(text)), source))  # type: ignore[misc]
            for name, text in QUERIES.items()
        }
        reading = milliseconds(lambda: events.read(STREAM, NOW))
    stream, randomiser = Stream.from_os(), Asymmetric(Fraction(4))
    report = milliseconds(lambda: [randomiser.report(stream, 7, BINS) for _ in range(100)]) / 100
    return {"events": EVENTS, "read_ms": reading, "query_ms": found, "bins": BINS, "report_us": round(1e3 * report, 1)}


def main() -> None:
    """Measure, print and write."""
    with TemporaryDirectory() as folder:
        found = measured(Path(folder))
    found |= {"python": platform.python_version(), "cores": os.cpu_count(), "repeats": REPEATS}
    print(json.dumps(found, indent=1))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
