"""Runs in processes of their own, so that the audited code shares no memory with the code that judges it."""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

import hazemap
from hazemap import codec
from hazemap.lab.audit.audited_settings import CURATOR, DISTRICTS, LOCAL, RECIPES, SHUFFLE, AuditedSetting, written
from hazemap.lab.audit.observed_output import (
    REMOVED,
    Observation,
    ObservedCharge,
    charges,
    ending,
    left_behind,
    of_file,
)
from hazemap.lab.audit.synthetic_people import BOX, quarters
from hazemap.queries.algorithm_session import Exchange

DATASET = "audited"


@dataclass(frozen=True)
class RunOrder:
    """So many runs of one setting on the bytes of one file.

    `people` is told where devices answer; a `question`, as the codec's text, is asked by itself instead. An order
    that is `alone` runs in a process that begins and ends with it.
    """

    setting: AuditedSetting
    content: bytes
    runs: int
    people: int = 0
    cap: str | None = None
    question: str | None = None
    alone: bool = False


@dataclass(frozen=True, eq=False)
class RunOutcome:
    """What the public saw of the runs of an order, and what the ledger says of them."""

    order: RunOrder
    observations: tuple[Observation, ...]
    charges: tuple[ObservedCharge, ...]


@dataclass
class SubprocessRuns(AbstractContextManager["SubprocessRuns"]):
    """Processes that run orders, one plant (a sabotage of the package) or none in each.

    Folders are made in memory where the system has some (/dev/shm), and removed with everything in them.
    """

    plant: str | None = None
    processes: int = 1
    _pool: Any = field(default=None, init=False, repr=False)
    _folder: Path = field(default=Path(), init=False, repr=False)

    def __enter__(self) -> "SubprocessRuns":
        """Start the processes: about two seconds."""
        memory = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one
        self._folder = Path(tempfile.mkdtemp(prefix="hazemap-audit-", dir=memory if memory.is_dir() else None))
        self._pool = get_context("spawn").Pool(self.processes, _sabotaged, (self.plant,))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop them and forget what they made."""
        self._pool.terminate()
        self._pool.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, orders: list[RunOrder]) -> Iterator[RunOutcome]:
        """What became of each order, in their order."""
        tasks = [(order, str(self._folder / f"{number}-{id(order)}")) for number, order in enumerate(orders)]
        shared = self._pool.imap(_run, [task for task in tasks if not task[0].alone], chunksize=1)
        for task in tasks:
            order, folder, raw = self._alone(task) if task[0].alone else next(shared)
            yield _seen(order, Path(folder), raw)

    def _alone(self, task: tuple[RunOrder, str]) -> Any:
        with get_context("spawn").Pool(1, _sabotaged, (self.plant,)) as pool:
            return pool.apply(_run, (task,))


def _sabotaged(plant: str | None) -> None:
    """Begin a process; the sabotage lasts as long as it."""
    warnings.simplefilter("ignore")
    sys.addaudithook(_keep)
    if plant is not None:
        from hazemap.lab.audit.planted_faults import planted

        context = planted(plant)
        context.__enter__()
        _KEPT.append(context)


def _keep(event: str, arguments: tuple[Any, ...]) -> None:
    """Copy what a run takes away again before it does: that was on the disk, too."""
    if event == "os.remove" and _RUNNING:
        folder, number = _RUNNING[0]
        path = Path(os.fsdecode(arguments[0]))
        if folder in path.parents and path.suffix not in _DATABASE and path.is_file():
            kept = folder / REMOVED
            kept.mkdir(exist_ok=True)
            shutil.copyfile(path, kept / f"{number}-{sum(1 for _ in kept.iterdir())}{path.suffix}")


_RUNNING: list[tuple[Path, int]] = []
"""The folder and the number of the run that is going on."""

_DATABASE = (".sqlite-journal", ".sqlite-wal", ".sqlite-shm")

_KEPT: list[AbstractContextManager[None]] = []
"""A context manager that nobody holds would be closed."""


def _run(task: tuple[RunOrder, str]) -> tuple[RunOrder, str, list[Any]]:
    order, folder = task
    Path(folder).mkdir()
    if order.question is not None:
        source = Path(folder) / "table.csv"
        source.write_bytes(order.content)
        return order, folder, [_asked(order.setting, str(source), order.question, order.runs)]
    if order.setting.trust == RECIPES:
        from hazemap.lab.audit.device_runs import answer_recipes

        return order, folder, answer_recipes(order.setting, order.content, Path(folder), order.runs, order.people)
    if order.setting.trust == SHUFFLE:
        from hazemap.lab.audit.device_runs import answer_shuffles

        return order, folder, answer_shuffles(order.setting, order.content, Path(folder), order.runs)
    return order, folder, [_once(order, Path(folder), number) for number in range(order.runs)]


_WRITTEN: list[Any] = []
"""The source of the order that runs: the name of a file or a folder, or a table in memory."""


def _once(order: RunOrder, folder: Path, number: int) -> Any:
    """One run: an error's words, or nothing where there is a file; for devices the answers themselves."""
    place = folder / "source"
    if number == 0:
        place.mkdir()
        _WRITTEN[:] = [written(order.setting.form, order.content, place)]
        (place / f"{DISTRICTS}.geojson").write_text(quarters(BOX, 3))
        if order.cap is not None:
            hazemap.Ledger(folder / "ledger.sqlite").cap(DATASET, hazemap.PureDP(order.cap))

    def publish() -> tuple[str, list[float]] | None:
        if order.setting.trust != CURATOR:
            from hazemap.lab.audit.device_runs import answer_devices

            return answer_devices(order.setting, _WRITTEN[0], order.people)
        _RUNNING[:] = [(folder, number)]
        release: Any = hazemap.stats if order.setting.of_values else hazemap.release
        book = hazemap.Ledger(folder / "ledger.sqlite")
        release(
            _WRITTEN[0],
            **order.setting.options(place),
            dataset=DATASET,
            ledger=book,
            output=folder / f"{number}.parquet",
            no_cap=order.cap is None,
            go_on=True,
        )
        return None

    found = ending(publish)
    _RUNNING.clear()
    return found.replace(str(folder), "") if isinstance(found, str) else found


