"""Runs a comparison: worker processes measure the trials that are missing, and all results are written.

Each finished trial is a line in the folder of the comparison, which is there whole or not at all.
"""

import fcntl
import json
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hazemap.errors import FileError, HazemapError, InputError
from hazemap.files.atomic_write import whole
from hazemap.lab.compare.datasets import Datasets
from hazemap.lab.compare.trial_settings import Place, Row, Trial

ONE_THREAD = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""A process is one core's: with more threads it would take others' time, and its own could not be compared."""


class WorkerTask(NamedTuple):
    """A trial, and the digest of the map that it is about."""

    key: str
    trial: Trial
    digest: str


class Done(NamedTuple):
    """What became of a task: its scores, or why there are none."""

    task: WorkerTask
    row: Row | None
    failure: str = ""


@dataclass
class _Worker:
    """A process, this side of the pipe to it, the maps it has been sent, and what it is at."""

    process: Any
    pipe: Any
    maps: set[str]
    task: WorkerTask


def measured(tasks: Sequence[WorkerTask], maps: dict[str, Place], jobs: int) -> Generator[Done, None, None]:
    """Every task once, in whatever order they end, by at most `jobs` processes.

    A process is sent a map once. It ends when this one does, however that ends. One that dies at a trial (out of
    memory, say) is replaced, and the trial has failed. Whoever stops listening stops them all.
    """
    todo, workers = list(reversed(tasks)), list[_Worker]()
    try:
        while todo or workers:
            while todo and len(workers) < jobs:
                workers.append(_started(todo.pop(), maps))
            ready = connection.wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                done = _heard(worker)
                if todo and worker.process.is_alive():
                    _send(worker, todo.pop(), maps)
                else:
                    workers.remove(worker)
                    _ended(worker)
                yield done
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            _ended(worker)


def _started(task: WorkerTask, maps: dict[str, Place]) -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs,), daemon=True)
    with _one_thread(), _deaf():
        process.start()
    theirs.close()  # so that either side notices when the other is gone
    worker = _Worker(process, ours, set(), task)
    _send(worker, task, maps)
    return worker


def _send(worker: _Worker, task: WorkerTask, maps: dict[str, Place]) -> None:
    worker.task = task
    with suppress(OSError):  # a process that has died is noticed when it is listened to
        worker.pipe.send((task, None if task.digest in worker.maps else maps[task.digest]))
        worker.maps.add(task.digest)


def _heard(worker: _Worker) -> Done:
    try:
        return Done(worker.task, *worker.pipe.recv())
    except (EOFError, OSError):
        worker.process.join(10)
        code = worker.process.exitcode
        return Done(worker.task, None, f"its process ended with {code}: was there too little memory?")


def _ended(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.join(10)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that start now use one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start now do not hear Ctrl-C: whoever started them does, and ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def work(pipe: Any) -> None:
    """What a process does: a trial after the other, until the pipe closes."""
    maps, warm = dict[str, Place](), set[tuple[str, str]]()
    while True:
        try:
            task, place = pipe.recv()
        except (EOFError, OSError):
            return
        if place is not None:
            maps[task.digest] = place
        answer = attempted(task.trial, maps[task.digest], warm)
        try:
            pipe.send(answer)
        except OSError:
            return


def attempted(trial: Trial, place: Place, warm: set[tuple[str, str]]) -> tuple[Row | None, str]:
    """The scores of a trial, or why it has none; `warm` are the kinds of trials that this process has seen before."""
    try:
        kind = (type(trial.setting).__name__, trial.method.spelled)
        if kind not in warm:  # loops are compiled, or read from the disk, in nobody's time
            warm.add(kind)
            with suppress(HazemapError):
                trial.setting.measured(place.small(), trial.method, trial.epsilon, 0)
        return trial.setting.measured(place, trial.method, trial.epsilon, trial.repetition), ""
    except HazemapError as error:
        return None, f"{type(error).__name__}: {error}"
    except Exception as error:  # a bug of a method: the others go on, and the report says where it is
        where = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"{type(error).__name__}: {error} ({where.filename}, line {where.lineno})"


RESULTS, PICTURES = "results.parquet", "pictures"
Tell = Callable[[str, float | None], None]


class ComparisonOutcome(NamedTuple):
    """Rows of all finished trials, in the order of the trials; how many are new; and why others failed."""

    rows: list[Row]
    fresh: int
    failures: list[str]


def compared(
    trials: Sequence[Trial],
    atlas: Datasets,
    folder: Path,
    *,
    jobs: int,
    tell: Tell = lambda *_: None,
    afresh: bool = False,
) -> ComparisonOutcome:
    """Measure trials with `jobs` processes, and write `results.parquet` into the folder.

    What was finished there before is not measured again; a trial that is defined otherwise in anything is another
    one. Ends early by any exception (Ctrl-C too) with all that was finished kept.
    """
    if jobs < 1:
        raise InputError(f"at least one process has to work; found {jobs}")
    with opened(folder, afresh) as store:
        tasks, maps = tasked(trials, atlas, tell)
        todo = list({task.key: task for task in tasks if task.key not in store.rows}.values())
        failures, what = list[str](), f"{len(todo):,} trials"
        with closing(measured(todo, maps, min(jobs, max(len(todo), 1)))) as found:
            for number, done in enumerate(found, 1):
                if done.row is None:
                    trial = done.task.trial
                    failures.append(f"{trial.method.name} on {trial.place}, ε = {trial.epsilon}: {done.failure}")
                else:
                    store.add(done.task.key, _filed(done.row, done.task.key, folder))
                tell(what, number / len(todo))
        rows = [task.trial.labels(maps[task.digest]) | store.rows[task.key] for task in tasks if task.key in store.rows]
    write(rows, folder / RESULTS)
    return ComparisonOutcome(rows, len(todo) - len(failures), failures)


def _filed(row: Row, key: str, folder: Path) -> Row:
    """Pictures go to files of their own, before the row that names them."""
    kept = dict(row)
    for name, value in row.items():
        if isinstance(value, np.ndarray):
            (folder / PICTURES).mkdir(exist_ok=True)
            kept[name] = f"{PICTURES}/{key}.npy"
            with whole(folder / kept[name]) as part:
                np.save(part, value.astype(np.float32))
    return kept


def tasked(trials: Sequence[Trial], atlas: Datasets, tell: Tell) -> tuple[list[WorkerTask], dict[str, Place]]:
    """The trials with their keys and the maps by their digests; what cannot be run is refused now.

    No trial comes twice; two that differ in nothing but names have one key, and are measured once.
    """
    places, maps = dict[str, Place](), dict[str, Place]()
    for name in dict.fromkeys(trial.place for trial in trials):
        tell("maps", len(places) / len(trials))
        places[name] = atlas.map(name)
        maps[places[name].digest] = places[name]
    tasks = [
        WorkerTask(trial.key(places[trial.place]), trial, places[trial.place].digest) for trial in dict.fromkeys(trials)
    ]
    return tasks, maps


def write(rows: Sequence[Row], path: Path) -> None:
    """Results as Parquet: a row a trial, a column for each score; what a trial was not scored by is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        known = [value for value in values if value is not None]
        if any(isinstance(value, str) for value in known):
            columns[name] = pa.array([None if value is None else str(value) for value in values])
        elif all(isinstance(value, int) for value in known):
            columns[name] = pa.array(values, pa.int64())
        else:
            columns[name] = pa.array([None if value is None else float(value) for value in values], pa.float64())
    with whole(path) as part:
        pq.write_table(pa.table(columns), part)


