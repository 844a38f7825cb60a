"""Many processes, and processes that are killed. Slow: they start hundreds of them."""

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest
from tests.privacy.older_ledger import old

from hazemap.errors import CapExceeded
from hazemap.privacy.budget import PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_file import SCHEMA
from hazemap.privacy.privacy_unit import Unit
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.tables.contribution_bounding import AtMostRows

PEOPLE = Unit.person("user", "text")

pytestmark = pytest.mark.slow

FORK = multiprocessing.get_context("fork")
RACES = 1_000
KILLS = 200
PRICE = PureDP("1/7")
BYTES = b"a whole file" * 1_000
PATIENCE = 600.0
"""Seconds that racers wait for the ledger: nobody is served in turn, and a disk may be slow."""


def _racer(path: Path, start, results) -> None:
    ledger = Ledger(path, PATIENCE)
    won = []
    for race in range(RACES):
        start.wait()
        try:
            ledger.charge(f"race {race}", PureDP(1), "the last", PEOPLE)
        except CapExceeded:
            continue
        won.append(race)
    results.put(won)


def test_of_two_processes_that_race_for_the_last_epsilon_exactly_one_gets_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for race in range(RACES):
        ledger.cap(f"race {race}", PureDP(1))
    start, results = FORK.Barrier(2), FORK.Queue()
    racers = [FORK.Process(target=_racer, args=(ledger.path, start, results)) for _ in range(2)]
    for racer in racers:
        racer.start()
    first, second = results.get(timeout=600), results.get(timeout=600)
    for racer in racers:
        racer.join()
    assert sorted(first + second) == list(range(RACES))
    assert len(first) * len(second) > 0  # both ran: neither merely came second to every race
    assert {(status.spent, status.charges) for status in ledger.datasets()} == {(PrivacyAmount("ε", Fraction(1)), 1)}


VALUES = Unit.person("user", "text", model="values-only")


