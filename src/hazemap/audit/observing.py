"""What the public sees of one run: the file, or the words of a refusal; and what the ledger has noted."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import HazemapError
from hazemap.releases import Release, Statistics
from hazemap.session import Transcript

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Observation:
    """One run as everybody may see it. `error` are the words it ended in, empty where there is a release.

    `columns` are the numbers of the file as any reader of Parquet has them; `words` its label, flattened.
    """

    error: str = ""
    size: int = 0
    columns: dict[str, Numbers] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    transcript: Transcript = ()
    release: Release | Statistics | None = None


def of_file(path: Path) -> Observation:
    """What a published file holds, read twice: as hazemap reads it, and as plain Parquet."""
    import pyarrow.parquet as pq

    try:
        label = json.loads(pq.read_metadata(path).metadata[b"hazemap"])
        release = Statistics.open(path) if label.get("kind") == "values" else Release.open(path)
    except (HazemapError, KeyError, TypeError, ValueError) as error:
        return Observation(error=f"the file cannot be opened: {type(error).__name__}", size=path.stat().st_size)
    table = pq.read_table(path)
    flat = table.drop_columns([name for name in ("bbox", "geometry") if name in table.column_names])
    columns = {
        name: flat[name].to_numpy().astype(np.float64)
        for name in flat.column_names
        if str(flat[name].type) not in ("string", "large_string")
    }
    words: dict[str, str] = {}
    for name in ("statement", "method", "tree", "counted", "reading"):
        flattened(label.get(name), name, words)
    cells = tuple(str(name) for name in flat[flat.column_names[0]].to_pylist())
    return Observation("", path.stat().st_size, columns, words, cells, release.transcript, release)


def flattened(data: Any, name: str, words: dict[str, str]) -> None:
    """Every leaf of some JSON under the path that leads to it; when a release was made is public and left out."""
    if name.endswith(".created") or name == "statement.dataset":
        return
    if isinstance(data, dict):
        for key, value in data.items():
            flattened(value, f"{name}.{key}", words)
    elif isinstance(data, list) and len(data) <= 64:
        for number, value in enumerate(data):
            flattened(value, f"{name}.{number}", words)
    else:
        words[name] = json.dumps(data)[:400]


@dataclass(frozen=True)
class Charged:
    """A row of the ledger, read from its file: who paid how much, and whether a release is noted for it."""

    dataset: str
    measure: str
    value: Fraction
    released: bool


def charges(ledger: Path) -> list[Charged]:
    """Every charge in a ledger's database, oldest first; none where there is no database."""
    if not ledger.exists():
        return []
    with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?mode=ro", uri=True)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if "charges" not in tables:
            return []
        rows = db.execute("SELECT dataset, price, state FROM charges ORDER BY id").fetchall()
    return [Charged(dataset, *_price(json.loads(price)), state == "released") for dataset, price, state in rows]


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