NAME = "trials.jsonl"


class ResultsStore:
    """Rows of results by the key of their trial, in a folder; one process at a time may add to it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with opened(Path(folder)) as store:
    ...         store.add("a", {"mre": 0.5})
    ...     with opened(Path(folder)) as again:
    ...         again.rows
    {'a': {'mre': 0.5}}
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.rows: dict[str, Row] = {}
        kept = 0
        for line in file:
            if not line.endswith(b"\n"):
                break  # the line that was being written when the power went
            try:
                found = json.loads(line)
                self.rows[found["key"]] = found["row"]
            except (ValueError, KeyError, TypeError) as error:
                raise FileError(f"{file.name} is damaged at byte {kept}: remove it to measure all again") from error
            kept += len(line)
        file.seek(kept)
        file.truncate()

    def add(self, key: str, row: Row) -> None:
        """One more finished trial: on the disk when this returns."""
        self._file.write(json.dumps({"key": key, "row": row}, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows[key] = row


@contextmanager
def opened(folder: Path, afresh: bool = False) -> Iterator[ResultsStore]:
    """The store of a folder, which is made if need be; `afresh` forgets what was measured before.

    `FileError` if another process is at work in this folder, or if it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / NAME).open("a+b")
    except OSError as error:
        raise FileError(f"{folder} cannot be written to ({error.strerror}): choose another folder") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(
                f"another comparison is at work in {folder}: wait for it, or choose another folder"
            ) from error
        if afresh:
            file.truncate(0)
        file.seek(0)
        yield ResultsStore(file)