def _one_of_two_models(path: Path, unit: Unit, start, results) -> None:
    ledger, won = Ledger(path, PATIENCE), 0
    for race in range(RACES // 10):
        start.wait()
        try:
            ledger.charge(f"race {race}", PureDP("1/2") if unit == PEOPLE else PureDP(1), "the last", unit)
        except CapExceeded:
            continue
        won += 1
    results.put(won)


def test_of_a_charge_of_each_model_that_race_for_the_last_of_the_values_one_gets_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    for race in range(RACES // 10):
        ledger.cap(f"race {race}", PureDP(1), model="values-only")
    start, results = FORK.Barrier(2), FORK.Queue()
    racers = [
        FORK.Process(target=_one_of_two_models, args=(ledger.path, unit, start, results)) for unit in (PEOPLE, VALUES)
    ]
    for racer in racers:
        racer.start()
    first, second = results.get(timeout=600), results.get(timeout=600)
    for racer in racers:
        racer.join()
    assert first + second == RACES // 10
    pages = [status for status in ledger.datasets() if status.model == "values-only"]
    assert {status.spent for status in pages} == {PrivacyAmount("ε", Fraction(1))} and len(pages) == RACES // 10


def _payer(path: Path, start, results) -> None:
    ledger = Ledger(path, PATIENCE)
    start.wait()
    paid = 0
    for _ in range(50):
        try:
            ledger.charge("nyc", PRICE, "a seventh", PEOPLE)
        except CapExceeded:
            continue
        paid += 1
    results.put(paid)


def test_eight_processes_fill_a_cap_to_the_last_seventh_and_no_further(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new" / "ledger.sqlite")  # and all eight make it at once
    uncapped = Ledger(tmp_path / "uncapped" / "ledger.sqlite")
    ledger.cap("nyc", PureDP(Fraction(300, 7)))
    for book, expected in ((ledger, 300), (uncapped, 400)):
        start, results = FORK.Barrier(8), FORK.Queue()
        payers = [FORK.Process(target=_payer, args=(book.path, start, results)) for _ in range(8)]
        for payer in payers:
            payer.start()
        assert sum(results.get(timeout=600) for _ in payers) == expected
        for payer in payers:
            payer.join()
        [status] = book.datasets()
        assert (status.spent, status.charges) == (PrivacyAmount("ε", Fraction(expected, 7)), expected)
        assert len({record.charge.id for record in book.history()}) == expected


def _statement() -> Statement:
    return Statement(
        dataset="nyc",
        unit=A_PERSON,
        neighbours="one person added or removed",
        budget=PRICE,
        bounding=AtMostRows(1),
        trust="curator",
        assumptions=(),
        noise="discrete Laplace",
        public=(),
        charged=(),
        method="flat grid",
        created="2026-01-02",
        version="0.1.0",
    )


def _write(file: Path) -> None:
    part = file.with_suffix(".part")
    part.write_bytes(BYTES)
    part.replace(file)


def _charges_then_writes(ledger: Ledger, files: Path) -> None:
    while True:
        charge = ledger.charge("nyc", PRICE, "a map", PEOPLE)
        _write(files / f"{charge.id}.map")
        ledger.released(charge.id, _statement(), f"{charge.id}.map")


def _writes_then_charges(ledger: Ledger, files: Path) -> None:
    for number in range(len(ledger.history()) + 1, 1 << 30):
        _write(files / f"{number}.map")
        charge = ledger.charge("nyc", PRICE, "a map", PEOPLE)
        ledger.released(charge.id, _statement(), f"{charge.id}.map")


def _killed(work: Callable[[Ledger, Path], None], ledger: Ledger, files: Path, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            work(ledger, files)
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _unpaid(ledger: Ledger, files: Path) -> set[str]:
    """The files without a charge, after checking everything else that must hold after a crash."""
    records = ledger.history()  # the ledger opens
    assert [record.charge.id for record in records] == list(range(1, len(records) + 1))
    assert all(status.spent.value == len(records) * PRICE.epsilon for status in ledger.datasets())
    found = {file.name for file in files.glob("*.map")}
    assert all((files / name).read_bytes() == BYTES for name in found)
    assert {record.file for record in records if record.released} <= found
    return found - {f"{record.charge.id}.map" for record in records}


def _kills(work: Callable[[Ledger, Path], None], folder: Path) -> Iterator[tuple[bool, bool]]:
    """Of each kill: whether it fell within a transaction, and whether it left a file without its charge."""
    chance = random.Random(2)
    for kill in count():
        files = folder / str(kill // 4)  # a new ledger every fourth time: its making is interrupted as well
        files.mkdir(exist_ok=True)
        ledger = Ledger(files / "home" / "ledger.sqlite")
        _killed(work, ledger, files, chance.uniform(0, 0.03 * (1 + kill / KILLS)))  # longer ones, for slow machines
        yield (files / "home" / "ledger.sqlite-journal").exists(), bool(_unpaid(ledger, files))


def test_a_process_killed_at_200_instants_leaves_no_file_without_its_charge(tmp_path: Path) -> None:
    """And at as many more as it takes until some fell within a transaction."""
    torn = 0
    for number, (within, unpaid) in enumerate(_kills(_charges_then_writes, tmp_path), 1):
        assert not unpaid
        torn += within
        if number >= KILLS and torn:
            return


def test_killing_finds_out_a_process_that_writes_before_it_charges(tmp_path: Path) -> None:
    """The twin. A kill falls between file and charge in more than 1 of 4, sooner or later."""
    assert any(unpaid for _, unpaid in _kills(_writes_then_charges, tmp_path))


def _brings_up_to_date(ledger: Ledger, _files: Path) -> None:
    ledger.cap("new", PureDP(1))
    time.sleep(3600)  # until it is killed


def _seconds_of_bringing_up(path: Path) -> float:
    whole, began = old(path, CAPS, CHARGES), time.monotonic()
    whole.cap("new", PureDP(1))
    return time.monotonic() - began


def test_a_process_killed_while_it_brings_an_older_ledger_up_to_date_loses_nothing(tmp_path: Path) -> None:
    """Whether the kill falls before, within or after: all charges are there, and what is found is one schema."""
    chance, found, expected = random.Random(3), set(), None
    took = min(_seconds_of_bringing_up(tmp_path / f"whole{number}.sqlite") for number in range(3))
    for kill in count():
        if kill >= KILLS // 2 and found == {1, SCHEMA}:  # some fell before, and some after, sooner or later
            return
        folder = tmp_path / str(kill)
        folder.mkdir()
        ledger = old(folder / "ledger.sqlite", CAPS, CHARGES)
        expected = expected or ledger.history()
        _killed(_brings_up_to_date, ledger, folder, chance.uniform(0, 0.01 + 3 * took))
        with sqlite3.connect(ledger.path) as db:
            found.add(db.execute("PRAGMA user_version").fetchone()[0])
        assert ledger.history() == expected
        assert {status.name for status in ledger.datasets()} - {"new"} == {"nyc", "trees"}
        ledger.cap("new", PureDP(2))
        assert ledger.history() == expected


CAPS = {"nyc": PureDP(9), "nyc (values only)": PureDP(5), "trees": None}
CHARGES = [(name, PRICE, None) for name in CAPS for _ in range(100)]
