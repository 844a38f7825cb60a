"""Fault 13: behind the steward's back a copied file or a pattern got another page without a warning."""

import json
import multiprocessing
import shutil
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from hazemap.cli.main import main
from hazemap.errors import HazemapWarning
from hazemap.privacy.budget import PureDP
from hazemap.privacy.duplicate_tables import KEPT, Fingerprints
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.privacy_unit import Unit
from hazemap.publish import release, stats
from hazemap.tables.table_fingerprint import Fingerprint

BOX = "2,48,3,49"


def table(seed: int = 1, people: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(2, 3, people), rng.uniform(48, 49, people)
    user = np.arange(people) if seed == 1 else rng.integers(0, 10**12, people)
    return pa.table({"user": user, "lon": lon, "lat": lat, "speed": rng.uniform(0, 60, people)})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "home" / "ledger.sqlite")


def published(source, ledger: Ledger, **options):
    return release(source, epsilon=1, box=BOX, method="flat:3", ledger=ledger, **options)


def test_fault_13_a_copied_renamed_or_converted_file_and_a_pattern_get_another_page_with_a_warning(ledger, tmp_path):
    pq.write_table(table(), tmp_path / "nyc.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published(tmp_path / "nyc.parquet", ledger)
        published(tmp_path / "nyc.parquet", ledger)
    shutil.copy(tmp_path / "nyc.parquet", tmp_path / "copy.parquet")
    pc.write_csv(table().take(np.random.default_rng(1).permutation(300)), tmp_path / "converted.csv")
    (tmp_path / "folder").mkdir()
    pq.write_table(table().slice(0, 270), tmp_path / "folder" / "part.parquet")
    for source in ("copy.parquet", "converted.csv", "folder/*.parquet"):
        with pytest.warns(HazemapWarning, match=r"looks like one that pays as .*'nyc'.*--dataset"):
            published(tmp_path / source, ledger)
    assert [record.charge.dataset for record in ledger.history()] == ["nyc", "nyc", "copy", "converted", "folder"]


def test_it_is_said_before_it_is_paid_and_whatever_is_published(ledger, monkeypatch):
    published(table(), ledger, dataset="nyc")
    seen = []
    monkeypatch.setattr(warnings, "warn", lambda text, *_, **__: seen.append((str(text), len(ledger.history()))))
    options = {"value": "speed", "low": 0, "high": 65, "epsilon": 1, "cells": "h3:3", "ledger": ledger}
    stats(table(), **options, model="values-only", dataset="values")
    stats(table(), **options, box=BOX, dataset="both")
    assert [("'nyc'" in text, paid) for text, paid in seen] == [(True, 1), (True, 2)]
    assert "'nyc', 'values'" in seen[1][0]


def test_other_people_and_the_same_data_set_are_no_warning(ledger):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        published(table(), ledger, dataset="nyc")
        published(table(seed=2), ledger, dataset="oslo")
        published(table(seed=2), ledger, dataset=" oslo ")
    assert [str(each.message) for each in warned] == []
    assert [entry.charge.dataset for entry in ledger.history()] == ["nyc", "oslo", "oslo"]


def test_a_release_that_is_refused_leaves_no_fingerprint(ledger):
    ledger.cap("nyc", PureDP("0.5"))
    ledger.charge("nyc", PureDP("0.5"), "all of it", Unit.person("user", "whole numbers"))
    with pytest.raises(Exception, match="ε = 0 left"):
        published(table(), ledger, dataset="nyc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published(table(), ledger, dataset="oslo")


def test_the_key_lies_outside_the_database_and_only_its_owner_may_read_it(ledger):
    kept = Fingerprints(ledger)
    key = kept.key()
    assert kept.key_file.parent == ledger.path.parent and kept.key_file.stat().st_mode & 0o777 == 0o600
    published(table(), ledger, dataset="nyc")
    assert len(key) == 32 and key not in ledger.path.read_bytes()
    assert sorted(path.suffix for path in ledger.path.parent.iterdir() if path.is_file()) == [".key", ".sqlite"]


def test_no_fingerprint_enters_a_release_a_statement_or_what_an_auditor_is_shown(ledger, tmp_path, capsys):
    made = published(table(), ledger, dataset="nyc", output=tmp_path / "map.parquet")
    ledger.cap("nyc", PureDP(5))
    with sqlite3.connect(ledger.path) as db:
        [(data,)] = db.execute("SELECT fingerprint FROM fingerprints")
    codes = [who for _, who, _ in Fingerprint.from_bytes(data).sample]
    for command in ("list", "history"):
        assert main(["ledger", command, "--json", "--ledger", str(ledger.path)]) == 0
    shown = capsys.readouterr().out + json.dumps(made.statement.to_json())
    assert "nyc" in shown and "changes" in shown
    public = (tmp_path / "map.parquet").read_bytes() + shown.encode()
    assert not any(code in public or code.hex().encode() in public for code in codes)


def test_a_key_that_cannot_be_used_is_said_and_the_release_goes_on(ledger):
    key_file = Fingerprints(ledger).key_file
    ledger.store.exist()
    key_file.write_bytes(b"no key")
    with pytest.warns(HazemapWarning, match=r"cannot be used .*nobody will notice"):
        published(table(), ledger, dataset="nyc")
    assert len(ledger.history()) == 1


def test_a_data_set_keeps_its_latest_fingerprints_and_each_once(ledger):
    kept, tables = Fingerprints(ledger), []
    ledger.charge("nyc", PureDP(1), "a map", Unit.person("user", "text"))
    for number in range(KEPT + 3):
        sample = tuple((0, bytes([number, i] * 4), b"home") for i in range(9))
        tables.append(Fingerprint("people", "k", 0, sample))
        for _ in range(2):
            kept.remember("nyc", tables[-1])
    assert [bool(kept.lookalikes("oslo", each)) for each in tables] == [False] * 3 + [True] * KEPT
    kept.remember("unknown", tables[0])
    assert kept.lookalikes("oslo", tables[0]) == []


def test_a_table_that_pays_under_many_names_is_named_by_few(ledger):
    sample = Fingerprint("people", "k", 0, tuple((0, bytes([i] * 8), b"home") for i in range(9)))
    for number in range(6):
        ledger.charge(f"copy {number}", PureDP(1), "a map", Unit.person("user", "text"))
        Fingerprints(ledger).remember(f"copy {number}", sample)
    with pytest.warns(HazemapWarning, match=r"pays as 'copy 0', 'copy 1', 'copy 2', 'copy 3' and 2 more, and its"):
        Fingerprints(ledger).warn("another", sample)


def _draws(path: Path, results) -> None:
    results.put(Fingerprints(Ledger(path)).key())


def test_of_several_that_draw_the_key_at_once_one_wins(ledger):
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    workers = [fork.Process(target=_draws, args=(ledger.path, results)) for _ in range(4)]
    for worker in workers:
        worker.start()
    assert len({results.get(timeout=600) for _ in workers}) == 1
    for worker in workers:
        worker.join()
    assert {path.name for path in ledger.path.parent.iterdir()} == {"ledger.key", "ledger.sqlite"}
