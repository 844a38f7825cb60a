"""What the public sees of one run: the file, or the words of a refusal; and the ledger's entry."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from hazemap.errors import HazemapError
from hazemap.machine_code.arrays import Floats
from hazemap.queries.algorithm_session import Transcript
from hazemap.releases import Release, Statistics

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Observation:
    """One run as everybody may see it. `error` are the words it ended in, empty where there is a release.

    `columns` are the numbers of the file as any reader of Parquet has them; `words` its label, flattened.
    """

    error: str = ""
    size: int = 0
    columns: dict[str, Floats] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    transcript: Transcript = ()
    release: Release | Statistics | None = None


def ending(run: Callable[[], T]) -> T | str:
    """What a run gives, or the words of the error in which it ended: whatever it is, somebody sees it."""
    try:
        return run()
    except HazemapError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__} (no error of hazemap's): {error}"


def of_file(path: Path) -> Observation:
    """What a published file holds, read twice: as hazemap reads it, and as plain Parquet."""
    import pyarrow.parquet as pq

    try:
        label = json.loads(pq.read_metadata(path).metadata[b"hazemap"])
        release = Statistics.open(path) if label.get("kind") == "values" else Release.open(path)
    except (HazemapError, KeyError, TypeError, ValueError) as error:
        return Observation(error=f"the file cannot be opened: {type(error).__name__}", size=path.stat().st_size)
    table = pq.read_table(path)
    columns = {
        name: table[name].to_numpy().astype(np.float64) for name in table.column_names if table[name].type in _NUMBERS
    }
    words: dict[str, str] = {}
    for key, value in {**pq.read_metadata(path).metadata, **(table.schema.metadata or {})}.items():
        if key == b"hazemap":
            flattened({name: each for name, each in label.items() if name not in VARYING}, "label", words)
        elif not key.startswith((b"hazemap.transcript.", b"hazemap.arrays.")):
            words[f"metadata {key.decode()}"] = shortened(value.decode(errors="replace"))
    for name in table.column_names:
        if name not in columns:
            words[f"column {name}"] = shortened(str(table[name].to_pylist()))
    cells = tuple(str(name) for name in table[table.column_names[0]].to_pylist())
    return Observation("", path.stat().st_size, columns, words, cells, release.transcript, release)


_NUMBERS = tuple(
    getattr(pa, name)()
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64", "bool_")
)
VARYING = ("created", "digest", "integrity")
"""What a label says that is of the run and not of the table."""


def flattened(data: Any, name: str, words: dict[str, str]) -> None:
    """Every leaf of some JSON under the path that leads to it; when a release was made is public and left out."""
    if name.endswith(".created") or name == "label.statement.dataset":
        return
    if isinstance(data, dict):
        for key, value in data.items():
            flattened(value, f"{name}.{key}", words)
    elif isinstance(data, list) and len(data) <= 64:
        for number, value in enumerate(data):
            flattened(value, f"{name}.{number}", words)
    else:
        words[name] = shortened(json.dumps(data))


def shortened(text: str) -> str:
    """The text, or of a long one its beginning and a digest."""
    return text if len(text) <= 400 else f"{text[:80]} … {sha256(text.encode()).hexdigest()}"


def left_behind(folder: Path, run: int) -> dict[str, str]:
    """What a run wrote beside its file and took away again, such as its journal: every leaf of every line of JSON.

    Nobody but the steward reads it, and still it may hold only what the release does (docs/concepts/ledger.md).
    """
    words, kinds = dict[str, str](), dict[str, int]()
    for file in sorted((folder / REMOVED).glob(f"{run}-*")):
        content = file.read_bytes().replace(str(folder).encode(), b"")
        kind = file.suffix if file.suffix[1:].isalpha() else "file"  # others end in what chance chose
        kinds[kind] = kinds.get(kind, 0) + 1
        name = f"removed {kind} {kinds[kind]}"
        for at, line in enumerate(content.rstrip(b"\0\n").split(b"\n")[:256]):
            try:
                flattened(json.loads(line[line.find(b"{") :]), f"{name} line {at}", words)
            except ValueError:
                words[f"{name} line {at}"] = shortened(line.decode(errors="replace"))
    return words


REMOVED = "removed"
"""The folder in which a run's process keeps copies of the files that it takes away."""


@dataclass(frozen=True)
class ObservedCharge:
    """What the ledger says of a release, read from its file: who paid how much, and whether a release is noted for it.

    One row, or two: the look of a run and its rest, added up.
    """

    dataset: str
    measure: str
    value: Fraction
    released: bool


def charges(ledger: Path) -> list[ObservedCharge]:
    """Every charge in a ledger's database, oldest first; none where there is no database."""
    if not ledger.exists():
        return []
    with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?mode=ro", uri=True)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if "charges" not in tables:
            return []
        rows = db.execute("SELECT dataset, price, state, run FROM charges ORDER BY id").fetchall()
    found = [
        (run, ObservedCharge(dataset, *_price(json.loads(price)), state == "released"))
        for dataset, price, state, run in rows
    ]
    rests = {run: charge for run, charge in found if str(run).endswith(":rest")}
    return [_added(charge, rests.get(f"{run}:rest")) for run, charge in found if run not in rests]


def _added(look: ObservedCharge, rest: ObservedCharge | None) -> ObservedCharge:
    """Both charges of a run as one; what is measured otherwise does not add up, and is left out."""
    if rest is None or (rest.dataset, rest.measure) != (look.dataset, look.measure):
        return look
    return replace(look, value=look.value + rest.value, released=look.released and rest.released)


def _price(data: Any) -> tuple[str, Fraction]:
    """ε or ρ of a price as the ledger writes it; for (ε, δ) its ε, marked as such."""
    body = data
    if isinstance(data, dict) and len(data) == 1 and isinstance(next(iter(data.values())), dict):
        body = next(iter(data.values()))
    for name, measure in (("rho", "ρ"), ("epsilon", "ε")):
        if name in body:
            value = body[name]
            value = value.get("fraction") if isinstance(value, dict) else value
            return measure + ("δ" if "delta" in body else ""), Fraction(str(value))
    return "?", Fraction(0)