def _seen(order: RunOrder, folder: Path, raw: list[Any]) -> RunOutcome:
    """Read what a process left behind, with code that was not sabotaged."""
    if order.question is not None:
        shutil.rmtree(folder, ignore_errors=True)
        exchanges = (Exchange(*pair) for pair in codec.loads(raw[0]))
        return RunOutcome(order, tuple(Observation(transcript=(exchange,)) for exchange in exchanges), ())
    seen = []
    for number, each in enumerate(raw):
        file = folder / f"{number}.parquet"
        if isinstance(each, str):
            seen.append(Observation(error=each, size=file.stat().st_size if file.exists() else 0))
        elif each is None:
            published = of_file(file)
            seen.append(replace(published, words=published.words | left_behind(folder, number)))
        elif isinstance(each, dict):
            seen.append(Observation(columns={name: np.array(numbers) for name, numbers in each.items()}))
        else:
            from hazemap.lab.audit.device_runs import observe_devices

            seen.append(observe_devices(each))
    paid = charges(folder / "ledger.sqlite")
    shutil.rmtree(folder, ignore_errors=True)
    return RunOutcome(order, tuple(seen), tuple(paid))


def _asked(setting: AuditedSetting, source: str, question: str, times: int) -> str:
    """The answers to one question, as the codec's text."""
    from hazemap.federated.trust.local import LocalReports
    from hazemap.readers.open_table import open_table
    from hazemap.trust.curator import Curator

    table = open_table(source, person="user", lon="lon", lat="lat")
    trust = LocalReports(table, 1) if setting.trust == LOCAL else Curator(table)
    asked_for = codec.loads(question)
    answers = (trust.answer(asked_for, setting.budget) for _ in range(times))
    return codec.dumps(tuple(Exchange(asked_for, answer) for answer in answers))
