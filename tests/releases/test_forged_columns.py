"""Files whose columns, labels or outlines somebody changed, with all digests made anew: `inspect --replay` tells."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hazemap
from hazemap import Box, Ledger
from hazemap.cli.main import main
from hazemap.errors import FileError, TranscriptMismatch
from hazemap.privacy.random_stream import Stream
from hazemap.releases import byte_digest, check_columns, open_release
from hazemap.releases.column_digests import Digest, column_digests, parts
from hazemap.releases.geoparquet import digests_of, joined
from hazemap.trust.curator import CentralPrices

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
KINDS = ("map", "marks", "slots", "values")


def table(people: int = 1_500) -> pa.Table:
    rng = np.random.default_rng(3)
    place = {"lon": rng.uniform(13.2, 13.6, people), "lat": rng.uniform(52.4, 52.6, people)}
    moments = pa.array(rng.integers(0, 24, people) * 3_600_000_000 + 5, pa.timestamp("us"))
    told = {"ill": rng.random(people) < 0.3, "speed": rng.uniform(0, 60, people)}
    return pa.table({"person": np.arange(people), **place, "ts": moments, **told})


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """A release of each kind."""
    folder = tmp_path_factory.mktemp("forged")
    usual: dict[str, Any] = {"epsilon": 4, "person": "person", "ledger": Ledger(folder / "ledger.sqlite")}
    own: dict[str, dict[str, Any]] = {
        "map": {"box": BERLIN, "method": "flat", "cells": "quadtree:3"},
        "marks": {"box": BERLIN, "mark": "ill"},
        "slots": {"box": BERLIN, "slots": "clock:6,18"},
    }
    for kind, asked in own.items():
        stream = Stream.fixed(kind.encode())
        hazemap.release(table(), stream=stream, output=folder / f"{kind}.parquet", **usual, **asked)
    asked = {"value": "speed", "low": 0, "high": 60, "cells": "h3:6", "slots": "clock:6,18", "quantiles": (0.5,)}
    stream = Stream.fixed(b"values")
    hazemap.stats(table(), stream=stream, output=folder / "values.parquet", box=BERLIN, **usual, **asked)
    return {kind: folder / f"{kind}.parquet" for kind in KINDS}


def forged(
    path: Path,
    goal: Path,
    change: Callable[[pa.Table], pa.Table] = lambda table: table,
    label: Callable[[dict[str, Any]], object] = lambda _: None,
    geo: Callable[[dict[str, Any]], object] = lambda _: None,
) -> Path:
    """Another content with digests that fit it: what somebody can write who knows how."""
    made, said = change(pq.read_table(path)), dict(pq.read_metadata(path).metadata)
    said[byte_digest.KEY] = byte_digest.UNKNOWN
    text, about, digest = json.loads(said[b"hazemap"]), json.loads(said[b"geo"]), Digest()
    del text["digest"]
    label(text)
    geo(about)
    said[b"geo"] = json.dumps(about, sort_keys=True).encode()
    if "integrity" in text:
        columns = {name: [each] for name, each in column_digests(made).items()}
        arrays = joined(said, b"hazemap.arrays.")
        text["integrity"] = {"columns": columns, **digests_of(said[b"geo"], joined(said), arrays)}
    else:
        digest.add(*parts(made), said[b"geo"], joined(said))
    sealed = digest.seal(text).encode()
    with pq.ParquetWriter(goal, made.schema.remove_metadata(), store_schema=False) as writer:
        writer.write_table(made.replace_schema_metadata(None))
        writer.add_key_value_metadata({**said, b"hazemap": sealed})
    byte_digest.fill(goal)
    return goal


def other(name: str) -> Callable[[pa.Table], pa.Table]:
    """A table of which one number, text or outline is another."""

    def change(table: pa.Table) -> pa.Table:
        column, at = table[name], table.schema.get_field_index(name)
        values = column.to_pylist()
        row = next(row for row in range(len(values) - 1) if str(values[row]) != str(values[row + 1]))
        values[row] = values[row + 1]
        return table.set_column(at, table.schema.field(at), pa.chunked_array([pa.array(values, column.type)]))

    return change


def told_apart(path: Path) -> list[str]:
    """The columns in which two rows one after the other differ: each can be forged."""
    table = pq.read_table(path)
    lists = {name: table[name].to_pylist() for name in table.column_names}
    return [name for name, rows in lists.items() if any(str(a) != str(b) for a, b in pairwise(rows))]


@pytest.mark.parametrize("kind", KINDS)
def test_files_as_they_were_made_have_the_columns_that_follow(kind, files, tmp_path):
    check_columns(open_release(files[kind]), files[kind])
    again = forged(files[kind], tmp_path / "again.parquet")
    check_columns(open_release(again), again)
    assert main(["inspect", str(files[kind]), "--replay"]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_column_can_be_forged(kind, files, tmp_path):
    names = told_apart(files[kind])
    assert {"low", "high", "geometry", "bbox"} <= set(names)
    for name in names:
        path = forged(files[kind], tmp_path / "other.parquet", other(name))
        with pytest.raises((TranscriptMismatch, FileError), match=r"follows from|error bars|other\.parquet"):
            check_columns(open_release(path), path)


@pytest.mark.parametrize("name", ["low", "geometry"])
def test_the_command_tells_which_column_was_forged(name, files, tmp_path, capsys):
    path = forged(files["map"], tmp_path / "other.parquet", other(name))
    assert main(["inspect", str(path), "--replay"]) == 4
    assert f"column '{name}'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_rows_cannot_be_added_or_left_out(kind, files, tmp_path):
    for change in (lambda table: table.slice(0, len(table) - 1), lambda table: pa.concat_tables([table, table[-1:]])):
        path = forged(files[kind], tmp_path / "other.parquet", change)
        with pytest.raises((TranscriptMismatch, FileError)):
            check_columns(open_release(path), path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_other_tools_are_told_beside_the_columns_follows_too(kind, files, tmp_path):
    def moved(geo: dict[str, Any]) -> None:
        geo["columns"]["geometry"]["bbox"][0] += 1e-3

    def projected(geo: dict[str, Any]) -> None:
        geo["columns"]["geometry"]["crs"] = None

    for geo in (moved, projected):
        path = forged(files[kind], tmp_path / "other.parquet", geo=geo)
        with pytest.raises(TranscriptMismatch, match="'geo'"):
            check_columns(open_release(path), path)
    for change in ({"line": "Differentially private per person: ε = 0.001"}, {"counted": "households"}):
        path = forged(files[kind], tmp_path / "other.parquet", label=lambda label, change=change: label.update(change))
        with pytest.raises(TranscriptMismatch, match="of its label"):
            check_columns(open_release(path), path)


@pytest.mark.parametrize(
    ("kind", "change", "match"),
    [
        ("marks", {"marks": ["healthy"]}, "other marks"),
        ("marks", {"marks": ["ill", "old"]}, "other marks"),
        ("slots", {"slots": ["night", "day"]}, "other slots"),
        ("values", {"value": "income"}, "another value"),
    ],
)
def test_labels_that_call_things_otherwise_than_the_statement_are_refused(kind, change, match, files, tmp_path):
    path = forged(files[kind], tmp_path / "other.parquet", label=lambda label: label.update(change))
    with pytest.raises(FileError, match=match):
        open_release(path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_is_as_noisy_as_its_price_allows(files, tmp_path, kind, capsys):
    """A forger who makes numbers look sure makes everything else fit: the price in the statement tells."""
    release = hazemap.open(files[kind])
    *first, last = release.transcript
    sure = [*first, last._replace(answer=replace(last.answer, stddev=last.answer.stddev / 2))]
    prices = CentralPrices(release.statement.budget)
    replace(release, transcript=tuple(sure)).replay(prices).save(tmp_path / "sure.parquet")
    assert main(["inspect", str(files[kind]), "--replay"]) == 0
    assert main(["inspect", str(tmp_path / "sure.parquet"), "--replay"]) != 0
    assert "where its price buys" in capsys.readouterr().err
